"""Logistic regression against scikit-learn and at its limits."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from truecal._lib.logistic import fit_logistic, logistic_objective


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
