"""Logistic regression by maximum likelihood, for the recalibrators that are one."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from truecal._lib.newton import maximise
from truecal._lib.types import FloatArray


def fit_logistic(
    features: FloatArray,
    target: FloatArray,
    weight: FloatArray | None,
    *,
    start: FloatArray,
    lower: FloatArray | float = -np.inf,
) -> FloatArray:
    r"""Return the coefficients that maximise :math:`\sum_i w_i [t_i \eta_i - \log(1 + e^{\eta_i})]`.

    Here :math:`\eta = X \theta`, and the targets may lie anywhere in [0, 1]. The log-likelihood is concave,
    so Newton's method converges from anywhere. Where labels are perfectly separated there
    is none, and the steps end where no more than 1e-10 is left to gain.

    Examples
    --------
    >>> x = np.column_stack([np.arange(4.0), np.ones(4)])
    >>> fit_logistic(x, np.array([0.0, 1.0, 0.0, 1.0]), None, start=np.zeros(2)).round(4)
    array([ 0.9082, -1.3623])
    """
    w = np.ones(len(target)) if weight is None else weight

    def log_likelihood(theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        eta = features @ theta
        p = expit(eta)
        value = float(w @ (target * eta - np.logaddexp(0, eta)))
        gradient = features.T @ (w * (target - p))
        hessian = -(features.T * (w * p * expit(-eta))) @ features
        return value, gradient, hessian

    return maximise(log_likelihood, start, lower=lower).x
