"""Logistic regression of grouped labels, with an offset."""

from __future__ import annotations

import numpy as np

from truecal._lib.newton import Objective, Optimum, maximise
from truecal._lib.types import FloatArray

#: Coefficients are searched within this distance of 0; beyond it all probabilities are 0 or 1.
FAR = 1e3

#: Rows per step of a pass over all; their logits fit into the cache of a processor.
_STEP = 1 << 13

#: From so many rows on, a fit starts where that of every tenth row ended.
_MANY, _TENTH = 50_000, 10


def expit(logit: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-logit)), without overflow.

    An estimate needs no more of `scipy.special`, which takes three times as long to import as NumPy.

    Examples
    --------
    >>> expit(np.array([-1000.0, 0.0, 40.0]))
    array([0. , 0.5, 1. ])
    """
    small = np.exp(-np.abs(logit))
    return np.asarray(np.where(logit > 0, 1.0, small) / (1 + small))


def logistic_objective(
    design: FloatArray, offset: FloatArray | float, count: FloatArray | float, positives: FloatArray
) -> Objective:
    r"""Return the log-likelihood of the coefficients of a logistic regression, with gradient and Hessian.

    .. math:: \sum_i t_i \eta_i - n_i \log(1 + e^{\eta_i}) , \qquad \eta = o + X \theta

    Parameters
    ----------
    design : ndarray of shape (k, d)
        Covariates X.
    offset, count : ndarray of shape (k,), or float
        Fixed part o of the logit, and rows n.
    positives : ndarray of shape (k,)
        Positive labels t, or fractions of rows that count as positive.

    Returns
    -------
    callable
    """
    k, d = design.shape
    alike = np.ndim(count) == 0
    offset, count = np.broadcast_to(offset, k), np.broadcast_to(count, k)

    def objective(coefficient: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        value, gradient, hessian = 0.0, np.zeros(d), np.zeros((d, d))
        for first in range(0, k, _STEP):
            rows = slice(first, first + _STEP)
            x, n, t = design[rows], count[rows], positives[rows]
            logit = x @ coefficient + offset[rows]
            small = np.exp(-np.abs(logit))  # the odds, or their inverse
            total = 1 + small
            rate = np.where(logit > 0, 1.0, small) / total
            value += float(t @ logit - n @ np.maximum(logit, 0.0))
            value -= float(n[0] * _sum_of_logs(total) if alike else n @ np.log(total))
            gradient += (t - n * rate) @ x
            hessian -= (x.T * (n * small / total**2)) @ x
        return value, gradient, hessian

    return objective


def _sum_of_logs(values: FloatArray) -> float:
    """Return the sum of the logarithms of numbers from 1 to 2: of products of 64, which do not overflow."""
    return float(np.log(np.multiply.reduceat(values, np.arange(0, len(values), 64))).sum())


def fit_logistic(
    design: FloatArray,
    offset: FloatArray | float,
    count: FloatArray | float,
    positives: FloatArray,
    *,
    start: FloatArray | None = None,
    lower: FloatArray | float = -FAR,
    upper: FloatArray | float = FAR,
) -> Optimum:
    """Return the maximum-likelihood fit of a logistic regression with an offset.

    The log-likelihood is concave, so that Newton's method converges from anywhere. The search over many rows starts
    where one over a tenth of them ended.

    Parameters
    ----------
    design, offset, count, positives
        As for `logistic_objective`.
    start : ndarray of shape (d,), optional
        Where to begin, by default at 0.
    lower, upper : ndarray of shape (d,), or float
        Bounds of the coefficients.

    Returns
    -------
    Optimum
        Where labels are separated, coefficients are so large that the likelihood is flat.

    Examples
    --------
    >>> fit = fit_logistic(np.ones((2, 1)), 0.0, np.array([3.0, 1.0]), np.array([1.0, 0.0]))
    >>> round(float(1 / (1 + np.exp(-fit.x[0]))), 6)
    0.25
    """
    k = len(positives)
    start = np.zeros(design.shape[1]) if start is None else start
    if k >= _MANY:
        some = slice(0, k, _TENTH)
        fixed, rows = np.broadcast_to(offset, k)[some], np.broadcast_to(count, k)[some]
        first = fit_logistic(
            design[some], fixed, rows, positives[some], start=start, lower=lower, upper=upper
        )
        start = first.x if first.converged else start
    return maximise(logistic_objective(design, offset, count, positives), start, lower=lower, upper=upper)
