from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logit

from support.likelihood import best, mean_loss
from truecal.recalibration import PlattScaling


@pytest.mark.parametrize("targets", ["smoothed", "labels"])
@pytest.mark.parametrize("weighted", [False, True])
def test_platt_is_the_maximum_of_the_likelihood(golden, targets, weighted):
    y, p = golden(300)
    z = logit(p)
    weight = 1.0 + np.arange(300) % 3 if weighted else np.ones(300)
    target = y.astype(float)
    if targets == "smoothed":
        n1, n0 = weight @ y, weight @ (1 - y)
        target = np.where(y == 1, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))
    expected = best(lambda ab: mean_loss(ab[0] * z + ab[1], target, weight), [1.0, 0.0])
    (found,) = PlattScaling(targets=targets).fit(p, y, sample_weight=weight).maps_
    np.testing.assert_allclose([found.slope, found.intercept], expected, atol=2e-5)


def test_platt_agrees_with_scikit_learns_sigmoid(golden):
    calibration = pytest.importorskip("sklearn.calibration")
    y, p = golden(400)
    theirs = calibration._SigmoidCalibration().fit(logit(p), y).predict(logit(p))
    np.testing.assert_allclose(PlattScaling().fit(p, y).transform(p), theirs, atol=1e-4)


def test_platt_may_fall():
    (found,) = PlattScaling().fit([0.1, 0.2, 0.4, 0.6, 0.8, 0.9], [1, 1, 0, 1, 0, 0]).maps_
    assert found.slope < 0


def test_platt_smoothing_keeps_separated_labels_finite():
    p, y = np.array([0.1] * 10 + [0.9] * 10), np.repeat([0, 1], 10)
    after = PlattScaling().fit(p, y).transform([0.1, 0.9])
    np.testing.assert_allclose(after, [1 / 12, 11 / 12], rtol=1e-5)
