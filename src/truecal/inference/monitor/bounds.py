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


def error_bound(total: FloatArray, squares: FloatArray, units: float, alpha: float) -> float:
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
    needed = math.log(len(_RATES) / alpha) - LOG_PRIOR
    spare = (total - needed)[:, np.newaxis] - np.multiply.outer(squares, _RATES / 2)
    return math.sqrt(max(float((2 * _RATES * spare).max()) / units, 0.0))


def frequency_bounds(units: float, labels: float, alpha: float) -> tuple[float, float]:
    r"""Return a confidence interval for the mean true probability of the rows so far.

    With u units and sum s of their labels, :math:`\exp(\delta s) / (1 + m (e^\delta - 1))^u` is at most a
    supermartingale if m is the mean true probability so far, since the logarithm is concave. The interval holds the
    m at which the mixture over tilts stays below :math:`1 / \alpha`, and is valid at all times at once.

    Parameters
    ----------
    units, labels : float
        Number of independent units, and the sum of their labels (of clusters: of their mean labels).
    alpha : float
        Probability of an error, at any time.

    Examples
    --------
    >>> low, high = frequency_bounds(1000, 300, 0.05)
    >>> round(low, 2), round(high, 2)
    (0.25, 0.35)
    """
    needed = math.log(2 * len(_TILTS) / alpha)
    low = np.expm1((_TILTS * labels - needed) / units) / np.expm1(_TILTS)
    high = np.expm1((-_TILTS * labels - needed) / units) / np.expm1(-_TILTS)
    return max(float(low.max()), 0.0), min(float(high.min()), 1.0)
