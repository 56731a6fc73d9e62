import numpy as np
import pytest
from scipy.optimize import minimize

from truecal._lib.isotonic import isotonic_rate


def test_it_is_the_best_rising_curve():
    """Against a general optimiser over non-negative increments."""
    rng = np.random.default_rng(0)
    count = rng.integers(1, 6, 12).astype(float)
    positives = rng.binomial(count.astype(int), np.linspace(0.2, 0.8, 12)).astype(float)

    def loss(steps):
        return float(count @ (np.cumsum(steps) - positives / count) ** 2)

    best = minimize(loss, np.full(12, 0.05), bounds=[(0, 1)] * 12, options={"ftol": 1e-14})
    np.testing.assert_allclose(isotonic_rate(count, positives), np.cumsum(best.x), atol=2e-3)
    assert loss(np.diff(isotonic_rate(count, positives), prepend=0)) <= best.fun + 1e-9


def test_rising_rates_are_unchanged_and_falling_ones_pooled():
    count = np.array([2.0, 2.0, 4.0])
    assert isotonic_rate(count, np.array([0.0, 1.0, 4.0])).tolist() == [0, 0.5, 1]
    assert isotonic_rate(count, np.array([2.0, 1.0, 0.0])) == pytest.approx([3 / 8] * 3)
