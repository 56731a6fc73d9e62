"""Confidence sequences."""

import numpy as np
import pytest

from truecal.inference.monitor.bounds import frequency_bounds, largest_error, smallest_error
from truecal.inference.monitor.evidence import tally, weigh


def _bounds(units, labels, alpha):
    low, high = frequency_bounds(np.array([units]), np.array([labels]), alpha)
    return float(low[0]), float(high[0])


def test_error_bound_is_below_the_error_and_tightens():
    score = np.full(1, 0.5)
    bounds = []
    for n in (1_000, 100_000, 10_000_000):
        found = weigh(tally(score, np.array([n]), np.array([0.6 * n])))
        bounds.append(smallest_error(found.log_ratio, found.squares, n, 0.05))
    assert bounds == sorted(bounds)
    assert 0.07 < bounds[-1] <= 0.1


def test_error_bound_of_calibrated_rows_is_zero():
    found = weigh(tally(np.array([0.5]), np.array([10_000.0]), np.array([5_000.0])))
    assert smallest_error(found.log_ratio, found.squares, 10_000, 0.05) == 0


@pytest.mark.parametrize("rate", [0.001, 0.3, 0.999])
def test_frequency_bounds_hold_and_shrink(rate):
    widths = []
    for n in (100, 10_000, 1_000_000):
        low, high = _bounds(n, rate * n, 0.05)
        assert 0 <= low <= rate <= high <= 1
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.05 * np.sqrt(rate * (1 - rate))


def test_frequency_bounds_mirror():
    low, high = _bounds(500, 40, 0.05)
    mirrored = _bounds(500, 460, 0.05)
    assert (1 - high, 1 - low) == pytest.approx(mirrored, abs=0.02)


def test_frequency_bounds_hold_at_all_times_at_once():
    rng = np.random.default_rng(3)
    at = np.unique(np.geomspace(10, 3000, 25).astype(int))
    missed = 0
    for _ in range(200):
        labels = np.cumsum(rng.random(3000) < 0.2)[at - 1]
        low, high = frequency_bounds(at, labels, 0.1)
        missed += ((low > 0.2) | (high < 0.2)).any()
    assert missed / 200 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 200)


def test_largest_error_holds_and_tightens():
    bounds = []
    for n in (1_000, 100_000, 10_000_000):
        sums = np.array([[n, n, 0], [0.3 * n, 0.5 * n, 0], [0.2 * n, 0.6 * n, 0]])
        bounds.append(largest_error(sums, 0.05))
    assert bounds == sorted(bounds, reverse=True)
    assert 0.1 < bounds[-1] < 0.102


def test_parts_of_units_give_wider_bounds_than_as_many_units():
    """A row of a cluster of five is a fifth of a unit; the bounds are those of the sum of the parts."""
    whole, fifth = _bounds(1000, 300, 0.05), _bounds(200, 60, 0.05)
    assert fifth[0] < whole[0] < 0.3 < whole[1] < fifth[1]
