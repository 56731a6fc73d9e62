"""Logistic regression against scikit-learn and at its limits."""

import numpy as np
import pytest
import scipy.special
from scipy.optimize import approx_fprime

from support.likelihood import best, mean_loss
from truecal._lib.logistic import expit, fit_logistic, logistic_objective


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
