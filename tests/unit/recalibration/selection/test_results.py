from __future__ import annotations

import dataclasses
import json

import pytest

from support.selections import FAST
from truecal.recalibration.selection import Selection, select_recalibrator


def test_the_criterion_in_words(bad, classes):
    def words(data, **given):
        return select_recalibrator(*data, candidates=["platt"], n_resamples=1, rng=0, **given).criterion

    assert words(bad, criterion="brier") == "brier of P(y = 1)"
    assert words(bad, criterion="em_sweep", multiclass="top") == "em_sweep of the top label of 2 classes"
    many = {"data": classes, "input": "logits"}
    assert words(**many, criterion="em_sweep") == "em_sweep of the top label of 4 classes"
    assert (
        words(**many, criterion="ew_bin", multiclass="classwise")
        == "ew_bin of 4 classes, each against the rest"
    )
    assert words(**many, criterion="log_loss") == "log_loss of 4 classes"


def test_the_result_is_plain_and_frozen(bad):
    selection = select_recalibrator(*bad, **FAST)
    assert isinstance(selection, Selection)
    assert json.loads(json.dumps(selection.to_dict()))["chosen"] == selection.chosen
    with pytest.raises(dataclasses.FrozenInstanceError):
        selection.chosen = "platt"
    text = str(selection)
    assert all(row.name in text for row in selection.candidates)
    assert f"*{selection.chosen}" in text
    assert repr(selection) == f"<Selection {selection.chosen!r} of 6 by log_loss of P(y = 1)>"
