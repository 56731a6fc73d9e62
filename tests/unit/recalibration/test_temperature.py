from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax

from truecal.exceptions import CalibrationWarning
from truecal.recalibration import TemperatureScaling


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
