import copy
import math
import pickle

import numpy as np
import pytest

from truecal.data.sample import Block, Sample, ScoreGroups, ones, prefix_sums

SCORE, POSITIVES = np.array([0.1, 0.4, 0.8]), np.array([0.0, 1.0, 1.0])


def test_groups_of_one_row_each():
    groups = ScoreGroups(score=SCORE, count=ones(3), positives=POSITIVES)
    assert (groups.n, groups.even, groups.whole, groups.rounding) == (3, True, True, 0)
    assert groups.bounds.tolist() == [0, 3]
    assert groups.label is groups.positives
    assert groups.cumulative_count.tolist() == [0, 1, 2, 3]
    assert groups.rows_between(np.array([0, 1]), np.array([2, 3])).tolist() == [2, 2]


def test_weighted_groups():
    groups = ScoreGroups(score=SCORE, count=np.array([2.0, 0.5, 1.0]), positives=np.array([1.0, 0.5, 0.0]))
    assert (groups.n, groups.even, groups.whole) == (3.5, False, False)
    assert groups.rounding > 0
    assert groups.label.tolist() == [0.5, 1, 0]
    assert groups.cumulative_positives.tolist() == [0, 1, 1.5, 1.5]
    assert groups.rows_between(np.array([0, 1]), np.array([2, 3])).tolist() == [2.5, 1.5]


@pytest.mark.parametrize("count", [ones(3), np.ones(3), np.array([1.0, 3.0, 2.0])])
def test_sums_of_runs(count):
    groups = ScoreGroups(score=SCORE, count=count, positives=POSITIVES)
    rows, score, positives = groups.sums(np.array([0, 2]))
    assert rows.tolist() == [count[0] + count[1], count[2]]
    np.testing.assert_allclose(score, [0.1 * count[0] + 0.4 * count[1], 0.8 * count[2]])
    assert positives.tolist() == [1, 1]


def test_prefix_sums_begin_with_zero():
    assert prefix_sums(np.array([1.0, 2.0, 3.0])).tolist() == [0, 1, 3, 6]


def test_middle_ranks_begin_anew_in_each_sample():
    groups = ScoreGroups(score=SCORE, count=np.array([2.0, 5.0, 1.0]), positives=POSITIVES)
    assert groups.middle_rank.tolist() == [0.5, 4, 7]
    two = ScoreGroups(score=SCORE, count=np.array([2.0, 5.0, 1.0]), positives=POSITIVES)
    object.__setattr__(two, "bounds", np.array([0, 1, 3]))
    assert two.middle_rank.tolist() == [0, 2, 5]


def brute_force(label, score, weight):
    """The groups of a sample by the definition: one after the other, each with exact sums."""
    groups = []
    for value in sorted(set(score.tolist())):
        here = score == value
        positives = math.fsum(weight[here] * label[here])
        groups.append((value + 0.0, math.fsum(weight[here]), positives))
    return tuple(np.array(column) for column in zip(*groups, strict=True))


def assert_same_groups(sample, expected):
    for name, column in zip(("score", "count", "positives"), expected, strict=True):
        np.testing.assert_allclose(getattr(sample, name), column, rtol=1e-15, atol=0, err_msg=name)


@pytest.fixture(params=["tie-free", "tied", "all equal", "one row"])
def rows(request, golden):
    label, score = golden(1 if request.param == "one row" else 300)
    if request.param == "tied":
        score = np.round(score, 1)
    if request.param == "all equal":
        score = np.full_like(score, 0.3)
    return label, score


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("kind", [bool, np.int8, np.int64, np.uint64, np.float16, np.float64])
def test_groups_are_those_of_the_definition(rows, dtype, kind):
    label, score = rows[0].astype(kind), rows[1].astype(dtype)
    sample = Sample.from_rows(label, score)
    assert_same_groups(sample, brute_force(rows[0], score.astype(np.float64), np.ones(len(score))))
    assert sample.dtype == dtype
    assert {sample.score.dtype, sample.count.dtype, sample.positives.dtype} == {np.dtype(np.float64)}


def test_weighted_groups_are_those_of_the_definition(rows):
    label, score = rows
    weight = np.arange(1, len(score) + 1) / 7
    sample = Sample.from_rows(label, score, weight)
    assert_same_groups(sample, brute_force(label, score, weight))
    assert sample.n == pytest.approx(weight.sum(), rel=1e-14)


def test_unit_weights_change_nothing(rows):
    plain, weighted = Sample.from_rows(*rows), Sample.from_rows(*rows, np.ones(len(rows[0])))
    for name in ("score", "count", "positives", "label", "cumulative_count", "cumulative_positives"):
        assert (getattr(plain, name) == getattr(weighted, name)).all()
    assert (plain.n, plain.even, plain.whole) == (weighted.n, weighted.even, weighted.whole)


@pytest.mark.parametrize("weighted", [False, True])
def test_row_order_changes_no_bit(golden, weighted):
    label, score = golden(500)
    score = np.round(score, 2)
    weight = np.arange(1, 501) / 7 if weighted else None
    expected = Sample.from_rows(label, score, weight)
    rng = np.random.default_rng(0)
    for _ in range(5):
        order = rng.permutation(500)
        sample = Sample.from_rows(label[order], score[order], None if weight is None else weight[order])
        for name in ("score", "count", "positives"):
            assert (getattr(sample, name) == getattr(expected, name)).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_sort_key_keeps_every_bit_of_extreme_scores(dtype):
    limits = np.finfo(dtype)
    score = np.array([0.0, limits.smallest_subnormal, limits.tiny, 0.5, 1 - limits.epsneg, 1.0], dtype=dtype)
    label = np.array([1, 0, 1, 0, 1, 0])
    order = np.array([5, 2, 0, 4, 1, 3])
    sample = Sample.from_rows(label[order], score[order])
    assert (sample.score == score.astype(np.float64)).all()
    assert (sample.positives == label).all()


@pytest.mark.parametrize("weight", [None, np.array([1.0, 0.5, 1.0, 2.0])])
def test_minus_zero_is_zero(weight):
    for score in ([-0.0, 0.0, 0.5, -0.0], [-0.0, -0.0, 0.5, -0.0]):
        sample = Sample.from_rows(np.array([1, 0, 1, 0]), np.array(score), weight)
        assert sample.score.tolist() == [0.0, 0.5]
        assert not np.signbit(sample.score).any()


def test_properties_of_a_small_sample_by_hand():
    label, score = np.array([1, 0, 1, 1]), np.array([0.9, 0.2, 0.2, 0.7])
    sample = Sample.from_rows(label, score, target="P(rain)")
    assert (len(sample), sample.n, sample.even, sample.whole) == (3, 4, False, True)
    assert sample.label.tolist() == [0.5, 1, 1]
    assert sample.cumulative_count.tolist() == [0, 2, 3, 4]
    assert sample.cumulative_positives.tolist() == [0, 1, 2, 3]
    assert repr(sample) == "Sample(n=4, groups=3, target='P(rain)')"


def test_whole_and_even_see_the_weights(golden):
    label, score = golden(10)
    for weight, whole, even in [(2.0, True, True), (0.5, False, True)]:
        sample = Sample.from_rows(label, score, np.full(10, weight))
        assert (sample.whole, sample.even) == (whole, even)
    uneven = Sample.from_rows(label, score, np.arange(1.0, 11.0))
    assert (uneven.whole, uneven.even) == (True, False)


def test_a_large_n_prints_all_its_digits(golden):
    assert repr(Sample.from_rows(*golden(1_234_567))).startswith("Sample(n=1234567, ")


def test_arrays_are_read_only_and_the_callers_stay_as_they_were(golden):
    label, score = golden(50)
    before = label.copy(), score.copy()
    sample = Sample.from_rows(label, score)
    for array in (sample.score, sample.count, sample.positives):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.5
    assert (label == before[0]).all()
    assert (score == before[1]).all()
    assert label.flags.writeable
    assert score.flags.writeable


@pytest.mark.parametrize("duplicate", [lambda s: pickle.loads(pickle.dumps(s)), copy.copy, copy.deepcopy])
@pytest.mark.parametrize("weight", [None, 0.5])
def test_a_copy_is_the_same_sample(rows, duplicate, weight):
    label, score = rows
    sample = Sample.from_rows(
        label, score.astype(np.float32), None if weight is None else np.full(len(score), weight), target="T"
    )
    double = duplicate(sample)
    for name in ("score", "count", "positives", "label", "cumulative_count"):
        assert (getattr(double, name) == getattr(sample, name)).all()
        assert getattr(double, name).strides == getattr(sample, name).strides
    assert (double.n, double.dtype, double.target) == (sample.n, np.float32, "T")
    assert not double.score.flags.writeable


def test_pickling_a_tie_free_sample_writes_no_counts(golden):
    label, score = golden(1000)
    assert len(pickle.dumps(Sample.from_rows(label, score))) < 2.1 * score.nbytes


def test_a_constant_count_of_another_value_is_believed():
    sample = Sample(
        score=np.array([0.2, 0.4]), count=np.broadcast_to(np.float64(3), 2), positives=np.array([1.0, 3.0])
    )
    assert sample.n == 6
    assert sample.label.tolist() == [1 / 3, 1]
    assert sample.cumulative_count.tolist() == [0, 3, 6]


def test_other_labels_on_the_same_scores(golden):
    sample = Sample.from_rows(*golden(20))
    other = sample.with_positives(1 - sample.positives)
    assert (other.score == sample.score).all()
    assert other.cumulative_positives[-1] == 20 - sample.cumulative_positives[-1]


def test_merged_groups_hold_the_same_rows():
    sample = Sample.from_rows(
        np.array([0, 1, 0, 1]), np.array([0.1, 0.2, 0.2, 0.9]), np.array([1.0, 2, 3, 4])
    )
    merged = sample.merge_groups(np.array([0, 2]))
    np.testing.assert_allclose(merged.score, [(0.1 + 5 * 0.2) / 6, 0.9])
    assert merged.count.tolist() == [6, 4]
    assert merged.positives.tolist() == [2, 4]


def test_one_covariance_for_repeated_rows_counts_and_clusters():
    rng = np.random.default_rng(1)
    score, label = np.round(rng.random(40), 1), rng.integers(0, 2, 40)
    each = rng.integers(1, 4, 40)

    def values(sample):
        return np.stack([-sample.score, 0.3 * sample.score]), np.stack([1 - sample.score, sample.score**2])

    counted = Sample.from_predictions(label, score, sample_weight=each, weighting="counts")
    repeated = Sample.from_predictions(np.repeat(label, each), np.repeat(score, each))
    expected = repeated.sum_covariance(*values(repeated))
    assert counted.sum_covariance(*values(counted)) == pytest.approx(expected)
    # Every row a cluster of its own: the same sums of squares, with the factor of an estimated mean.
    own = Sample.from_predictions(label, score, clusters=np.arange(40))
    plain = Sample.from_predictions(label, score)
    assert own.sum_covariance(*values(own)) == pytest.approx(40 / 39 * plain.sum_covariance(*values(plain)))
    # Rows that are repeated within clusters are known no better than once.
    weighted = Sample.from_predictions(label, score, sample_weight=each)
    together = Sample.from_predictions(
        np.repeat(label, each), np.repeat(score, each), clusters=np.repeat(np.arange(40), each)
    )
    expected = 40 / 39 * weighted.sum_covariance(*values(weighted))
    assert together.sum_covariance(*values(together)) == pytest.approx(expected)
    assert plain.degrees_of_freedom == np.inf
    assert own.degrees_of_freedom == 39
    assert plain.quantile(0.025) == pytest.approx(1.959964, abs=1e-6)


def test_the_standard_error_of_the_rate_is_that_of_a_binomial():
    sample = Sample.from_predictions([0, 0, 1, 1, 1], [0.1, 0.5, 0.4, 0.7, 0.9])
    error = sample.standard_error(np.zeros(5), np.ones(5))
    assert error == pytest.approx((0.6 * 0.4 / 5) ** 0.5)


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
