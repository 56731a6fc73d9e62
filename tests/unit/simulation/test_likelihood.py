"""Maximum-likelihood fits of Beta scores and of the twelve curves."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import betainc, expit, xlog1py, xlogy

from truecal.data.extremes import Resolution
from truecal.simulation._likelihood import (
    PAIRS,
    TERMS,
    TRANSFORMS,
    censor,
    fit_beta,
    fit_beta_as_paper,
    fit_glm,
    fit_glms,
    ks_distance,
    log_likelihood,
)

FLOAT64 = np.dtype(np.float64)


def grouped(score):
    distinct, count = np.unique(score, return_counts=True)
    return distinct.astype(float), count.astype(float), score.dtype


def draws(a, b, n, dtype=np.float64, seed=0):
    return (1 - np.random.default_rng(seed).beta(b, a, n)).astype(dtype)


# -- the likelihood --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(2.8, 0.05), (0.3, 0.2), (1.0, 1.0), (40.0, 7.0)])
@pytest.mark.parametrize("step", [2.0**-24, 0.01, 0.1])
@pytest.mark.parametrize("end", ["zero", "one"])
def test_a_cell_counts_with_its_probability(a, b, step, end):
    for multiple in (0, 1, 2, 4):
        score = np.array([multiple * step if end == "zero" else 1 - multiple * step])
        cell = censor(score, np.ones(1), Resolution(step, step))
        first, second = (a, b) if end == "zero" else (b, a)
        low, high = max(multiple - 0.5, 0) * step, (multiple + 0.5) * step
        expected = betainc(first, second, high) - betainc(first, second, low)
        assert np.exp(log_likelihood(cell, a, b)[0]) == pytest.approx(expected, rel=1e-6, abs=1e-300)


def test_probabilities_of_all_cells_sum_to_one():
    score = np.arange(11) / 10
    total = 0.0
    for one in score:
        cell = censor(np.array([one]), np.ones(1), Resolution(0.1, 0.1))
        total += np.exp(log_likelihood(cell, 1.3, 0.2)[0])
    assert total == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("a", "b"), [(2.8, 0.05), (0.3, 0.2), (1.5, 6.0)])
def test_derivatives_are_those_of_the_value(a, b):
    score, count, _ = grouped(
        np.concatenate([draws(2.0, 0.1, 300, np.float32), [0.0, 0.0, 0.3]]).astype(np.float32)
    )
    scores = censor(score, count, Resolution(2.0**-149, 2.0**-24))
    _, gradient, hessian = log_likelihood(scores, a, b)
    for k, name in enumerate("ab"):
        h = 1e-5 * (a if name == "a" else b)
        up, down = np.array([a, b]), np.array([a, b])
        up[k] += h
        down[k] -= h
        value_up, gradient_up, _ = log_likelihood(scores, *up)
        value_down, gradient_down, _ = log_likelihood(scores, *down)
        assert (value_up - value_down) / (2 * h) == pytest.approx(gradient[k], rel=1e-5)
        assert (gradient_up - gradient_down) / (2 * h) == pytest.approx(hessian[k], rel=1e-5)


# -- the fit ---------------------------------------------------------------------------------------------


def test_without_rounded_scores_it_is_scipys_fit():
    score = np.sort(np.random.default_rng(5).beta(1.7, 0.9, 3000))
    fit = fit_beta(*grouped(score))
    a, b, _, _ = stats.beta.fit(score, floc=0, fscale=1)
    assert (fit.a, fit.b) == pytest.approx((a, b), rel=1e-6)
    assert fit.log_likelihood == pytest.approx(stats.beta.logpdf(score, a, b).sum())
    assert fit.converged
    assert fit.message == ""


def test_no_neighbouring_parameters_are_more_likely():
    score, count, dtype = grouped(draws(2.7752, 0.0478, 2000, np.float32))
    fit = fit_beta(score, count, dtype)
    assert fit.resolution is not None
    scores = censor(score, count, fit.resolution)
    for da in (-1e-3, 0, 1e-3):
        for db in (-1e-3, 0, 1e-3):
            assert log_likelihood(scores, fit.a * (1 + da), fit.b * (1 + db))[0] <= fit.log_likelihood + 1e-9


def test_taking_ones_as_points_is_far_off_where_the_cells_are_right():
    """DESIGN: clipping at 1 - 2^-53 gives (3.33, 0.059) where the truth is (2.77, 0.048)."""
    score, count, dtype = grouped(draws(2.7752, 0.0478, 100_000))
    fit = fit_beta(score, count, dtype)
    clipped = fit_beta(np.minimum(score, 1 - 2.0**-53)[:-1], count[:-1], dtype)
    assert fit.b == pytest.approx(0.0478, rel=0.02)
    assert fit_beta_as_paper(score, count).b == pytest.approx(0.0593, rel=0.02)
    assert clipped.b > 0.06


def test_mirrored_scores_swap_the_parameters():
    score = np.random.default_rng(2).beta(0.3, 1.4, 2000)
    score = score[score > 1e-9]  # so that 1 - score is exact enough
    fit, mirrored = fit_beta(*grouped(score)), fit_beta(*grouped(1 - score))
    assert (mirrored.b, mirrored.a) == pytest.approx((fit.a, fit.b), rel=1e-5)


def test_weight_is_repetition_and_its_scale_does_not_matter():
    score = np.array([0.1234, 0.5, 0.777, 0.9, 1.0])
    count = np.array([2.0, 1.0, 3.0, 1.0, 2.0])
    one, ten = fit_beta(score, count, FLOAT64), fit_beta(score, 10 * count, FLOAT64)
    assert (one.a, one.b) == pytest.approx((ten.a, ten.b), rel=1e-6)
    assert one.information_se is not None
    assert ten.information_se is not None
    assert one.information_se[0] == pytest.approx(ten.information_se[0] * np.sqrt(10), rel=1e-5)


@pytest.mark.parametrize("decimals", [1, 2, 3])
def test_rounded_decimals_are_cells_of_their_own_width(decimals):
    score, count, dtype = grouped(draws(2.7752, 0.0478, 50_000).round(decimals))
    fit = fit_beta(score, count, dtype)
    assert fit.information_se is not None
    assert abs(fit.a - 2.7752) < 4 * fit.information_se[0]
    assert abs(fit.b - 0.0478) < 4 * fit.information_se[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_that_underflow_to_zero(dtype):
    score = np.random.default_rng(4).beta(0.03, 2.0, 20_000).astype(dtype)
    assert (score == 0).any() == (dtype is np.float32)
    fit = fit_beta(*grouped(score))
    assert fit.information_se is not None
    assert abs(fit.a - 0.03) < 4 * fit.information_se[0]


@pytest.mark.parametrize(("a", "b"), [(10, 1e6), (1e5, 1e5), (1e-2, 3e-2), (1e4, 0.02)])
def test_extreme_parameters(a, b):
    rng = np.random.default_rng(8)
    fit = fit_beta(*grouped(rng.beta(a, b, 4000) if b > 1 else 1 - rng.beta(b, a, 4000)))
    assert fit.converged, fit.message
    assert (fit.a, fit.b) == pytest.approx((a, b), rel=0.15)


@pytest.mark.parametrize(
    ("score", "count", "words"),
    [
        ([0.7], [1], "all scores equal 0.7"),
        ([0.3], [100], "all scores equal 0.3"),
        ([1.0], [50], "exactly 0 or 1"),
        ([0.0], [50], "exactly 0 or 1"),
        ([0.0, 1.0], [30, 70], "exactly 0 or 1"),
        ([0.3, 0.3 + 1e-9], [1, 1], "no maximum"),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_without_a_maximum_says_so(score, count, words, dtype):
    fit = fit_beta(np.array(score), np.array(count, dtype=float), np.dtype(dtype))
    assert not fit.converged
    assert words in fit.message
    assert fit.information_se is None
    assert 0 < fit.a <= 1.0001e8
    assert 0 < fit.b <= 1.0001e8


# -- the paper's recipe ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(2.0, 0.4), (0.5, 0.5), (30.0, 2.0)])
def test_the_recipe_finds_the_point_likelihoods_maximum(a, b):
    score = np.sort(np.random.default_rng(6).beta(a, b, 2000))
    fit = fit_beta_as_paper(*grouped(score)[:2])
    expected_a, expected_b, _, _ = stats.beta.fit(score - 1e-16, floc=0, fscale=1)
    assert fit.a == pytest.approx(expected_a, abs=2e-5)
    assert fit.b == pytest.approx(expected_b, abs=2e-5)
    assert fit.converged


def test_the_shift_moves_one_to_the_float_below_it():
    assert 1.0 - 1e-16 == 1 - 2.0**-53


def test_the_recipe_refuses_scores_of_zero():
    with pytest.raises(ValueError, match="after which 2 scores are not positive"):
        fit_beta_as_paper(np.array([0.0, 0.5, 1.0]), np.array([2.0, 1.0, 1.0]))


def test_the_recipe_says_that_its_ranges_end():
    score = np.sort(np.random.default_rng(0).beta(1e4, 1e4, 500))
    fit = fit_beta_as_paper(score, np.ones(500))
    assert not fit.converged
    assert "bounds" in fit.message


# -- goodness of fit -------------------------------------------------------------------------------------


def test_ks_distance_is_scipys_for_scores_without_rounding():
    score = np.sort(np.random.default_rng(0).beta(2.0, 3.0, 500))
    expected = stats.kstest(score, stats.beta(2.2, 3.0).cdf).statistic
    assert ks_distance(score, np.ones(500), FLOAT64, 2.2, 3.0) == pytest.approx(expected)


def test_ks_distance_over_many_groups_is_nearly_exact():
    score = np.sort(np.random.default_rng(0).beta(2.0, 3.0, 30_000))
    expected = stats.kstest(score, stats.beta(2.1, 3.0).cdf).statistic
    assert ks_distance(score, np.ones(30_000), FLOAT64, 2.1, 3.0) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_atom_that_rounding_makes_is_no_misfit(dtype):
    score, count, dtype = grouped(draws(2.7752, 0.0478, 20_000, dtype))
    assert count[-1] > 3000
    assert ks_distance(score, count, dtype, 2.7752, 0.0478) < 1.95 / np.sqrt(20_000)  # level 0.001


NAMES = [
    "logflip_logflip_b0_b1",
    "logflip_logflip_b1",
    "logflip_logflip_b0",
    "logit_logflip_b0_b1",
    "logit_logflip_b1",
    "logit_logflip_b0",
    "logit_logit_b0_b1",
    "logit_logit_b1",
    "logit_logit_b0",
    "log_log_b0_b1",
    "log_log_b1",
    "log_log_b0",
]


def example(seed, n=60, power=1.5):
    rng = np.random.default_rng(seed)
    score = np.unique(rng.beta(1.5, 0.6, n).clip(1e-9, 1 - 1e-9))
    count = rng.integers(1, 4, len(score)).astype(float)
    positives = rng.binomial(count.astype(int), score**power).astype(float)
    return score, count, positives


def by_name(fits):
    return {fit.name: fit for fit in fits}


def glm_log_likelihood(fit, score, count, positives, b0, b1):
    """The formula itself; minus infinity where some p is no probability."""
    eta = b0 + b1 * TRANSFORMS[fit.transform](score)
    p = {"logit": expit, "log": np.exp, "logflip": lambda x: -np.expm1(x)}[fit.link](eta)
    if (p < -1e-12).any() or (p > 1 + 1e-12).any():
        return -np.inf
    p = p.clip(0, 1)
    return float((xlogy(positives, p) + xlog1py(count - positives, -p)).sum())


def coefficients(fit):
    return fit.b0 or 0.0, fit.b1 or 0.0


def test_there_are_twelve_with_the_papers_names():
    assert [fit.name for fit in fit_glms(*example(0))] == NAMES
    assert len(PAIRS) * len(TERMS) == 12


@pytest.mark.parametrize("seed", range(3))
def test_aic_is_that_of_the_formula(seed):
    data = example(seed)
    for fit in fit_glms(*data):
        expected = 2 * fit.n_coefficients - 2 * glm_log_likelihood(fit, *data, *coefficients(fit))
        assert fit.aic == pytest.approx(expected, rel=1e-9), fit.name


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("top_is_certain", [False, True])
def test_brute_force_finds_nothing_better(seed, top_is_certain):
    score, count, positives = example(seed, n=25)
    if top_is_certain:  # then the best p is often 1 at the greatest score
        positives[-8:] = count[-8:]
    for fit in fit_glms(score, count, positives):
        assert fit.converged, fit
        present = [fit.b0 is not None, fit.b1 is not None]

        def loss(free, fit=fit, present=present):
            both = np.zeros(2)
            both[present] = free
            with np.errstate(over="ignore"):
                return min(-glm_log_likelihood(fit, score, count, positives, *both), 1e9)

        found = np.array(coefficients(fit))[present]
        for start in (found, found + 0.01, found * 1.2 - 0.05):
            search = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11})
            assert fit.log_likelihood >= -search.fun - 1e-7, fit


def test_the_optimum_may_be_on_the_boundary_and_says_so():
    score = np.linspace(0.05, 0.95, 19)
    count = np.ones(19)
    positives = (score > 0.4).astype(float)
    positives[5] = 1.0
    positives[9] = 0.0
    fit = by_name(fit_glms(score, count, positives))["log_log_b0_b1"]
    assert fit.boundary
    assert fit.converged
    assert fit.b0 + fit.b1 * np.log(0.95) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("transform", ["logit", "logflip"])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_logit_link_is_unpenalised_logistic_regression(transform, intercept):
    linear_model = pytest.importorskip("sklearn.linear_model")
    score, count, positives = example(3, n=400)
    x = TRANSFORMS[transform](score)
    fit = fit_glm("logit", transform, (intercept, True), x, count, positives)
    model = linear_model.LogisticRegression(C=np.inf, fit_intercept=intercept, tol=1e-10, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # older and newer releases spell "no penalty" differently
        model.fit(
            np.concatenate([x, x])[:, np.newaxis],
            np.repeat([1, 0], len(x)),
            sample_weight=np.concatenate([positives, count - positives]),
        )
    assert fit.b1 == pytest.approx(model.coef_[0, 0], rel=1e-4)
    if intercept:
        assert fit.b0 == pytest.approx(model.intercept_[0], abs=1e-4)


def test_constants_have_their_closed_form():
    score, count, positives = example(1)
    fits, rate = by_name(fit_glms(score, count, positives)), positives.sum() / count.sum()
    assert fits["log_log_b0"].b0 == pytest.approx(np.log(rate))
    assert fits["logflip_logflip_b0"].b0 == pytest.approx(np.log(1 - rate))
    assert fits["logit_logit_b0"].b0 == pytest.approx(np.log(rate / (1 - rate)))
    aics = [fits[name].aic for name in NAMES if name.endswith("_b0")]
    assert aics == pytest.approx([aics[0]] * 4)


def test_flipping_scores_and_labels_turns_log_into_logflip():
    score, count, positives = example(2)
    fits = by_name(fit_glms(score, count, positives))
    flipped = by_name(fit_glms((1 - score)[::-1], count[::-1], (count - positives)[::-1]))
    for terms in ("b0_b1", "b1", "b0"):
        one, other = fits[f"log_log_{terms}"], flipped[f"logflip_logflip_{terms}"]
        assert coefficients(other) == pytest.approx(coefficients(one), abs=1e-6)
        assert other.aic == pytest.approx(one.aic)


def test_weight_is_repetition():
    score, count, positives = example(4)
    for one, five in zip(
        fit_glms(score, count, positives), fit_glms(score, 5 * count, 5 * positives), strict=True
    ):
        assert coefficients(five) == pytest.approx(coefficients(one), abs=1e-5)
        assert five.log_likelihood == pytest.approx(5 * one.log_likelihood)


@pytest.mark.parametrize("near", ["zero", "one"])
def test_scores_close_to_an_end_keep_their_digits(near):
    """log(1 - c) of 1e-15 is -1e-15, and that of 1 - 1e-15 is -34.5, not infinity."""
    rng = np.random.default_rng(0)
    distance = np.sort(10 ** rng.uniform(-15, -1, 400))
    score = distance if near == "zero" else (1 - distance)[::-1]
    score, inverse = np.unique(score, return_inverse=True)
    p = score**0.1 if near == "zero" else 1 - (1 - score) ** 0.1
    positives = np.bincount(inverse, rng.random(400) < p[inverse]).astype(float)
    fits = by_name(fit_glms(score, np.bincount(inverse).astype(float), positives))
    fit = fits["log_log_b1" if near == "zero" else "logflip_logflip_b1"]
    assert fit.b1 == pytest.approx(0.1, rel=0.3)
    assert all(np.isfinite(other.aic) for other in fits.values())


# -- what has no proper maximum --------------------------------------------------------------------------


def test_separated_labels():
    score = np.linspace(0.1, 0.9, 20)
    fits = by_name(fit_glms(score, np.ones(20), (score > 0.5).astype(float)))
    for name in ("logit_logit_b0_b1", "logit_logflip_b0_b1", "logit_logit_b1"):
        assert not fits[name].converged
        assert "separates" in fits[name].message
        assert fits[name].log_likelihood == pytest.approx(0, abs=1e-6)
    assert fits["log_log_b0_b1"].converged  # its slope is bounded by the line's other end


def test_quasi_separated_labels():
    score = np.array([0.2, 0.5, 0.8])
    fit = by_name(fit_glms(score, np.full(3, 4.0), np.array([0.0, 2.0, 4.0])))["logit_logit_b0_b1"]
    assert not fit.converged
    assert fit.log_likelihood == pytest.approx(4 * np.log(0.5), abs=1e-6)


def test_positives_at_one_score_only():
    score = np.array([0.2, 0.5, 0.8])
    fit = by_name(fit_glms(score, np.full(3, 4.0), np.array([0.0, 0.0, 2.0])))["log_log_b0_b1"]
    assert not fit.converged
    assert fit.log_likelihood == pytest.approx(4 * np.log(0.5), abs=1e-6)


@pytest.mark.parametrize("label", [0.0, 1.0])
@pytest.mark.parametrize("n", [1, 2, 30])
def test_one_class_only(label, n):
    score = np.linspace(0.3, 0.9, n)
    fits = by_name(fit_glms(score, np.ones(n), np.full(n, label)))
    for fit in fits.values():
        assert np.isfinite(fit.aic)
        if fit.name != "logit_logit_b1":  # through p = 1/2 at the score 1/2
            assert fit.log_likelihood == pytest.approx(0, abs=1e-4)
    assert "same label" in fits["logit_logit_b0"].message
    certain, vague = ("log_log", "logflip_logflip") if label else ("logflip_logflip", "log_log")
    assert fits[f"{certain}_b0"].b0 == 0.0
    assert fits[f"{certain}_b0"].boundary
    assert fits[f"{certain}_b0"].converged
    assert not fits[f"{vague}_b0"].converged


def test_one_distinct_score():
    fits = by_name(fit_glms(np.array([0.7]), np.array([10.0]), np.array([4.0])))
    both = fits["logit_logit_b0_b1"]
    assert not both.converged
    assert "single distinct score" in both.message
    assert fits["logit_logit_b1"].b1 * np.log(0.7 / 0.3) == pytest.approx(np.log(0.4 / 0.6))
    assert fits["log_log_b1"].b1 * np.log(0.7) == pytest.approx(np.log(0.4))


def test_two_distinct_scores_are_fitted_exactly():
    fits = fit_glms(np.array([0.3, 0.6]), np.array([10.0, 10.0]), np.array([2.0, 7.0]))
    saturated = 2 * np.log(0.2) + 8 * np.log(0.8) + 7 * np.log(0.7) + 3 * np.log(0.3)
    for fit in fits:
        if fit.n_coefficients == 2:
            assert fit.converged
            assert fit.log_likelihood == pytest.approx(saturated)
