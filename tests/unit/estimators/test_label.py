"""ew_label and em_label against the formula, row by row."""

import numpy as np
import pytest

import truecal
from support import naive

CUTS = {"ew_label": naive.equal_width, "em_label": naive.equal_mass}


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("norm", [1, 1.5, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_is_the_formula(name, norm, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    p = np.round(rng.random(n), [17, 1, 2][seed % 3])
    y = rng.random(n) < p
    for weight in (None, rng.integers(1, 5, n), rng.integers(1, 9, n) / 8):
        for n_bins in (1, 7, 15, 100):
            expected = naive.label_binned(CUTS[name](naive.rows_of(y, p, weight), n_bins), norm)
            got = truecal.calibration_error(
                y, p, estimator=name, norm=norm, n_bins=n_bins, sample_weight=weight
            )
            assert got == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("kind", ["ew", "em"])
def test_it_counts_the_spread_of_scores_that_the_binned_error_does_not_see(kind):
    # One bin whose mean score is right: no binned error, but every score is 0.1 off.
    y, p = [0, 1] * 10, [0.4, 0.6] * 10
    assert truecal.calibration_error(y, p, estimator=f"{kind}_bin", n_bins=1) == pytest.approx(0, abs=1e-15)
    assert truecal.calibration_error(y, p, estimator=f"{kind}_label", n_bins=1) == pytest.approx(0.1)


@pytest.mark.parametrize("name", CUTS)
def test_edges(name):
    def error(y, p):
        return truecal.calibration_error(y, p, estimator=name, norm=1)

    assert error([1], [0.3]) == pytest.approx(0.7)
    assert error([0, 1, 1], [0.2, 0.5, 0.95]) == pytest.approx(0.25)
    assert error([1, 0], [0.0, 1.0]) == 1.0
    assert error([1] * 7 + [0] * 3, [0.3] * 10) == pytest.approx(0.4)
