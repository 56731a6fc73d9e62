from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logit

from support.selections import FAST, assert_alike
from truecal.recalibration.selection import select_recalibrator


@pytest.mark.parametrize("multiclass", [None, "top", "classwise"])
def test_two_columns_are_the_second(bad, multiclass):
    y, p = bad
    one = select_recalibrator(y, p, multiclass=multiclass, **FAST)
    two = select_recalibrator(y, np.column_stack([1 - p, p]), multiclass=multiclass, **FAST)
    assert_alike(one, two)
    assert two.transform([[0.3, 0.7]])[0, 1] == one.transform([0.7])[0]


def test_logits_are_never_guessed(bad):
    y, p = bad
    by_proba = select_recalibrator(y, p, **FAST)
    by_logits = select_recalibrator(y, logit(p), input="logits", **FAST)
    assert by_logits.chosen == by_proba.chosen
    np.testing.assert_allclose(by_logits.transform(logit(p)), by_proba.transform(p), atol=1e-6)
    with pytest.raises(ValueError, match="set input='logits'"):
        select_recalibrator(y, logit(p))


def test_labels_of_other_kinds(bad, classes):
    y, p = bad
    plain = select_recalibrator(y, p, **FAST)
    words = select_recalibrator(np.where(y == 1, "a", "b"), p, pos_label="a", **FAST)
    assert words.to_dict()["candidates"] == plain.to_dict()["candidates"]
    assert words.criterion == "log_loss of P(y = 'a')"
    label, logits = classes
    numbers = select_recalibrator(label, logits, input="logits", **FAST)
    names = np.array(["d", "b", "a", "c"])
    named = select_recalibrator(names[label], logits, labels=names, input="logits", **FAST)
    assert named.to_dict()["candidates"] == numbers.to_dict()["candidates"]
