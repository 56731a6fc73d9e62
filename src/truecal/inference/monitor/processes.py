r"""The e-process and the e-detector: how evidence grows with time.

With :math:`L_j(s, t)` the likelihood ratio of alternative j over the rows after s and up to t, and prior weights
:math:`w_j` and :math:`v_s`,

.. math::

    E_t = \sum_j w_j \Big(\tfrac12 L_j(0, t) + \tfrac12 \sum_{s < t} v_s L_j(s, t)\Big) + \tfrac12 \sum_{s \ge t} v_s ,
    \qquad
    M_t = \sum_j w_j \sum_{s < t} n_s L_j(s, t) .

E is a mixture over alternatives and over the times s at which the error may begin, so its expectation is at most 1 at
every stopping time. M is an e-detector: it adds up one e-process for each of the :math:`n_s` rows of a batch, all of
which start with the batch, so M less the number of rows has no upward drift. Both sums over s follow from their last
values, so nothing but one number for each alternative is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from truecal._lib.types import FloatArray
from truecal.inference.monitor.alternatives import (
    DEPTH,
    LOG_PRIOR,
    N_ALTERNATIVES,
    N_CURVES,
    SENSITIVITY,
    SHIFT_PRIOR,
    SHIFTS,
    Evidence,
    log_sum_exp,
)

#: Prior mass of an error that is there from the start; the rest is spread over later times.
_FROM_START = 0.5
#: Rows after which the prior of later starts begins to fall.
_ROWS = 1000.0
#: Prior mass of errors in many regions at once, from the start, and of an error in each region given that.
_ON_MANY, _IN_REGION = 0.1, 0.5


def later_starts(rows: float) -> float:
    """Return the prior probability that an error which begins later begins within so many rows.

    The density falls like 1 / (t log(t)^2), so that a late change costs little evidence.

    Examples
    --------
    >>> later_starts(0), round(later_starts(1e6), 2)
    (0.0, 0.87)
    """
    return 1 - 1 / (1 + math.log1p(rows / _ROWS))


def log_later(before: float, rows: float) -> float:
    """Return the logarithm of the prior mass of an error that begins with a batch of rows, after those before."""
    return math.log((1 - _FROM_START) * (later_starts(before + rows) - later_starts(before)))


@dataclass(eq=False)
class Processes:
    """Evidence against a null hypothesis, from all rows so far.

    Attributes
    ----------
    at_most : float
        Root mean square error that the null hypothesis allows; 0 for perfect calibration.
    rows, units : float
        Rows and independent units so far.
    total, squares : ndarray of shape (N_ALTERNATIVES,)
        Sums over all rows of what `Evidence` holds.
    mixed, detector : ndarray of shape (N_ALTERNATIVES,)
        Logarithms of the sums over s in E and M.
    independent : bool
        Whether all rows so far were independent.
    """

    at_most: float = 0.0
    rows: float = 0.0
    units: float = 0.0
    total: FloatArray = field(default_factory=lambda: np.zeros(N_ALTERNATIVES))
    squares: FloatArray = field(default_factory=lambda: np.zeros(N_ALTERNATIVES))
    mixed: FloatArray = field(default_factory=lambda: np.full(N_ALTERNATIVES, math.log(_FROM_START)))
    detector: FloatArray = field(default_factory=lambda: np.full(N_ALTERNATIVES, -math.inf))
    independent: bool = True

    def add(self, batch: Evidence) -> None:
        """Take in a batch."""
        gain = self._gain(batch.log_ratio, batch.squares, batch.units)
        self.mixed = np.logaddexp(self.mixed, log_later(self.rows, batch.rows)) + gain
        self.detector = np.logaddexp(self.detector, math.log(batch.rows)) + gain
        self._count(batch)

    def merge(self, other: Processes) -> None:
        """Take in what another process saw, as if its rows came after those of this one."""
        gain = self._gain(other.total, other.squares, other.units)
        # Where in the other the batches began is not known, so its later starts begin with its first row.
        self.mixed = np.logaddexp(self.mixed, log_later(self.rows, other.rows)) + gain
        self.detector = np.logaddexp(self.detector + gain, other.detector)
        self._count(Evidence(other.total, other.squares, other.rows, other.units))
        self.independent &= other.independent

    def _count(self, batch: Evidence) -> None:
        self.total = self.total + batch.log_ratio
        self.squares = self.squares + batch.squares
        self.rows += batch.rows
        self.units += batch.units

    def _gain(self, log_ratio: FloatArray, squares: FloatArray, units: float) -> FloatArray:
        r"""Return the log-likelihood ratios less what an allowed error can contribute to them.

        For a row with error d and a ratio of sensitivity c the expected ratio is at most
        :math:`1 + dc \le (1 + \eta c^2 / 2)(1 + d^2 / (2 \eta))` for any :math:`\eta > 0`.
        """
        if self.at_most == 0:
            return log_ratio
        rate = self.at_most / SENSITIVITY
        return log_ratio - rate * squares / 2 - units * self.at_most**2 / (2 * rate)

    @property
    def log_evalue(self) -> float:
        """Logarithm of E."""
        total = self.total if self.at_most == 0 and self.independent else None
        return float(log_evalues(self.mixed, self.rows, total))

    @property
    def log_detector(self) -> float:
        """Logarithm of M."""
        return float(log_sum_exp(LOG_PRIOR + self.detector))


def log_evalues(mixed: FloatArray, rows: float, total: FloatArray | None = None) -> FloatArray:
    """Return the logarithm of E, of one monitor or of many.

    Parameters
    ----------
    mixed, total : ndarray of shape (..., N_ALTERNATIVES)
        As in `Processes`; without `total`, errors in many regions at once are left out.
    rows : float
        Rows so far.
    """
    waiting = math.log((1 - _FROM_START) * (1 - later_starts(rows)))
    log_e = np.logaddexp(log_sum_exp(LOG_PRIOR + mixed), waiting)
    if total is None:
        return log_e
    return np.logaddexp(math.log1p(-_ON_MANY) + log_e, math.log(_ON_MANY) + many_regions(total))


def many_regions(total: FloatArray) -> FloatArray:
    """Return the logarithm of the e-process of errors that differ from region to region, from the start.

    Regions are independent given the scores, so their mixtures over shifts multiply; each region of each depth is
    in error with a prior probability of one half.

    Parameters
    ----------
    total : ndarray of shape (..., N_ALTERNATIVES)
        Sums of log-likelihood ratios, of one monitor or of many.
    """
    nodes = total[..., N_CURVES:].reshape(*total.shape[:-1], -1, len(SHIFTS))
    shifted = log_sum_exp(nodes + np.log(SHIFT_PRIOR))
    each = np.logaddexp(math.log(_IN_REGION) + shifted, math.log1p(-_IN_REGION))
    depths = [each[..., (1 << b) - 1 : (2 << b) - 1].sum(axis=-1) for b in range(1, DEPTH + 1)]
    return log_sum_exp(np.stack(depths, axis=-1)) - math.log(DEPTH)
