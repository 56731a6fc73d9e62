import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, xlog1py, xlogy

from truecal.simulation.fit.glm import PAIRS, TERMS, TRANSFORMS, fit_glm, fit_glms

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


def log_likelihood(fit, score, count, positives, b0, b1):
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
        expected = 2 * fit.n_coefficients - 2 * log_likelihood(fit, *data, *coefficients(fit))
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
                return min(-log_likelihood(fit, score, count, positives, *both), 1e9)

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
