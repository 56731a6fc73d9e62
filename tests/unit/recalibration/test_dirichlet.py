"""Dirichlet calibration: recovery of a matrix, the penalty, and the selection."""

import numpy as np
import pytest
from scipy.special import softmax

from truecal.recalibration import DirichletCalibration, TemperatureScaling, VectorScaling
from truecal.recalibration.selection import select_recalibrator


def drawn(n, matrix, intercept=0.0, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(len(matrix)), n)
    chance = softmax(np.log(proba) @ matrix.T + intercept, axis=1)
    return (chance.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), proba, chance


def loss(y, proba):
    return -np.mean(np.log(proba[np.arange(len(y)), y]))


def test_recovers_a_matrix():
    matrix = np.array([[0.6, 0.3, 0.0], [0.0, 0.8, 0.0], [-0.2, 0.0, 0.7]])
    y, proba, chance = drawn(20_000, matrix, np.array([0.2, -0.2, 0.0]))
    full = DirichletCalibration().fit(proba, y).transform(proba)
    vector = VectorScaling().fit(proba, y).transform(proba)
    before, after, diagonal = (np.abs(one - chance).mean() for one in (proba, full, vector))
    assert after < 0.01 < diagonal < before
    assert loss(y, full) < loss(y, vector) < loss(y, proba)


def test_strong_regularisation_leaves_only_slopes():
    y, proba, _ = drawn(2000, 0.5 * np.eye(3))
    (weight, intercept) = (
        getattr(DirichletCalibration(regularization=1e8).fit(proba, y).map_, name)
        for name in ("weight", "intercept")
    )
    assert np.abs(weight - np.diag(np.diag(weight))).max() < 1e-3
    assert np.abs(intercept).max() < 1e-3
    temperature = TemperatureScaling(input="probabilities").fit(proba, y)
    assert np.diag(weight).mean() == pytest.approx(1 / temperature.temperature_, abs=0.05)


def test_the_selection_knows_them_by_name():
    y, proba, _ = drawn(3000, np.array([[0.4, 0.3, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.9]]))
    names = ["temperature", "vector", "dirichlet", "venn_abers"]
    selection = select_recalibrator(y, proba, candidates=names, n_resamples=5, rng=0)
    assert {candidate.name for candidate in selection.candidates} == {"identity", *names}
    assert selection.chosen == "dirichlet"
