import zlib

import numpy as np
import pytest

import truecal
from truecal._lib.numeric import keyed_generator
from truecal.estimators._registry import choose_estimators
from truecal.simulation import _study
from truecal.simulation._study import blocks_of, draw_blocks, draw_estimates, in_parallel

SQUARE = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))


@pytest.mark.parametrize(("n", "size"), [(1 << 16, 4), (1 << 18, 1), (1 << 20, 1)])
def test_blocks_cover_the_repetitions_in_order(n, size):
    blocks = list(blocks_of(range(3, 12), n))
    assert [number for block in blocks for number in block] == list(range(3, 12))
    assert max(map(len, blocks)) == size


def test_a_sample_depends_on_seed_key_and_number_only(monkeypatch):
    def draw(repetitions):
        blocks = draw_blocks(SQUARE, 40, repetitions, seed=1, key=(2,))
        return [sample for block in blocks for sample in block]

    whole = draw(range(10))
    monkeypatch.setattr(_study, "_BLOCK_ROWS", 80)
    in_blocks, later = draw(range(10)), draw(range(6, 10))
    for one, two in [*zip(whole, in_blocks, strict=True), *zip(whole[6:], later, strict=True)]:
        np.testing.assert_array_equal(one.score, two.score)
        np.testing.assert_array_equal(one.positives, two.positives)
    y, p = SQUARE.sample(40, rng=keyed_generator(1, 2, 7))
    np.testing.assert_array_equal(np.sort(p), whole[7].score)
    assert whole[7].positives.sum() == y.sum()


def test_estimates_and_bins_of_every_choice():
    choices = choose_estimators([{"estimator": "em_bin", "n_bins": 4}, "ks"])
    values = draw_estimates(SQUARE, "square", 50, range(2, 5), choices, 1.0, 3)
    assert values.shape == (2, 2, 3)
    assert values[0, 1].tolist() == [4, 4, 4]
    assert np.isnan(values[1, 1]).all()
    for column, repetition in enumerate(range(2, 5)):
        y, p = SQUARE.sample(50, rng=keyed_generator(3, zlib.crc32(b"square"), 50, repetition))
        expected = truecal.calibration_error(y, p, estimator="em_bin", n_bins=4, norm=1)
        assert values[0, 0, column] == expected


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_outcomes_come_in_the_order_of_the_jobs(n_jobs):
    jobs = [(k, 2) for k in range(6)]
    assert list(in_parallel(pow, jobs, name="squares", n_jobs=n_jobs)) == [k**2 for k in range(6)]


def test_progress_counts_costs(capfd):
    assert list(in_parallel(pow, [(2, 3)], name="cubes", costs=[5.0], progress=True)) == [8]
    assert "cubes: 100.0%" in capfd.readouterr().err
