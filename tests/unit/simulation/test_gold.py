"""Planning of gold labels beside a judge."""

import numpy as np
import pytest

import truecal
from truecal import labels
from truecal.simulation import BetaScores, UniformScores, plan_gold_labels
from truecal.simulation._planning import explained_by_judge

RATES = {"sensitivity": 0.95, "specificity": 0.9}


def test_the_share_that_a_judge_explains():
    assert explained_by_judge(UniformScores(), 1, 1) == pytest.approx(1)
    assert explained_by_judge(UniformScores(), 0.6, 0.4) == pytest.approx(0, abs=1e-9)
    rng = np.random.default_rng(0)
    p = rng.beta(3, 2, 400_000)
    y = rng.random(len(p)) < p
    judge = np.where(y, rng.random(len(p)) < 0.9, rng.random(len(p)) < 0.2)
    right, wrong = np.where(judge, 0.9, 0.1) * p, np.where(judge, 0.2, 0.8) * (1 - p)
    q = right / (right + wrong)
    observed = 1 - np.mean((y - q) ** 2) / np.mean((y - p) ** 2)
    assert explained_by_judge(BetaScores(3, 2), 0.9, 0.8) == pytest.approx(observed, abs=0.01)


def test_the_planned_gold_labels_give_the_planned_interval():
    plan = plan_gold_labels(0.08, 2000, **RATES, repeats=30)
    assert plan.worth == pytest.approx(plan.gold / (1 - (1 - plan.gold / 2000) * plan.r_squared))
    lengths, worth = [], []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        p = rng.random(2000)
        y = rng.random(2000) < p
        judge = np.where(y, rng.random(2000) < 0.95, rng.random(2000) < 0.1)
        gold = np.full(2000, np.nan)
        chosen = rng.choice(2000, plan.gold, replace=False)
        gold[chosen] = y[chosen]
        found = truecal.estimate(labels.judged(judge, gold), p, confidence_level=0.95)
        lengths.append(found.interval.high - found.interval.low)
        worth.append(found.effective_size)
    assert np.mean(lengths) == pytest.approx(0.08, rel=0.2)
    assert np.mean(worth) == pytest.approx(plan.worth, rel=0.15)


def test_a_better_judge_needs_fewer_gold_labels():
    plans = [
        plan_gold_labels(0.08, 3000, sensitivity=a, specificity=b, repeats=10).gold
        for a, b in ((0.5, 0.5), (0.8, 0.8), (0.95, 0.9), (1, 1))
    ]
    assert plans == sorted(plans, reverse=True)
    assert plans[-1] == 100


def test_what_is_refused():
    with pytest.raises(truecal.InputError, match="too short for 300 rows"):
        plan_gold_labels(0.05, 300, **RATES, repeats=5)
    with pytest.raises(truecal.InputError, match="more than"):
        plan_gold_labels(0.0001, 300, **RATES, repeats=1)
    with pytest.raises(truecal.InputError, match="sensitivity"):
        plan_gold_labels(0.1, 300, sensitivity=1.2, specificity=0.9)
