r"""Ways in which calibrated predictions may become wrong, with prior weights.

An alternative multiplies the odds of a score p by r(p), so the likelihood ratio of a label y against the score is

.. math:: \frac{r(p)^y}{1 + p\,(r(p) - 1)} ,

whose expectation is 1 if the label is Bernoulli(p). The alternatives are fixed in advance.

- **Level**: log r is a constant; or the probability is p + c, a shift by points.
- **Regions**: log r is a constant in one dyadic interval of scores, and 0 elsewhere. The intervals are even in
  u = sqrt(p) / (sqrt(p) + sqrt(1 - p)), so that rare events have intervals of their own.
- **Slope**: log r = (b - 1)(logit(p) - c) for slopes b around centres c.
- **Shape**: log r = k log(p) or -k log(1 - p), the two ways in which a beta calibration map leaves the logistic one.

|log r| is at most 2, so extreme scores cannot dominate. r is constant in each of 512 cells, even in u: that is an
alternative like any other, and then tables hold all that is needed of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray

#: Depth of the dyadic intervals: 1, 2, 4, ..., 2^DEPTH of them.
DEPTH = 5
N_LEAVES = 1 << DEPTH
N_NODES = 2 * N_LEAVES - 1
#: Number of cells, in which r is constant.
N_CELLS = 16 * N_LEAVES

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
    """Return the lower and the upper end of the scores of a dyadic interval.

    Examples
    --------
    >>> node_edges(0), node_edges(2)
    ((0.0, 1.0), (0.5, 1.0))
    """
    level = (node + 1).bit_length() - 1
    k = node + 1 - (1 << level)
    low, high = (_score_at(x / (1 << level)) for x in (k, k + 1))
    return low, high


def _score_at(u: Any) -> Any:
    return u**2 / (u**2 + (1 - u) ** 2)


def cells_of(score: FloatArray) -> NDArray[np.intp]:
    """Return the cell of each score.

    Examples
    --------
    >>> cells_of(np.array([0.0, 1e-6, 0.5, 1.0])).tolist()
    [0, 0, 256, 511]
    """
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
    """Return log r of shifts by points; where the shifted score leaves [0, 1] it is as large as it may be."""
    p = score[:, np.newaxis]
    shifted = np.clip(p + _POINTS, 1e-300, 1 - 1e-16)
    return np.asarray(np.log(shifted) - np.log1p(-shifted) - np.log(p) + np.log1p(-p))


#: r - 1 in each cell: of slopes, shapes and points, and then of each shift of the logit.
EXCESS: FloatArray = np.concatenate(
    [np.expm1(curve_log_ratios(CELL_SCORES)), np.tile(np.expm1(SHIFTS), (N_CELLS, 1))], axis=1
)


def _sensitivity() -> FloatArray:
    """Return a typical root mean square of |r - 1| / (1 + p (r - 1)) for each alternative.

    It is the size of log r where scores spread by 2 in the logit and evenly over dyadic intervals of one depth.
    """
    share = np.concatenate([np.full(1 << b, 2.0 ** (-b / 2)) for b in range(DEPTH + 1)])
    slope = np.repeat(2 * np.abs(_POWERS), len(_CENTRES))
    shape = np.tile(1.4 * np.abs(_POWERS), 2)
    points = np.abs(_POINTS) / 0.16
    return np.concatenate([slope, shape, points, np.outer(share, np.abs(SHIFTS)).ravel()])


#: How much each alternative gains, in the root mean square, from an error of 1 that the null hypothesis allows.
SENSITIVITY: FloatArray = _sensitivity()
