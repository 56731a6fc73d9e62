import json

import numpy as np
import pytest

import truecal
from truecal import Sample
from truecal.data import read
from truecal.data.cells import Cells
from truecal.inference.calibration_test import TestResult, calibration_test, rank_value
from truecal.inference.resample import redraws


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


@pytest.mark.parametrize("estimator", [spec.name for spec in truecal.list_estimators()])
def test_any_estimator_can_be_the_statistic(estimator):
    y, p = drawn(120)
    result = calibration_test(y, p, estimator=estimator, n_resamples=9, rng=0)
    assert result.statistic == truecal.calibration_error(y, p, estimator=estimator)
    assert result.estimator == estimator
    assert 0.1 <= result.pvalue <= 1
    assert result.null.shape == (9,)
    assert not result.null.flags.writeable


def test_the_pvalue_counts_draws_at_or_above():
    y, p = drawn(200, d=1.2)
    result = calibration_test(y, p, estimator="ks", n_resamples=99, rng=5)
    (sample,) = read(y, p)
    spec = truecal.list_estimators()
    ks = next(one for one in spec if one.name == "ks")
    null = [ks(draw).value for draw in redraws(sample, 99, rng=5)]
    np.testing.assert_array_equal(result.null, null)
    assert result.pvalue == (1 + np.sum(np.array(null) >= result.statistic)) / 100
    assert result.pvalue_range == (result.pvalue, result.pvalue)


def test_a_gross_error_has_the_least_pvalue():
    y, p = drawn(1000, d=3)
    result = calibration_test(y, p, n_resamples=99, rng=0)
    assert result.pvalue == 0.01
    assert result.spiegelhalter.pvalue < 0.01


def test_debiased_statistics_are_compared_before_they_are_clipped():
    # All draws that clip to 0 would tie, and the p-value with them.
    for seed in range(20):
        y, p = drawn(300, seed=seed)
        result = calibration_test(y, p, estimator="em_debias", n_resamples=99, ties="count", rng=seed)
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
    result = calibration_test(y, p, estimator="em_bin", n_bins=4, n_resamples=199, rng=0, ties="count")
    exact = np.array([np.round(value, 9) for value in result.null])
    assert result.pvalue == (1 + np.sum(exact >= np.round(result.statistic, 9))) / 200
    assert result.pvalue_range[0] < result.pvalue == result.pvalue_range[1]


def test_ties_at_random_stay_within_their_range():
    y, p = np.array([1] * 58 + [0] * 2), np.full(60, 0.95)
    ranges, values = set(), set()
    for seed in range(30):
        result = calibration_test(y, p, estimator="ks", n_resamples=99, rng=seed)
        low, high = result.pvalue_range
        assert low <= result.pvalue <= high
        ranges.add(high - low > 0.1)
        values.add(result.pvalue)
    assert ranges == {True}
    assert len(values) > 15


def test_where_most_draws_tie_all_of_them_count():
    # Sure and right: nothing speaks against it, and no die is thrown about it.
    y, p = np.tile([0, 1], 10), np.tile([0.0001, 0.9999], 10)
    for seed in range(40):
        assert calibration_test(y, p, n_resamples=99, rng=seed).pvalue > 0.9
    assert calibration_test([0, 1, 1], [0.0, 1.0, 1.0], n_resamples=9, rng=0).pvalue == 1


def test_scores_of_exactly_one_that_were_wrong_are_noted():
    y, p = np.array([0, 1, 1, 1, 0, 1]), np.array([0.0, 1.0, 1.0, 0.5, 1.0, 0.6])
    result = calibration_test(y, p, n_resamples=9, rng=0)
    assert result.notes == ("1 row has a label that a score of exactly 0 or 1 had ruled out.",)
    y[0] = 1
    assert "2 rows have a label" in str(calibration_test(y, p, estimator="em_bin", n_resamples=9, rng=0))


def test_a_model_upside_down_warns_and_spiegelhalter_sees_it():
    y, p = drawn(500)
    with pytest.warns(UserWarning, match="not monotone") as caught:
        result = calibration_test(y, 1 - p, n_resamples=19, rng=0)
    assert caught[0].filename == __file__
    assert "Note: " in str(result)
    assert result.spiegelhalter.pvalue < 1e-6


# -- what goes in ----------------------------------------------------------------------------------------


def test_a_seed_fixes_the_result_and_row_order_does_not_matter():
    y, p = rounded()
    one = calibration_test(y, p, n_resamples=49, rng=3)
    order = np.random.default_rng(0).permutation(len(y))
    two = calibration_test(y[order], p[order], n_resamples=49, rng=3)
    np.testing.assert_array_equal(one.null, two.null)
    assert (one.pvalue, one.statistic) == (two.pvalue, two.statistic)
    assert not np.array_equal(one.null, calibration_test(y, p, n_resamples=49, rng=4).null)


def test_whole_weights_equal_repetition():
    y, p = rounded(40)
    weight = np.random.default_rng(1).integers(0, 4, size=40)
    one = calibration_test(y, p, sample_weight=weight, n_resamples=49, rng=3)
    two = calibration_test(np.repeat(y, weight), np.repeat(p, weight), n_resamples=49, rng=3)
    np.testing.assert_array_equal(one.null, two.null)
    assert (one.pvalue, one.n) == (two.pvalue, two.n)


def test_a_sample_stands_for_labels_and_scores():
    y, p = drawn()
    (sample,) = read(y, p)
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


def test_options_reach_the_estimator():
    y, p = drawn()
    result = calibration_test(y, p, estimator="ew_bin", n_bins=4, norm=1, n_resamples=9, rng=0)
    assert result.statistic == truecal.calibration_error(y, p, estimator="ew_bin", n_bins=4, norm=1)
    assert result.norm == 1


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"n_resamples": 0}, "n_resamples must be a whole number >= 1"),
        ({"ties": "midp"}, "ties must be one of 'random', 'count'"),
        ({"estimator": "em_swep"}, "Did you mean 'em_sweep'"),
        ({"n_bins": 4}, "em_sweep has no option 'n_bins'"),
        ({"norm": 0.5}, "norm must be a finite number >= 1"),
        ({"rng": "seed"}, "rng must be None, a seed"),
        ({"sample_weight": [0.5, 1, 1]}, "The test needs whole-number weights"),
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


def test_classwise_has_a_joint_null_and_holm_on_each_class():
    y, proba = top(200)
    result = calibration_test(y, proba, multiclass="classwise", n_resamples=39, rng=0)
    assert result.statistic == truecal.calibration_error(
        y, proba, multiclass="classwise", estimator="em_sweep"
    )
    assert len(result.classes) == 4
    squares = [part.null**2 for part in result.classes]
    np.testing.assert_allclose(result.null, np.sqrt(np.mean(squares, axis=0)))
    assert result.adjusted_pvalue is None
    assert "of 4 classes have p <= 0.05" in str(result)


def test_holm_by_hand():
    y, proba = top(300, power=1.6)
    result = calibration_test(y, proba, multiclass="classwise", n_resamples=39, rng=1)
    pvalues = np.array([part.pvalue for part in result.classes])
    adjusted = np.array([part.adjusted_pvalue for part in result.classes])
    order = np.argsort(pvalues)
    running = 0.0
    for rank, k in enumerate(order):
        running = max(running, min(1.0, (4 - rank) * pvalues[k]))
        assert adjusted[k] == pytest.approx(running)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_classwise_in_any_type_keeps_every_label(dtype):
    y, proba = top(150)
    proba = np.round(20 * proba) / 20
    proba[:, 0] = 1 - proba[:, 1:].sum(axis=1)
    y, proba = y[proba[:, 0] >= 0], proba[proba[:, 0] >= 0].astype(dtype)
    result = calibration_test(y, proba, multiclass="classwise", estimator="ks", n_resamples=200, rng=0)
    # A label that went to a wrong group would show in the mean of the draws: here, at the end of the scores.
    exact = calibration_test(
        y, proba.astype(np.float64), multiclass="classwise", estimator="ks", n_resamples=200, rng=0
    )
    for one, two in zip(result.classes, exact.classes, strict=True):
        np.testing.assert_allclose(one.null, two.null, atol=0.02 if dtype == np.float16 else 1e-6)


def test_classwise_of_one_column_and_with_weights():
    y, p = rounded(60)
    weight = np.random.default_rng(5).integers(1, 3, size=60)
    one = calibration_test(y, p, multiclass="classwise", sample_weight=weight, n_resamples=9, rng=0)
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
        f"em_sweep (l2) of P(y = 1): {result.statistic:.4f}, n = 1000\nUnder perfect"
    )
    assert repr(result).startswith("<TestResult em_sweep")
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["pvalue"] == result.pvalue
    assert plain["null_quantiles"]["0.5"] == np.median(result.null)
    assert plain["spiegelhalter"]["statistic"] == result.spiegelhalter.statistic


def test_ties_are_told_where_they_matter():
    y, p = np.array([1] * 58 + [0] * 2), np.full(60, 0.95)
    assert "whose ties leave" in str(calibration_test(y, p, n_resamples=99, rng=0))
