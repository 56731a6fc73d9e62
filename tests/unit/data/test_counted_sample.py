"""Distances of counted rows are those of rows one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from truecal.data.width_bins import WidthBins


def exact(score: np.ndarray, level: np.ndarray, p: float) -> float:
    """Return the l_p distance from the level of each row, with sums that are rounded once."""
    power = np.abs(score - level) ** p
    return (math.fsum(power) / len(score)) ** (1 / p)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 40.0])
def test_distance_from_the_levels_of_bins(p: float) -> None:
    rng = np.random.default_rng(0)
    score = rng.random(5000)
    sample = WidthBins(10, np.dtype(np.float64)).count(rng.random(5000) < score, score, "the event")
    level = rng.random(10)
    (found,) = sample.distance(level, np.arange(10), p)
    assert found == pytest.approx(exact(score, level[np.floor(10 * score).astype(int)], p), rel=1e-13)


def test_distance_from_levels_of_several_groups() -> None:
    rng = np.random.default_rng(1)
    score = rng.random(2000)
    sample = WidthBins(12, np.dtype(np.float64)).count(rng.random(2000) < score, score, "the event")
    (found,) = sample.distance(np.array([0.2, 0.7]), np.array([0, 6]), 2.0)
    assert found == pytest.approx(exact(score, np.where(score < 0.5, 0.2, 0.7), 2.0), rel=1e-13)


@pytest.mark.parametrize("offset", [0.0, 1e-9, 1e-200])
def test_tiny_distances_are_taken_from_the_rows_themselves(offset: float) -> None:
    level = (np.arange(5) + 0.5) / 5
    score = np.repeat(level, 300) + offset
    sample = WidthBins(5, np.dtype(np.float64)).count(np.ones(1500, dtype=bool), score, "the event")
    (found,) = sample.distance(level, np.arange(5), 2.0)
    assert found == pytest.approx(exact(score, np.repeat(level, 300), 2.0), rel=1e-12, abs=0)
