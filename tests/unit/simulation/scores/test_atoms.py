"""Scores with finitely many values."""

import numpy as np
import pytest

from truecal.simulation import AtomScores


def test_everything_is_a_sum():
    scores = AtomScores([1.0, 0.25, 1.0], [0.2, 0.5, 0.3])
    assert scores.expect(lambda c, t: c + 10 * t) == pytest.approx(0.5 * (0.25 + 7.5) + 0.5)
    values, masses = scores.point_masses
    assert values.tolist() == [0.25, 1]
    assert masses.tolist() == [0.5, 0.5]
    assert scores.cdf([0.0, 0.25, 1.0]).tolist() == [0, 0.5, 1]
    assert scores.pdf([0.25]).tolist() == [0]
    assert AtomScores([0.5, 1]) == AtomScores((0.5, 1.0), weights=[0.5, 0.5])


def test_draws_have_the_shares():
    score, complement = AtomScores([0.1, 0.9], [0.3, 0.7]).draw(10_000, np.random.default_rng(0))
    assert set(score) == {0.1, 0.9}
    assert np.mean(score == 0.1) == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 10_000))
    assert (complement == 1 - score).all()


def test_bad_parameters():
    with pytest.raises(ValueError, match=r"values has 2 values outside \[0, 1\] \(first at row 1: 1.2\)"):
        AtomScores([0.1, 1.2, -3])
    with pytest.raises(ValueError, match=r"weights must sum to 1. Got a sum of 0.7"):
        AtomScores([0.1, 0.2], [0.3, 0.4])
    with pytest.raises(ValueError, match="weights must hold 2 numbers"):
        AtomScores([0.1, 0.2], [1.0])


def test_repr():
    assert repr(AtomScores([0, 1])) == "AtomScores(values=(0.0, 1.0), weights=(0.5, 0.5))"
