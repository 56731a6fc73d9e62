"""Tests of "at most this error"."""

import json

import numpy as np
import pytest

from support.draws import drawn, top
from truecal import Sample, calibration_error
from truecal.inference.calibration_test import calibration_test
from truecal.multiscale import analyse


def test_equivalence_agrees_with_the_upper_limit():
    y, p = drawn(4000, d=1.1)
    result = calibration_test(y, p, at_most=0.06)
    upper = analyse(Sample.from_rows(y, p)).limits_for(2).upper(result.pvalue)
    assert upper == pytest.approx(0.06, abs=1e-6)
    assert result.at_most == 0.06
    assert "H0: the error is at least 0.06" in str(result)
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["null_quantiles"] == {}


def test_equivalence_of_good_and_bad_and_few():
    assert calibration_test(*drawn(8000), at_most=0.05).pvalue <= 0.05
    assert calibration_test(*drawn(8000, d=2), at_most=0.05).pvalue > 0.5
    assert calibration_test(*drawn(60), at_most=0.01).pvalue > 0.05
    y, proba = top(2000)
    assert calibration_test(y, proba, multiclass="classwise", at_most=0.05).pvalue <= 0.05
    assert calibration_test(y, proba, multiclass="classwise", at_most=0.001).pvalue > 0.05


@pytest.mark.parametrize(("score", "name"), [(0, "the observed rate"), (1, "1 minus the observed rate")])
def test_a_limit_that_a_constant_score_would_pass_is_noted(score, name):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 50, 5000)
    y = rng.random(5000) < p
    rate = y.mean()
    if score == 1:
        y, p = ~y, 1 - p
    loose, strict = (calibration_test(y, p, at_most=limit) for limit in (1.01 * rate, 0.99 * rate))
    note = f"A score of {score} for all rows would be below this limit too: its error is {name}, {rate:.4f}."
    assert note in loose.notes
    assert f"Note: {note}" in str(loose)
    assert not any("for all rows" in note for note in strict.notes)
    assert calibration_error(y, np.full(5000, score), estimator="em_bin") == pytest.approx(rate)
