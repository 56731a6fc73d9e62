"""Tests of "at most this error"."""

import json

import pytest

from support.draws import drawn, top
from truecal import Sample
from truecal.inference.calibration_test import calibration_test
from truecal.multiscale.analysis import analyse


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
