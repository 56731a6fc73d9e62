"""Fits to draws from the paper's ten populations find the parameters that the draws were made with.

Distances are in standard errors by Fisher's information at the truth or at the fit, so that the limits below
are levels of a test: they hold on any machine, and they break if a fit is biased by more than its noise.
"""

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import stats

import truecal
from truecal.simulation import fit_population
from truecal.simulation._likelihood import fit_beta

N = 40_000
DTYPES = (np.float64, np.float32)


@pytest.fixture(scope="module")
def fits():
    made = {}
    for seed, name in enumerate(truecal.paper.NAMES):
        y, p = truecal.paper.population(name).sample(N, rng=SeedSequence([2024, seed]))
        for dtype in DTYPES:
            made[name, dtype] = p.astype(dtype), fit_population(y, p.astype(dtype))
    return made


def beta_distances(name, fit):
    truth = truecal.paper.population(name).scores
    assert fit.beta.information_se is not None
    return (fit.beta.a - truth.a) / fit.beta.information_se[0], (
        fit.beta.b - truth.b
    ) / fit.beta.information_se[1]


def curve_distances(name, score, fit):
    """Distances of the coefficients of the true model, whether or not it was the selected one."""
    curve = truecal.paper.population(name).curve
    terms = [value is not None for value in (curve.b0, curve.b1)]
    row = next(
        row
        for row in fit.glm_table
        if (row["link"], row["transform"]) == (curve.link, curve.transform)
        and [value is not None for value in (row["b0"], row["b1"])] == terms
    )
    score = score[score < 1].astype(float)
    p = curve(score)
    slope = {"logit": p * (1 - p), "log": p, "logflip": 1 - p}[curve.link]
    x = {"logit": np.log(score) - np.log1p(-score), "log": np.log(score), "logflip": np.log1p(-score)}
    basis = np.stack([np.ones_like(score), x[curve.transform]])[terms]
    information = (basis * slope**2 / (p * (1 - p))) @ basis.T
    error = np.sqrt(np.diag(np.linalg.inv(information)))
    found, truth = np.array([row["b0"], row["b1"]])[terms], np.array([curve.b0, curve.b1])[terms]
    return (found.astype(float) - truth.astype(float)) / error


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", truecal.paper.NAMES)
def test_each_parameter_is_found_within_its_standard_error(fits, name, dtype):
    score, fit = fits[name, dtype]
    assert fit.converged
    assert np.abs(beta_distances(name, fit)).max() < 4
    assert np.abs(curve_distances(name, score, fit)).max() < 4


@pytest.mark.parametrize("dtype", DTYPES)
def test_standard_errors_are_of_the_right_size_over_all_ten(fits, dtype):
    """Squared distances of b are chi-square together: neither too large nor too small."""
    squares = sum(beta_distances(name, fits[name, dtype][1])[1] ** 2 for name in truecal.paper.NAMES)
    assert 1e-3 < stats.chi2.sf(squares, df=10) < 1 - 1e-3


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_fitted_curve_and_scores_are_close(fits, dtype):
    for name in truecal.paper.NAMES:
        _, fit = fits[name, dtype]
        assert fit.goodness.ks_distance < 1.95 / np.sqrt(N), name  # level 0.001 even for known parameters
        assert fit.goodness.pvalue > 1e-4, name
        truth = truecal.paper.population(name).true_error()
        assert fit.population.true_error() == pytest.approx(truth, rel=0.1), name


def test_float32_and_float64_agree_although_ones_are_far_more(fits):
    score64, wide = fits["resnet110_c10", np.float64]
    score32, narrow = fits["resnet110_c10", np.float32]
    assert np.mean(score64 == 1) == pytest.approx(0.178, abs=0.01)
    assert np.mean(score32 == 1) == pytest.approx(0.467, abs=0.012)
    # The same samples; rounding to float32 loses less than the noise.
    assert narrow.beta.a == pytest.approx(wide.beta.a, rel=0.01)
    assert narrow.beta.b == pytest.approx(wide.beta.b, rel=0.015)


def test_many_draws_show_no_bias_of_the_censored_fit():
    """At 2*10^6 rows b has a standard error of 0.1%; treating scores of 1 as points would be off by 24%."""
    truth = truecal.simulation.BetaScores(2.7752, 0.0478)
    population = truecal.Population(truth, truecal.simulation.IdentityCurve())
    _, p = population.sample(2_000_000, rng=77)
    for dtype in DTYPES:
        score, count = np.unique(p.astype(dtype), return_counts=True)
        fit = fit_beta(score.astype(float), count.astype(float), np.dtype(dtype))
        assert abs(fit.b - truth.b) < 4 * fit.information_se[1]
        assert abs(fit.a - truth.a) < 4 * fit.information_se[0]


def test_the_test_of_the_curve_keeps_its_level():
    population = truecal.paper.population("densenet40_c100")
    pvalues = [
        fit_population(*population.sample(1000, rng=SeedSequence([5, r]))).goodness.pvalue for r in range(120)
    ]
    assert stats.binomtest(sum(value < 0.1 for value in pvalues), 120, 0.1).pvalue > 1e-3
    assert stats.kstest(pvalues, "uniform").pvalue > 1e-3


def test_the_test_of_the_curve_sees_a_curve_outside_the_family():
    wave = truecal.simulation.FunctionCurve(lambda c: 0.5 + 0.4 * np.sin(9 * c))
    fit = fit_population(*truecal.Population(truecal.simulation.UniformScores(), wave).sample(3000, rng=9))
    assert fit.goodness.pvalue < 1e-6


def test_bootstrap_errors_match_the_spread_over_samples():
    population = truecal.paper.population("resnet110_c100")
    samples = [fit_population(*population.sample(800, rng=SeedSequence([6, r]))) for r in range(50)]
    spread = np.std([fit.beta.b for fit in samples], ddof=1)
    bootstrapped = fit_population(
        *population.sample(800, rng=SeedSequence([6, 0])), standard_errors=True, n_resamples=50, rng=0
    )
    # Each of the two standard deviations has a relative error of 10%.
    assert bootstrapped.beta_se[1] == pytest.approx(spread, rel=0.5)
