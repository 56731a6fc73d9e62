import json

import numpy as np

from support.draws import drawn
from truecal.inference._test_result import TestResult
from truecal.inference.calibration_test import calibration_test


def test_the_result_prints_and_becomes_json():
    y, p = drawn(1000, d=1.2)
    result = calibration_test(y, p, n_resamples=99, rng=0)
    assert isinstance(result, TestResult)
    assert str(result).startswith("multiscale test of P(y = 1), n = 1,000\np = ")
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
        "waves",
        "bins",
    }


def test_spiegelhalters_test_is_explained_where_it_disagrees():
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    y = rng.random(5000) < p + 0.08 * np.sin(
        2 * np.pi * p
    )  # too low below 1/2, too high above: nearly balanced
    shown = str(calibration_test(y, p, n_resamples=99, rng=0))
    assert "p ≤ 0.01" in shown
    assert "tests the mean squared error only" in shown
    assert "statistic" not in shown
    assert "statistic" in str(calibration_test(y, p, method="em_bin", n_resamples=99, rng=0))


def test_ties_are_shown_where_they_matter():
    y, p = np.array([1] * 58 + [0] * 2), np.full(60, 0.95)
    assert "with ties" in str(calibration_test(y, p, n_resamples=99, rng=0))
