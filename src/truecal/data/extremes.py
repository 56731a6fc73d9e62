"""Scores at and near 0 and 1: how finely scores were rounded, and what an exact 0 or 1 counts as."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray

#: Most votes, or steps of a rounded score, for which 0 is taken as half a step. Zeros of a random forest (shares of 60
#: and of 100 trees) are right less often than the number of rows could show: the log loss of Platt scaling on new rows
#: was 0.329 and 0.358 with half a step, 0.348 and 0.365 with 1 / (2n + 2). Finer grids come from rounding a score that
#: was itself near 0, and for these the number of rows gave slopes nearer to those of unrounded scores.
_MOST_VOTES = 200

#: How far from a multiple, in steps, a score on a grid may be: float32 shares are this far off.
_OFF = 1e-4


#: How far from 0 and 1 values are kept where a logit or a variance is taken: scores of an audit, whose slopes are
#: tested; curves by whose variance residuals are divided; and curves that are only known in a few bins.
AUDIT_END, CURVE_END, COARSE_CURVE_END = 1e-6, 1e-9, 1e-3


def inside(values: FloatArray, end: float) -> FloatArray:
    """Return values moved to a distance of `end` from 0 and 1."""
    return np.clip(values, end, 1 - end)


@dataclass(frozen=True)
class Floor:
    """What scores of exactly 0 and 1 count as: `zero`, and the complement of `one`.

    Attributes
    ----------
    zero, one : float
        The smallest probability of the class, and of its complement; 0 if there is no limit.
    """

    zero: float = 0.0
    one: float = 0.0

    def clip(self, score: NDArray[np.floating[Any]], resolution: float = 0.0) -> FloatArray:
        """Return scores of one class in float64, moved away from 0 and 1 by the floor and by `resolution`."""
        low, high = max(self.zero, resolution), max(self.one, resolution)
        return np.clip(np.asarray(score, dtype=np.float64), low, 1 - high)

    def table(self, scores: FloatArray) -> FloatArray:
        """Return probabilities, (n,) of one class or rows of K that sum to 1, with exact 0 and 1 at the floor."""
        if scores.ndim == 1:
            return self.clip(scores)
        if scores.all():
            return scores
        values = np.maximum(scores, self.zero)
        return np.asarray(values / values.sum(axis=1, keepdims=True))


#: Every score is positive and below 1, or is taken as it is.
NO_FLOOR = Floor()


def shown_by(shape: tuple[int, ...], weight: FloatArray | None = None) -> float:
    """Return 1 / (2K (n + 1)), the smallest probability that n rows of K scores can show.

    Examples
    --------
    >>> shown_by((99,))
    0.005
    """
    n, columns = float(shape[0]), 1 if len(shape) == 1 else shape[1]
    if weight is not None:
        total = float(weight.sum())
        n = max(total, total * total / float(weight @ weight))
    return 1 / (2 * columns * (n + 1))


def limits_of(scores: NDArray[np.floating[Any]], weight: FloatArray | None = None) -> Floor:
    r"""Return the smallest probability that an exact 0, or the complement of an exact 1, can mean in these rows.

    .. math:: \frac1{2K} \min\Big(\frac1{n + 1}, s_+\Big)

    with n rows, K columns (1 for two classes) and :math:`s_+` the smallest positive score, but at least the resolution
    of the type of the scores (2.2e-16 for float64). So it is no less than the rows can show, and below the positive
    scores, which are left as they are. An exact 1 is the same for its complement.

    Examples
    --------
    >>> limits_of(np.array([0.0, 0.2, 0.3, 0.75]))
    Floor(zero=0.1, one=0.1)
    """
    shown, columns = shown_by(scores.shape, weight), 1 if scores.ndim == 1 else scores.shape[1]

    def limit(side: NDArray[np.floating[Any]]) -> float:
        nearest = float(side.min(initial=1.0, where=side > 0))
        return max(min(shown, nearest / (2 * columns)), float(np.finfo(side.dtype).eps))

    return Floor(limit(scores), limit(1 - scores))


def floor_of(scores: NDArray[np.floating[Any]], weight: FloatArray | None = None) -> Floor:
    """Return what scores of exactly 0 and 1 count as in a fit to these rows; 0 where there are none.

    A score of exactly 0 is a number that was rounded, or that has underflowed, or a share of votes. Its logarithm is
    infinite, and any replacement by a tiny number lets a few such rows rule the fit. So an exact 0 counts as no less
    than the rows can show, which is `limits_of`. If the scores are multiples of 1/N with N up to 200, as shares of N
    votes and scores with two decimals are, it is half a step, 1/(2N).

    Examples
    --------
    >>> floor_of(np.array([0.0, 0.2, 0.3, 0.75]))
    Floor(zero=0.1, one=0.0)
    >>> floor_of(np.array([0.0, 0.25, 0.5, 0.75, 1.0]))  # shares of four votes
    Floor(zero=0.125, one=0.125)
    >>> floor_of(np.array([0.1, 0.9]))
    Floor(zero=0.0, one=0.0)
    """
    has_zero, has_one = bool((scores == 0).any()), bool((scores == 1).any())
    if not (has_zero or has_one):
        return Floor()
    votes = _votes(scores)
    limits = Floor(0.5 / votes, 0.5 / votes) if votes else limits_of(scores, weight)
    return Floor(limits.zero if has_zero else 0.0, limits.one if has_one else 0.0)


def _votes(scores: NDArray[np.floating[Any]]) -> int:
    """Return N if scores are multiples of 1/N and at least half of these multiples occur, and 0 otherwise."""
    inner = scores[(scores > 0) & (scores < 1)]
    if not inner.size or float(inner.min()) < (1 - _OFF) / _MOST_VOTES:
        return 0
    distinct = np.unique(np.round(inner.astype(np.float64), 6))
    if len(distinct) >= _MOST_VOTES:
        return 0
    for votes in range(2, min(_MOST_VOTES, 2 * len(distinct) + 3) + 1):
        steps = distinct * votes
        if np.abs(steps - np.round(steps)).max() <= _OFF:
            return votes
    return 0


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
