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
