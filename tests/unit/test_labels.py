"""Labels that are not the truth: what their pseudo-labels are, what results say, and what is refused."""

import math
import warnings

import numpy as np
import pytest

import truecal
from reference.labels_prototype import DESIGNS, inputs
from truecal import InputError, labels
from truecal.data.pseudo_labels import variance_by_score
from truecal.data.question import ask
from truecal.multiscale import ClusterNull, RowNull

N = 2000


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(7)
    p = rng.beta(2, 2, N)
    y = (rng.random(N) < p).astype(int)
    judge = np.where(y == 1, rng.random(N) < 0.95, rng.random(N) < 0.1).astype(int)
    gold = np.where(rng.random(N) < 0.15, y, np.nan)
    time, stop = rng.exponential(-1 / np.log(1 - p)), rng.exponential(2.0, N)
    votes = rng.binomial(4, rng.beta(6 * p, 6 * (1 - p))) / 4
    return {
        "p": p,
        "y": y,
        "judged": labels.judged(judge, gold),
        "soft": labels.soft(votes, 4),
        "known": labels.misclassified(judge, sensitivity=0.95, specificity=0.9),
        "estimated": labels.misclassified(judge, sensitivity=0.95, specificity=0.9, validated=(200, 150)),
        "censored": labels.censored(np.minimum(time, stop), time <= stop, horizon=1.0),
    }


KINDS = ("judged", "soft", "known", "estimated", "censored")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_goes_through_every_function(data, kind):
    seen, p = data[kind], data["p"]
    estimate = truecal.estimate(seen, p, confidence_level=0.95)
    assert 0.0 in estimate.interval
    assert estimate.interval.high < 0.15
    assert estimate.label_kind in str(estimate)
    assert estimate.notes
    test = truecal.calibration_test(seen, p, n_resamples=99, rng=0)
    assert test.pvalue > 0.01
    assert test.label_kind == estimate.label_kind
    assert truecal.calibration_test(seen, p, at_most=0.3).pvalue < 0.01
    weak = truecal.weak_calibration(seen, p)
    assert 1.0 in weak.observed_expected.interval
    assert 1.0 in weak.slope.interval
    worse = np.clip(p + 0.15, 0.0, 1.0)
    assert truecal.compare(seen, {"good": p, "worse": worse}).pvalue < 0.05
    true_brier = float(np.mean((p - data["y"]) ** 2)) if kind != "soft" else float(np.mean(p * (1 - p)))
    assert truecal.decompose(seen, p).score == pytest.approx(true_brier, abs=0.03)
    assert np.isfinite(truecal.net_benefit(seen, p, thresholds=[0.2, 0.5]).to_dict()["n"])
    curve = truecal.reliability_curve(seen, p, rng=0)
    assert curve.has_band
    assert (
        np.mean((curve.bins_lower <= curve.bins.mean_label) & (curve.bins.mean_label <= curve.bins_upper))
        > 0.6
    )
    report = truecal.assess(seen, p, n_resamples=99, rng=0, by=p > 0.5)
    assert not report.miscalibrated
    assert report.label_kind == estimate.label_kind
    assert set(estimate.notes) <= set(report.warnings)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_rows_does_not_matter(data, kind):
    order = np.random.default_rng(1).permutation(N)
    seen, p = data[kind], data["p"]
    columns = {name: value[order] for name, value in vars(seen).items() if isinstance(value, np.ndarray)}
    moved = type(seen)(**{name: columns.get(name, getattr(seen, name)) for name in seen.__dataclass_fields__})
    one, other = ask(seen, p).samples[0], ask(moved, p[order]).samples[0]
    np.testing.assert_allclose(one.positives, other.positives, atol=1e-12)
    np.testing.assert_allclose(one.noise, other.noise, rtol=1e-9)


def test_gold_rows_alone_if_the_judge_is_useless(data):
    rng = np.random.default_rng(3)
    gold = np.where(rng.random(N) < 0.2, data["y"], np.nan)
    sample = ask(labels.judged(rng.integers(0, 2, N), gold), data["p"]).samples[0]
    assert sample.effective_size == pytest.approx(np.count_nonzero(~np.isnan(gold)), rel=0.2)


def test_gold_rows_that_are_not_random_are_reported(data):
    y, p = data["y"], data["p"]
    often = np.where(p > 0.5, 0.3, 0.05)
    gold = np.where(np.random.default_rng(0).random(N) < often, y, np.nan)
    told = truecal.estimate(labels.judged(y, gold), p).notes
    assert any("probability=" in note for note in told)
    told = truecal.estimate(labels.judged(y, gold, often), p).notes
    assert any("do not contradict" in note for note in told)


def test_censoring_at_the_horizon_is_no_censoring():
    time, event = np.array([0.5, 1.0, 1.0, 0.7]), np.array([1, 0, 1, 2])
    seen = labels.censored(time, event, horizon=1.0)
    assert seen.seen.all()
    assert seen.label.tolist() == [1, 0, 1, 0]


def test_kaplan_meier_weights_by_hand():
    # Of 4 rows one is lost after the first event: the two left count for 3/2 each.
    seen = labels.censored([1.0, 2.0, 3.0, 9.0] * 20, [1, 0, 1, 0] * 20, horizon=5.0, strata=1)
    pseudo = seen.at(np.full(80, 0.5))
    assert pseudo.value[:4] == pytest.approx([1.0, 0.5, 0.5 + 0.5 * 1.5, 0.5 - 0.5 * 1.5])


def test_estimated_rates_make_intervals_longer(data):
    known, estimated = (truecal.confidence_interval(data[kind], data["p"]) for kind in ("known", "estimated"))
    assert estimated.high > 1.1 * known.high


def test_variances_are_those_of_the_labels():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    z = (p + rng.normal(0, 0.1 + 0.2 * p)).clip(-9, 9)
    assert variance_by_score(z, p) == pytest.approx((0.1 + 0.2 * p) ** 2, rel=0.25, abs=0.003)


@pytest.mark.parametrize("name", ["judge 95/90, 10% gold, larger", "judge 95/90, 30% gold, overconfident"])
def test_pseudo_labels_are_near_those_of_the_prototype(name):
    found = inputs(**DESIGNS[name])
    gold = np.where(found["gold"] == 1, found["y"], np.nan)
    sample = ask(labels.judged(found["judge"], gold), found["score"]).samples[0]
    truth = found["y"].mean()
    assert float(sample.positives.sum()) / sample.n == pytest.approx(truth, abs=0.04)
    # The judge explains much of the labels: more than gold only, less than all labels.
    assert 1.5 * found["gold"].sum() < sample.effective_size < 0.9 * len(gold)


def test_what_is_refused(data):
    p, seen = data["p"], data["judged"]
    classes = np.column_stack([1 - p, p])
    refusals = [
        (lambda: truecal.estimate([0.2, 0.7, 1.0], [0.3, 0.6, 0.9]), "labels.soft"),
        (lambda: truecal.estimate([0.2, 0.7], [0.3, 0.6]), "labels.soft.*labels.judged"),
        (lambda: truecal.estimate([0, np.nan, 1], [0.3, 0.6, 0.9]), "NaN.*labels.judged"),
        (lambda: labels.judged([0, 1, 1], [np.nan] * 3), "0 labels.*too few"),
        (lambda: labels.judged([0, 1, np.nan], [0, 1, 1]), "judge has 1 missing"),
        (lambda: labels.judged([0, 1], [0, 2]), "gold has 1 value other than"),
        (lambda: labels.judged([0, 1], [0, 1], [0.5, 0.0]), r"probability has 1 value outside \(0, 1\]"),
        (lambda: labels.soft([0.2, 1.2]), "fraction has 1 value outside"),
        (lambda: labels.soft([0.5, 0.3], 2), "annotators cannot give"),
        (lambda: labels.misclassified([0, 1], sensitivity=0.5, specificity=0.5), "next to nothing"),
        (lambda: labels.misclassified([0] * 99 + [1], sensitivity=0.9, specificity=0.8), "contradicts"),
        (
            lambda: labels.misclassified([0, 1], sensitivity=0.7, specificity=0.6, validated=(9, 9)),
            "guessing",
        ),
        (
            lambda: labels.censored([1.0, -2.0], [True, False], horizon=1.0),
            "time has 1 value below 0",
        ),
        (lambda: labels.judged([3, 10], [0, 1]), r"\(rating - 1\) / 9"),
        (lambda: labels.judged(["right", "wrong"], [0, 1]), "non-numeric.*verdict =="),
        (lambda: labels.judged([0, 1], ["", "yes"]), "non-numeric.*NaN or None"),
        (lambda: labels.misclassified([0.2, 1], sensitivity=0.9, specificity=0.9), "labels.judged"),
        (lambda: labels.censored([1.0, 2.0], [0, 2], horizon=1.0), "cause 1 does not occur.*holds 2"),
        (lambda: truecal.estimate(seen, (p > 0.5) * 1.0), "only 0 and 1"),
        (
            lambda: truecal.estimate(seen, p, sample_weight=np.full(N, 2), weighting="counts"),
            "Repeat each row",
        ),
        (lambda: truecal.estimate(seen, p[1:]), "same length"),
        (lambda: truecal.estimate(seen, classes, multiclass="classwise"), "needs true labels"),
        (lambda: truecal.estimate(seen, p, estimator="em_bin"), "noise"),
        (lambda: truecal.audit(seen, p, {"a": p}), "audit needs true labels"),
        (lambda: truecal.CalibrationMonitor().update(seen, p), "monitor needs true labels"),
        (lambda: truecal.confidence_interval(seen, p, assume="monotone"), "monotone"),
    ]
    for call, words in refusals:
        with pytest.raises(InputError, match=words):
            call()


def test_events_of_1_and_2_may_be_censored_and_events():
    with pytest.warns(truecal.CalibrationWarning, match="event - 1"):
        labels.censored([1.0, 2.0], [1, 2], horizon=3.0)


def test_a_horizon_beyond_the_follow_up_is_refused():
    rng = np.random.default_rng(0)
    time = np.minimum(rng.exponential(3.0, 300), 4.0)
    seen = labels.censored(time, (time < 4.0).astype(int), horizon=5.0)
    with pytest.raises(InputError, match="too late"):
        truecal.estimate(seen, rng.random(300))


def test_signs_of_very_many_rows_are_drawn_by_cells():
    rng = np.random.default_rng(5)
    n = 6000
    score, weight = np.sort(rng.random(n)), np.ones(n)
    residual = score - (rng.random(n) < score**1.1) * 1.2
    rows = RowNull(score, residual, weight, scaled=True)
    one_by_one = ClusterNull(score, residual, weight, np.arange(n), binary=False)
    terms, start = np.column_stack([rows.score, rows.score**2]), np.arange(0, len(rows.score), 100)
    np.testing.assert_allclose(rows.moments(terms), one_by_one.moments(terms))
    scale = np.linspace(1, 2, len(start))
    np.testing.assert_allclose(rows.bin_moments(start, scale), one_by_one.bin_moments(start, scale))
    assert rows.scale == one_by_one.scale
    drawn = [np.concatenate(list(null.draws(400, rng))) for null in (rows, one_by_one)]
    sums = [np.add.reduceat(block, start, axis=1).var(axis=0) for block in drawn]
    np.testing.assert_allclose(*sums, rtol=0.35)


def test_the_scores_calibrate_what_gold_labels_are_drawn_from(data):
    p = data["p"]
    known = data["judged"].at(p).gold
    chance = known.calibrated_chance(p, np.ones(len(p)))
    np.testing.assert_allclose(chance.mean(), p.mean(), atol=1e-3)
    line = np.log(p / (1 - p))
    np.testing.assert_allclose(np.mean((chance - p) * line), 0, atol=2e-3)


def test_an_empty_list_of_classes_is_refused():
    with pytest.raises(InputError, match="labels"):
        truecal.estimate(labels.soft([0.5, 0.2]), np.full((2, 3), 1 / 3), labels=[])


# --- What labels that hardly vary can show -----------------------------------------------------------------


@pytest.mark.parametrize(
    "label",
    [
        labels.misclassified(np.zeros(30), sensitivity=0.999, specificity=0.999),
        labels.censored([0.5] + [5.0] * 29, np.zeros(30), horizon=1.0, strata=1),
    ],
    ids=["misclassified", "censored"],
)
@pytest.mark.parametrize("limit", [0.05, 0.1])
def test_no_event_is_no_certainty(label, limit):
    """All labels are alike, as happens with this probability: their variance in the sample is no guide."""
    score = 0.02 + np.arange(30) * 1e-5
    assert (
        truecal.calibration_test(label, score, at_most=limit).pvalue >= 0.9 * (1 - score.max() - limit) ** 30
    )


def test_clusters_without_an_event_are_as_many_rows():
    label, cluster = (
        labels.misclassified(np.zeros(400), sensitivity=0.999, specificity=0.999),
        np.arange(400) // 20,
    )
    score = 0.02 + np.arange(400) * 1e-6
    test = truecal.calibration_test(label, score, clusters=cluster, at_most=0.05)
    assert test.pvalue >= 0.9 * (1 - score.max() - 0.05) ** 20


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("votes", [None, 5])
def test_a_few_fractions_that_meet_their_scores_show_nothing(n, votes):
    score = [0.2, 0.4, 0.6][:n]
    assert truecal.calibration_test(labels.soft(score, votes), score, at_most=0.1).pvalue > 0.05


def test_many_votes_do_not_make_more_scores():
    """The error is that of scores which a tenth of rows have: how many are in the sample varies as rows do."""
    rng, passed, error = np.random.default_rng(3), 0, 0.3 * 0.1**0.5
    for _ in range(60):
        off = rng.random(100) < 0.1
        score = np.where(off, 0.8, 0.3)
        votes = rng.binomial(50, score - 0.3 * off)
        test = truecal.calibration_test(labels.soft(votes / 50, 50), score, at_most=0.999 * error)
        passed += test.pvalue <= 0.05
    assert passed <= 6


def test_corrected_labels_without_an_event_have_no_ranking_and_no_slope():
    """Their sum is below 0: the test of reversed scores and the slope ended in a traceback."""
    label, score = (
        labels.misclassified(np.zeros(60), sensitivity=0.99, specificity=0.97),
        np.linspace(1e-4, 0.05, 60),
    )
    assert truecal.calibration_test(label, score, at_most=0.3).pvalue == 1  # nothing can be shown
    assert truecal.weak_calibration(label, score).slope.interval.high == np.inf


def test_corrected_labels_of_scores_next_to_0_are_not_called_reversed():
    label = labels.misclassified(np.zeros(15), sensitivity=0.999, specificity=0.999)
    score = 0.001 * (1 + np.arange(15) / 15)
    assert truecal.calibration_test(label, score, at_most=0.3).pvalue == 1  # nothing can be shown


@pytest.mark.parametrize(("sensitivity", "specificity"), [(0.2, 1), (1, 0.97), (0.9, 0.97)])
def test_misclassified_labels_without_an_event_are_not_true_labels(sensitivity, specificity):
    """If one event in five is seen, 60 labels of 0 are no surprise at a rate of 20%."""
    p = np.linspace(0.01, 0.03, 60)
    labels = truecal.labels.misclassified(np.zeros(60, int), sensitivity=sensitivity, specificity=specificity)
    interval = truecal.confidence_interval(labels, p)
    assert interval.high == pytest.approx(1 - p.min() - 0.01, abs=0.02)
    assert not interval.reliable
    test = truecal.calibration_test(labels, p)
    assert test.pvalue == 1
    assert any("all labels are equal" in note for note in test.notes)
    assert truecal.spiegelhalter_test(labels, p).pvalue > 0.05


def test_labels_of_perfect_sensitivity_and_specificity_are_true_labels():
    y, p = np.zeros(60, int), np.linspace(0.01, 0.03, 60)
    labels = truecal.labels.misclassified(y, sensitivity=1, specificity=1)
    assert truecal.confidence_interval(labels, p) == truecal.confidence_interval(y, p)


def test_gold_labels_in_one_cluster_do_not_warn():
    rng = np.random.default_rng(0)
    p = rng.random(60)
    judge, gold = (rng.random(60) < p).astype(int), np.full(60, np.nan)
    gold[:40] = rng.random(40) < p[:40]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weak = truecal.weak_calibration(truecal.labels.judged(judge, gold), p, clusters=np.zeros(60))
    assert math.isnan(weak.observed_expected.standard_error)
