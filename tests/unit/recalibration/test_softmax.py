"""Vector scaling and Dirichlet calibration."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from truecal.recalibration import BetaCalibration, DirichletCalibration, TemperatureScaling, VectorScaling
from truecal.recalibration._softmax import fit_softmax
from truecal.recalibration.selection import select_recalibrator


def drawn(n, matrix, intercept=0.0, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(len(matrix)), n)
    chance = softmax(np.log(proba) @ matrix.T + intercept, axis=1)
    return (chance.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), proba, chance


def test_the_optimum_has_no_slope():
    y, proba, _ = drawn(300, 0.5 * np.eye(3))
    logs, truth = np.log(proba), np.eye(3)[y]
    fitted, _ = fit_softmax(logs, y, None, penalty=2.0, full=True)
    excess = fitted(logs) - truth
    off = fitted.weight * (1 - np.eye(3))
    np.testing.assert_allclose(excess.T @ logs + 4 * off, 0, atol=0.01)
    np.testing.assert_allclose(excess.sum(axis=0) + 4 * fitted.intercept, 0, atol=0.01)


def test_logits_and_probabilities_agree():
    y, proba, _ = drawn(400, 0.5 * np.eye(3))
    for kind in (VectorScaling, DirichletCalibration):
        one = kind().fit(proba, y).transform(proba)
        other = kind(input="logits").fit(np.log(proba) + 3, y).transform(np.log(proba) + 3)
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_separated_classes_stay_finite():
    proba = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]] * 5)
    after = DirichletCalibration().fit(proba, [0, 1, 2] * 5).transform(proba)
    assert np.isfinite(after).all()
    assert after.max() < 1


@pytest.mark.parametrize("value", [0, -1, "much", np.nan])
def test_bad_regularization_is_refused(value):
    with pytest.raises(ValueError, match="regularization must be"):
        DirichletCalibration(regularization=value).fit([[0.5, 0.3, 0.2]] * 3, [0, 1, 2])


def test_two_classes_are_beta_calibration_without_a_penalty():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    y = (rng.random(3000) < expit(0.7 * np.log(p) - 1.3 * np.log1p(-p) + 0.2)).astype(int)
    ours = VectorScaling(regularization=1e-9).fit(p, y).transform(p)
    np.testing.assert_allclose(ours, BetaCalibration().fit(p, y).transform(p), atol=2e-3)


def test_each_class_has_its_own_slope():
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(3), 20_000)
    chance = np.exp(np.log(proba) * [0.5, 1.0, 1.5])
    chance /= chance.sum(axis=1, keepdims=True)
    y = (chance.cumsum(axis=1) > rng.random((20_000, 1))).argmax(axis=1)
    weight = VectorScaling().fit(proba, y).map_.weight
    np.testing.assert_allclose(np.diag(weight), [0.5, 1.0, 1.5], atol=0.1)
    assert np.count_nonzero(weight) == 3


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
