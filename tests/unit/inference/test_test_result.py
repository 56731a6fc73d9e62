import json

import numpy as np

from support.draws import drawn
from truecal.inference._test_result import TestResult
from truecal.inference.calibration_test import calibration_test


def test_the_result_prints_and_becomes_json():
    y, p = drawn(1000, d=1.2)
    result = calibration_test(y, p, n_resamples=99, rng=0)
    assert isinstance(result, TestResult)
    assert str(result).startswith(
        f"multiscale test of P(y = 1): statistic {result.statistic:.2f}, n = 1,000\nNull"
    )
    assert repr(result).startswith("<TestResult multiscale")
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["pvalue"] == result.pvalue
    assert plain["null_quantiles"]["0.5"] == np.median(result.null)
    assert plain["spiegelhalter"]["statistic"] == result.spiegelhalter.statistic
    assert {part["family"] for part in plain["components"]} == {
        "level",
        "spread",
        "logistic",
        "smooth",
        "bins",
    }


def test_ties_are_shown_where_they_matter():
    y, p = np.array([1] * 58 + [0] * 2), np.full(60, 0.95)
    assert "with ties" in str(calibration_test(y, p, n_resamples=99, rng=0))
