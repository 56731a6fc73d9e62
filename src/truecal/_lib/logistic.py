"""Logistic regression of grouped labels, with an offset."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from truecal._lib.newton import Objective, Optimum, maximise
from truecal._lib.types import FloatArray

#: Coefficients are searched within this distance of 0; beyond it all probabilities are 0 or 1.
FAR = 1e3


def logistic_objective(
    design: FloatArray, offset: FloatArray, count: FloatArray, positives: FloatArray
) -> Objective:
    """Return the log-likelihood of a logistic regression, with gradient and Hessian, as a function of its coefficients.

    Parameters
    ----------
    design : ndarray of shape (k, d)
        Covariates.
    offset, count, positives : ndarray of shape (k,)
        Fixed part of the logit, rows and positive labels.

    Returns
    -------
    callable
    """

    def objective(coefficient: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        logit = offset + design @ coefficient
        rate = expit(logit)
        hessian = -(design.T * (count * rate * (1 - rate))) @ design
        value = float(positives @ logit - count @ np.logaddexp(0.0, logit))
        return value, design.T @ (positives - count * rate), hessian

    return objective


def fit_logistic(design: FloatArray, offset: FloatArray, count: FloatArray, positives: FloatArray) -> Optimum:
    """Return the maximum-likelihood fit of a logistic regression with an offset.

    Parameters
    ----------
    design, offset, count, positives
        As for `logistic_objective`.

    Returns
    -------
    Optimum
        Where labels are separated, coefficients are so large that the likelihood is flat.

    Examples
    --------
    >>> fit = fit_logistic(np.ones((2, 1)), np.zeros(2), np.array([3.0, 1.0]), np.array([1.0, 0.0]))
    >>> round(float(expit(fit.x[0])), 6)
    0.25
    """
    objective = logistic_objective(design, offset, count, positives)
    return maximise(objective, np.zeros(design.shape[1]), lower=-FAR, upper=FAR)
