from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax

import truecal
from support.selections import FAST, NO_OPTIONS
from truecal.recalibration._contest import gain_over, losses
from truecal.recalibration._fit_rows import FitRows
from truecal.recalibration.selection import select_recalibrator


@pytest.mark.parametrize(
    "criterion", ["brier", "log_loss", *(spec.name for spec in truecal.list_estimators())]
)
def test_every_criterion(golden, criterion):
    y, p = golden(300)
    selection = select_recalibrator(y, p, criterion=criterion, n_resamples=2, rng=0)
    # All of these scores are too high, so the model itself has no underconfidence to reduce.
    assert selection.leave_alone == (criterion == "underconfidence")
    assert selection.criterion == f"{criterion} of P(y = 1)"


def test_options_of_the_criterion(bad):
    y, p = bad
    fold, options = np.arange(len(y)) % 4, {"norm": 1, "n_bins": 7}
    selection = select_recalibrator(y, p, criterion="em_bin", cv=fold, **options, **FAST)
    folds = [
        truecal.calibration_error(y[fold == k], p[fold == k], estimator="em_bin", **options) for k in range(4)
    ]
    assert selection["identity"].criterion == pytest.approx(np.mean(folds))


@pytest.mark.parametrize("score", ["brier", "log_loss"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_losses_are_scikit_learns(score, n_classes):
    metrics = pytest.importorskip("sklearn.metrics", reason="the reference")
    rng = np.random.default_rng(0)
    p = softmax(rng.normal(size=(50, n_classes)), axis=1)
    label = rng.integers(n_classes, size=50)
    ours = losses(p[:, 1] if n_classes == 2 else p, score)[np.arange(50), label].mean()
    if score == "log_loss":
        assert ours == pytest.approx(metrics.log_loss(label, p, labels=range(n_classes)))
    else:
        expected = ((p - np.eye(n_classes)[label]) ** 2).sum(axis=1).mean()
        assert ours == pytest.approx(expected / 2 if n_classes == 2 else expected)


@pytest.mark.parametrize("score", ["brier", "log_loss"])
def test_the_variance_by_chance_is_that_of_drawn_labels(score):
    rng = np.random.default_rng(0)
    model, candidate = softmax(rng.normal(size=(2, 30, 3)), axis=2)
    every = [gain_over(model, candidate, np.full(30, k), score).value for k in range(3)]
    mean = sum(model[:, k] * every[k] for k in range(3))
    variance = sum(model[:, k] * (every[k] - mean) ** 2 for k in range(3))
    found = gain_over(model, candidate, np.zeros(30, dtype=int), score)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-9)
    assert (mean <= 0).all()  # a proper score: the truth cannot be improved on
    rows = FitRows.read(np.zeros(30, dtype=int), model, "probabilities", **NO_OPTIONS)
    value, chance = found.summarize(rows)
    assert value == pytest.approx(found.value.mean())
    assert chance == pytest.approx(np.sqrt(variance.sum()) / 30)


def test_two_columns_have_the_gain_of_one():
    p, q = expit(np.array([-1.0, 0.3])), expit(np.array([-2.0, 1.0]))
    one = gain_over(p, q, np.array([0, 1]), "log_loss")
    two = gain_over(np.column_stack([1 - p, p]), np.column_stack([1 - q, q]), np.array([0, 1]), "log_loss")
    np.testing.assert_allclose(one.value, two.value)
    np.testing.assert_allclose(one.variance, two.variance)
