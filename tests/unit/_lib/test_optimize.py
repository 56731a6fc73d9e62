import math

import numpy as np
import pytest
import scipy.special
from scipy.optimize import approx_fprime, brentq, minimize

from support.likelihood import best, mean_loss
from truecal._lib.numeric import expit, find_root, fit_logistic, isotonic_rate, logistic_objective, maximise


def quadratic(top, curvature):
    def objective(x):
        rest = x - top
        return float(-rest @ curvature @ rest / 2), -curvature @ rest, -curvature

    return objective


COUPLED = np.array([[2.0, 1.8], [1.8, 2.0]])


def test_reaches_the_top_of_a_quadratic_in_one_step():
    found = maximise(quadratic(np.array([3.0, -1.0]), COUPLED), np.zeros(2), max_steps=2)
    assert found.converged
    assert found.x == pytest.approx([3.0, -1.0])
    assert not found.at_bound.any()


@pytest.mark.parametrize("top", [(-1.0, 2.0), (2.0, -1.0), (-1.0, -1.0), (-3.0, 2.5)])
def test_stops_on_the_boundary_where_the_best_feasible_point_is(top):
    objective = quadratic(np.array(top), COUPLED)
    found = maximise(objective, np.array([1.0, 1.0]), lower=0.0)
    grid = np.linspace(0, 3, 61)
    best = max(objective(np.array([u, v]))[0] for u in grid for v in grid)
    assert found.converged
    assert found.at_bound.any()
    assert found.value >= best - 1e-12


def test_a_bound_is_hit_exactly():
    found = maximise(quadratic(np.array([-1.0]), np.eye(1)), np.array([0.1]), lower=0.0)
    assert found.x[0] == 0.0


def test_the_objective_may_be_minus_infinity_beyond_a_wall():
    def objective(x):
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.log(x[0]) - x[0]), 1 / x - 1, np.diag(-1 / x**2)

    found = maximise(objective, np.array([50.0]), lower=0.0)
    assert found.converged
    assert found.x[0] == pytest.approx(1.0)


def test_climbs_out_of_a_region_of_the_wrong_curvature():
    def objective(x):  # a bell: convex beyond one standard deviation
        value = np.exp(-(x[0] ** 2) / 2)
        return float(value), -x * value, np.array([[(x[0] ** 2 - 1) * value]])

    found = maximise(objective, np.array([3.0]))
    assert found.x[0] == pytest.approx(0, abs=1e-4)


def test_says_when_the_steps_run_out():
    def ramp(x):
        return float(-np.exp(-x[0])), np.exp(-x), np.diag(-np.exp(-x))

    assert not maximise(ramp, np.zeros(1), max_steps=3).converged


def test_a_climb_ends_where_rounding_hides_every_gain():
    calls = 0

    def noisy(x):
        nonlocal calls
        calls += 1
        return -1e15 + float(calls % 3), np.array([1.0, -1.0]), -np.diag([1e12, 1e-12])

    assert not maximise(noisy, np.zeros(2)).converged
    assert calls <= 502


def data(n=300):
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    return (
        np.column_stack([np.ones(n), x]),
        x / 3,
        np.ones(n),
        (rng.random(n) < 1 / (1 + np.exp(-x))).astype(float),
    )


def test_derivatives_are_those_of_the_value():
    objective, at = logistic_objective(*data()), np.array([0.3, -0.4])
    _, gradient, hessian = objective(at)
    assert gradient == pytest.approx(approx_fprime(at, lambda b: objective(b)[0], 1e-6), rel=1e-4)
    assert hessian[0] == pytest.approx(approx_fprime(at, lambda b: objective(b)[1][0], 1e-6), rel=1e-4)


@pytest.mark.parametrize("count", [1.0, 2.5])
def test_one_count_for_all_rows_is_that_count_for_each(count):
    design, offset, ones, positives = data(20_000)  # more than fit into one step
    design, at = 40 * design, np.array([0.3, -0.4])  # also where the sum of 64 logarithms is large
    one = logistic_objective(design, offset, count, count * positives)(at)
    each = logistic_objective(design, offset, count * ones, count * positives)(at)
    for found, expected in zip(one, each, strict=True):
        assert found == pytest.approx(expected, rel=1e-12)


def test_it_is_scikit_learns_optimum():
    linear = pytest.importorskip("sklearn.linear_model")
    design, _, count, positives = data()
    model = linear.LogisticRegression(C=np.inf, tol=1e-10).fit(design[:, 1:], positives)
    fit = fit_logistic(design, np.zeros(len(count)), count, positives)
    assert fit.x == pytest.approx([model.intercept_[0], model.coef_[0, 0]], abs=1e-4)


def test_separated_labels_end_where_the_likelihood_is_flat():
    design = np.column_stack([np.ones(4), [-2.0, -1, 1, 2]])
    fit = fit_logistic(design, np.zeros(4), np.ones(4), np.array([0.0, 0, 1, 1]))
    assert fit.x[1] > 10
    assert fit.value == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_fractions_of_rows_may_be_positive(weighted):
    rng = np.random.default_rng(0)
    features = np.column_stack([rng.normal(size=200), np.ones(200)])
    target = rng.random(200)
    weight = rng.random(200) if weighted else np.ones(200)
    found = fit_logistic(features, 0.0, weight if weighted else 1.0, weight * target).x
    expected = best(lambda theta: mean_loss(features @ theta, target, weight), np.zeros(2))
    assert found == pytest.approx(expected, abs=1e-5)


def test_a_bound_is_kept():
    features = np.column_stack([np.arange(6.0), np.ones(6)])
    target = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    found = fit_logistic(features, 0.0, 1.0, target, lower=np.array([0.0, -np.inf])).x
    assert found == pytest.approx([0.0, np.log(4 / 2)])


@pytest.mark.parametrize("order", ["random", "sorted", "separated at first"])
def test_many_rows_have_the_optimum_of_all_of_them(order):
    rng = np.random.default_rng(1)
    x = rng.normal(size=60_000)
    if order != "random":
        x.sort()
    label = (rng.random(len(x)) < 1 / (1 + np.exp(1 - 2 * x))).astype(float)
    if order == "separated at first":
        label[::12] = x[::12] > 0  # these are the rows of the first fit
    fit = fit_logistic(np.column_stack([np.ones_like(x), x]), 0.0, 1.0, label)
    assert fit.converged
    assert fit.gradient == pytest.approx([0, 0], abs=1e-3)


def test_expit_is_that_of_scipy():
    logit = np.concatenate([np.linspace(-700, 700, 2801), [-1e300, -0.0, 1e300]])
    np.testing.assert_allclose(expit(logit), scipy.special.expit(logit), rtol=1e-15)


def test_it_is_the_best_rising_curve():
    """Against a general optimiser over non-negative increments."""
    rng = np.random.default_rng(0)
    count = rng.integers(1, 6, 12).astype(float)
    positives = rng.binomial(count.astype(int), np.linspace(0.2, 0.8, 12)).astype(float)

    def loss(steps):
        return float(count @ (np.cumsum(steps) - positives / count) ** 2)

    best = minimize(loss, np.full(12, 0.05), bounds=[(0, 1)] * 12, options={"ftol": 1e-14})
    np.testing.assert_allclose(isotonic_rate(count, positives), np.cumsum(best.x), atol=2e-3)
    assert loss(np.diff(isotonic_rate(count, positives), prepend=0)) <= best.fun + 1e-9


def test_rising_rates_are_unchanged_and_falling_ones_pooled():
    count = np.array([2.0, 2.0, 4.0])
    assert isotonic_rate(count, np.array([0.0, 1.0, 4.0])).tolist() == [0, 0.5, 1]
    assert isotonic_rate(count, np.array([2.0, 1.0, 0.0])) == pytest.approx([3 / 8] * 3)


FUNCTIONS = [
    (math.cos, 0, 3),
    (lambda x: x**3 - 2, -1, 1.5),
    (lambda x: math.atan(x - 100), -1e6, 1e6),
    (lambda x: math.expm1(x) - 1e-8, -50, 5),
    (lambda x: 1.0 if x > 0.3 else -1.0, 0, 1),
    (lambda x: x, 0, 1),
    (lambda x: x - 1, 0, 1),
]


@pytest.mark.parametrize(("function", "low", "high"), FUNCTIONS)
def test_roots_are_those_of_scipy(function, low, high):
    calls = []

    def counted(x):
        calls.append(x)
        return function(x)

    root = find_root(counted, low, high, xtol=1e-12)
    expected = brentq(function, low, high, xtol=1e-14)
    assert root == pytest.approx(expected, abs=2e-12, rel=1e-14)
    assert len(calls) < 80
    assert min(calls) >= low
    assert max(calls) <= high


def test_the_tolerance_saves_calls():
    calls = []
    find_root(lambda x: calls.append(x) or math.cos(x), 0, 3, xtol=1e-3)
    assert len(calls) < 8


def test_a_function_without_a_change_of_sign_is_an_error():
    with pytest.raises(ValueError, match="no change of sign"):
        find_root(math.exp, 0, 1)
    with pytest.raises(ValueError, match="no change of sign"):
        find_root(lambda _: math.nan, 0, 1)
