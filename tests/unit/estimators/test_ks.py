"""ks against the formula: every threshold, every row."""

import numpy as np
import pytest

import truecal
from support import naive


@pytest.mark.parametrize("seed", range(20))
def test_is_the_formula(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    p = np.round(rng.random(n), [17, 1, 2][seed % 3])
    y = rng.random(n) < p**2
    for weight in (None, rng.integers(1, 5, n), rng.integers(1, 9, n) / 8):
        expected = naive.cumulative(naive.rows_of(y, p, weight))
        got = truecal.calibration_error(y, p, estimator="ks", sample_weight=weight)
        assert got == pytest.approx(expected, abs=1e-14)


def test_ties_are_summed_before_they_are_looked_at():
    # Row by row the sums of this one group rise to 0.21 before they fall to 0.
    y, p = np.repeat([0, 1], [7, 3]), np.full(10, 0.3)
    assert truecal.calibration_error(y, p, estimator="ks") == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize(
    ("y", "p", "value"),
    [([1], [0.3], 0.7), ([0], [1.0], 1.0), ([1, 0], [0.0, 1.0], 0.5), ([0, 0, 0], [1.0, 0.5, 0.0], 0.5)],
)
def test_edges(y, p, value):
    assert truecal.calibration_error(y, p, estimator="ks") == pytest.approx(value)


def test_it_is_at_least_the_gap_of_the_means():
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = rng.random(1000) < p**2
    assert truecal.calibration_error(y, p, estimator="ks") >= abs(p.mean() - y.mean())


def test_rounding_of_weights_does_not_pass_the_greatest_value():
    rng = np.random.default_rng(0)
    p = np.arange(300) * 1e-300  # all different, and all wrong by 1
    for _ in range(50):
        assert truecal.calibration_error(np.ones(300), p, estimator="ks", sample_weight=rng.random(300)) <= 1
