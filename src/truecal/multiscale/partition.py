r"""The resolution of upper limits: intervals of scores that are fixed by the number of rows and the scores alone.

An upper limit can only hold for a class of curves that was chosen before the labels were seen. Here a curve may have
any mean error in each of B intervals. With K distinct scores and :math:`b = N^{2/5}`,

- if :math:`K \le \max(4, b, \min(N/9, 7b))`, every distinct score is an interval of its own, and nothing is assumed;
- otherwise the scores are cut into about b intervals of equal measure. The measure is half by rows and half by the
  variance of labels: a score with m rows has

  .. math:: \frac{N^{2/5}}{2} \frac{m}{N} + \frac{V^{2/5}}{2} \frac{m f (1 - f)}{\sum m f (1 - f)}, \qquad
      V = \max\big(1, 4 \textstyle\sum m f (1 - f)\big) .

  A score with a measure of 1 or more stands alone. The first and the last interval have one neighbour only, so that a
  jump inside them would not be noticed: they are halved if they hold more rows than the average.

:math:`N^{2/5}` is the rate at which curves of smoothness 1 can be told from the identity (Ingster): with it the error
inside intervals is of the order of what can be seen at all. The half by variance gives the ends of skewed scores
intervals of their own; with V instead of N in it, rare events do not make intervals without events.
"""

from __future__ import annotations

import numpy as np

from truecal._lib.types import FloatArray
from truecal.multiscale.units import IntArray, place_of

#: Exponent of the number of intervals.
RATE = 0.4
#: Every distinct score is an interval if each has this many rows on average, and if they are not more than this many
#: times the number of intervals of continuous scores.
_ROWS_PER_SCORE, _MOST_SCORES = 9, 7
#: There are at least this many intervals.
_FEWEST = 4


def cut_scores(
    score: FloatArray,
    weight: FloatArray,
    n_distinct: int,
    resolution: int | None = None,
    most: float = np.inf,
) -> IntArray:
    """Return the interval of each unit, counted from 0; labels are not looked at.

    Parameters
    ----------
    score, weight : ndarray of shape (n_units,)
        Scores in ascending order, and weights that sum to the effective number of rows.
    n_distinct : int
        Number of distinct scores; the number of units if these were not merged.
    resolution : int, optional
        Largest number of intervals; by default it follows from the number of rows.
    most : float
        Largest number of intervals by default, which dependent rows may lower.
    """
    size = float(weight.sum())
    base = size**RATE
    few = (
        max(_FEWEST, base, min(size / _ROWS_PER_SCORE, _MOST_SCORES * base))
        if resolution is None
        else resolution
    )
    if n_distinct <= min(few, len(score)):
        return np.arange(len(score))
    variance = weight * score * (1 - score)
    total = float(variance.sum())
    measure = base * weight / (2 * size)
    if total > 0:
        measure += max(4 * total, 1.0) ** RATE * variance / (2 * total)
    if resolution is None:
        wanted = min(max(float(measure.sum()), _FEWEST), max(most, _FEWEST))
        return _cut(score, weight, measure * (wanted / measure.sum()))
    for wanted in range(resolution, 0, -1):
        place = _cut(score, weight, measure * (wanted / measure.sum()))
        if place[-1] < resolution:
            break
    return place


def _cut(score: FloatArray, weight: FloatArray, measure: FloatArray) -> IntArray:
    """Return intervals of a measure of about 1."""
    heavy = measure >= 1
    run = np.cumsum(heavy | np.concatenate([[True], heavy[:-1]])) - 1  # a heavy score, or those between two
    mass = np.bincount(run, measure)
    pieces = np.maximum(np.floor(mass + 0.5), 1)
    pieces[run[heavy]] = 1
    rank = (np.cumsum(measure) - measure / 2 - (np.cumsum(mass) - mass)[run]) / mass[run]
    place = np.minimum(place_of(rank, score, pieces[run]), (pieces[run] - 1).astype(np.intp))
    place = _renumbered(place + (np.cumsum(pieces) - pieces)[run].astype(np.intp))
    while place[-1] > 0:  # pieces below one half join their smaller neighbour, the smallest first
        mass = np.bincount(place, measure)
        least = int(mass.argmin())
        if mass[least] >= 0.5:
            break
        before, after = (mass[k] if 0 <= k < len(mass) else np.inf for k in (least - 1, least + 1))
        place = place - (place > (least - 1 if before <= after else least))
    return _halve_ends(score, weight, place)


def _halve_ends(score: FloatArray, weight: FloatArray, place: IntArray) -> IntArray:
    """Return the intervals with the first and the last one halved by rows if they are wide."""
    rows = np.bincount(place, weight)
    for end in dict.fromkeys((int(place[-1]), 0)):  # the last one first, so that numbers stay
        inside = np.flatnonzero(place == end)
        if rows[end] > rows.mean() and len(inside) > 1:
            part = weight[inside]
            half = np.minimum(place_of((np.cumsum(part) - part / 2) / part.sum(), score[inside], 2), 1)
            half[0], half[-1] = 0, 1
            place = place.copy()
            place[inside] += half
            place[inside[-1] + 1 :] += 1
    return place


def _renumbered(place: IntArray) -> IntArray:
    """Return ascending numbers without gaps."""
    return np.concatenate([[0], np.cumsum(place[1:] != place[:-1])]).astype(np.intp)
