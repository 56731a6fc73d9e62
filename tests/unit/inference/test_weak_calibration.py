"""Weak calibration against closed forms, statsmodels' published numbers, and by coverage."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit

import truecal
from truecal.inference.weak_calibration import weak_calibration


def draw(rng, n, intercept=0.0, slope=1.0):
    p = rng.uniform(0.05, 0.95, n)
    return (rng.random(n) < expit(intercept + slope * logit(p))).astype(int), p


def test_the_textbook_example_agrees_with_statsmodels(shared):
    """Values of a GLM by statsmodels 0.14 on CalibrationCurves' `testdata`."""
    path = shared / "external" / "calibrationcurves_testdata.csv"
    y, p = np.loadtxt(path, delimiter=",", skiprows=1, unpack=True)
    weak = weak_calibration(y.astype(int), p)
    assert float(weak.observed_expected) == pytest.approx(1.0704, abs=5e-5)
    assert float(weak.intercept) == pytest.approx(0.2240, abs=5e-5)
    assert weak.intercept.standard_error == pytest.approx(0.1126, abs=5e-5)
    assert float(weak.slope) == pytest.approx(0.8228, abs=5e-5)
    assert weak.slope.standard_error == pytest.approx(0.0801, abs=5e-5)
    assert float(weak.joint_intercept) == pytest.approx(0.2075, abs=5e-5)
    assert weak.joint_test.statistic == pytest.approx(8.432, abs=5e-4)
    assert weak.intercept_test.statistic == pytest.approx(3.973, abs=5e-4)
    assert weak.slope_test.statistic == pytest.approx(4.459, abs=5e-4)
    assert weak.joint_test.pvalue == pytest.approx(0.0148, abs=5e-5)


def test_cluster_robust_errors_agree_with_statsmodels(shared):
    """Values of a GLM with cov_type='cluster' by statsmodels 0.14 on `clustertestdata`."""
    data = np.genfromtxt(shared / "external" / "calibrationcurves_clusters.csv", delimiter=",", names=True)
    weak = weak_calibration(data["y"].astype(int), data["p"], clusters=data["cluster"])
    assert float(weak.intercept) == pytest.approx(-0.1189, abs=5e-5)
    assert weak.intercept.standard_error == pytest.approx(0.2106, abs=5e-5)
    assert float(weak.slope) == pytest.approx(1.2422, abs=5e-5)
    assert weak.slope.standard_error == pytest.approx(0.0691, abs=5e-5)
    assert any("only 5 clusters" in note for note in weak.notes)
    # Student's t with 4 degrees of freedom, not the normal distribution
    assert weak.slope.interval.high - weak.slope.value == pytest.approx(2.7764 * 0.06907, abs=1e-4)


def test_profile_ends_lie_where_the_likelihood_has_dropped():
    y, p = draw(np.random.default_rng(0), 300, 0.3, 0.7)
    weak = weak_calibration(y, p)

    def log_likelihood(a, b):
        mean = expit(a + b * logit(p))
        return np.sum(np.log(np.where(y == 1, mean, 1 - mean)))

    top = log_likelihood(weak.intercept.value, 1.0)
    for end in (weak.intercept.interval.low, weak.intercept.interval.high):
        assert 2 * (top - log_likelihood(end, 1.0)) == pytest.approx(3.8415, abs=1e-3)
    grid = np.linspace(-3, 3, 6001)
    full = log_likelihood(weak.joint_intercept.value, weak.slope.value)
    for end in (weak.slope.interval.low, weak.slope.interval.high):
        best = max(log_likelihood(a, end) for a in grid)
        assert 2 * (full - best) == pytest.approx(3.8415, abs=2e-3)


def test_tests_and_intervals_agree():
    for seed in range(30):
        weak = weak_calibration(*draw(np.random.default_rng(seed), 200, 0.25, 0.8))
        assert (weak.slope_test.pvalue < 0.05) == (
            not weak.slope.interval.low <= 1 <= weak.slope.interval.high
        )
        assert (weak.intercept_test.pvalue < 0.05) == (
            not weak.intercept.interval.low <= 0 <= weak.intercept.interval.high
        )


def test_arrays_samples_ties_and_counts_agree():
    y, p = draw(np.random.default_rng(1), 500)
    p = p.round(1)
    plain = weak_calibration(y, p)
    assert weak_calibration(truecal.Sample.from_predictions(y, p)) == plain
    w = np.random.default_rng(2).integers(1, 4, 500)
    counted = weak_calibration(y, p, sample_weight=w, weighting="counts")
    repeated = weak_calibration(np.repeat(y, w), np.repeat(p, w))
    assert float(counted.slope) == pytest.approx(float(repeated.slope), abs=1e-9)
    assert counted.slope.interval.high == pytest.approx(repeated.slope.interval.high, abs=1e-8)
    assert counted.observed_expected.interval.low == pytest.approx(repeated.observed_expected.interval.low)


def test_the_scale_of_sampling_weights_does_not_matter():
    y, p = draw(np.random.default_rng(3), 400)
    w = np.random.default_rng(4).lognormal(0, 0.7, 400)
    one, other = weak_calibration(y, p, sample_weight=w), weak_calibration(y, p, sample_weight=w / w.sum())
    for name in ("slope", "intercept", "observed_expected"):
        a, b = getattr(one, name), getattr(other, name)
        assert (a.value, a.standard_error) == pytest.approx((b.value, b.standard_error), rel=1e-9)


def test_clusters_of_one_row_agree_with_independent_rows():
    y, p = draw(np.random.default_rng(5), 2000, 0.0, 0.8)
    alone, plain = weak_calibration(y, p, clusters=np.arange(2000)), weak_calibration(y, p)
    assert float(alone.slope) == float(plain.slope)
    assert alone.slope.standard_error == pytest.approx(plain.slope.standard_error, rel=0.1)


def test_separated_labels():
    weak = weak_calibration([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9])
    assert weak.slope.value == math.inf
    assert weak.slope.interval.high == math.inf
    assert 0 < weak.slope.interval.low < 1
    assert "separate" in " ".join(weak.notes)
    assert weak_calibration([1, 1, 0, 0], [0.1, 0.2, 0.8, 0.9]).slope.value == -math.inf


def test_one_outcome_and_one_score_are_reported_and_no_p_value_is_invented():
    weak = weak_calibration([0, 0, 0, 0], [0.1, 0.2, 0.8, 0.9])
    assert float(weak.observed_expected) == 0
    assert weak.observed_expected.interval.high > 0
    assert weak.intercept.value == -math.inf
    assert math.isfinite(weak.intercept.interval.high)
    weak = weak_calibration([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5])
    assert math.isnan(weak.slope.value)
    assert math.isnan(weak.slope_test.pvalue)
    assert weak.intercept.value == pytest.approx(0, abs=1e-9)
    assert "p < 0.001" not in str(weak)


def test_scores_of_exactly_0_and_1_are_left_out_and_reported():
    y, p = draw(np.random.default_rng(6), 300)
    inner = weak_calibration(y, p)
    more = weak_calibration(np.append(y, [0, 1]), np.append(p, [0.0, 1.0]))
    assert float(more.slope) == pytest.approx(float(inner.slope), abs=1e-9)
    assert "2 rows" in more.notes[0]
    assert "contradicted" not in more.notes[0]
    wrong = weak_calibration(np.append(y, 1), np.append(p, 0.0))
    assert wrong.joint_test.pvalue == 0
    assert "contradicted" in wrong.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [False, True])
def test_intervals_cover(clustered):
    """400 draws: a coverage of 0.95 has a standard error of 0.011."""
    rng = np.random.default_rng(7)
    hits = np.zeros(3)
    for _ in range(400):
        if clustered:  # 60 clusters of 10 rows that share their score and a random effect
            score = rng.uniform(0.2, 0.8, 60)
            p = np.repeat(score, 10)
            mean = np.repeat(rng.beta(8 * score, 8 * (1 - score)), 10)
            y, who = (rng.random(600) < mean).astype(int), np.repeat(np.arange(60), 10)
        else:
            (y, p), who = draw(rng, 300), None
        weak = weak_calibration(y, p, clusters=who)
        for k, (part, truth) in enumerate(
            [(weak.observed_expected, 1), (weak.intercept, 0), (weak.slope, 1)]
        ):
            hits[k] += part.interval.low <= truth <= part.interval.high
    assert (hits / 400 > 0.95 - 3.5 * 0.011).all(), hits / 400


def test_bad_input_is_refused():
    with pytest.raises(truecal.InputError, match="confidence_level"):
        weak_calibration([0, 1], [0.2, 0.8], confidence_level=95)
    with pytest.raises(truecal.InputError, match="y_proba"):
        weak_calibration([0, 1], [0.2, 1.8])


def test_many_scores_take_wald_intervals_that_agree_with_the_profile():
    y, p = draw(np.random.default_rng(8), 20_500, 0.1, 0.9)
    wald, profile = weak_calibration(y, p), weak_calibration(y, np.round(p, 4))
    assert (wald.method, profile.method) == ("Wald", "profile likelihood")
    assert wald.slope.interval.low == pytest.approx(profile.slope.interval.low, abs=2e-3)


def test_weights_are_not_counted_as_rows():
    y, p = draw(np.random.default_rng(11), 200)
    p[:10], y[:10] = 0.0, 0
    y[:2] = 1
    weight = np.random.default_rng(12).uniform(0.5, 2, 200)
    (counted,) = weak_calibration(y, p).notes
    assert counted.startswith("10 rows with a score of exactly 0 or 1 left out")
    for scale in (1, 1000):
        (note,) = weak_calibration(y, p, sample_weight=scale * weight).notes
        share, wrong = 100 * weight[:10].sum() / weight.sum(), 100 * weight[:2].sum() / weight.sum()
        assert note.startswith(f"{share:.1f}% of the weight, rows with a score of exactly 0 or 1")
        assert f"labels of {wrong:.1f}% of the weight contradicted" in note


def test_no_event_among_weighted_rows_is_worth_their_effective_number():
    p, weight = np.full(60, 0.02), np.r_[np.full(5, 50.0), np.full(55, 0.3)]
    ratio = weak_calibration(np.zeros(60, dtype=int), p, sample_weight=weight).observed_expected
    effective = weight.sum() ** 2 / (weight**2).sum()
    assert ratio.interval.high == pytest.approx((1 - 0.025 ** (1 / effective)) / 0.02)


def test_events_in_every_row_have_an_exact_lower_end():
    """Of 20 rows with a chance of 0.9, all have the event in 12% of samples: 1 is no surprise."""
    ratio = weak_calibration(np.ones(20, dtype=int), np.full(20, 0.9)).observed_expected
    assert ratio.interval.low == pytest.approx(0.025 ** (1 / 20) / 0.9)
    assert ratio.interval.high == ratio.value == pytest.approx(1 / 0.9)


@pytest.mark.parametrize(("sensitivity", "specificity"), [(1, 0.97), (0.6, 1), (0.9, 0.97)])
def test_corrected_labels_without_an_event_do_not_exclude_any_ratio(sensitivity, specificity):
    p = np.linspace(0.01, 0.03, 60)
    labels = truecal.labels.misclassified(np.zeros(60, int), sensitivity=sensitivity, specificity=specificity)
    weak = weak_calibration(labels, p)
    assert weak.observed_expected.value == 0
    assert weak.observed_expected.interval.high == pytest.approx(1 / p.mean())
    assert any("nearest possible ratio" in note for note in weak.notes)


def test_weights_that_leave_one_row_have_no_joint_test():
    """The covariance is singular within rounding: the solution was a traceback."""
    p = [0.60663578, 0.72949656, 0.54362499, 0.93507242, 0.81585355]
    weak = weak_calibration([1, 0, 1, 1, 1], p, sample_weight=[1e12, 1e-3, 1e-3, 1e-3, 1e-3])
    assert math.isnan(weak.joint_test.pvalue)
