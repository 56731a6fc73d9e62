import json

import numpy as np
import pytest

from support.draws import drawn, rounded, top
from truecal.data import as_sample
from truecal.inference.calibration_test import calibration_test


def test_a_large_error_has_the_smallest_pvalue():
    y, p = drawn(1000, d=3)
    result = calibration_test(y, p, n_resamples=99, rng=0)
    assert result.pvalue == 0.01
    assert result.tail_pvalue < 1e-6
    assert result.component == "a level shift"
    assert result.spiegelhalter.pvalue < 0.01


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
    one = calibration_test(y, p, sample_weight=weight, weighting="counts", n_resamples=49, rng=3)
    two = calibration_test(np.repeat(y, weight), np.repeat(p, weight), n_resamples=49, rng=3)
    np.testing.assert_array_equal(one.null, two.null)
    assert (one.pvalue, one.n) == (two.pvalue, two.n)


def test_a_sample_stands_for_labels_and_scores():
    y, p = drawn()
    sample = as_sample(y, p)
    one, two = calibration_test(sample, rng=1, n_resamples=19), calibration_test(y, p, rng=1, n_resamples=19)
    assert (one.pvalue, one.statistic) == (two.pvalue, two.statistic)
    with pytest.raises(ValueError, match="cannot be given beside a Sample"):
        calibration_test(sample, p)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"n_resamples": 0}, "n_resamples must be a whole number >= 1"),
        ({"method": "em_swep"}, "Did you mean 'em_sweep'"),
        ({"n_bins": 4}, "n_bins is not an option of the multiscale test"),
        ({"method": "em_sweep", "n_bins": 4}, "n_bins is not an option of em_sweep"),
        ({"method": "em_sweep", "norm": 0.5}, "norm must be a finite number >= 1"),
        ({"rng": "seed"}, "rng must be None, a seed"),
        ({"at_most": 0}, "at_most must be a number strictly between 0 and 1"),
        ({"at_most": 5}, r"Got 5 instead\. For 5% write 0\.05\."),  # it would pass every model
        ({"at_most": 1}, r"For 1% write 0\.01\."),
        ({"at_most": 0.1, "norm": 3}, "norm must be 1 or 2 with at_most"),
        ({"at_most": 0.1, "method": "ks"}, "at_most needs method='multiscale'"),
    ],
)
def test_wrong_parameters_are_refused(wrong, says):
    with pytest.raises(ValueError, match=says):
        calibration_test([0, 1, 1], [0.2, 0.6, 0.7], **wrong)


def test_top_label_is_one_sample():
    y, proba = top(200)
    result = calibration_test(y, proba, n_resamples=19, rng=0)
    assert result.target == "top label of 4 classes"
    assert not result.classes


def test_classwise_of_one_class_is_the_test_of_that_class():
    y, proba = top(300)
    whole = calibration_test(y, proba, multiclass="classwise", n_resamples=999, rng=0)
    one = calibration_test(y, proba, pos_label=2, n_resamples=999, rng=0)
    assert whole.classes[2].statistic == pytest.approx(one.statistic)
    assert whole.classes[2].pvalue == pytest.approx(one.pvalue, abs=4 * np.sqrt(0.5 / 999))


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
    counts = {"sample_weight": weight, "weighting": "counts"}
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
