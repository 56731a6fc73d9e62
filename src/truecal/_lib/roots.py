"""Roots of functions of one variable."""

from __future__ import annotations

from collections.abc import Callable


def find_root(
    function: Callable[[float], float], low: float, high: float, *, xtol: float = 2e-12, rtol: float = 1e-15
) -> float:
    """Return a root between two points at which the function has different signs, by Brent's method.

    Parameters
    ----------
    function : callable
        A continuous function.
    low, high : float
        Where to look.
    xtol, rtol : float
        Absolute and relative tolerance of the root.

    Examples
    --------
    >>> find_root(lambda x: x * x - 2, 0, 2)
    1.414214
    """
    from scipy.optimize import brentq  # slower to import than all the rest of a first estimate

    return float(brentq(function, low, high, xtol=xtol, rtol=rtol))
