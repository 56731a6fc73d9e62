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
from typing import Any, Self

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
)
from truecal.inference.monitor.evidence import Evidence
from truecal.inference.monitor.state_file import check_kinds, decode, encode

#: Prior mass of an error that is there from the start; the rest is spread over later times.
_FROM_START = 0.5
#: Rows after which the prior of later starts begins to fall.
_ROWS = 1000.0
#: Prior mass of errors in many regions at once, from the start, and of an error in each region given that.
ON_MANY, _IN_REGION = 0.1, 0.5
_LOG_SHIFT_PRIOR = np.log(SHIFT_PRIOR)
#: Parts of the state that JSON can hold as they are.
_PLAIN = ("rows", "units", "regions_stopped")
#: The first dyadic interval of each depth but the coarsest.
_FIRST_NODES = np.array([(1 << depth) - 1 for depth in range(1, DEPTH + 1)])


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
    first, last = (1 + math.log1p(n / _ROWS) for n in (before, before + rows))
    # The difference of `later_starts`, without loss of digits after very many rows.
    return math.log((1 - _FROM_START) * math.log1p(rows / (_ROWS + before)) / (first * last))


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
    regions_stopped : float, optional
        Logarithm of R, the process of errors in many regions, when the first clusters came. R needs independent rows,
        and stops there.
    """

    at_most: float = 0.0
    rows: float = 0.0
    units: float = 0.0
    total: FloatArray = field(default_factory=lambda: np.zeros(N_ALTERNATIVES))
    squares: FloatArray = field(default_factory=lambda: np.zeros(N_ALTERNATIVES))
    mixed: FloatArray = field(default_factory=lambda: np.full(N_ALTERNATIVES, math.log(_FROM_START)))
    detector: FloatArray = field(default_factory=lambda: np.full(N_ALTERNATIVES, -math.inf))
    regions_stopped: float | None = None

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
        independent = other.regions_stopped is None
        self._count(Evidence(other.total, other.squares, other.rows, other.units, independent))

    def _count(self, batch: Evidence) -> None:
        if not batch.independent and self.regions_stopped is None:
            self.regions_stopped = many_regions(self.total)
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
    def gain(self) -> FloatArray:
        """What all rows so far say about each alternative, less what an allowed error can contribute."""
        return self._gain(self.total, self.squares, self.units)

    def to_state(self) -> dict[str, Any]:
        """Return the content as JSON can hold it."""
        arrays = (self.total, self.squares, self.mixed, self.detector)
        plain = {name: getattr(self, name) for name in _PLAIN}
        return {**plain, "arrays": [encode(array) for array in arrays]}

    @classmethod
    def from_state(cls, at_most: float, state: dict[str, Any]) -> Self:
        """Return the processes that `to_state` gave."""
        total, squares, mixed, detector = (decode(text, N_ALTERNATIVES) for text in state["arrays"])
        plain = check_kinds(state, {"rows": int | float, "units": int | float})
        stopped = state["regions_stopped"]
        plain["regions_stopped"] = None if stopped is None else float(stopped)
        return cls(at_most, total=total, squares=squares, mixed=mixed, detector=detector, **plain)

    @property
    def log_evalue(self) -> float:
        """Logarithm of E."""
        waiting = math.log((1 - _FROM_START) * (1 - later_starts(self.rows)))
        log_e = np.logaddexp(log_sum_exp(LOG_PRIOR + self.mixed), waiting)
        if self.at_most == 0:
            regions = many_regions(self.total) if self.regions_stopped is None else self.regions_stopped
            log_e = np.logaddexp(math.log1p(-ON_MANY) + log_e, math.log(ON_MANY) + regions)
        return float(log_e)

    @property
    def log_detector(self) -> float:
        """Logarithm of M."""
        return float(log_sum_exp(LOG_PRIOR + self.detector))


def many_regions(total: FloatArray) -> float:
    """Return the logarithm of R, the e-process of errors that differ from region to region, from the start.

    A row belongs to one region of each depth, so the mixtures over shifts of the regions multiply; each region is in
    error with a prior probability of one half.

    Parameters
    ----------
    total : ndarray of shape (N_ALTERNATIVES,)
        Sums of log-likelihood ratios.
    """
    shifted = log_sum_exp(total[N_CURVES:].reshape(-1, len(SHIFTS)) + _LOG_SHIFT_PRIOR)
    each = np.logaddexp(math.log(_IN_REGION) + shifted, math.log1p(-_IN_REGION))
    depths = np.add.reduceat(each, _FIRST_NODES)
    return float(log_sum_exp(depths)) - math.log(DEPTH)


def log_sum_exp(values: FloatArray) -> FloatArray:
    """Return log(sum(exp(values))) along the last axis; SciPy's takes longer than the rest of an update.

    Examples
    --------
    >>> log_sum_exp(np.array([[-1000.0, -1000.0], [-np.inf, -np.inf]])).round(2)
    array([-999.31,     -inf])
    """
    largest = np.max(values, axis=-1, keepdims=True)
    safe = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(values - safe).sum(axis=-1)) + safe[..., 0])
