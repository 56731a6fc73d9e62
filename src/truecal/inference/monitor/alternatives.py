r"""Ways in which calibrated predictions may become wrong, with prior weights, and the evidence for each.

An alternative multiplies the odds of a score p by r(p), so the likelihood ratio of a label y against the score is

.. math:: \frac{r(p)^y}{1 + p\,(r(p) - 1)} ,

whose expectation is 1 if the label is Bernoulli(p). The alternatives are fixed in advance. The logarithms of the ratios
add up over rows, so a vector of sums is all that the evidence of any number of rows needs.

- **Level**: log r is a constant; or the probability is p + c, a shift by points.
- **Regions**: log r is a constant in one dyadic interval of scores, and 0 elsewhere. The intervals are even in
  sqrt(p) / (sqrt(p) + sqrt(1 - p)), so that rare events have intervals of their own.
- **Slope**: log r = (b - 1)(logit(p) - c) for slopes b around centres c.
- **Shape**: log r = k log(p) or -k log(1 - p), the two ways in which a beta calibration map leaves the logistic one.

|log r| is at most 2, so extreme scores cannot dominate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray

#: Depth of the dyadic intervals: 1, 2, 4, ..., 2^DEPTH of them.
DEPTH = 5
N_LEAVES = 1 << DEPTH
N_NODES = 2 * N_LEAVES - 1

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
#: Beyond this logit a score is 0 or 1 in float64.
_LOGIT_LIMIT = 38.0
#: Rows at a time; the product of so many terms, each at most e^2, does not overflow.
_CHUNK = 256


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


def _score_at(u: float) -> float:
    return u**2 / (u**2 + (1 - u) ** 2)


#: Scores at which the finest dyadic intervals begin, without the first.
_LEAF_EDGES: FloatArray = np.array([_score_at(k / N_LEAVES) for k in range(1, N_LEAVES)])


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a batch says about each alternative.

    Attributes
    ----------
    log_ratio : ndarray of shape (N_ALTERNATIVES,)
        Sum of the logarithms of the likelihood ratios.
    squares : ndarray of shape (N_ALTERNATIVES,)
        Sum of the squared sensitivities of the ratios to an error of the score, for null hypotheses that allow one.
    rows, units : float
        Number of rows, and of independent units: clusters, or rows.
    """

    log_ratio: FloatArray
    squares: FloatArray
    rows: float
    units: float


def weigh(score: FloatArray, count: FloatArray, positives: FloatArray) -> Evidence:
    """Return the evidence of independent rows, given by the number of rows and positive labels at each score.

    Parameters
    ----------
    score, count, positives : ndarray of shape (n,)
        Scores in any order, float64; number of rows, and of those with a positive label, at each.

    Examples
    --------
    >>> found = weigh(np.array([0.3]), np.array([100.0]), np.array([50.0]))
    >>> best = found.log_ratio.argmax()
    >>> SHIFTS[(best - N_CURVES) % len(SHIFTS)]
    np.float64(0.8)
    """
    ratio, squares = np.zeros(N_CURVES), np.zeros(N_CURVES)
    leaf_ratio, leaf_squares = np.zeros((N_LEAVES, len(SHIFTS))), np.zeros((N_LEAVES, len(SHIFTS)))
    single = bool((count == 1).all())
    for start in range(0, len(score), _CHUNK):
        p, n, k = (part[start : start + _CHUNK] for part in (score, count, positives))
        leaf = leaves(p)
        order = np.argsort(leaf, kind="stable")
        p, n, k, leaf = p[order], n[order], k[order], leaf[order]
        first = np.flatnonzero(np.diff(leaf.astype(np.int64), prepend=-1))
        log_r, mean, sensitivity = curve_terms(p)
        ratio += k @ log_r - (np.log(np.multiply.reduce(mean)) if single else n @ np.log(mean))
        squares += n @ np.square(sensitivity)
        mean, sensitivity = shift_terms(p)
        if single:  # the logarithm of a product costs less than the sum of logarithms
            log_mean = np.log(np.multiply.reduceat(mean, first))
        else:
            log_mean = np.add.reduceat(n[:, np.newaxis] * np.log(mean), first)
        occupied = leaf[first]
        leaf_ratio[occupied] += np.multiply.outer(np.add.reduceat(k, first), SHIFTS) - log_mean
        leaf_squares[occupied] += np.add.reduceat(n[:, np.newaxis] * np.square(sensitivity), first)
    total = float(count.sum())
    return Evidence(
        np.concatenate([ratio, sum_nodes(leaf_ratio).ravel()]),
        np.concatenate([squares, sum_nodes(leaf_squares).ravel()]),
        total,
        total,
    )


def weigh_clusters(
    score: FloatArray, count: FloatArray, positives: FloatArray, cluster: NDArray[np.intp]
) -> Evidence:
    """Return the evidence of clusters, whose rows may depend on each other in any way.

    The factor of a cluster is the mean of the likelihood ratios of its rows. Each has expectation 1, so their mean
    has it too.

    Parameters
    ----------
    score, count, positives : ndarray of shape (n,)
        Number of rows and of positive labels at each score of each cluster.
    cluster : ndarray of shape (n,)
        Number of the cluster.

    Examples
    --------
    >>> score, one = np.array([0.3, 0.6]), np.ones(2)
    >>> alone = weigh_clusters(score, one, one, np.array([0, 1])).log_ratio
    >>> bool(np.allclose(alone, weigh(score, one, one).log_ratio))
    True
    """
    leaf = leaves(score)
    order = np.lexsort((leaf, cluster))
    p, n, k, leaf, cluster = score[order], count[order], positives[order], leaf[order], cluster[order]
    first = np.flatnonzero(np.diff(cluster, prepend=-1))
    size = np.add.reduceat(n, first)
    log_r, mean, sensitivity = curve_terms(p)
    gain = (k[:, np.newaxis] * np.expm1(log_r) + n[:, np.newaxis]) / mean - n[:, np.newaxis]
    curves = np.log1p(np.add.reduceat(gain, first) / size[:, np.newaxis]).sum(axis=0)
    curve_squares = np.square(np.maximum.reduceat(sensitivity, first)).sum(axis=0)

    mean, sensitivity = shift_terms(p)
    gain = (np.multiply.outer(k, np.expm1(SHIFTS)) + n[:, np.newaxis]) / mean - n[:, np.newaxis]
    owner = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(p))))
    tables, square_tables = [], []
    for depth in range(DEPTH + 1):
        node = leaf.astype(np.int64) >> (DEPTH - depth)
        part = np.flatnonzero(np.diff(owner * N_LEAVES + node, prepend=-1))
        factor = np.log1p(np.add.reduceat(gain, part) / size[owner[part], np.newaxis])
        table, squares = np.zeros((1 << depth, len(SHIFTS))), np.zeros((1 << depth, len(SHIFTS)))
        np.add.at(table, node[part], factor)
        np.add.at(squares, node[part], np.square(np.maximum.reduceat(sensitivity, part)))
        tables.append(table)
        square_tables.append(squares)
    return Evidence(
        np.concatenate([curves, np.concatenate(tables).ravel()]),
        np.concatenate([curve_squares, np.concatenate(square_tables).ravel()]),
        float(count.sum()),
        float(len(first)),
    )


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


def leaves(score: FloatArray) -> NDArray[np.uint8]:
    """Return the finest dyadic interval of each score."""
    return np.searchsorted(_LEAF_EDGES, score, side="right").astype(np.uint8)


def sum_nodes(leaf: FloatArray) -> FloatArray:
    """Return the sums over all dyadic intervals, the coarsest first, from those over the finest."""
    tables = [leaf]
    while tables[-1].shape[-2] > 1:
        finer = tables[-1]
        tables.append(finer[..., 0::2, :] + finer[..., 1::2, :])
    return np.concatenate(tables[::-1], axis=-2)


def curve_terms(score: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return log r, 1 + p (r - 1) and |r - 1| / (1 + p (r - 1)) of each score under slopes, shapes and points."""
    with np.errstate(divide="ignore"):
        low, high = np.log(score), np.log1p(-score)
    low, high = np.maximum(low, -_LOGIT_LIMIT), np.maximum(high, -_LOGIT_LIMIT)
    shapes = [np.multiply.outer(low, _POWERS), np.multiply.outer(-high, _POWERS)]
    slopes = (shapes[0] + shapes[1])[:, :, np.newaxis] - np.multiply.outer(_POWERS, _CENTRES)
    log_r = np.concatenate([slopes.reshape(len(score), N_SLOPES), *shapes, _points(score)], axis=1)
    np.clip(log_r, -_CAP, _CAP, out=log_r)
    return log_r, *_mean_terms(score, np.exp(log_r) - 1)


def _points(score: FloatArray) -> FloatArray:
    """Return log r of shifts by points; where the shifted score leaves [0, 1] it is as large as it may be."""
    p = score[:, np.newaxis]
    shifted, bound = p + _POINTS, np.exp(_CAP)
    up, down = shifted * (1 - p), p * (1 - shifted)
    # Clipped before the division, which could be by 0.
    up, down = np.maximum(up, 1e-300), np.maximum(down, 1e-300)
    return np.asarray(np.log(np.clip(up / np.maximum(down, up / bound / 2), 1 / bound, bound)))


def shift_terms(score: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return 1 + p (r - 1) and |r - 1| / (1 + p (r - 1)) of each score under shifts of the logit."""
    return _mean_terms(score, np.expm1(SHIFTS))


def _mean_terms(score: FloatArray, excess: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean = 1 + score[:, np.newaxis] * excess
    return mean, np.abs(excess) / mean


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
