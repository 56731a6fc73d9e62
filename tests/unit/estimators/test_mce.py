"""ew_mce and em_mce against the formula, row by row."""

import numpy as np
import pytest

import truecal
from support import naive

CUTS = {"ew_mce": naive.equal_width, "em_mce": naive.equal_mass}


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("seed", range(12))
def test_is_the_formula(name, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    p = np.round(rng.random(n), [17, 1, 2][seed % 3])
    y = rng.random(n) < p
    for weight in (None, rng.integers(1, 5, n), rng.integers(1, 9, n) / 8):
        for n_bins in (1, 7, 15, 100):
            expected = naive.largest(CUTS[name](naive.rows_of(y, p, weight), n_bins))
            got = truecal.calibration_error(y, p, estimator=name, n_bins=n_bins, sample_weight=weight)
            assert got == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("name", CUTS)
def test_it_is_the_limit_of_the_binned_error(name):
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < p
    binned = name.replace("mce", "bin")
    largest = truecal.calibration_error(y, p, estimator=name)
    assert truecal.calibration_error(y, p, estimator=binned, norm=1e5) == pytest.approx(largest, rel=1e-3)


def test_mce_alone_means_equal_width():
    y, p = [0, 1, 1, 0], [0.1, 0.2, 0.8, 0.85]
    assert truecal.calibration_error(y, p, estimator="mce") == truecal.calibration_error(
        y, p, estimator="ew_mce"
    )


def test_there_is_no_norm():
    assert truecal.estimate([0, 1], [0.2, 0.7], estimator="ew_mce", norm=3).norm is None
