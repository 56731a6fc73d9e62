import json

import numpy as np
import pytest

import truecal
from truecal import Sample
from truecal.data import as_sample
from truecal.data.cells import Cells
from truecal.exceptions import CalibrationWarning, InputError
from truecal.inference.calibration_test import (
    TestResult,
    calibration_test,
    corrected_by_holm,
    rank_value,
)
from truecal.inference.resample import redraws
from truecal.multiscale.analysis import analyse


def drawn(n=300, d=1.0, seed=0, scores=None):
    population = truecal.Population(
        scores or truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(d)
    )
    return population.sample(n, rng=seed)


def rounded(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 10, size=n) / 10
    return (rng.random(n) < p).astype(int), p


def top(n, n_classes=4, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.6), size=n)
    truth = proba**power / (proba**power).sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
    return y, proba


# -- the p-value -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method", [spec.name for spec in truecal.list_estimators() if spec.name != "multiscale"]
)
def test_any_estimator_can_be_the_statistic(method):
    y, p = drawn(120)
    result = calibration_test(y, p, method=method, n_resamples=9, rng=0)
    assert result.statistic == truecal.calibration_error(y, p, estimator=method)
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


def test_a_large_error_has_the_smallest_pvalue():
    y, p = drawn(1000, d=3)
    result = calibration_test(y, p, n_resamples=99, rng=0)
    assert result.pvalue == 0.01
    assert result.tail_pvalue < 1e-6
    assert result.component == "a level shift"
    assert result.spiegelhalter.pvalue < 0.01


def test_reversed_scores_are_found_and_the_slope_is_named():
    y, p = drawn(400)
    result = calibration_test(y, 1 - p, n_resamples=99, rng=0)
    assert result.pvalue == 0.01
    assert result.component == "the slope"


def test_local_errors_are_named_with_their_place():
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    y = rng.random(5000) < np.where((p > 0.61) & (p < 0.63), p - 0.5, p)
    result = calibration_test(y.astype(int), p, n_resamples=99, rng=0)
    assert result.pvalue == 0.01
    place = float(result.component.removeprefix("local deviations around "))
    assert place == pytest.approx(0.62, abs=0.02)


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
    assert rank_value(truecal.estimate(y, p, estimator="em_debias")) < 0


def test_sums_that_differ_by_rounding_tie():
    # Three rows with a score of 0.1 at either end: draws that mirror one another differ in the last digit.
    p = np.array([0.1, 0.1, 0.1, 0.3, 0.7, 0.9, 0.9, 0.9])
    y = np.array([0, 0, 1, 0, 1, 1, 1, 1])
    result = calibration_test(y, p, method="em_bin", n_bins=4, n_resamples=199, rng=0)
    exact = np.array([np.round(value, 9) for value in result.null])
    low, high = result.pvalue_range
    assert high == (1 + np.sum(exact >= np.round(result.statistic, 9))) / 200
    assert low == (1 + np.sum(exact > np.round(result.statistic, 9))) / 200 < high


@pytest.mark.parametrize("method", ["multiscale", "ks"])
def test_ties_at_random_stay_within_their_range(method):
    y, p = np.array([1] * 58 + [0] * 2), np.full(60, 0.95)
    ranges, values = set(), set()
    for seed in range(30):
        result = calibration_test(y, p, method=method, n_resamples=99, rng=seed)
        low, high = result.pvalue_range
        assert low <= result.pvalue <= high
        ranges.add(high - low > 0.1)
        values.add(result.pvalue)
    assert ranges == {True}
    assert len(values) > 15


def test_where_most_draws_tie_all_of_them_count():
    # Sure and right: nothing speaks against it, and chance does not decide.
    y, p = np.tile([0, 1], 10), np.tile([0.0001, 0.9999], 10)
    for seed in range(40):
        assert calibration_test(y, p, n_resamples=99, rng=seed).pvalue > 0.9
    assert calibration_test([0, 1, 1], [0.0, 1.0, 1.0], n_resamples=9, rng=0).pvalue == 1


def test_scores_of_exactly_one_that_were_wrong_are_noted():
    y, p = np.array([0, 1, 1, 1, 0, 1]), np.array([0.0, 1.0, 1.0, 0.5, 1.0, 0.6])
    result = calibration_test(y, p, n_resamples=9, rng=0)
    assert result.notes == ("1 row has a label that a score of exactly 0 or 1 rules out.",)
    assert result.pvalue == 0.1
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["statistic"] is None
    y[0] = 1
    assert "2 rows have a label" in str(calibration_test(y, p, method="em_bin", n_resamples=9, rng=0))


def test_an_estimator_that_warns_is_heard():
    y, p = drawn(500)
    with pytest.warns(CalibrationWarning, match="not monotone") as caught:
        result = calibration_test(y, 1 - p, method="em_sweep", n_resamples=19, rng=0)
    assert caught[0].filename == __file__
    assert "Note: " in str(result)
    assert result.spiegelhalter.pvalue < 1e-6


# -- at most this error ----------------------------------------------------------------------------------


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


# -- what goes in ----------------------------------------------------------------------------------------


def test_a_seed_fixes_the_result_and_row_order_does_not_matter():
    y, p = rounded()
    one = calibration_test(y, p, n_resamples=49, rng=3)
    order = np.random.default_rng(0).permutation(len(y))
    two = calibration_test(y[order], p[order], n_resamples=49, rng=3)
    np.testing.assert_array_equal(one.null, two.null)
    assert (one.pvalue, one.statistic) == (two.pvalue, two.statistic)
    assert not np.array_equal(one.null, calibration_test(y, p, n_resamples=49, rng=4).null)


def test_counts_equal_repetition():
    y, p = rounded(40)
    weight = np.random.default_rng(1).integers(0, 4, size=40)
    one = calibration_test(y, p, sample_weight=weight, weights="counts", n_resamples=49, rng=3)
    two = calibration_test(np.repeat(y, weight), np.repeat(p, weight), n_resamples=49, rng=3)
    np.testing.assert_array_equal(one.null, two.null)
    assert (one.pvalue, one.n) == (two.pvalue, two.n)


def test_sampling_weights_neither_multiply_rows_nor_depend_on_scale_or_order():
    rng = np.random.default_rng(0)
    y, p = rounded(400)
    weight = rng.lognormal(0, 1, 400)
    one = calibration_test(y, p, sample_weight=weight, n_resamples=99, rng=3)
    order = rng.permutation(400)
    two = calibration_test(y[order], p[order], sample_weight=5 * weight[order], n_resamples=99, rng=3)
    np.testing.assert_allclose(one.null, two.null)
    assert one.pvalue == two.pvalue
    plain = calibration_test(y, p, n_resamples=99, rng=3)
    same = calibration_test(y, p, sample_weight=np.full(400, 7.0), n_resamples=99, rng=3)
    assert same.statistic == pytest.approx(plain.statistic)


def test_a_sample_with_weights_is_tested_as_its_rows_are():
    rng = np.random.default_rng(0)
    y, p = drawn(300)
    weight = rng.lognormal(0, 1, 300)
    sample = Sample.from_predictions(y, p, sample_weight=weight)
    one = calibration_test(sample, n_resamples=99, rng=3)
    assert one.statistic == pytest.approx(
        calibration_test(y, p, sample_weight=weight, n_resamples=9).statistic
    )


def test_clusters():
    rng = np.random.default_rng(1)
    p = np.repeat(rng.beta(3, 2, 100), 10)
    y = np.repeat(rng.random(100) < p[::10], 10).astype(int)  # all rows of a cluster have one label
    who = np.repeat(np.arange(100), 10)
    alone, together = calibration_test(y, p, rng=0), calibration_test(y, p, clusters=who, rng=0)
    assert alone.pvalue < 0.05 < together.pvalue
    assert together.spiegelhalter is None
    few = calibration_test(y, p, clusters=np.arange(1000) // 200, rng=0)
    assert few.n_resamples == 15
    assert "only 5 clusters: the smallest possible p-value is 1/16" in few.notes[0]
    with pytest.raises(InputError, match="ks cannot be tested by resampling labels with clusters"):
        calibration_test(y, p, clusters=who, method="ks")


def test_clusters_of_several_classes():
    y, proba = top(300)
    result = calibration_test(
        y, proba, multiclass="classwise", clusters=np.arange(300) // 3, n_resamples=99, rng=0
    )
    assert len(result.classes) == 4
    assert 0.01 <= result.pvalue <= 1


def test_a_sample_stands_for_labels_and_scores():
    y, p = drawn()
    sample = as_sample(y, p)
    one, two = calibration_test(sample, rng=1, n_resamples=19), calibration_test(y, p, rng=1, n_resamples=19)
    assert (one.pvalue, one.statistic) == (two.pvalue, two.statistic)
    with pytest.raises(ValueError, match="Leave out"):
        calibration_test(sample, p)


def test_a_billion_rows_in_cells():
    rng = np.random.default_rng(0)
    score = np.sort(rng.random(2000))
    count = np.full(2000, 500_000.0)
    good = Sample(score, count, rng.binomial(500_000, score).astype(float))
    bad = good.with_positives(rng.binomial(500_000, score**1.01).astype(float))
    assert calibration_test(Cells.from_sample(good), n_resamples=99, rng=0).pvalue > 0.01
    result = calibration_test(Cells.from_sample(bad), n_resamples=99, rng=0)
    assert result.n == 1e9
    assert result.pvalue == 0.01


def test_cells_of_different_scores_are_reported():
    y, p = drawn(50_000)
    cells = Cells.from_sample(Sample.from_predictions(y, p))
    result = calibration_test(cells, n_resamples=19, rng=0)
    assert "cells of scores, with a variance too large by less than 0.001%" in result.notes[0]
    y, p = rounded()
    exact = calibration_test(Cells.from_sample(Sample.from_predictions(y, p)), n_resamples=19, rng=0)
    assert exact.notes == ()


def test_options_reach_the_estimator():
    y, p = drawn()
    result = calibration_test(y, p, method="ew_bin", n_bins=4, norm=1, n_resamples=9, rng=0)
    assert result.statistic == truecal.calibration_error(y, p, estimator="ew_bin", n_bins=4, norm=1)
    assert result.norm == 1


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"n_resamples": 0}, "n_resamples must be a whole number >= 1"),
        ({"method": "em_swep"}, "Did you mean 'em_sweep'"),
        ({"n_bins": 4}, "The multiscale test has no option 'n_bins'"),
        ({"method": "em_sweep", "n_bins": 4}, "em_sweep has no option 'n_bins'"),
        ({"method": "em_sweep", "norm": 0.5}, "norm must be a finite number >= 1"),
        ({"rng": "seed"}, "rng must be None, a seed"),
        ({"at_most": 0}, "at_most must be a finite number > 0"),
        ({"at_most": 0.1, "norm": 3}, "norm must be 1 or 2 with at_most"),
        ({"at_most": 0.1, "method": "ks"}, "at_most needs method='multiscale'"),
    ],
)
def test_wrong_parameters_are_refused(wrong, says):
    with pytest.raises(ValueError, match=says):
        calibration_test([0, 1, 1], [0.2, 0.6, 0.7], **wrong)


# -- several classes -------------------------------------------------------------------------------------


def test_top_label_is_one_sample():
    y, proba = top(200)
    result = calibration_test(y, proba, n_resamples=19, rng=0)
    assert result.target == "top label of 4 classes"
    assert not result.classes


def test_classwise_has_a_joint_null():
    y, proba = top(200)
    result = calibration_test(y, proba, multiclass="classwise", n_resamples=39, rng=0)
    assert len(result.classes) == 4
    np.testing.assert_allclose(result.null, np.mean([part.null for part in result.classes], axis=0))
    assert result.statistic == pytest.approx(np.mean([part.statistic for part in result.classes]))
    assert result.adjusted_pvalue is None
    assert "of 4 classes have an adjusted p-value of at most 0.05" in str(result)
    for part in result.classes:
        assert part.adjusted_pvalue >= part.pvalue - 1e-12


def test_many_classes_do_not_need_many_resamples():
    # Holm's smallest adjusted p-value would be 60 / 200.
    y, proba = top(3000, n_classes=60, power=3.0)
    result = calibration_test(y, proba, multiclass="classwise", n_resamples=199, rng=0)
    assert result.pvalue == 0.005
    assert min(part.adjusted_pvalue for part in result.classes) == 0.005


def test_classwise_of_one_class_is_the_test_of_that_class():
    y, proba = top(300)
    whole = calibration_test(y, proba, multiclass="classwise", n_resamples=999, rng=0)
    one = calibration_test(y, proba, pos_label=2, n_resamples=999, rng=0)
    assert whole.classes[2].statistic == pytest.approx(one.statistic)
    assert whole.classes[2].pvalue == pytest.approx(one.pvalue, abs=4 * np.sqrt(0.5 / 999))


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


def test_groups_are_corrected_beyond_the_number_of_resamples():
    rng = np.random.default_rng(0)
    p = np.full(100, 0.01)
    tests = [calibration_test((rng.random(100) < p).astype(int), p, rng=i) for i in range(50)]
    tests.append(calibration_test(np.ones(100, dtype=int), p, rng=50))
    adjusted = [test.adjusted_pvalue for test in corrected_by_holm(tests)]
    assert adjusted[-1] < 0.01
    assert min(adjusted[:-1]) > 0.05


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_classwise_in_any_type_keeps_every_label(dtype):
    y, proba = top(150)
    proba = np.round(20 * proba) / 20
    proba[:, 0] = 1 - proba[:, 1:].sum(axis=1)
    y, proba = y[proba[:, 0] >= 0], proba[proba[:, 0] >= 0].astype(dtype)
    result = calibration_test(y, proba, multiclass="classwise", method="ks", n_resamples=200, rng=0)
    # A label that went to a wrong group would show in the mean of the draws: here, at the end of the scores.
    exact = calibration_test(
        y, proba.astype(np.float64), multiclass="classwise", method="ks", n_resamples=200, rng=0
    )
    for one, two in zip(result.classes, exact.classes, strict=True):
        np.testing.assert_allclose(one.null, two.null, atol=0.02 if dtype == np.float16 else 1e-6)


def test_classwise_of_one_column_and_with_weights():
    y, p = rounded(60)
    weight = np.random.default_rng(5).integers(1, 3, size=60)
    counts = {"sample_weight": weight, "weights": "counts"}
    one = calibration_test(y, p, multiclass="classwise", **counts, n_resamples=9, rng=0)
    two = calibration_test(
        np.repeat(y, weight), np.repeat(p, weight), multiclass="classwise", n_resamples=9, rng=0
    )
    assert len(one.classes) == 2
    np.testing.assert_allclose(one.null, two.null)


def test_classwise_notes_count_rows_once():
    y, proba = top(100)
    proba[:3] = np.eye(4)[:3]
    y[:3] = 3
    result = calibration_test(y, proba, multiclass="classwise", n_resamples=5, rng=0)
    assert any(note.startswith("3 rows have a label") for note in result.notes)


# -- what comes out --------------------------------------------------------------------------------------


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
