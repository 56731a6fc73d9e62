"""Roots of functions of one variable."""

from __future__ import annotations

import math
from collections.abc import Callable


def find_root(
    function: Callable[[float], float], low: float, high: float, *, xtol: float = 2e-12, rtol: float = 1e-15
) -> float:
    """Return a root between two points at which the function has different signs, by Chandrupatla's method.

    It is as fast and as safe as Brent's, and short; to import ``scipy.optimize`` takes longer than a first estimate.

    Parameters
    ----------
    function : callable
        A continuous function.
    low, high : float
        Where to look.
    xtol, rtol : float
        Absolute and relative tolerance of the root.

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
