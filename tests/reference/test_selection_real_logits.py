"""Real logits with a calibration split and a test split: fitted on the one, judged on the other.

The files are those of AIgen/df-posthoc-calibration, described in the README beside them.
"""

from __future__ import annotations

import numpy as np
import pytest

import truecal
from truecal.data import probabilities_from_logits
from truecal.recalibration import TemperatureScaling
from truecal.recalibration._contest import losses
from truecal.recalibration.selection import select_recalibrator


@pytest.fixture(scope="module", params=["cifar10_resnet110", "cifar10_wide_resnet", "cifar100_resnet50"])
def splits(request, shared):
    with np.load(shared / "data" / f"aigen_{request.param}.npz", allow_pickle=False) as file:
        parts = {name: file[name] for name in ("val_logits", "val_labels", "test_logits", "test_labels")}
    return request.param, parts


def test_the_choice_holds_on_the_test_split(splits):
    name, data = splits
    selection = select_recalibrator(
        data["val_labels"].ravel(), data["val_logits"], input="logits", n_resamples=3, rng=0
    )
    label = data["test_labels"].ravel()
    before, after = probabilities_from_logits(data["test_logits"]), selection.transform(data["test_logits"])
    assert not selection.leave_alone
    rows = np.arange(len(label))
    loss = [losses(q, "log_loss")[rows, label].mean() for q in (before, after)]
    assert loss[1] < loss[0]
    # Beta curves gain log loss on the wide network, whose top-label error is too small (1%) to fall much further.
    error = [truecal.calibration_error(label, q) for q in (before, after)]
    assert error[1] < (1.5 if name == "cifar10_wide_resnet" else 0.8) * error[0]
    accuracy = [(q.argmax(axis=1) == label).mean() for q in (before, after)]
    assert accuracy[1] > accuracy[0] - 0.005


def test_temperature_on_real_logits_takes_a_few_steps(splits):
    _, data = splits
    scaling = TemperatureScaling().fit(data["val_logits"], data["val_labels"].ravel())
    assert scaling.n_iter_ <= 8
    label = data["val_labels"].ravel()

    def loss(temperature):
        proba = probabilities_from_logits(data["val_logits"] / temperature)
        return losses(proba, "log_loss")[np.arange(len(label)), label].mean()

    best = loss(scaling.temperature_)
    assert all(best <= loss(scaling.temperature_ * factor) for factor in (0.9, 0.99, 0.999, 1.001, 1.01, 1.1))
