"""Observed scores."""

import numpy as np
import pytest

from truecal.simulation import EmpiricalScores


def test_draws_are_real_scores():
    values = np.random.default_rng(0).random(50)
    score, complement = EmpiricalScores(values).draw(1000, np.random.default_rng(1))
    assert set(score) == set(values)
    assert (complement == 1 - score).all()


def test_mean_over_scores_is_the_mean():
    values = np.round(np.random.default_rng(0).random(200), 2)
    scores = EmpiricalScores(values)
    assert scores.expect(lambda c, t: np.abs(c - 0.3)) == pytest.approx(np.mean(np.abs(values - 0.3)))
    assert scores.cdf(0.4) == pytest.approx(np.mean(values <= 0.4))


def test_keeps_float32_and_does_not_share_memory():
    values = np.array([0.25, 0.5], dtype=np.float32)
    scores = EmpiricalScores(values)
    values[0] = 0
    assert scores.values.tolist() == [0.25, 0.5]
    assert scores.output_dtype == np.float32
    assert scores != EmpiricalScores([0.25, 0.5])
    assert scores == EmpiricalScores(np.array([0.25, 0.5], dtype=np.float32))
    assert len({scores, EmpiricalScores(np.array([0.25, 0.5], dtype=np.float32))}) == 1
