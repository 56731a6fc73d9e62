"""Confidence sequences."""

import numpy as np
import pytest

from truecal.inference.monitor.alternatives import weigh
from truecal.inference.monitor.bounds import error_bound, frequency_bounds


def test_error_bound_is_below_the_error_and_tightens():
    score = np.full(1, 0.5)
    bounds = []
    for n in (1_000, 100_000, 10_000_000):
        found = weigh(score, np.array([n]), np.array([0.6 * n]))
        bounds.append(error_bound(found.log_ratio, found.squares, n, 0.05))
    assert bounds == sorted(bounds)
    assert 0.07 < bounds[-1] <= 0.1


def test_error_bound_of_calibrated_rows_is_zero():
    found = weigh(np.array([0.5]), np.array([10_000.0]), np.array([5_000.0]))
    assert error_bound(found.log_ratio, found.squares, 10_000, 0.05) == 0


@pytest.mark.parametrize("rate", [0.001, 0.3, 0.999])
def test_frequency_bounds_hold_and_shrink(rate):
    widths = []
    for n in (100, 10_000, 1_000_000):
        low, high = frequency_bounds(n, rate * n, 0.05)
        assert 0 <= low <= rate <= high <= 1
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.05 * np.sqrt(rate * (1 - rate))


def test_frequency_bounds_mirror():
    low, high = frequency_bounds(500, 40, 0.05)
    mirrored = frequency_bounds(500, 460, 0.05)
    assert (1 - high, 1 - low) == pytest.approx(mirrored, abs=0.02)


def test_frequency_bounds_hold_at_all_times_at_once():
    rng = np.random.default_rng(3)
    at = np.unique(np.geomspace(10, 3000, 25).astype(int))
    missed = 0
    for _ in range(200):
        labels = np.cumsum(rng.random(3000) < 0.2)[at - 1]
        bounds = [frequency_bounds(float(n), float(k), 0.1) for n, k in zip(at, labels, strict=True)]
        missed += any(not low <= 0.2 <= high for low, high in bounds)
    assert missed / 200 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 200)
