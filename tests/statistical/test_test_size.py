"""The test holds its level, its p-values are uniform, and it finds errors as often as the paper's Figure 5 says.

Every number is simulated with fixed seeds, and compared within its Monte Carlo error.
"""

import math

import numpy as np
import pytest
from scipy import stats

import truecal
from truecal import power
from truecal.inference.calibration_test import calibration_test
from truecal.simulation import miss_rates, population_with_error

SCORES = {
    "uniform": truecal.simulation.UniformScores(),
    "skewed": truecal.simulation.BetaScores(2.8, 0.05),
    "tied": truecal.simulation.AtomScores([0.02, 0.3, 0.5, 0.9, 1.0], [0.3, 0.2, 0.2, 0.2, 0.1]),
}
# With 39 draws of labels the p-values are 1/40, ..., 40/40, and 0.05 is one of them.
DRAWS = 39


def pvalues(scores, n, method, repeats, **options):
    population = truecal.Population(SCORES[scores], truecal.simulation.IdentityCurve())
    results = (
        calibration_test(
            *population.sample(n, rng=np.random.default_rng([n, seed, 1])),
            method=method,
            n_resamples=DRAWS,
            rng=np.random.default_rng([n, seed, 2]),
            **options,
        )
        for seed in range(repeats)
    )
    return np.array([result.pvalue for result in results])


def assert_uniform(p):
    """Check the share at or below 0.05, and the whole distribution, at the level of one in 10,000."""
    rejected = int(np.sum(p <= 0.05 + 1e-9))
    assert stats.binomtest(rejected, len(p), 0.05).pvalue > 1e-4, rejected / len(p)
    eighths = np.bincount(np.ceil(p * 8 - 1e-9).astype(int) - 1, minlength=8)
    assert stats.chisquare(eighths).pvalue > 1e-4, eighths


@pytest.fixture(scope="module")
def all_pvalues():
    """p-values of calibrated models with the default test, by scores and size."""
    repeats = {100: 600, 1000: 400, 10_000: 200}
    return {(scores, n): pvalues(scores, n, "multiscale", repeats[n]) for scores in SCORES for n in repeats}


@pytest.mark.parametrize("n", [100, 1000, 10_000])
@pytest.mark.parametrize("scores", SCORES)
def test_the_multiscale_test_holds_its_level_and_its_pvalues_are_uniform(all_pvalues, scores, n):
    assert_uniform(all_pvalues[scores, n])


def test_all_of_them_together(all_pvalues):
    assert_uniform(np.concatenate(list(all_pvalues.values())))


@pytest.mark.filterwarnings("ignore:em_sweep of P")  # the labels may fall by chance
@pytest.mark.parametrize("method", ["em_sweep", "ew_bin", "em_debias", "ks", "skce"])
@pytest.mark.parametrize("scores", SCORES)
def test_estimators_hold_their_level(scores, method):
    assert_uniform(pvalues(scores, 250, method, 300))


@pytest.mark.parametrize("method", ["multiscale", "em_debias", "skce"])
def test_ties_at_random_are_exact_where_scores_are_near_1(method):
    # 100 skewed scores often give the same labels again; counting all ties would be conservative.
    assert_uniform(pvalues("skewed", 100, method, 600))


@pytest.mark.parametrize("method", ["multiscale", "em_bin"])
def test_classwise_pvalues_are_uniform(method):
    rng = np.random.default_rng(0)
    p, least = [], []
    for seed in range(250):
        proba = rng.dirichlet([0.3, 0.5, 1.0], size=120)
        y = (proba.cumsum(axis=1)[:, :-1] < rng.random((120, 1))).sum(axis=1)
        result = calibration_test(
            y, proba, multiclass="classwise", method=method, n_resamples=DRAWS, rng=seed
        )
        p.append(result.pvalue)
        least.append(min(part.adjusted_pvalue for part in result.classes))
    assert_uniform(np.array(p))
    # The chance of any false alarm among the classes is at most the level.
    assert np.mean(np.array(least) <= 0.05) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 250)


# -- power -----------------------------------------------------------------------------------------------

# True error, n, and miss rates of EW bin and EM sweep, from an independent simulation of the paper's Figure 5 with
# about 1,000 samples; `test_miss_rate_of_equal_width_bins_by_a_direct_simulation` repeats one of them.
FIGURE_5 = [
    (0.02, 5_000, 0.50, 0.38),
    (0.02, 10_000, 0.13, 0.10),
    (0.10, 200, 0.50, 0.21),
    (0.10, 500, 0.06, 0.00),
]


@pytest.mark.parametrize(("error", "n", "ew_bin", "em_sweep"), FIGURE_5)
def test_miss_rates_of_figure_5(error, n, ew_bin, em_sweep):
    rows = miss_rates([error], [n], repeats=1000 if n > 1000 else 3000, rng=0).rows
    for row, reference in zip(rows, (ew_bin, em_sweep), strict=True):
        # The reference has its own Monte Carlo error, and two digits.
        its_error = row.standard_error * math.sqrt(row.repeats / 1000)
        assert abs(row.miss_rate - reference) < 3.5 * math.hypot(row.standard_error, its_error) + 0.005
    assert rows[1].miss_rate < rows[0].miss_rate, "the sweep misses less"


def test_power_is_that_of_the_test_itself():
    population = population_with_error(0.1)
    found = power(population, 200, repeats=3000, rng=0)
    rejected = [
        calibration_test(*population.sample(200, rng=seed), n_resamples=99, rng=seed).pvalue <= 0.05
        for seed in range(300)
    ]
    share = np.mean(rejected)
    assert abs(share - found.value) < 4 * math.hypot(
        found.standard_error, math.sqrt(share * (1 - share) / 300)
    )


def test_miss_rate_of_equal_width_bins_by_a_direct_simulation():
    """Figure 5 without truecal: bins by NumPy, and the critical value from as many calibrated samples."""
    n, draws, b = 200, 20_000, 15
    rng = np.random.default_rng(5)
    exponent = population_with_error(0.1).curve.d

    def errors(power_of_score):
        score = rng.random((draws, n))
        gap = score - (rng.random((draws, n)) < score**power_of_score)
        index = np.minimum((score * b).astype(int), b - 1) + b * np.arange(draws)[:, np.newaxis]
        count = np.bincount(index.ravel(), minlength=b * draws)
        total = np.bincount(index.ravel(), gap.ravel(), b * draws)
        return np.sqrt((total**2 / np.maximum(count, 1)).reshape(draws, b).sum(axis=1) / n)

    directly = np.mean(errors(exponent) <= np.quantile(errors(1.0), 0.95))
    row = miss_rates([0.1], [n], methods=["ew_bin"], repeats=3000, rng=0).rows[0]
    assert abs(row.miss_rate - directly) < 3.5 * math.hypot(row.standard_error, 0.006)
    assert directly == pytest.approx(0.559, abs=0.015)
