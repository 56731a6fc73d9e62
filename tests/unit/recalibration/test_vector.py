"""Vector scaling of two classes is beta calibration."""

import numpy as np
from scipy.special import expit

from truecal.recalibration import BetaCalibration, VectorScaling


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
