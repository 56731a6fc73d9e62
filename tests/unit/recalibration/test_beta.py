from __future__ import annotations

import numpy as np
from scipy.special import expit

from support.likelihood import best, mean_loss
from truecal.recalibration import BetaCalibration


def test_beta_is_the_maximum_of_the_likelihood(golden):
    y, p = golden(300)

    def loss(abc):
        return mean_loss(abc[0] * np.log(p) - abc[1] * np.log1p(-p) + abc[2], y)

    expected = best(loss, [1.0, 1.0, 0.0], bounds=[(0, None), (0, None), (None, None)])
    (found,) = BetaCalibration().fit(p, y).maps_
    fitted = np.array([found.a, found.b, found.c])
    np.testing.assert_allclose(fitted, expected, atol=2e-3)
    assert loss(fitted) <= loss(expected) + 1e-12


def test_beta_of_a_calibrated_model_is_nearly_the_identity(golden):
    y, p = golden(20_000, "identity")
    (found,) = BetaCalibration().fit(p, y).maps_
    np.testing.assert_allclose([found.a, found.b, found.c], [1, 1, 0], atol=0.03)


def test_beta_parameters_stop_at_zero_exactly():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = (rng.random(2000) < expit(-2 - 0.7 * np.log(p) - 2 * np.log1p(-p))).astype(int)  # a is -0.7
    (found,) = BetaCalibration().fit(p, y).maps_
    assert found.a == 0
    assert found.b > 1
    expected = best(lambda bc: mean_loss(-bc[0] * np.log1p(-p) + bc[1], y), [1.0, 0.0])
    np.testing.assert_allclose([found.b, found.c], expected, atol=1e-4)


def test_beta_logits_keep_what_probabilities_lose():
    # Beyond 37 every probability is 1 and tells nothing more; the logit still does.
    z = np.concatenate([np.full(50, 38.0), np.full(50, 60.0), np.full(20, -40.0)])
    y = np.concatenate([np.tile([0, 1], 25), np.ones(50), np.zeros(20)]).astype(int)
    fine = BetaCalibration(input="logits").fit(z, y).transform([38.0, 60.0])
    coarse = BetaCalibration().fit(expit(z), y).transform(expit([38.0, 60.0]))
    np.testing.assert_allclose(fine, [0.5, 1], atol=0.01)
    np.testing.assert_allclose(coarse, 0.75, atol=0.01)
