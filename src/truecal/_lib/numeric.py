"""Numerical tools: runs of arrays, codes, generators, binomial draws, Newton's method, regressions and roots.

Runs of one array belong to different samples; `bounds` has the start of each run, and at the end the length. Codes are
ordered by counting, in linear time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from truecal._lib.types import FloatArray

IntArray = NDArray[np.intp]

#: Smaller than any nonzero gap.
_TINY = 5e-324


def run_sums(values: FloatArray, bounds: IntArray) -> FloatArray:
    """Return the sum of each run, computed independently of the others.

    Examples
    --------
    >>> run_sums(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 3]))
    array([3., 3.])
    """
    return np.asarray(np.add.reduceat(values, bounds[:-1]))


def run_maxima(values: FloatArray, bounds: IntArray) -> FloatArray:
    """Return the largest value of each run.

    Examples
    --------
    >>> run_maxima(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 3]))
    array([2., 3.])
    """
    return np.asarray(np.maximum.reduceat(values, bounds[:-1]))


def over_runs(values: NDArray[Any], bounds: IntArray) -> NDArray[Any]:
    """Repeat one value per run for each of its elements; a single run keeps a scalar.

    Examples
    --------
    >>> over_runs(np.array([0.1, 0.2]), np.array([0, 2, 3]))
    array([0.1, 0.1, 0.2])
    """
    return values if len(values) == 1 else values.repeat(np.diff(bounds))


def run_ends(start: IntArray, length: int) -> IntArray:
    """Return the ends of runs that follow one another up to `length`.

    Examples
    --------
    >>> run_ends(np.array([0, 2, 3]), 7)
    array([2, 3, 7])
    """
    end = np.empty_like(start)
    end[:-1], end[-1] = start[1:], length
    return end


def search_runs(ascending: FloatArray, bounds: IntArray, run: Any, value: FloatArray) -> IntArray:
    """Return the first position in a run, ascending within itself, at which `value` could be inserted.

    Examples
    --------
    >>> search_runs(np.array([0.1, 0.5, 0.2, 0.3]), np.array([0, 2, 4]), np.array([0, 1]), np.array([0.25, 0.25]))
    array([1, 3])
    """
    if len(bounds) == 2:
        return np.asarray(ascending.searchsorted(value))
    end = bounds[1:][run]
    # Binary search: the last position known to be below the value advances by half of the remaining range.
    known = np.broadcast_to(bounds[:-1][run] - 1, np.broadcast_shapes(np.shape(run), np.shape(value))).copy()
    step = 1 << int(np.diff(bounds).max()).bit_length()
    while step := step >> 1:
        tried = known + step
        below = ascending.take(tried, mode="clip") < value
        below &= tried < end
        known += step * below
    known += 1
    return known


def lp_norm(
    gap: FloatArray, weight: FloatArray | None, p: float, bounds: IntArray, *, out: FloatArray | None = None
) -> FloatArray:
    r"""Return for each run of gaps the l_p norm :math:`\big(\sum_k w_k |g_k|^p / \sum_k w_k\big)^{1/p}`.

    Gaps are divided by the largest first, so that their powers do not underflow for large p.

    Examples
    --------
    >>> gap, weight = np.array([0.3, -0.4, 0.1]), np.array([1.0, 1.0, 1.0])
    >>> lp_norm(gap, weight, 2, np.array([0, 2, 3]))
    array([0.353553, 0.1     ])
    >>> lp_norm(gap, weight, 5000, np.array([0, 2, 3]))
    array([0.399944, 0.1     ])
    """
    first = bounds[:-1]
    size = np.abs(gap, out=out)
    largest = np.maximum.reduceat(size, first)
    size /= over_runs(np.maximum(largest, _TINY), bounds)
    size **= p
    if weight is None:
        total = bounds[1:] - first
    else:
        size *= weight
        total = np.add.reduceat(weight, first)
    return np.asarray(largest * (np.add.reduceat(size, first) / total) ** (1 / p))


#: Integers are counted if their range is at most this multiple of their number, and sorted otherwise.
_MOST_SPREAD = 4


def order_of(code: NDArray[Any], n_codes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a stable order that sorts codes, and where each code begins in it.

    Examples
    --------
    >>> order, bounds = order_of(np.array([2, 0, 2, 1, 0]), 3)
    >>> order.tolist(), bounds.tolist()
    ([1, 4, 3, 0, 2], [0, 2, 3, 5])
    """
    n = len(code)
    index = np.int32 if max(n, n_codes) < 2**31 else np.int64  # short ones take half of the time
    # One entry in each row of a sparse matrix: to list them by column is a counting sort.
    entries: Any = (
        np.empty(n, dtype=np.bool_),
        code.astype(index, copy=False),
        np.arange(n + 1, dtype=index),
    )
    by_code: Any = scipy.sparse.csr_array(entries, shape=(n, n_codes)).tocsc()
    return by_code.indices, by_code.indptr


def number_values(values: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """Return the distinct values, sorted, and the index of each value among them.

    Examples
    --------
    >>> number_values(np.array([7, 3, 7]))
    (array([3, 7]), array([1, 0, 1]))
    """
    if values.dtype.kind in "iu" and len(values):
        wide = values.astype(np.int64 if values.dtype.kind == "i" else np.uint64, copy=False)
        low = wide.min()
        if int(wide.max()) - int(low) < _MOST_SPREAD * len(values):
            place = (wide - low).astype(np.intp)
            present = np.bincount(place) > 0
            distinct = np.flatnonzero(present)
            if len(distinct) < len(present):
                place = (np.cumsum(present) - 1)[place]
            return (distinct.astype(wide.dtype) + low).astype(values.dtype), place
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, place.reshape(-1)


def sum_pairs(
    minor: NDArray[Any], major: NDArray[Any], columns: Sequence[FloatArray | None]
) -> tuple[NDArray[Any], NDArray[Any], list[FloatArray]]:
    """Return the distinct pairs of two codes, sorted by the second and then the first, with the sums of columns.

    None stands for a column of ones.

    Examples
    --------
    >>> sum_pairs(np.array([1, 0, 1]), np.array([0, 1, 0]), [np.array([1.0, 2.0, 3.0]), None])
    (array([1, 0]), array([0, 1]), [array([4., 2.]), array([2., 1.])])
    """
    n = len(minor)
    if ((major[1:] < major[:-1]) | ((major[1:] == major[:-1]) & (minor[1:] < minor[:-1]))).any():
        order, _ = order_of(minor, int(minor.max()) + 1)
        order = order[order_of(major[order], int(major.max()) + 1)[0]]
        minor, major = minor[order], major[order]
        columns = [None if column is None else column[order] for column in columns]
    start = np.flatnonzero((np.diff(minor, prepend=-1) != 0) | (np.diff(major, prepend=-1) != 0))
    if len(start) == n:
        return minor, major, [np.ones(n) if column is None else column for column in columns]
    lengths = run_ends(start, n) - start
    sums = [
        lengths.astype(np.float64) if column is None else np.add.reduceat(column, start) for column in columns
    ]
    return minor[start], major[start], sums


def rejects(pvalue: float, alpha: float) -> bool:
    """Return whether a p-value is at most alpha, up to the rounding error of ``1 - confidence_level``.

    Examples
    --------
    >>> 0.1 <= 1 - 0.9, rejects(0.1, 1 - 0.9)
    (False, True)
    """
    return pvalue <= alpha + 1e-12


def keyed_generator(seed: int, *key: int) -> np.random.Generator:
    """Return the generator of the child of `seed` with this spawn key."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


#: Draws that are made at once, on average, so that the tables for them stay in the cache.
_AT_ONCE = 1 << 17
#: Equal parts of [0, 1] for each of which a guide says where to begin; a power of two, so that scaling rounds nothing.
_PARTS = 1024


def draw_binomials(count: FloatArray, chance: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Return independent draws from binomial distributions, whole numbers of shape (size, distributions).

    Uniform numbers are looked up in a table of each distribution function, which is several times quicker than
    accepting or rejecting proposals as NumPy does. That is left to do where a table would be longer than the draws.

    Examples
    --------
    >>> draw_binomials(np.array([9.0, 100.0]), np.array([1.0, 0.5]), 99, np.random.default_rng(0))[:3]
    array([[ 9., 51.],
           [ 9., 57.],
           [ 9., 31.]])
    """
    rare = np.minimum(chance, 1 - chance)
    # Outcomes further from the most frequent one have, on either side, a probability of about 2^-53 together.
    reach = np.ceil(8.5 * np.sqrt(count * rare * (1 - rare)) + 12).astype(np.int64)
    drawn, step = np.empty((size, len(count))), max(1, _AT_ONCE // max(size, 1))
    for first in range(0, len(count), step):
        some = slice(first, first + step)
        widest = int(reach[some].max())
        if 2 * widest < size:
            found = _look_up(count[some], rare[some], widest, size, rng)
        else:  # one call for each, in which NumPy sets up a distribution only once
            each = zip(count[some].astype(np.int64), rare[some], strict=True)
            found = np.array([rng.binomial(trials, p, size) for trials, p in each], dtype=np.float64)
        often = np.flatnonzero(chance[some] > 0.5)
        found[often] = count[some][often, np.newaxis] - found[often]
        drawn[:, some] = found.T
    return drawn


def _look_up(
    count: FloatArray, chance: FloatArray, reach: int, size: int, rng: np.random.Generator
) -> FloatArray:
    """Return draws, of shape (distributions, size): the first outcome whose cumulative probability is above a uniform.

    The search begins where a guide table points for the leading digits of the uniform number (Chen and Asau 1974, On
    generating random variates from an empirical distribution, AIIE Transactions 6, 163-166).
    """
    mode = np.floor((count + 1) * chance)
    cumulative = _distribution(count, chance, mode, reach)
    table, row = cumulative.ravel(), np.arange(len(count))[:, np.newaxis]
    above = np.ceil(cumulative * _PARTS).astype(np.intp) + (_PARTS + 1) * row
    guide = np.bincount(above.ravel(), minlength=(_PARTS + 1) * len(count)).cumsum()
    uniform = rng.random((len(count), size))
    place = guide.take((uniform * _PARTS).astype(np.intp) + (_PARTS + 1) * row).ravel()
    uniform = uniform.reshape(-1)
    low = np.flatnonzero(table.take(place) <= uniform)
    while len(low):
        place[low] += 1
        low = low[table.take(place.take(low)) <= uniform.take(low)]
    # From the place in all tables to that in its own, whose middle is the mode.
    first = mode[:, np.newaxis] - reach - cumulative.shape[1] * row
    return np.asarray(place.reshape(len(count), size) + first)


def _distribution(count: FloatArray, chance: FloatArray, mode: FloatArray, reach: int) -> FloatArray:
    """Return cumulative probabilities of the outcomes up to `reach` from the modes, from the ratios of neighbours."""
    odds = np.maximum(chance, np.finfo(np.float64).tiny) / (1 - chance)
    found, step = np.ones((len(count), 2 * reach + 1)), np.arange(1, reach + 1)
    sides = ((mode, odds, found[:, reach + 1 :]), (count - mode, 1 / odds, found[:, reach - 1 :: -1]))
    for middle, factor, side in sides:
        outcome = middle[:, np.newaxis] + step
        ratio = np.maximum(count[:, np.newaxis] + 1 - outcome, 0.0) / outcome
        ratio *= factor[:, np.newaxis]
        np.cumprod(ratio, axis=1, out=side)
    np.cumsum(found, axis=1, out=found)
    found /= found[:, -1:].copy()
    return found


# --- Optimisation ----------------------------------------------------------------------------------------

#: Value, gradient and Hessian of a function at a point.
Objective = Callable[[FloatArray], tuple[float, FloatArray, FloatArray]]

#: Stop when a full step promises less than this. In log-likelihood it is 1e-6 of a standard error.
_GAIN = 1e-13

#: Relative rounding error of an objective; log-gamma functions of large numbers cancel to this.
_ROUNDING = 1e-9

_HALVINGS = 60

#: Most evaluations of an objective. Ordinary fits take less than 50. Where parts differ by a factor of 1e12, as with
#: one huge weight, rounding hides what a step gains, and the climb would crawl on.
_EVALUATIONS = 500


@dataclass(frozen=True, eq=False)
class Optimum:
    """Where a climb ended, with the derivatives there."""

    x: FloatArray
    value: float
    gradient: FloatArray
    hessian: FloatArray
    converged: bool
    at_bound: NDArray[np.bool_]
    n_evaluations: int


def maximise(
    objective: Objective,
    start: FloatArray,
    *,
    lower: FloatArray | float = -np.inf,
    upper: FloatArray | float = np.inf,
    max_steps: int = 200,
) -> Optimum:
    """Climb to a local maximum of `objective` with ``lower <= x <= upper``.

    The objective may be minus infinity away from `start`. Negative curvature is turned around, so that
    every step is uphill. A coordinate at its bound is held there while the objective rises outwards; that
    is why an optimum on the boundary is found exactly.

    Examples
    --------
    >>> def bowl(x):
    ...     return float(-np.sum((x - 1) ** 2)), -2 * (x - 1), -2 * np.eye(2)
    >>> top = maximise(bowl, np.zeros(2), upper=np.array([0.5, 9.0]))
    >>> top.x, top.at_bound, top.converged
    (array([0.5, 1. ]), array([ True, False]), True)
    """
    lower = np.broadcast_to(np.asarray(lower, dtype=np.float64), start.shape)
    upper = np.broadcast_to(np.asarray(upper, dtype=np.float64), start.shape)
    x = np.clip(start, lower, upper)
    value, gradient, hessian = objective(x)
    converged, left = False, _EVALUATIONS
    for _ in range(max_steps):
        step = _uphill_step(x, gradient, hessian, lower, upper)
        slope = float(gradient @ step)
        if slope < 2 * _GAIN:  # a Newton step gains half its slope
            converged = True
            break
        bound = np.where(step > 0, upper, lower)
        room = _room(x, step, bound)
        size = min(1.0, float(room.min()))
        # The coordinate that ends the step is put on its bound, which a rounded sum may miss.
        trial = np.where(room == size, bound, x + size * step)
        result = objective(trial)
        left -= 1
        for _ in range(min(_HALVINGS, left)):
            if result[0] >= value + 1e-4 * size * slope:
                break
            # Near the top the value is level to within rounding, but its slope still tells up from down.
            if abs(result[0] - value) <= _ROUNDING * abs(value) and abs(result[1] @ step) < slope / 2:
                break
            size /= 2
            trial = x + size * step
            result = objective(trial)
            left -= 1
        else:
            break
        x, (value, gradient, hessian) = trial, result
    at_bound = (x <= lower) | (x >= upper)
    return Optimum(x, value, gradient, hessian, converged, at_bound, 1 + _EVALUATIONS - left)


def _uphill_step(
    x: FloatArray, gradient: FloatArray, hessian: FloatArray, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """Return the Newton step over the coordinates that may move."""
    free = ~(((x <= lower) & (gradient <= 0)) | ((x >= upper) & (gradient >= 0)))
    while True:
        step = np.zeros_like(x)
        if not free.any():
            return step
        curvature, axes = np.linalg.eigh(-hessian[np.ix_(free, free)])
        size = np.abs(curvature)
        # Where the function is flat a Newton step has no length; the floor keeps it finite.
        size = np.maximum(size, 1e-12 * size.max() + 1e-300)
        step[free] = axes @ ((axes.T @ gradient[free]) / size)
        # Coordinates are coupled: one may be sent across its bound although its own slope points inside.
        blocked = free & (((x <= lower) & (step < 0)) | ((x >= upper) & (step > 0)))
        if not blocked.any():
            return step
        free &= ~blocked


def _room(x: FloatArray, step: FloatArray, bound: FloatArray) -> FloatArray:
    """Return for each coordinate how many steps fit between it and the bound ahead of it."""
    room = np.full_like(x, np.inf)
    moving = step != 0
    room[moving] = (bound[moving] - x[moving]) / step[moving]
    return room


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
    """
    k, d = design.shape
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
            value += float(t @ logit - n @ (np.maximum(logit, 0.0) + np.log(total)))
            gradient += (t - n * rate) @ x
            hessian -= (x.T * (n * small / total**2)) @ x
        return value, gradient, hessian

    return objective


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


def isotonic_rate(count: FloatArray, positives: FloatArray) -> FloatArray:
    """Return for each group the rate under the best rising curve (pool adjacent violators).

    Examples
    --------
    >>> isotonic_rate(np.array([1.0, 1.0, 2.0]), np.array([1.0, 0.0, 2.0]))
    array([0.5, 0.5, 1. ])
    """
    from scipy.optimize import isotonic_regression  # slow to import

    fitted: FloatArray = isotonic_regression(positives / count, weights=count).x
    return np.clip(fitted, 0.0, 1.0)


def find_root(
    function: Callable[[float], float], low: float, high: float, *, xtol: float = 2e-12, rtol: float = 1e-15
) -> float:
    """Return a root between two points at which the function has different signs, by Chandrupatla's method.

    It is as fast and as safe as Brent's, and short; to import ``scipy.optimize`` takes longer than a first estimate.

    References
    ----------
    T. R. Chandrupatla (1997), A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function
    without using derivatives, Advances in Engineering Software.

    Examples
    --------
    >>> find_root(lambda x: x * x - 2, 0, 2)
    1.414214
    """
    a, b, step = float(high), float(low), 0.5
    fa, fb = function(a), function(b)
    if not fa * fb <= 0:
        raise ValueError(f"the function has no change of sign between {low} and {high}: {fb}, {fa}")
    while fa and fb:
        x = a + step * (b - a)
        fx = function(x)
        # The root lies between a, the newest point, and b; c is the point before.
        if (fx > 0) == (fa > 0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, fx
        tolerance = 2 * rtol * abs(a if abs(fa) < abs(fb) else b) + xtol
        smallest = tolerance / abs(b - a) if a != b else math.inf
        if smallest > 0.5:
            break
        position, height = (a - b) / (c - b), (fa - fb) / (fc - fb)
        if fa and height**2 < position and (1 - height) ** 2 < 1 - position:  # the inverse parabola is safe
            step = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        else:
            step = 0.5
        step = min(max(step, smallest), 1 - smallest)
    return a if abs(fa) < abs(fb) else b
