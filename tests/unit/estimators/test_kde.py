"""kde against plain sums of kernels over rows, without grid cells and without Fourier transforms."""

import numpy as np
import pytest

import truecal
from support import naive
from truecal.data.sample import Sample
from truecal.estimators.kde import _GRID, _STEP, _densities


def error(y, p, **options):
    return truecal.calibration_error(y, p, estimator="kde", **options)


SCORES = {
    "uniform": lambda rng: rng.random(40),
    "skewed": lambda rng: rng.beta(3, 0.1, 40),
    "rounded": lambda rng: np.round(rng.random(40), 1),
    "few": lambda rng: rng.random(7),
    "at the ends": lambda rng: rng.choice([0.0, 0.3, 1.0], 20),
    "two": lambda rng: rng.choice([0.2, 0.9], 30),
}


@pytest.mark.parametrize("norm", [1, 1.5, 2, 3])
@pytest.mark.parametrize("scores", SCORES)
def test_is_the_formula(norm, scores):
    rng = np.random.default_rng(0)
    p = SCORES[scores](rng)
    y = (rng.random(len(p)) < p).astype(int)
    # The cells of the grid matter more the narrower the kernel is.
    for bandwidth, tolerance in ((None, 1e-6), (0.2, 1e-7), (0.02, 2e-6), (0.0005, 1e-3)):
        expected = naive.kernel_density(y, p, norm, bandwidth)
        assert error(y, p, norm=norm, bandwidth=bandwidth) == pytest.approx(expected, abs=tolerance)


def test_the_grid_is_the_authors():
    grid = np.linspace(-0.6, 1.6, 2**14)
    np.testing.assert_allclose(_GRID, grid[(grid >= 0) & (grid <= 1)], rtol=0, atol=1e-15)


def test_mirroring_keeps_the_density_level_at_both_ends():
    # Uniform scores: the density is 1 everywhere; without mirrors it would be a half at 0 and 1.
    p = (np.arange(20_000) + 0.5) / 20_000
    everything, hits = _densities(Sample.from_rows(p > 0.7, p), 0.3)
    np.testing.assert_allclose(everything, 1.0, atol=1e-4)
    assert np.all(hits <= everything + 1e-12)
    assert np.sum(hits) * _STEP == pytest.approx(0.3, abs=1e-3)


@pytest.mark.parametrize("norm", [1, 2, 3])
def test_one_class(norm):
    # All positive: the curve is 1 wherever there are scores, and the error is the mean of (1 - score)^p.
    p = (np.arange(5000) + 0.5) / 5000
    expected = (1 / (norm + 1)) ** (1 / norm)
    assert error(np.ones(5000), p, norm=norm) == pytest.approx(expected, abs=2e-4)
    assert error(np.zeros(5000), p, norm=norm) == pytest.approx(expected, abs=2e-4)


def test_one_positive_row_has_no_deviation_of_its_own():
    p = (np.arange(80) + 0.5) / 80
    y = np.arange(80) == 20
    assert error(y, p) == pytest.approx(naive.kernel_density(y, p, 2, p.std() * 160**-0.2), abs=1e-6)


@pytest.mark.parametrize(("y", "score"), [([1], 0.3), ([0, 1, 1], 0.0), ([0, 1, 1], 1.0), ([0, 0], 0.5)])
def test_all_scores_equal(y, score):
    assert error(y, [score] * len(y)) == pytest.approx(abs(score - np.mean(y)))


def test_scores_closer_than_the_grid():
    # All within a tenth of a step of 0.5, half of them positive: no kernel may fall between grid points.
    p = 0.5 + np.linspace(0, _STEP / 10, 50)
    assert error(np.arange(50) % 2, p) == pytest.approx(0.0, abs=2e-3)
    assert error(np.ones(50), p) == pytest.approx(0.5, abs=2e-3)


def test_an_empty_stretch_adds_nothing():
    # Two narrow heaps of scores far apart, each 0.1 off, whatever lies between them.
    rng = np.random.default_rng(0)
    heaps = np.repeat([0.1, 0.9], 2000) + rng.uniform(-0.001, 0.001, 4000)
    y = np.tile(np.arange(10) < 2, 400)
    y[2000:] = np.tile(np.arange(10) < 8, 200)
    assert error(y, heaps, norm=1, bandwidth=0.0005) == pytest.approx(0.1, abs=2e-3)


def test_a_large_sample_is_near_the_truth():
    rng = np.random.default_rng(0)
    p = rng.random(200_000)
    y = rng.random(200_000) < p**2
    assert error(y, p) == pytest.approx(np.sqrt(1 / 30), abs=0.003)


def test_weights_are_repetition():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(200), 2)
    y = rng.random(200) < p
    weight = rng.integers(1, 4, 200)
    repeated = error(np.repeat(y, weight), np.repeat(p, weight))
    assert error(y, p, sample_weight=weight) == pytest.approx(repeated, abs=1e-12)


def test_weights_that_sum_to_next_to_nothing():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    assert 0 <= error(y, p, sample_weight=np.full(200, 1e-30)) <= 1


@pytest.mark.parametrize("bad", [0, -0.1, 0.3, 1e-5, np.nan, "wide"])
def test_bandwidth_must_fit_the_grid(bad):
    with pytest.raises(ValueError, match=r"bandwidth must be a number between 0\.00013.* Got"):
        error([0, 1], [0.2, 0.8], bandwidth=bad)


def test_large_norms_do_not_underflow():
    rng = np.random.default_rng(3)
    p = rng.random(500)
    y = rng.random(500) < p**2
    errors = [error(y, p, norm=norm) for norm in (50, 300, 500, 5000, 1e308)]
    assert errors == sorted(errors)
    assert 0.2 < errors[-1] <= 1


def test_the_bandwidth_does_not_depend_on_the_scale_of_weights_below_1():
    rng = np.random.default_rng(3)
    p = rng.random(500)
    y = rng.random(500) < p**2
    assert error(y, p, sample_weight=np.full(500, 1 / 500)) == pytest.approx(error(y, p), rel=1e-12)
