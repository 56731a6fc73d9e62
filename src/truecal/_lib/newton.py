"""Newton's method for a few parameters inside a box, which all fits of `truecal` share."""

from __future__ import annotations

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
