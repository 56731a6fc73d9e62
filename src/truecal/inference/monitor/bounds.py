"""Confidence sequences: bounds that hold at all times at once."""

from __future__ import annotations

import math

import numpy as np

from truecal._lib.types import FloatArray
from truecal.inference.monitor.alternatives import LOG_PRIOR

#: Rates at which evidence is exchanged for an allowed error.
_RATES: FloatArray = np.exp2(np.arange(-8.0, 4.0))
#: Tilts of the label's distribution for the bound of the observed frequency.
_TILTS: FloatArray = 0.002 * np.power(1.6, np.arange(16.0))
_UP, _DOWN = np.expm1(_TILTS), np.expm1(-_TILTS)


def smallest_error(total: FloatArray, squares: FloatArray, units: float, alpha: float) -> float:
    r"""Return a lower confidence bound of the root mean square error of the rows so far.

    It is the largest error at which the e-process of the null hypothesis "at most this error so far" reaches
    :math:`1 / \alpha`; the probability that it is ever above the true one is at most alpha. The mixture over
    alternatives and rates is bounded by its largest term.

    Parameters
    ----------
    total, squares : ndarray
        Sums of the evidence, as in `truecal.inference.monitor.processes.Processes`.
    units : float
        Number of independent units so far.
    alpha : float
        Probability of an error, at any time.
    """
    spare = total - math.log(len(_RATES) / alpha) + LOG_PRIOR
    some = np.flatnonzero(spare > 0)
    if not len(some):
        return 0.0
    left = spare[some, np.newaxis] - np.multiply.outer(squares[some], _RATES / 2)
    return math.sqrt(max(float((2 * _RATES * left).max()) / units, 0.0))


def largest_error(sums: FloatArray, alpha: float) -> float:
    r"""Return an upper confidence bound of the root mean square error between regions of scores.

    In each region the mean true probability has a confidence sequence. The bound allows the largest error in all of
    them at once. Errors that cancel within a region are not seen.

    Parameters
    ----------
    sums : ndarray of shape (3, n_regions)
        Number of units, and sums of their labels and scores, of each region.
    alpha : float
        Probability of an error, at any time.

    Examples
    --------
    >>> round(largest_error(np.array([[5000.0, 5000.0], [1000.0, 4000.0], [1000.0, 4000.0]]), 0.05), 3)
    0.022
    """
    units, labels, scores = sums[:, sums[0] > 0]
    low, high = frequency_bounds(units, labels, alpha / len(units))
    worst = np.maximum(high - scores / units, scores / units - low)
    return math.sqrt(float(units @ np.square(worst) / units.sum()))


def frequency_bounds(units: FloatArray, labels: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    r"""Return confidence intervals for the mean true probability of the rows so far.

    With u units and sum s of their labels, :math:`\exp(\delta s) / (1 + m (e^\delta - 1))^u` is at most a
    supermartingale if m is the mean true probability so far, since the logarithm is concave. The interval holds the
    m at which the mixture over tilts stays below :math:`1 / \alpha`, and is valid at all times at once.

    Parameters
    ----------
    units, labels : ndarray of shape (n,)
        Number of independent units, and the sum of their labels (of clusters: of their mean labels).
    alpha : float
        Probability of an error, at any time.

    Examples
    --------
    >>> low, high = frequency_bounds(np.array([1000.0]), np.array([300.0]), 0.05)
    >>> low.round(2), high.round(2)
    (array([0.25]), array([0.35]))
    """
    needed = math.log(2 * len(_TILTS) / alpha)
    tilted = np.multiply.outer(labels, _TILTS)
    low = np.expm1((tilted - needed) / units[:, np.newaxis]) / _UP
    high = np.expm1((-tilted - needed) / units[:, np.newaxis]) / _DOWN
    return np.maximum(low.max(axis=1), 0.0), np.minimum(high.min(axis=1), 1.0)
