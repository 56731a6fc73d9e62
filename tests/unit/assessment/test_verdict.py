import numpy as np
import pytest

import truecal
from truecal.assessment._verdict import judge
from truecal.results import Interval


def draw(n, curve, rng=1):
    rng = np.random.default_rng(rng)
    p = rng.random(n)
    return (rng.random(n) < curve(p)).astype(int), p


def assess(y, p, **options):
    return truecal.assess(y, p, **{"recalibration": False, "n_resamples": 199, "rng": 0, **options})


@pytest.mark.parametrize(
    ("curve", "direction"),
    [
        (lambda p: p**2, "Overall the scores are too high"),
        (lambda p: p**0.5, "Overall the scores are too low"),
        (lambda p: 0.5 + 0.5 * (p - 0.5), "The scores are overconfident"),
        (lambda p: p**2.5 / (p**2.5 + (1 - p) ** 2.5), "The scores are underconfident"),
        (lambda p: p + 0.15 * np.sin(4 * np.pi * p) * (p < 1), "Some scores are too high and others too low"),
        (lambda p: 1 - p, "Higher scores go with fewer events (C statistic 0.16)"),
        (lambda p: 0.3 * (1 - p), "Higher scores go with fewer events (C statistic 0.3"),
    ],
)
def test_the_verdict_names_the_direction(curve, direction):
    assessment = assess(*draw(4000, curve))
    assert assessment.miscalibrated
    assert assessment.verdict.startswith("The data contradict perfect calibration (p ≤ 0.005).")
    assert f"The calibration error is about {100 * assessment.estimate.value:.1f}%" in assessment.verdict
    assert direction in assessment.verdict


@pytest.mark.parametrize(
    ("curve", "direction"), [(lambda p: p**2, "overconfident"), (lambda p: p**0.3, "underconfident")]
)
def test_a_top_label_is_over_or_underconfident(curve, direction):
    label, top = draw(3000, lambda p: curve(0.4 + 0.6 * p))
    proba = np.column_stack([0.4 + 0.6 * top, 0.35 - 0.35 * top, 0.25 - 0.25 * top])
    assert f"The model is {direction}" in assess(1 - label, proba).verdict


def test_without_evidence_the_verdict_says_what_is_possible():
    many = assess(*draw(4000, lambda p: p))
    assert many.state == "not contradicted"
    assert "is possible (95% interval 0.0% to" in many.verdict
    assert many.interval.assumption.split()[-1] in str(many)
    few = assess(*draw(30, lambda p: p))
    assert few.state == "inconclusive"
    assert "That says little: with 30 rows" in few.verdict


def test_one_row_says_nothing_about_the_size():
    assessment = assess([0], [0.999])
    assert assessment.miscalibrated
    assert "They do not determine how large the error is." in assessment.verdict
    assert "100.0%" not in assessment.verdict


@pytest.mark.parametrize(
    ("low", "high", "state"),
    [(0.01, 0.02, "contradicted"), (0, 0.02, "not contradicted"), (0, 0.5, "inconclusive")],
)
def test_without_a_test_the_interval_decides(low, high, state):
    assert judge(Interval(low, high, 0.95), None) == state


def test_the_advice_says_that_it_reverses_the_ranking():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, 1000)
    y = (rng.random(1000) < p).astype(int)
    flipped = assess(y, 1 - p, recalibration=True)
    assert "Higher scores go with fewer events" in flipped.verdict
    assert "are they probabilities of another class? Mean prediction 7" in flipped.verdict
    assert (
        "It reverses the ranking: rows with a higher score get a lower one." in flipped.recalibration.advice
    )
    squared = assess(y, p**0.5, recalibration=True)
    assert not squared.recalibration.leave_alone
    assert "ranking" not in squared.recalibration.advice
    assert "fewer events" not in squared.verdict


def cost_by_hand(y, p, threshold):
    """Missed positives per 1,000 rows that a logistic recalibration saves at a threshold."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    logit = np.log(p / (1 - p))[:, np.newaxis]
    after = linear_model.LogisticRegression(C=1e10, tol=1e-9).fit(logit, y).predict_proba(logit)[:, 1]
    hits, false = ([(y[q >= threshold] == k).sum() for q in (after, p)] for k in (1, 0))
    return 1000 * (hits[0] - hits[1] - threshold / (1 - threshold) * (false[0] - false[1])) / len(y)


def test_the_cost_of_decisions_at_one_half_counts_wrong_decisions():
    data = truecal.datasets.load("flights")
    y, p = np.asarray(data.y_true), np.asarray(data.predictions["balanced"])
    text = truecal.assess(y, p, recalibration=False, rng=0).is_it_much
    assert "If one acts on scores of 50% and more, it adds wrong decisions: about 62 per 1,000 rows" in text
    assert cost_by_hand(y, p, 0.5) == pytest.approx(62, abs=0.5)
    assert "It costs about 20.0% of the Brier score of 0.182 (95% interval 18.3% to 21.7%)." in text
    assert ((y - p) ** 2).mean() == pytest.approx(0.182, abs=5e-4)


def test_the_cost_of_decisions_on_low_risks_is_at_the_observed_rate_with_its_weight():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.005, 0.1, 20_000)
    y = (rng.random(20_000) < p**1.5).astype(int)
    text = truecal.assess(y, p, recalibration=False, rng=0).is_it_much
    rate = y.mean()
    assert (
        f"scores of {100 * rate:.3g}% and more (the observed rate), where a needless action counts as" in text
    )
    assert f"counts as {rate / (1 - rate):.2g} of a missed positive" in text
    cost = cost_by_hand(y, p, rate)
    assert cost > 2
    assert f"missed positives: about {cost:.0f} per 1,000 rows" in text


def test_the_cost_of_decisions_is_at_a_threshold_that_is_given():
    y, p = truecal.paper.population("resnet110_c10").sample(2000, rng=0)
    text = truecal.assess(y, p, clinical=True, thresholds=[0.9], recalibration=False, rng=0).is_it_much
    assert "scores of 90% and more, where a needless action counts as 9 missed positives" in text


def test_the_cost_of_decisions_needs_both_outcomes():
    text = truecal.assess(np.zeros(50, int), np.full(50, 0.02), recalibration=False, rng=0).is_it_much
    assert "Brier score" in text
    assert "If one acts" not in text
