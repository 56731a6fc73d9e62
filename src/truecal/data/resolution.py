"""How finely scores were rounded, as far as the scores themselves tell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal._lib.types import FloatArray

#: How many spacings from either end a score counts as an interval and not as a point. At k spacings the error of a
#: point, relative to its likelihood, is below 1/(24 k^2).
N_INTERVALS = 32

#: Fewest distinct scores from which to conclude that only some of the floats occur.
_ENOUGH = 8


@dataclass(frozen=True)
class Resolution:
    """How finely scores were rounded: the spacing of possible scores next to 0 and next to 1.

    `parts` is N if all scores are multiples of 1/N, as decimals are, and 0 otherwise.
    """

    at_zero: float
    at_one: float
    parts: int = 0


def resolution_of(score: FloatArray, dtype: np.dtype[Any]) -> Resolution:
    """Find how finely scores were rounded.

    Near 1 the spacing is that of the type that the scores came in, with three corrections.

    - Scores that are all multiples of 1/N were rounded to decimals, or are shares of votes: 1/N.
    - float64 scores that are all float32 numbers were computed in float32, and only stored as float64.
    - A softmax divides by 1 + s, and above 1 the spacing is twice that below 1. If all scores near 1 are
      even multiples of the spacing, it is doubled.

    Near 0 there are two sorts of arithmetic. A score computed as 1 - q is a multiple of the spacing near
    1, and 0 means "less than half of it". A score computed as such is rounded relative to its size, and
    0 means "less than half the smallest positive float". The second holds if any positive score is
    smaller than the spacing near 1, and if no score is 0, for then it does not matter.

    Parameters
    ----------
    score : ndarray
        Distinct scores, ascending.
    dtype : numpy.dtype
        The type that the scores came in.

    Examples
    --------
    >>> score = np.array([0.1234567, 0.7654321, 1.0])
    >>> resolution_of(score, score.dtype).at_one == 2.0**-53
    True
    >>> stored_wider = score.astype("float32").astype("float64")
    >>> resolution_of(stored_wider, stored_wider.dtype).at_one == 2.0**-24
    True
    >>> resolution_of(np.round(np.linspace(0.3, 1, 50), 2), score.dtype)
    Resolution(at_zero=0.01, at_one=0.01, parts=100)
    """
    if dtype not in (np.dtype(np.float16), np.dtype(np.float32)):
        narrow = np.array_equal(score.astype(np.float32).astype(np.float64), score)
        dtype = np.dtype(np.float32 if narrow else np.float64)
    info = np.finfo(dtype)
    parts = _parts(score, float(info.eps))
    if parts:
        return Resolution(1 / parts, 1 / parts, parts)
    step = float(info.epsneg)
    multiple = (1 - score[score > 0.5]) / step
    multiple = multiple[(multiple > 0) & (multiple <= 2 * N_INTERVALS)]
    if len(multiple) >= _ENOUGH and not (multiple % 2).any():
        step *= 2
    positive = score[score > 0]
    from_complement = score[0] == 0 and len(positive) > 0 and positive[0] >= step
    return Resolution(step if from_complement else float(info.smallest_subnormal), step)


def _parts(score: FloatArray, eps: float) -> int:
    """Return N if all scores are multiples of 1/N, the smallest distance between them, and 0 otherwise."""
    if len(score) < _ENOUGH:
        return 0
    gap = max(float(np.diff(score).min()), 1e-7)
    # A gap of rounded scores gives N only roughly; decimals are the usual case.
    for parts in (round(1 / gap), 10 ** round(-math.log10(gap))):
        error = max(eps * parts, 1e-6)  # of a multiple, because scores are floats, and files hold few digits
        # On a grid finer than this, or nearly as fine as the floats, chance would find multiples too.
        if parts <= 1_000_000 and error <= 0.1:
            multiple = score * parts
            if np.abs(multiple - np.round(multiple)).max() <= error:
                return parts
    return 0
