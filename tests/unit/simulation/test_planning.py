"""How many rows a test, or a validation study, needs."""

import json
import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

import truecal
from truecal import power, validation_sample_size
from truecal.exceptions import InputError
from truecal.simulation import (
    BetaScores,
    detectable_error,
    plan_sample_size,
    population_with_error,
    required_sample_size,
)
from truecal.simulation._planning import _Point, _solve
from truecal.simulation._power import Detection, Simulator


def noiseless(effect, alpha=0.05, shift=0.0):
    """A test whose power is known: a normal statistic with mean effect * x."""

    def measure(x, repeats):
        share = float(norm.sf(norm.isf(alpha) - effect * x + shift * x**2))
        return _Point.of(x, Detection(share, math.sqrt(share * (1 - share) / repeats) + 1e-9, 0.0))

    return measure


def simulator(repeats=1000, alpha=0.05):
    return Simulator.checked(["ks"], alpha=alpha, norm=2, repeats=repeats, rng=0)


@pytest.mark.parametrize("start", [0.01, 1.0, 30.0, 900.0])
@pytest.mark.parametrize("target", [0.1, 0.5, 0.95, 0.999])
def test_the_search_finds_a_known_answer_from_any_start(start, target):
    x, error = _solve(noiseless(0.1), simulator(repeats=10_000), target, start=start, most=1e6)
    assert x == pytest.approx((norm.isf(0.05) + norm.ppf(target)) / 0.1, rel=2e-3)
    assert error > 0


def test_a_curved_probit_is_followed():
    # No straight line: it flattens as it rises.
    x, _ = _solve(noiseless(0.1, shift=0.0005), simulator(), 0.95, start=10, most=60)
    assert noiseless(0.1, shift=0.0005)(x, 1).share == pytest.approx(0.95, abs=0.003)


@pytest.mark.slow
def test_the_standard_error_is_that_of_the_answer():
    plans = [plan_sample_size(0.1, repeats=400, rng=seed) for seed in range(25)]
    spread = np.std([plan.n for plan in plans], ddof=1)
    stated = np.median([plan.standard_error for plan in plans])  # a single one is a rough estimate itself
    assert 0.4 < spread / stated < 2


@pytest.mark.slow
def test_the_answer_has_the_power_that_was_asked_for():
    plan = plan_sample_size(0.1, power=0.8, rng=0)
    less, more = (
        power(population_with_error(0.1), round(plan.n + step * plan.standard_error), repeats=2000, rng=1)
        for step in (-3, 3)
    )
    assert less.value - 2 * less.standard_error < 0.8 < more.value + 2 * more.standard_error


@pytest.mark.slow
def test_the_papers_claims():
    # Section 7.2: over 10,000 rows for 2 %; under 500 the error must be greater than about 10 %.
    assert 10_000 < required_sample_size(0.02, method="em_sweep", repeats=400, rng=0) < 16_000
    assert 250 < required_sample_size(0.10, method="em_sweep", rng=0) < 500
    assert 0.075 < detectable_error(500, method="em_sweep", rng=0) < 0.10


@pytest.mark.slow
def test_the_multiscale_test_needs_fewer_rows():
    assert required_sample_size(0.02, repeats=400, rng=0) < 8500
    assert required_sample_size(0.10, rng=0) < required_sample_size(0.10, method="em_sweep", rng=0)


@pytest.mark.slow
def test_error_and_size_are_inverse_to_one_another():
    plan = plan_sample_size(0.15, rng=0)
    assert detectable_error(plan.n, rng=1) == pytest.approx(0.15, rel=0.06)


def test_a_seed_fixes_the_answer():
    assert required_sample_size(0.2, repeats=100, rng=7) == required_sample_size(0.2, repeats=100, rng=7)
    assert detectable_error(50, repeats=100, rng=7) == detectable_error(50, repeats=100, rng=7)


@pytest.mark.slow
def test_other_scores_statistics_and_norms():
    skewed = truecal.simulation.BetaScores(2.8, 0.05)
    assert required_sample_size(0.1, scores=skewed, repeats=100, rng=0) > 100
    assert required_sample_size(0.1, method="ks", rng=0) < required_sample_size(0.1, method="em_sweep", rng=0)
    chosen = plan_sample_size(0.1, method={"method": "em_bin", "n_bins": 4}, norm=1, repeats=100, rng=0)
    assert (chosen.method, chosen.norm) == ("em_bin(n_bins=4)", 1)


def test_an_error_that_no_such_sample_shows_is_infinite():
    assert detectable_error(3, repeats=100, rng=0) == math.inf


def test_a_tiny_error_and_a_huge_sample_are_no_trouble():
    n = required_sample_size(0.0005, method="ks", repeats=100, rng=0)
    assert 10**6 < n < 10**8
    assert detectable_error(n, method="ks", repeats=100, rng=0) == pytest.approx(0.0005, rel=0.3)


def test_the_plan_prints_and_becomes_json():
    plan = plan_sample_size(0.2, repeats=100, rng=0)
    assert str(plan).startswith(f"{plan.n} rows (± ")
    assert "Alternative: the curve c^d" in str(plan)
    assert json.loads(json.dumps(plan.to_dict(), allow_nan=False))["n"] == plan.n
    assert type(required_sample_size(0.2, repeats=100, rng=0)) is int


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"true_error": 0}, "true_error must be above 0"),
        ({"true_error": 0.7}, "true_error must lie between 0 and 0.577"),
        ({"power": 0.05}, "power must be greater than alpha = 0.05"),
        ({"power": 1}, "power must be a number strictly between 0 and 1"),
        ({"alpha": 1.5}, "alpha must be a number strictly between 0 and 1"),
        ({"method": "nothing"}, "method must be one of"),
        ({"alternative": "nothing"}, "alternative must be one of"),
        ({"norm": 0}, "norm must be a finite number >= 1"),
    ],
)
def test_wrong_parameters_are_refused(wrong, says):
    with pytest.raises(ValueError, match=says):
        required_sample_size(**{"true_error": 0.1, "rng": 0, **wrong})
    if "true_error" not in wrong:
        with pytest.raises(ValueError, match=says):
            detectable_error(100, rng=0, **wrong)


def test_rows_in_clusters_are_more_by_the_design_effect():
    plain = plan_sample_size(0.1, repeats=100, rng=0)
    plan = plan_sample_size(0.1, repeats=100, rng=0, cluster_size=5, icc=0.3)
    assert plan.design_effect == pytest.approx(2.2)
    assert 2.2 * plain.n <= plan.n + 5
    assert plan.n == 5 * plan.n_clusters
    assert plan.n < 2.2 * plain.n + 20  # two clusters more, and a part of one
    assert plan_sample_size(0.2, repeats=50, rng=0, cluster_size=100, icc=0.01).n_clusters == 15
    assert f"in {plan.n_clusters} clusters" in str(plan)
    assert plain.n_clusters is None
    assert required_sample_size(0.1, repeats=100, rng=0, cluster_size=5, icc=0.3) == plan.n
    error = detectable_error(plan.n, repeats=100, rng=0, cluster_size=5, icc=0.3)
    assert error == pytest.approx(0.1, rel=0.15)
    for wrong, says in (
        ({"icc": 0.2}, "cluster_size must be above 1"),
        ({"icc": 1.5, "cluster_size": 3}, "icc must"),
        ({"cluster_size": 0}, "cluster_size must"),
    ):
        with pytest.raises(ValueError, match=says):
            required_sample_size(0.1, **wrong)


@pytest.mark.slow
def test_clusters_of_the_planned_number_reach_the_power():
    size, icc, draws = 5, 0.3, 60
    plan = plan_sample_size(0.1, power=0.9, repeats=200, rng=0, cluster_size=size, icc=icc)
    population = population_with_error(0.1)
    cluster = np.repeat(np.arange(plan.n_clusters), size)
    found = 0
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        _, score = population.sample(plan.n_clusters, rng=rng)
        curve = np.clip(population.curve(score), 1e-9, 1 - 1e-9) * (1 - icc) / icc
        chance = rng.beta(curve, (1 - icc) / icc - curve)[cluster]
        label = (rng.random(plan.n) < chance).astype(int)
        test = truecal.calibration_test(label, score[cluster], clusters=cluster, n_resamples=99, rng=rng)
        found += test.pvalue <= 0.05
    assert found / draws == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / draws))


def test_a_gate_needs_more_rows_for_a_smaller_limit_and_for_a_larger_error():
    options = {"power": 0.8, "repeats": 60, "rng": 0}
    loose, strict = (plan_sample_size(0, at_most=eps, **options) for eps in (0.15, 0.1))
    assert loose.n < strict.n < plan_sample_size(0.05, at_most=0.1, **options).n
    assert f"{strict.n:,} rows" in str(strict)
    assert "show an error below 0.1" in str(strict)
    assert strict.to_dict()["at_most"] == 0.1


def test_the_planned_rows_pass_the_gate():
    n = required_sample_size(0, at_most=0.1, power=0.8, repeats=100, rng=1)
    passed = 0
    for seed in range(60):
        p = np.random.default_rng(seed).random(n)
        y = np.random.default_rng([seed, 1]).random(n) < p
        passed += truecal.calibration_test(y, p, at_most=0.1).pvalue <= 0.05
    assert passed / 60 == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 60))


def test_a_gate_that_cannot_be_passed_is_refused():
    with pytest.raises(InputError, match="at_most must be greater than the true error"):
        plan_sample_size(0.05, at_most=0.05)
    with pytest.raises(InputError, match="method must be 'multiscale' with at_most"):
        plan_sample_size(0, at_most=0.05, method="em_sweep")


COMMON = {"prevalence": 0.018, "c_statistic": 0.8}


@pytest.mark.parametrize(
    ("predictor", "slope", "tolerance"),
    [
        # pmvalsampsize draws a million linear predictors; the integral differs by what they vary.
        ({"linear_predictor": (-5, 2.5)}, 4544, 0.005 * 4544),
        ({"linear_predictor": -4.7}, 17080, 0.005 * 17080),
    ],
)
def test_it_agrees_with_pmvalsampsize(predictor, slope, tolerance):
    """Values of the package's own unit tests (prevalence 0.018, C statistic 0.8, O:E width 1)."""
    size = validation_sample_size(**COMMON, **predictor)
    assert size.observed_expected == 905
    assert size.c_statistic == 4252
    assert size.slope == pytest.approx(slope, abs=tolerance)
    assert int(size) == max(905, 4252, size.slope)


def test_it_agrees_with_pmvalsampsize_for_scores_of_another_prevalence():
    """An example of pmvalsampsize takes these scores, half of them events, for a prevalence of 0.018."""
    said = r"scores implies a prevalence of 0\.5 .* prevalence is 0\.018"
    with pytest.warns(truecal.CalibrationWarning, match=said) as caught:
        size = validation_sample_size(**COMMON, scores=BetaScores(0.5, 0.5))
    assert size.slope == 1644
    assert caught[0].filename == __file__


@pytest.mark.parametrize("predictor", [(-4.2, 1), -4.2])
def test_another_prevalence_than_that_of_the_scores_gives_a_warning(predictor):
    said = r"linear_predictor implies a prevalence of 0\.02.*is 0\.5\. Give"
    with pytest.warns(truecal.CalibrationWarning, match=said):
        validation_sample_size(prevalence=0.5, c_statistic=0.75, linear_predictor=predictor)
    validation_sample_size(prevalence=0.05, c_statistic=0.75, linear_predictor=predictor)


@pytest.mark.slow
def test_the_slope_is_as_precise_as_promised():
    """Interval widths of 60 simulated studies average 0.4, within four standard errors."""
    size = validation_sample_size(prevalence=0.3, linear_predictor=(-1, 1.5), width_slope=0.4)
    rng = np.random.default_rng(0)
    widths = []
    for _ in range(60):
        p = expit(rng.normal(-1, 1.5, size.slope))
        slope = truecal.weak_calibration(rng.random(size.slope) < p, p).slope
        widths.append(slope.interval.high - slope.interval.low)
    assert np.mean(widths) == pytest.approx(0.4, abs=4 * np.std(widths) / np.sqrt(60) + 0.004)


def test_what_is_not_asked_for_is_left_out():
    size = validation_sample_size(prevalence=0.1)
    assert (size.slope, size.c_statistic) == (None, None)
    assert size.events == pytest.approx(0.1 * size.n)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prevalence": 0}, "prevalence"),
        ({"prevalence": 0.1, "c_statistic": 0.4}, "c_statistic"),
        ({"prevalence": 0.1, "linear_predictor": -2.0}, "c_statistic"),
        ({"prevalence": 0.1, "linear_predictor": (0, 0)}, "linear_predictor"),
        ({"prevalence": 0.1, "width_slope": 0}, "width_slope"),
        ({"prevalence": 0.1, "scores": BetaScores(1, 1), "linear_predictor": (0, 1)}, "linear_predictor"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(truecal.InputError, match=message):
        validation_sample_size(**arguments)
