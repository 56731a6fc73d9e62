"""The likelihood, maximised by brute force."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def best(loss, start, bounds=None):
    return minimize(loss, start, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10}).x


def mean_loss(eta, target, weight=None):
    return np.average(np.logaddexp(0, eta) - target * eta, weights=weight)
