"""Types and parameter checks that the score distributions and the curves share."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

# A vectorised function of a score and of its complement 1 - score.
ScoreFunction = Callable[[FloatArray, FloatArray], Any]


def check_real(
    name: str,
    value: object,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> float:
    """Return `value` as a float, or say that `name` must be a finite number within the bounds."""
    bounds = [(above, ">"), (at_least, ">="), (at_most, "<=")]
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = float(value)
        low_enough = at_most is None or number <= at_most
        high_enough = (above is None or number > above) and (at_least is None or number >= at_least)
        if math.isfinite(number) and low_enough and high_enough:
            return number
    wanted = " and ".join(f"{sign} {bound:g}" for bound, sign in bounds if bound is not None)
    raise ValueError(f"{name} must be a finite number{wanted and ' ' + wanted}. Got {value!r} instead.")


def check_probabilities(name: str, values: ArrayLike) -> FloatArray:
    """Return `values` as a new float64 vector, or say how many lie outside [0, 1] and where."""
    array = np.array(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be a vector of at least one number. Got shape {array.shape} instead.")
    bad = np.flatnonzero(~((array >= 0) & (array <= 1)))
    if bad.size:
        first = bad[0]
        raise ValueError(
            f"{name} has {bad.size} value{'s'[: bad.size > 1]} outside [0, 1] "
            f"(first at position {first}: {array[first]:g}). Pass probabilities."
        )
    return array


def check_shares(name: str, values: ArrayLike, *, count: int) -> FloatArray:
    """Return `count` shares that sum to 1, or say what they sum to."""
    shares = check_probabilities(name, values)
    if shares.size != count:
        raise ValueError(f"{name} must hold {count} numbers, one for each. Got {shares.size} instead.")
    total = math.fsum(shares)
    if abs(total - 1) > 1e-9:
        raise ValueError(f"{name} must sum to 1. Got a sum of {total:.10g} instead.")
    return shares / total


def complement_of(score: ArrayLike, complement: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """Return both as float64 arrays; a complement that is not given is 1 - score."""
    own = np.asarray(score, dtype=np.float64)
    return own, (1 - own if complement is None else np.asarray(complement, dtype=np.float64))
