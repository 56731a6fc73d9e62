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

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.multiscale import _constants as const
from truecal.multiscale._units import ClusterUnits, IntArray, Units, inflation, place_of, total
from truecal.multiscale._upper import BY_INTERVAL, UpperLimit


def make_upper(
    units: Units, gap: FloatArray, place: IntArray, n_distinct: int, votes: float = 1.0
) -> UpperLimit:
    """Return what the upper limit of one sample needs; a row says as much as `votes` true labels at most."""
    weight, score = units.weight[0], units.score[0]
    n = int(place[-1]) + 1
    mass = total(place, weight, n)
    share, rows = mass / units.size, mass**2 / total(place, units.weight2[0], n)
    whole = np.rint(rows)  # equal weights are that many rows, whatever rounding says
    rows = np.where(np.abs(rows - whole) <= 1e-9 * rows, whole, rows)
    mean = total(place, weight * score, n) / mass
    rate = mean - total(place, units.residual[0], n) / mass
    if units.noise is None:
        rate = np.clip(rate, 0.0, 1.0)
    within = total(place, weight * (score - mean[place]) ** 2, n) / mass
    within[within < 1e-12] = 0.0
    far = np.maximum(score, 1 - score)
    limit = UpperLimit(
        share=share,
        rows=rows,
        score=mean,
        rate=rate,
        within=within,
        ratio=np.ones(n),
        extra=np.zeros(n),
        inside=0.0,
        size=units.size,
        largest=math.sqrt(float(weight @ far**2) / units.size),
        resolution=n,
        every_score=n == n_distinct,
    )
    if units.noise is not None:
        limit = _with_noise(limit, units.noise[0], units, gap, place, votes)
    if units.clusters is not None:
        limit = _with_clusters(limit, units, units.clusters, place)
    return replace(limit, inside=_inside(limit, units, gap, place)) if within.any() else limit


def _inside(limit: UpperLimit, units: Units, gap: FloatArray, place: IntArray) -> float:
    """Return H, the energy of the error inside intervals: of the beta curve or a jump, or between their halves."""
    n, weight = len(limit), units.weight[0]
    mass = limit.share * units.size
    if limit.binary:
        noise = np.maximum(limit.score * (1 - limit.score), limit.rate * (1 - limit.rate))
    else:
        noise = limit.noise(np.clip(limit.rate, 0.0, 1.0))
    centre = total(place, weight * gap, n) / mass
    smooth = total(place, weight * (gap - centre[place]) ** 2, n) / mass
    jump = _jumps(limit.gap, noise / limit.rows)
    several = limit.within > 0
    # Halves by rows, of intervals with several scores; a row in the middle is in the first, whatever rounding says.
    before = np.cumsum(mass) - mass
    half = 2 * place + (np.cumsum(weight) - weight / 2 - before[place] > (0.5 + 1e-9) * mass[place])
    part, residual = (total(half, values, 2 * n).reshape(n, 2) for values in (weight, units.residual[0]))
    kept = several & (part > 0).all(axis=1)
    step = np.diff(residual[kept] / part[kept], axis=1)[:, 0]
    spread = np.sum(mass[kept, np.newaxis] / part[kept], axis=1) * (noise / limit.rows)[kept]
    weights = limit.share[kept] * np.prod(part[kept] / mass[kept, np.newaxis], axis=1)
    energy, variance = weights * (step**2 - spread), 2 * (weights * spread) ** 2

    def between(chosen: NDArray[np.bool_]) -> float:
        """Return the clear energy of intervals; a straight line has 3/4 of it between the halves."""
        clear = float(energy @ chosen[kept]) - const.CLEAR_ENERGY * math.sqrt(float(variance @ chosen[kept]))
        return 4 / 3 * max(clear, 0.0)

    jumps = several & (jump > smooth)
    return max(
        float(limit.share[several] @ np.maximum(smooth, jump)[several]),
        between(several),
        float(limit.share[jumps] @ jump[jumps]) + between(~jumps),
    )


def _jumps(gap: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the energy that one jump between the levels of its neighbours has inside each interval.

    The product of the observed steps falls short of it by the variance of the gap between them, on average.
    """
    inside = np.zeros(len(gap))
    if len(gap) < 3:
        return inside
    before, after = np.diff(gap)[:-1], np.diff(gap)[1:]
    clear = (before + after) ** 2 > 2 * math.log(len(gap)) * (variance[2:] + variance[:-2])
    inside[1:-1] = np.where(clear, np.maximum(before * after + variance[1:-1], 0.0), 0.0)
    return inside


def _with_noise(
    limit: UpperLimit, noise: FloatArray, units: Units, gap: FloatArray, place: IntArray, votes: float
) -> UpperLimit:
    """Return the limit for labels that are not the truth.

    Their variance at the beta curve is given. At other rates it changes like that of 0 and 1, or less. Labels that
    hardly vary in the sample, as where no event was seen, may still do so at the rate of a hypothesis.
    """
    n = len(limit)
    mass = limit.share * units.size
    rate = total(place, units.weight[0] * (units.score[0] - gap), n) / mass
    truth = np.maximum(rate * (1 - rate) - limit.within, 1e-9)
    # `mass` rows with true labels are as informative on average; variances are those of such rows.
    most = votes * limit.rows
    rows = np.minimum(mass, most)
    variance = np.maximum(total(place, noise, n) / mass * (rows / mass), 1e-9)
    ratio = np.minimum(np.maximum(variance / truth, rows / most), 1.0)
    extra = np.maximum(variance - ratio * truth, 0.0)
    size = min(limit.size, units.size**2 / float(units.weight2.sum()))
    return replace(limit, rows=rows, size=size, ratio=ratio, extra=extra, binary=False)


def _with_clusters(limit: UpperLimit, units: Units, table: ClusterUnits, place: IntArray) -> UpperLimit:
    """Return the limit for dependent rows.

    The variance of the labels' sums goes into the effective rows of intervals, their covariances into the variance of
    T.
    """
    n_clusters, n = table.n_clusters, len(limit)
    where = place[table.unit]
    # Sum of w (y - rate): the residual is w (f - y).
    error = table.weight * (units.score[0, table.unit] - limit.rate[where]) - table.residual
    sums = total(table.cluster * n + where, error, n_clusters * n).reshape(n_clusters, n)
    sums /= units.size * np.sqrt(limit.share)
    factor = table.variance_factor * inflation(table.effective_number)
    covariance = sums.T @ sums * factor
    own = np.diag(covariance).copy()
    plain = limit.share / limit.rows * limit.noise(np.clip(limit.rate, 0.0, 1.0))
    # A design effect does not exceed the size of clusters, which have the same label throughout then.
    size = units.size if limit.binary else float(limit.rows.sum())
    whole = max(factor * size / table.effective_number, 1.0)
    most = whole if limit.binary else math.inf
    # If the labels of each interval agree, both variances are rounding errors.
    known = float(plain.sum()) > 1e-9 * float(np.sum(limit.share / limit.rows))
    if not known or holders(units, table) < const.FEWEST_HOLDERS:
        effect = whole
    else:
        effect = min(max(float(own.sum()) / float(plain.sum()), 1.0), most)
    np.fill_diagonal(covariance, 0.0)
    centred = units.score[0] - float(units.weight[0] @ units.score[0]) / units.size
    of_scores = np.bincount(table.cluster, table.weight * centred[table.unit], n_clusters)
    spread = float(of_scores @ of_scores) / max(float(units.weight2[0] @ centred**2), 1e-300)
    return replace(
        limit,
        rows=limit.rows / effect,
        size=limit.size / max(spread, 1.0),
        constant=2 * float(np.sum(covariance**2)),
        slope=4 * max(float(np.linalg.eigvalsh(covariance)[-1]), 0.0),
    )


def holders(units: Units, table: ClusterUnits) -> int:
    """Return the number of clusters with the rarer outcome, or of those with one that its score makes unlikely."""
    # Exact up to the differences of scores in a unit, which add up to less than half a row.
    score = units.score[0, table.unit]
    events = table.weight * score - table.residual
    others = table.weight - events
    half = 0.5 * (
        float(table.weight.min()) if units.noise is not None else min(float(table.weight.min()), 1.0)
    )
    sides = events, others, np.where(score > 0.5, others, events)
    return min(
        int(np.count_nonzero(np.bincount(table.cluster, side, table.n_clusters) > half)) for side in sides
    )


def combined(limits: Sequence[UpperLimit], share: FloatArray, dependence: float) -> UpperLimit:
    r"""Return the limit of the root mean square of several errors: their intervals side by side.

    Labels of different classes of one row depend on each other. Their covariance matrix is at most twice its diagonal,
    because it is diagonally dominant, :math:`\sum_{k \ne j} p_j p_k = p_j (1 - p_j)`; so the variance of T is at most
    doubled.
    """
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in limits]) for name in BY_INTERVAL
    }
    arrays["share"] *= np.repeat(share, [len(one) for one in limits])
    joined = UpperLimit(
        **arrays,
        inside=float(share @ [one.inside for one in limits]),
        size=limits[0].size if dependence else sum(one.size for one in limits),
        largest=math.sqrt(float(share @ [one.largest**2 for one in limits])),
        resolution=min(one.resolution for one in limits),
        every_score=all(one.every_score for one in limits),
        binary=all(one.binary for one in limits),
    )
    noise = joined.share / joined.rows * joined.noise(joined.score)
    return replace(
        joined,
        constant=float(share**2 @ [one.constant for one in limits]) + 2 * dependence * float(noise @ noise),
        slope=max(float(np.max(share * [one.slope for one in limits])), 0.0)
        + (4 * float(noise.max()) if dependence else 0.0),
    )


def cut_scores(
    score: FloatArray,
    weight: FloatArray,
    n_distinct: int,
    resolution: int | None = None,
    most: float = np.inf,
) -> IntArray:
    """Return the interval of each unit, counted from 0; labels are not looked at."""
    size = float(weight.sum())
    base = size**const.INTERVAL_RATE
    few = (
        max(const.FEWEST_INTERVALS, base, min(size / const.ROWS_PER_SCORE, const.MOST_SCORES * base))
        if resolution is None
        else resolution
    )
    if n_distinct <= min(few, len(score)):
        return np.arange(len(score))
    variance = weight * score * (1 - score)
    total = float(variance.sum())
    measure = base * weight / (2 * size)
    if total > 0:
        measure += max(4 * total, 1.0) ** const.INTERVAL_RATE * variance / (2 * total)
    if resolution is None:
        wanted = min(max(float(measure.sum()), const.FEWEST_INTERVALS), max(most, const.FEWEST_INTERVALS))
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
    place = place + (np.cumsum(pieces) - pieces)[run].astype(np.intp)
    place = np.cumsum(np.diff(place, prepend=place[0]) != 0)  # without gaps
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
    for end in dict.fromkeys((int(place[-1]), 0)):  # in reverse, so that positions stay valid
        inside = np.flatnonzero(place == end)
        if rows[end] > rows.mean() and len(inside) > 1:
            part = weight[inside]
            half = np.minimum(place_of((np.cumsum(part) - part / 2) / part.sum(), score[inside], 2), 1)
            half[0], half[-1] = 0, 1
            place = place.copy()
            place[inside] += half
            place[inside[-1] + 1 :] += 1
    return place
