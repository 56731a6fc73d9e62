"""Optimisation in a few variables: Newton's method in a box, logistic and isotonic regression, roots."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray

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
    return Optimum(x, value, gradient, hessian, converged, (x <= lower) | (x >= upper))


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
    alike = np.ndim(count) == 0
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
            value += float(t @ logit - n @ np.maximum(logit, 0.0))
            value -= float(n[0] * _sum_of_logs(total) if alike else n @ np.log(total))
            gradient += (t - n * rate) @ x
            hessian -= (x.T * (n * small / total**2)) @ x
        return value, gradient, hessian

    return objective


def _sum_of_logs(values: FloatArray) -> float:
    """Return the sum of the logarithms of numbers from 1 to 2: of products of 64, which do not overflow."""
    return float(np.log(np.multiply.reduceat(values, np.arange(0, len(values), 64))).sum())


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
