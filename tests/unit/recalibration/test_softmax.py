"""Vector scaling and Dirichlet calibration: gradients, recovery, regularisation, two classes."""

import numpy as np
import pytest
from scipy.special import softmax

from truecal.recalibration import DirichletCalibration, VectorScaling
from truecal.recalibration._softmax import fit_softmax


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
