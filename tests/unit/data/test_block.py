import numpy as np
import pytest

from truecal.data.block import Block
from truecal.data.sample import Sample


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("tied", [[], [1], [0, 1, 2, 3]])
def test_its_samples_are_those_of_each_row(golden, dtype, tied):
    label, score = (array.reshape(4, 25) for array in golden(100))
    score = score.astype(dtype)
    score[tied] = np.round(score[tied], 1)
    block = Block.from_rows(label, score, target="T")
    assert (len(block), block.n, block.whole, block.rounding) == (4, 25, True, 0)
    assert block.distinct.tolist() == [row not in tied for row in range(4)]
    for row, sample in enumerate(block):
        alone = Sample.from_rows(label[row], score[row], target="T")
        own = slice(*block.bounds[row : row + 2])
        for name in ("score", "count", "positives"):
            np.testing.assert_array_equal(getattr(sample, name), getattr(alone, name))
            np.testing.assert_array_equal(getattr(block, name)[own], getattr(alone, name))
        assert (sample.dtype, sample.target, sample.one_row_each) == (dtype, "T", alone.one_row_each)
    assert block.samples is block.samples


def test_rows_are_sorted_with_their_labels():
    block = Block.from_rows(np.array([[1, 0, 1, 0]]), np.array([[0.5, 0.9, -0.0, 0.5]]))
    assert block.row_score.tolist() == [[0, 0.5, 0.5, 0.9]]
    assert block.row_label.tolist() == [[1, 0, 1, 0]]
    assert not np.signbit(block.row_score).any()


def test_sums_over_runs_are_those_of_the_samples(golden):
    label, score = (array.reshape(5, 20) for array in golden(100))
    score[::2] = np.round(score[::2], 1)
    block = Block.from_rows(label, score)
    start = np.sort(np.concatenate([block.bounds[:-1], block.bounds[:-1] + 3]))
    sums = [sample.sums(np.array([0, 3])) for sample in block]
    for found, expected in zip(block.sums(start), np.concatenate(sums, axis=1), strict=True):
        np.testing.assert_array_equal(found, expected)
