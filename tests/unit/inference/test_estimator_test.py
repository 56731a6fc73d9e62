"""Estimators as test statistics."""

import numpy as np
import pytest

import truecal
from support.draws import drawn, top
from truecal.data import as_sample
from truecal.exceptions import CalibrationWarning
from truecal.inference.calibration_test import calibration_test
from truecal.inference.resample import redraws


@pytest.mark.parametrize(
    "method", [spec.name for spec in truecal.list_estimators() if spec.name != "multiscale"]
)
def test_any_estimator_can_be_the_statistic(method):
    y, p = drawn(120)
    result = calibration_test(y, p, method=method, n_resamples=9, rng=0)
    assert result.statistic == pytest.approx(truecal.calibration_error(y, p, estimator=method), rel=1e-12)
    assert result.method == method
    assert result.component is None
    assert 0.1 <= result.pvalue <= 1
    assert result.null.shape == (9,)
    assert not result.null.flags.writeable


def test_the_pvalue_counts_draws_at_or_above():
    y, p = drawn(200, d=1.2)
    result = calibration_test(y, p, method="ks", n_resamples=99, rng=5)
    sample = as_sample(y, p)
    spec = truecal.list_estimators()
    ks = next(one for one in spec if one.name == "ks")
    null = [ks(draw).value for draw in redraws(sample, 99, rng=5)]
    np.testing.assert_array_equal(result.null, null)
    assert result.pvalue == (1 + np.sum(np.array(null) >= result.statistic)) / 100
    assert result.pvalue_range == (result.pvalue, result.pvalue)


def test_debiased_statistics_are_compared_before_they_are_clipped():
    # All draws that clip to 0 would tie, and the p-value with them.
    for seed in range(20):
        y, p = drawn(300, seed=seed)
        result = calibration_test(y, p, method="em_debias", n_resamples=99, rng=seed)
        low, high = result.pvalue_range
        assert low == high == result.pvalue
        if result.statistic == 0 and np.mean(result.null == 0) > 0.3:
            break
    else:
        pytest.fail("no data set was clipped")
    assert result.pvalue < (1 + np.sum(result.null >= 0)) / 100
    assert truecal.estimate(y, p, estimator="em_debias").rank_value < 0


def test_sums_that_differ_by_rounding_tie():
    # Three rows with a score of 0.1 at either end: draws that mirror one another differ in the last digit.
    p = np.array([0.1, 0.1, 0.1, 0.3, 0.7, 0.9, 0.9, 0.9])
    y = np.array([0, 0, 1, 0, 1, 1, 1, 1])
    result = calibration_test(y, p, method="em_bin", n_bins=4, n_resamples=199, rng=0)
    exact = np.array([np.round(value, 9) for value in result.null])
    low, high = result.pvalue_range
    assert high == (1 + np.sum(exact >= np.round(result.statistic, 9))) / 200
    assert low == (1 + np.sum(exact > np.round(result.statistic, 9))) / 200 < high


def test_an_estimator_that_warns_is_heard():
    y, p = drawn(500)
    with pytest.warns(CalibrationWarning, match="not monotone") as caught:
        result = calibration_test(y, 1 - p, method="em_sweep", n_resamples=19, rng=0)
    assert caught[0].filename == __file__
    assert "Note: " in str(result)
    assert result.spiegelhalter.pvalue < 1e-6


def test_options_reach_the_estimator():
    y, p = drawn()
    result = calibration_test(y, p, method="ew_bin", n_bins=4, norm=1, n_resamples=9, rng=0)
    assert result.statistic == truecal.calibration_error(y, p, estimator="ew_bin", n_bins=4, norm=1)
    assert result.norm == 1


def test_classwise_estimator_has_holm_on_each_class():
    y, proba = top(300, power=1.6)
    result = calibration_test(y, proba, multiclass="classwise", method="em_bin", n_resamples=39, rng=1)
    assert result.statistic == truecal.calibration_error(y, proba, multiclass="classwise", estimator="em_bin")
    pvalues = np.array([part.pvalue for part in result.classes])
    adjusted = np.array([part.adjusted_pvalue for part in result.classes])
    order = np.argsort(pvalues)
    running = 0.0
    for rank, k in enumerate(order):
        running = max(running, min(1.0, (4 - rank) * pvalues[k]))
        assert adjusted[k] == pytest.approx(running)
    assert "no adjusted p-value is below 0.1" in result.classes[0].notes[-1]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ks", "kuiper"])
def test_clusters_get_random_signs_as_a_whole(method):
    pvalues = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        cluster = np.repeat(np.arange(40), 5)
        score = rng.random(40)[cluster]
        label = (np.repeat(rng.random(40), 5) < score).astype(int)  # all rows of a cluster agree
        test = truecal.calibration_test(
            label, score, method=method, clusters=cluster, n_resamples=39, rng=rng
        )
        assert test.asymptotic_pvalue is None
        pvalues.append(test.pvalue)
    for level in (0.05, 0.25, 0.5):
        share = np.mean(np.array(pvalues) <= level)
        assert share == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / 200) + 0.02)
    wrong = truecal.calibration_test(1 - label, score, method=method, clusters=cluster, rng=0)
    assert wrong.pvalue < 0.05
