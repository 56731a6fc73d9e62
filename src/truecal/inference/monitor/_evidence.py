r"""The evidence of rows against calibration: alternatives, likelihood ratios, e-process, confidence sequences.

**Alternatives.** Each multiplies the odds of a score p by r(p), so the likelihood ratio of a label y against it is

.. math:: \frac{r(p)^y}{1 + p\,(r(p) - 1)} ,

whose expectation is 1 if the label is Bernoulli(p). The alternatives and their prior weights are fixed in advance.

- Level: log r is a constant; or the probability is p + c, a shift by points.
- Regions: log r is a constant in one dyadic interval of scores, and 0 elsewhere. The intervals are even in
  u = sqrt(p) / (sqrt(p) + sqrt(1 - p)), so that rare events have intervals of their own.
- Slope: log r = (b - 1)(logit(p) - c) for slopes b around centres c.
- Shape: log r = k log(p) or -k log(1 - p), the two ways in which a beta calibration map leaves the logistic one.

|log r| is at most 2, so extreme scores cannot dominate. r is constant in each of 512 cells, even in u.

**Likelihood ratios.** Their logarithms add up over rows. With r constant in a cell with middle :math:`p_0`,

.. math::

    y \log r - \log(1 + p\,(r - 1)) \ge y \log r - \log m - (p - p_0)\,\frac{r - 1}m , \qquad m = 1 + p_0\,(r - 1) ,

since the logarithm is concave. The right-hand side is used: it needs only the number of rows, of positive labels and
the sum of scores of each cell, and its expected exponential is at most 1. What is lost is about 1e-6 of the evidence.

**E-process and e-detector.** With :math:`L_j(s, t)` the likelihood ratio of alternative j over the rows after s and up
to t, and prior weights :math:`w_j` and :math:`v_s`,

.. math::

    E_t = \sum_j w_j \Big(\tfrac12 L_j(0, t) + \tfrac12 \sum_{s < t} v_s L_j(s, t)\Big) + \tfrac12 \sum_{s \ge t} v_s ,
    \qquad
    M_t = \sum_j w_j \sum_{s < t} n_s L_j(s, t) .

E is a mixture over alternatives and over the times s at which the error may begin, so its expectation is at most 1 at
every stopping time. M is an e-detector: it adds up one e-process for each of the :math:`n_s` rows of a batch, all of
which start with the batch, so M less the number of rows has no upward drift. Both sums over s follow from their last
values, so only one number is kept for each alternative.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray

# --- Alternatives ---------------------------------------------------------------------------------

#: Depth of the dyadic intervals: 1, 2, 4, ..., 2^DEPTH of them.
DEPTH = 5
N_LEAVES = 1 << DEPTH
N_NODES = 2 * N_LEAVES - 1
#: Number of cells, in which r is constant.
N_CELLS = 16 * N_LEAVES
#: Regions of scores for which a monitor keeps sums.
N_REGIONS = 8

_SIZES = np.array([0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
_SIZE_PRIOR = np.array([1, 1, 2, 3, 3, 2, 1]) / 13
#: Shifts of the logit in a dyadic interval, and their prior.
SHIFTS: FloatArray = np.concatenate([-_SIZES[::-1], _SIZES])
SHIFT_PRIOR: FloatArray = np.concatenate([_SIZE_PRIOR[::-1], _SIZE_PRIOR]) / 2

_LOG_SLOPES = np.array([-0.7, -0.35, -0.16, -0.08, 0.08, 0.16, 0.35, 0.7])
_CENTRES = np.array([-3.0, 0.0, 3.0])
#: Powers of p, 1 - p and their ratio: the slope less 1.
_POWERS = np.expm1(_LOG_SLOPES)
#: Slope of each alternative that has one.
SLOPES: FloatArray = np.repeat(1 + _POWERS, len(_CENTRES))
N_SLOPES, N_SHAPES = len(_POWERS) * len(_CENTRES), 2 * len(_POWERS)
#: Shifts of the probability itself.
_POINTS = np.array([-0.08, -0.04, -0.02, -0.01, 0.01, 0.02, 0.04, 0.08])
N_CURVES = N_SLOPES + N_SHAPES + len(_POINTS)
#: Number of alternatives: slopes, shapes, shifts by points, and each shift in each dyadic interval.
N_ALTERNATIVES = N_CURVES + N_NODES * len(SHIFTS)

#: Prior weights of a slope, a shape, a shift by points, a shift of the logit, and a change in a region.
_FAMILY_PRIOR = (0.22, 0.08, 0.2, 0.2, 0.3)
#: Largest |log r|.
_CAP = 2.0


def _log_prior() -> FloatArray:
    slope = np.outer([1, 2, 2, 1, 1, 2, 2, 1], [1, 2, 1]).ravel() / (12 * 4)
    shape = np.tile(np.array([1, 2, 2, 1, 1, 2, 2, 1]) / 24, 2)
    node = np.concatenate([np.full(1 << b, 1 / (DEPTH * (1 << b))) for b in range(1, DEPTH + 1)])
    points = np.array([1, 2, 2, 1, 1, 2, 2, 1]) / 12
    on_slope, on_shape, on_points, on_level, on_region = _FAMILY_PRIOR
    nodes = np.concatenate([[on_level], on_region * node])
    families = [on_slope * slope, on_shape * shape, on_points * points, np.outer(nodes, SHIFT_PRIOR).ravel()]
    prior: FloatArray = np.concatenate(families)
    return np.log(prior)


#: Logarithm of the prior weight of each alternative.
LOG_PRIOR: FloatArray = _log_prior()


def node_edges(node: int) -> tuple[float, float]:
    """Return the ends of a dyadic interval: 0 is (0, 1), and 2 is (0.5, 1)."""
    level = (node + 1).bit_length() - 1
    k = node + 1 - (1 << level)
    return _score_at(k / (1 << level)), _score_at((k + 1) / (1 << level))


def _score_at(u: Any) -> Any:
    return u**2 / (u**2 + (1 - u) ** 2)


def cells_of(score: FloatArray) -> NDArray[np.intp]:
    """Return the cell of each score: the integer part of N_CELLS u, at most N_CELLS - 1."""
    root = np.sqrt(score)
    cell = (N_CELLS * (root / (root + np.sqrt(1 - score)))).astype(np.intp)
    return np.asarray(np.minimum(cell, N_CELLS - 1))


#: Scores in the middle of the cells, and at their ends.
CELL_SCORES: FloatArray = _score_at((np.arange(N_CELLS) + 0.5) / N_CELLS)
CELL_EDGES: FloatArray = _score_at(np.arange(N_CELLS + 1) / N_CELLS)


def curve_log_ratios(score: FloatArray) -> FloatArray:
    """Return log r of each score under slopes, shapes and shifts by points."""
    low, high = np.log(score), np.log1p(-score)
    shapes = [np.multiply.outer(low, _POWERS), np.multiply.outer(-high, _POWERS)]
    slopes = (shapes[0] + shapes[1])[:, :, np.newaxis] - np.multiply.outer(_POWERS, _CENTRES)
    log_r = np.concatenate([slopes.reshape(len(score), N_SLOPES), *shapes, _points(score)], axis=1)
    return np.asarray(np.clip(log_r, -_CAP, _CAP))


def _points(score: FloatArray) -> FloatArray:
    """Return log r of shifts by points, before the cap; a shifted score is clipped to (0, 1)."""
    p = score[:, np.newaxis]
    shifted = np.clip(p + _POINTS, 1e-300, 1 - 1e-16)
    return np.asarray(np.log(shifted) - np.log1p(-shifted) - np.log(p) + np.log1p(-p))


#: r - 1 in each cell: of slopes, shapes and points, and then of each shift of the logit.
EXCESS: FloatArray = np.concatenate(
    [np.expm1(curve_log_ratios(CELL_SCORES)), np.tile(np.expm1(SHIFTS), (N_CELLS, 1))], axis=1
)


def _sensitivity() -> FloatArray:
    """Return a typical root mean square of |r - 1| / (1 + p (r - 1)): logits spread by 2, even over intervals."""
    share = np.concatenate([np.full(1 << b, 2.0 ** (-b / 2)) for b in range(DEPTH + 1)])
    slope = np.repeat(2 * np.abs(_POWERS), len(_CENTRES))
    shape = np.tile(1.4 * np.abs(_POWERS), 2)
    points = np.abs(_POINTS) / 0.16
    return np.concatenate([slope, shape, points, np.outer(share, np.abs(SHIFTS)).ravel()])


#: How much each alternative gains, in the root mean square, from an error of 1 that the null hypothesis allows.
SENSITIVITY: FloatArray = _sensitivity()


# --- Likelihood ratios ----------------------------------------------------------------------------


def _tables() -> tuple[FloatArray, FloatArray]:
    """Return factors of rows, labels and scores of each cell, and the squared sensitivities of the ratios."""
    mean = 1 + CELL_SCORES[:, np.newaxis] * EXCESS
    slope = EXCESS / mean
    factors = np.stack([CELL_SCORES[:, np.newaxis] * slope - np.log(mean), np.log1p(EXCESS), -slope])
    # The largest in the cell, so that an allowed error cannot contribute more than is taken off for it.
    ends = [EXCESS / (1 + edge[:, np.newaxis] * EXCESS) for edge in (CELL_EDGES[:-1], CELL_EDGES[1:])]
    return factors, np.square(np.maximum(*np.abs(ends)))[np.newaxis]


def _split(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the columns of curves and of shifts of a table of shape (k, N_CELLS, ...)."""
    return np.ascontiguousarray(table[..., :N_CURVES]), np.ascontiguousarray(table[..., N_CURVES:])


_FACTORS, _SQUARES = map(_split, _tables())


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence of a batch for each alternative.

    Attributes
    ----------
    log_ratio : ndarray of shape (..., N_ALTERNATIVES)
        Sum of the logarithms of the likelihood ratios.
    squares : ndarray of shape (..., N_ALTERNATIVES)
        Sum of the squared sensitivities of the ratios to an error of the score, for null hypotheses that allow one.
    rows, units : float
        Number of rows, and of independent units: clusters, or rows.
    independent : bool
        Whether each row is a unit.
    """

    log_ratio: FloatArray
    squares: FloatArray
    rows: float
    units: float
    independent: bool = True


def tally(score: FloatArray, count: FloatArray, positives: FloatArray) -> FloatArray:
    """Return the number of rows, of positive labels and the sum of scores of each cell: shape (3, N_CELLS)."""
    cell = cells_of(score)
    return np.stack([np.bincount(cell, column, N_CELLS) for column in (count, positives, count * score)])


def weigh(cells: FloatArray) -> Evidence:
    """Return the evidence of independent rows from their `tally`."""
    total = float(cells[0].sum())
    return Evidence(_apply(cells, _FACTORS), _apply(cells[:1], _SQUARES), total, total)


def _apply(cells: FloatArray, tables: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return the sums over cells of tables: over all cells for curves, and over those of each node for shifts."""
    curves, shifts = np.tensordot(cells, tables[0], 2), np.einsum("...kc,kcj->...cj", cells, tables[1])
    nodes = [shifts.reshape(*curves.shape[:-1], N_LEAVES, -1, len(SHIFTS)).sum(axis=-2)]
    while nodes[-1].shape[-2] > 1:
        nodes.append(nodes[-1].reshape(*curves.shape[:-1], -1, 2, len(SHIFTS)).sum(axis=-2))
    coarsest_first = np.concatenate(nodes[::-1], axis=-2)
    return np.concatenate([curves, coarsest_first.reshape(*curves.shape[:-1], -1)], axis=-1)


def weigh_clusters(
    score: FloatArray, count: FloatArray, positives: FloatArray, cluster: NDArray[np.intp]
) -> Evidence:
    """Return the evidence of clusters, whose rows may depend on each other in any way.

    The factor of a cluster is the mean of the likelihood ratios of its rows, which has expectation 1 as each of them.
    """
    cell = cells_of(score)
    order = np.lexsort((cell, cluster))
    p, n, k = (column[order, np.newaxis] for column in (score, count, positives))
    cell, cluster = cell[order], cluster[order]
    first = np.flatnonzero(np.diff(cluster, prepend=-1))
    size = np.add.reduceat(n, first)
    owner = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(p))))
    excess = EXCESS[cell]
    gain = (k * excess + n) / (1 + p * excess) - n
    curves = np.log1p(np.add.reduceat(gain[:, :N_CURVES], first) / size).sum(axis=0)
    tables = []
    for depth in range(DEPTH + 1):
        node = cell // (N_CELLS >> depth)
        start = np.flatnonzero(np.diff(owner * N_LEAVES + node, prepend=-1))
        factor = np.log1p(np.add.reduceat(gain[:, N_CURVES:], start) / size[owner[start]])
        table = np.zeros((1 << depth, len(SHIFTS)))
        np.add.at(table, node[start], factor)
        tables.append(table)
    # The mean of d c over the rows of a cluster is at most the product of their root mean squares.
    share: FloatArray = np.bincount(cell, (n / size[owner])[:, 0], N_CELLS).astype(np.float64)
    return Evidence(
        np.concatenate([curves, np.concatenate(tables).ravel()]),
        _apply(share[np.newaxis], _SQUARES),
        float(count.sum()),
        float(len(first)),
        independent=False,
    )


# --- E-process and e-detector ---------------------------------------------------------------------

#: Prior mass of an error that is there from the start; the rest is spread over later times.
_FROM_START = 0.5
#: Rows after which the prior of later starts begins to fall.
_ROWS = 1000.0
#: Prior mass of errors in many regions at once, from the start, and of an error in each region given that.
ON_MANY, _IN_REGION = 0.1, 0.5
_LOG_SHIFT_PRIOR = np.log(SHIFT_PRIOR)
#: The first dyadic interval of each depth but the coarsest.
_FIRST_NODES = np.array([(1 << depth) - 1 for depth in range(1, DEPTH + 1)])


def later_starts(rows: float) -> float:
    """Return the prior probability that a later start is within so many rows: 1 - 1 / (1 + log(1 + rows / 1000)).

    The density falls like 1 / (t log(t)^2), so that a late change costs little evidence.
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
        """Add a batch."""
        gain = self._gain(batch.log_ratio, batch.squares, batch.units)
        self.mixed = np.logaddexp(self.mixed, log_later(self.rows, batch.rows)) + gain
        self.detector = np.logaddexp(self.detector, math.log(batch.rows)) + gain
        self._count(batch)

    def merge(self, other: Processes) -> None:
        """Add the evidence of another process, as if its rows came after those of this one."""
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
        """Evidence of all rows so far for each alternative, less what an allowed error can contribute."""
        return self._gain(self.total, self.squares, self.units)

    def to_state(self) -> dict[str, Any]:
        """Return the content as JSON-compatible objects."""
        arrays = (self.total, self.squares, self.mixed, self.detector)
        return {
            "rows": self.rows,
            "units": self.units,
            "regions_stopped": self.regions_stopped,
            "arrays": [encode(array) for array in arrays],
        }

    @classmethod
    def from_state(cls, at_most: float, state: dict[str, Any]) -> Self:
        """Return the processes that `to_state` gave."""
        counts = check_kinds(state, {"rows": int | float, "units": int | float})
        total, squares, mixed, detector = (decode(text, N_ALTERNATIVES) for text in state["arrays"])
        stopped = state["regions_stopped"]
        stopped = None if stopped is None else float(stopped)
        return cls(at_most, counts["rows"], counts["units"], total, squares, mixed, detector, stopped)

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
    """
    shifted = log_sum_exp(total[N_CURVES:].reshape(-1, len(SHIFTS)) + _LOG_SHIFT_PRIOR)
    each = np.logaddexp(math.log(_IN_REGION) + shifted, math.log1p(-_IN_REGION))
    depths = np.add.reduceat(each, _FIRST_NODES)
    return float(log_sum_exp(depths)) - math.log(DEPTH)


def log_sum_exp(values: FloatArray) -> FloatArray:
    """Return log(sum(exp(values))) along the last axis; SciPy's takes longer than the rest of an update."""
    largest = np.max(values, axis=-1, keepdims=True)
    safe = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(values - safe).sum(axis=-1)) + safe[..., 0])


# --- Confidence sequences: bounds that hold at all times at once ----------------------------------

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
    """
    spare = total - math.log(len(_RATES) / alpha) + LOG_PRIOR
    positive = spare > 0
    if not positive.any():
        return 0.0
    left = spare[positive, np.newaxis] - np.multiply.outer(squares[positive], _RATES / 2)
    return math.sqrt(max(float((2 * _RATES * left).max()) / units, 0.0))


def largest_error(sums: FloatArray, alpha: float) -> float:
    """Return an upper confidence bound of the root mean square error between regions of scores.

    In each region the mean true probability has a confidence sequence. The bound allows the largest error in all of
    them at once. Errors that cancel within a region are not seen. `sums` are units, labels and scores of each region.
    """
    units, labels, scores = sums[:, sums[0] > 0]
    low, high = frequency_bounds(units, labels, alpha / len(units))
    worst = np.maximum(high - scores / units, scores / units - low)
    return math.sqrt(float(units @ np.square(worst) / units.sum()))


def frequency_bounds(units: FloatArray, labels: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    r"""Return confidence intervals for the mean true probability of the rows so far.

    With u units and sum s of their labels, :math:`\exp(\delta s) / (1 + m (e^\delta - 1))^u` is at most a
    supermartingale if m is the mean true probability so far, since the logarithm is concave. The interval holds the
    m at which the mixture over tilts stays below :math:`1 / \alpha`, and is valid at all times at once. Of clusters
    the labels are their mean labels.
    """
    needed = math.log(2 * len(_TILTS) / alpha)
    tilted = np.multiply.outer(labels, _TILTS)
    low = np.expm1((tilted - needed) / units[:, np.newaxis]) / _UP
    high = np.expm1((-tilted - needed) / units[:, np.newaxis]) / _DOWN
    return np.maximum(low.max(axis=1), 0.0), np.minimum(high.min(axis=1), 1.0)


# --- Numbers in state files ----------------------------------------------------------------------


def encode(array: NDArray[Any]) -> str:
    """Return numbers of 64 bits as text, without loss."""
    return base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode("ascii")


def decode(text: str, *shape: int, dtype: str = "<f8") -> NDArray[Any]:
    """Return the numbers that `encode` wrote, or ValueError if they do not have the given shape."""
    array = np.frombuffer(base64.b64decode(text), dtype=dtype)
    array = array.astype(array.dtype.newbyteorder("="))
    return array.reshape(shape) if shape else array


def check_kinds(state: dict[str, Any], kinds: dict[str, Any]) -> dict[str, Any]:
    """Return the named values of a state, or raise TypeError if one has another type or is negative."""
    for name, kind in kinds.items():
        value = state[name]
        is_bool = isinstance(value, bool) and kind is not bool
        if is_bool or not isinstance(value, kind) or (isinstance(value, int | float) and value < 0):
            raise TypeError(f"{name} cannot be {value!r}")
    return {name: state[name] for name in kinds}
