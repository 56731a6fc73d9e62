"""Curves of few parameters."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax, logit, softmax

from support.likelihood import best, mean_loss
from truecal.exceptions import CalibrationWarning
from truecal.recalibration import (
    BetaCalibration,
    IdentityCalibration,
    PlattScaling,
    SplineCalibration,
    TemperatureScaling,
)


def test_probabilities_stay_as_they_are(golden):
    y, p = golden(50)
    assert IdentityCalibration().fit(p, y).transform(p).tolist() == p.tolist()


@pytest.mark.parametrize("n_classes", [1, 3])
def test_logits_become_probabilities(n_classes):
    logits = np.random.default_rng(0).normal(size=(30, n_classes))
    same = IdentityCalibration(input="logits").fit(logits, np.arange(30) % max(n_classes, 2))
    expected = expit(logits) if n_classes == 1 else softmax(logits, axis=1)
    assert np.reshape(same.transform(logits), expected.shape) == pytest.approx(expected)


def brute_force(logits, label, weight=None):
    """The best temperature on ever finer grids, by the definition of the loss."""
    centre, width = 0.0, 8.0
    for _ in range(12):
        grid = np.linspace(centre - width, centre + width, 41)
        loss = [
            -np.average(log_softmax(logits / np.exp(t), axis=1)[np.arange(len(label)), label], weights=weight)
            for t in grid
        ]
        centre, width = grid[int(np.argmin(loss))], width / 10
    return np.exp(centre)


@pytest.mark.parametrize("n_classes", [2, 3, 20])
@pytest.mark.parametrize("truth", [0.02, 0.5, 1.0, 3.0, 200.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_finds_what_a_brute_force_search_finds(n_classes, truth, weighted):
    rng = np.random.default_rng(n_classes)
    calibrated = rng.normal(size=(400, n_classes)) * 3
    chance = np.exp(log_softmax(calibrated, axis=1)).cumsum(axis=1)
    label = (rng.random((400, 1)) > chance).sum(axis=1)
    weight = 1.0 + np.arange(400) % 3 if weighted else None
    logits = truth * calibrated
    fitted = TemperatureScaling().fit(logits, label, sample_weight=weight)
    assert fitted.temperature_ == pytest.approx(brute_force(logits, label, weight), rel=1e-6)
    assert fitted.n_iter_ <= 15


def test_one_column_by_hand():
    # Three of four come true at odds of e^2: the temperature that makes the odds 3 is 2 / log 3.
    fitted = TemperatureScaling().fit([2.0, 2.0, 2.0, 2.0], [1, 1, 1, 0])
    assert fitted.temperature_ == pytest.approx(2 / np.log(3), rel=1e-9)
    assert fitted.transform([2.0]) == pytest.approx(0.75)


def test_a_shift_of_all_logits_changes_nothing(three_classes):
    label, logits = three_classes
    shifted = logits + 1e3 * np.arange(len(logits))[:, np.newaxis]
    plain, moved = TemperatureScaling().fit(logits, label), TemperatureScaling().fit(shifted, label)
    assert moved.temperature_ == pytest.approx(plain.temperature_, rel=1e-8)


def test_the_order_of_classes_stays(three_classes):
    label, logits = three_classes
    after = TemperatureScaling().fit(logits, label).transform(logits)
    np.testing.assert_array_equal(after.argmax(axis=1), logits.argmax(axis=1))


def test_labels_that_fall_with_the_logits():
    with pytest.warns(UserWarning, match="do not rise with the logits: no temperature is high enough"):
        fitted = TemperatureScaling().fit([-2.0, -1.0, 1.0, 2.0], [1, 1, 0, 0])
    np.testing.assert_allclose(fitted.transform([-2.0, 2.0]), 0.5, atol=1e-3)


def test_logits_that_are_always_right():
    with pytest.warns(UserWarning, match="right in every row"):
        fitted = TemperatureScaling().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    np.testing.assert_allclose(fitted.transform([-1.0, 1.0]), [0, 1], atol=1e-6)


def test_equal_logits_have_temperature_1():
    assert TemperatureScaling().fit(np.zeros((4, 3)), [0, 1, 2, 2]).temperature_ == 1


def test_probabilities_of_exactly_0():
    p = np.array([[1.0, 0.0, 0.0], [0.7, 0.2, 0.1], [0.2, 0.8, 0.0], [0.5, 0.25, 0.25]], dtype=np.float32)
    after = TemperatureScaling(input="probabilities").fit(p, [0, 1, 1, 2]).transform(p)
    assert np.isfinite(after).all()
    np.testing.assert_allclose(after.sum(axis=1), 1)


def test_equal_logits_and_equal_labels_have_a_finite_temperature():
    with pytest.warns(CalibrationWarning, match="temperature 0"):
        scaling = TemperatureScaling().fit([1 / 3] * 16, [1] * 16)
    assert 0 < scaling.temperature_ < 1
    assert np.isfinite(scaling.transform([0.2, -0.5])).all()


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


def test_knots_of_a_spline_are_weighted_quantiles():
    """They were quantiles of the rows: rows of no weight moved the curve."""
    rng = np.random.default_rng(0)
    p, weight = rng.random(300), np.arange(300) % 4
    y = rng.random(300) < p**2
    weighted = SplineCalibration().fit(p, y, sample_weight=weight).transform(p)
    repeated = SplineCalibration().fit(np.repeat(p, weight), np.repeat(y, weight)).transform(p)
    np.testing.assert_allclose(weighted, repeated, atol=1e-7)
