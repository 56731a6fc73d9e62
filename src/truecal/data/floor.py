"""What a score of exactly 0 or 1 counts as, where its logarithm is needed."""

from __future__ import annotations

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

    Parameters
    ----------
    shape : tuple of int
        (n,) or (n, K).
    weight : ndarray of shape (n,), optional
        Positive weights. Frequencies count as so many rows; weights that are smaller than that as their effective
        number.

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
    r"""Return the least that a probability of exactly 0, or of exactly 1, can mean in these rows.

    .. math:: \frac1{2K} \min\Big(\frac1{n + 1}, s_+\Big)

    with n rows, K columns (1 for two classes) and :math:`s_+` the smallest positive score, but at least the resolution
    of the type of the scores (2.2e-16 for float64). So it is no less than the rows can show, and below the positive
    scores, which are left as they are. An exact 1 is the same for its complement.

    Parameters
    ----------
    scores : ndarray of shape (n,) or (n, K)
        Probabilities of the positive class, or of each of K > 2 classes.
    weight : ndarray of shape (n,), optional
        Positive weights, as for `shown_by`.

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

    Parameters
    ----------
    scores, weight
        As for `limits_of`.

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
