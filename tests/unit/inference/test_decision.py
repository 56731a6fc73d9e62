"""Decisions of a gate: the three states, their agreement with the limits, and the rows that would settle them."""

import numpy as np
import pytest

import truecal
from truecal.exceptions import InputError
from truecal.inference._test_result import decide
from truecal.multiscale import analyse

LIMITS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.2, 0.5)


@pytest.fixture(scope="module")
def samples():
    """Samples with errors between 0 and 0.6."""
    drawn = []
    for n in (30, 300, 3000):
        for curve in (lambda p: p, lambda p: p**1.3, lambda p: 1 - p):
            rng = np.random.default_rng(n)
            p = rng.random(n)
            drawn.append(truecal.Sample.from_predictions((rng.random(n) < curve(p)).astype(int), p))
    return drawn


def test_the_state_follows_from_the_limits(samples):
    for sample in samples:
        limits = analyse(sample).limits
        for bound in LIMITS:
            for alpha in (0.01, 0.05, 0.2):
                decision = decide(limits, bound, alpha, sample.n)
                assert (decision.state == "shown") == (decision.upper <= bound)
                assert (decision.state == "contradicted") == (decision.lower >= bound)
                assert decision.lower <= decision.error <= decision.upper
                assert (decision.n_needed is None) or decision.n_needed > sample.n
                assert (decision.n_needed is not None) <= (decision.state == "not shown")


def test_the_sentence_says_which(samples):
    seen = set()
    for sample in samples:
        for bound in LIMITS:
            test = truecal.calibration_test(sample, at_most=bound)
            decision = test.decide()
            assert decision.pvalue == test.pvalue
            first = {
                "shown": "The data show that the calibration error is below",
                "contradicted": "The data show that the calibration error is above",
                "not shown": "The data do not show that the calibration error is below",
            }[decision.state]
            assert decision.verdict.startswith(f"{first} {bound:g}")
            if decision.n_needed is not None:
                side = "below" if decision.error < bound else "above"
                assert (
                    f"{decision.n_needed:,} in all) you could probably show that it is {side}"
                    in decision.verdict
                )
            seen.add(decision.state)
    assert seen == {"shown", "contradicted", "not shown"}


def test_rows_grow_as_the_limit_nears_the_estimate():
    y, p = truecal.paper.population("resnet110_c10").sample(1000, rng=0)
    limits = analyse(truecal.Sample.from_predictions(y, p)).limits
    near = [limits.rows_factor(limits.error * (1 + share), 0.05, 0.9) for share in (0.05, 0.1, 0.2, 0.4)]
    assert near == sorted(near, reverse=True)
    # Far from 0 the standard error is the whole of it: half the distance takes four times the rows.
    assert near[0] / near[1] == pytest.approx(4, rel=0.25)
    below = [limits.rows_factor(limits.error * (1 - share), 0.05, 0.9) for share in (0.05, 0.1, 0.2, 0.4)]
    assert below == sorted(below, reverse=True)
    assert limits.rows_factor(limits.error, 0.05, 0.9) is None


@pytest.mark.slow
def test_so_many_rows_do_settle_it():
    population = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(1.3))
    error, needed = population.true_error(), []
    for seed in range(40):
        y, p = population.sample(600, rng=seed)
        decision = truecal.calibration_test(y, p, at_most=0.06).decide()
        if decision.n_needed and abs(decision.error - error) < 0.15 * error:
            needed.append(decision.n_needed)
    n, repeats = int(np.median(needed)), 60
    shown = [
        truecal.calibration_test(*population.sample(n, rng=1000 + k), at_most=0.06).decide().state
        for k in range(repeats)
    ]
    # 0.9 by the distribution behind the limits; at least 0.7 is claimed, less 3 standard errors.
    assert shown.count("contradicted") >= repeats * (0.7 - 3 * np.sqrt(0.7 * 0.3 / repeats))


def test_few_clusters_settle_nothing():
    y, p = truecal.paper.population("resnet110_c10").sample(400, rng=0)
    decision = truecal.calibration_test(y, p, clusters=np.arange(400) % 4, at_most=0.1).decide()
    assert decision.state == "not shown"
    assert decision.n_needed is None


def test_only_tests_with_a_limit_decide():
    with pytest.raises(InputError, match="at_most was not passed"):
        truecal.calibration_test([0, 1], [0.2, 0.8], n_resamples=9, rng=0).decide()


def test_one_row_settles_nothing_and_does_not_fail():
    for label, score in ((1, 0.3), (0, 0.999), (1, 0.5), (0, 0.0)):
        for bound in LIMITS:
            decision = truecal.calibration_test([label], [score], at_most=bound).decide()
            assert decision.state in ("shown", "not shown", "contradicted")
            assert decision.lower <= decision.error <= decision.upper
