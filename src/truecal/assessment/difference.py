"""Whether groups of rows differ in calibration, beyond a recalibration that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import chdtrc, expit, fdtrc, logit

from truecal._lib.logistic import fit_logistic
from truecal._lib.types import FloatArray
from truecal.data.question import Rows
from truecal.data.sample import Sample
from truecal.multiscale.clusters import MIN_CLUSTERS
from truecal.results import Result


@dataclass(frozen=True)
class Difference(Result):
    """A test of whether groups differ, after one recalibration that all of them share.

    A logistic recalibration is fitted to all rows. If the groups do not differ, the level and the slope of what
    is left do not depend on the group. The statistic is the score test of that.

    Attributes
    ----------
    statistic : float
        Chi-square statistic; with clusters, Hotelling's T squared.
    degrees : int
        Degrees of freedom: two for each group, less two for the shared fit.
    pvalue : float
        P-value of no difference.
    left_out : int
        Number of groups that are too small to take part.
    """

    statistic: float
    degrees: int
    pvalue: float
    left_out: int


def group_difference(samples: Sequence[Sample]) -> Difference | None:
    r"""Test whether groups differ in level or slope after a logistic recalibration that they share.

    With p the recalibrated score, x = (1, logit f), :math:`u_g = \sum (y - p) x` and
    :math:`V_g = \sum p (1 - p) x x'` over the rows of group g, the statistic :math:`\sum_g u_g' V_g^{-1} u_g` is
    chi-square with two degrees of freedom for each group less two. Groups with an expected number of
    positives or negatives below 5 are left out.

    Parameters
    ----------
    samples : sequence of Sample
        One for each group.
    """
    parts = [inner_scores(sample) for sample in samples]
    kept = [part for part in parts if len(part[0])]
    if not kept or not all(sample.whole and sample.squares is None for sample in samples):
        return None
    score, count, positives = (np.concatenate(column) for column in zip(*kept, strict=True))
    used = _fit_shared(score, count, positives)
    if used is None:
        return None
    kept = [part for part in kept if min(_expected(part, used)) >= 5]
    if len(kept) < 2:
        return None
    score, count, positives = (np.concatenate(column) for column in zip(*kept, strict=True))
    used = _fit_shared(score, count, positives)
    if used is None:
        return None
    statistic, degrees = 0.0, -2
    for score, count, positives in kept:
        design = np.column_stack([np.ones_like(score), logit(score)])
        rate = expit(design @ used)
        excess = design.T @ (positives - count * rate)
        variance = (design.T * (count * rate * (1 - rate))) @ design
        statistic += float(excess @ np.linalg.pinv(variance, rcond=1e-9, hermitian=True) @ excess)
        degrees += int(np.linalg.matrix_rank(variance, tol=1e-9 * float(np.trace(variance)), hermitian=True))
    if degrees < 1:
        return None
    return Difference(statistic, degrees, float(chdtrc(degrees, statistic)), len(samples) - len(kept))


def clustered_difference(rows: Rows, group: NDArray[np.intp], n_groups: int) -> Difference | None:
    r"""Test whether groups differ if rows depend on each other, within groups and between them.

    The score vectors :math:`u_{gc} = \sum (y - p) x` of each group and cluster, less the part that the shared fit takes
    out, have the covariance :math:`\frac{G}{G-1} \sum_c u_c u_c'`. Their total is compared by Hotelling's T squared,
    for at least 15 clusters and twice as many as degrees of freedom.

    Parameters
    ----------
    rows : Rows
        Checked predictions with clusters, each counted once.
    group : ndarray of int
        Number of the group of each row.
    n_groups : int
        Number of groups.
    """
    score, cluster = rows.score.astype(np.float64), rows.cluster
    if cluster is None or rows.weight is not None:
        return None
    inside = (score > 1e-9) & (score < 1 - 1e-9)
    score, label = score[inside], rows.label[inside].astype(np.float64)
    cluster, group = cluster[inside], group[inside]
    used = _fit_shared(score, np.ones_like(score), label) if len(score) else None
    if used is None:
        return None
    rate = expit(used[0] + used[1] * logit(score))
    expected = np.stack([np.bincount(group, each, n_groups) for each in (rate, 1 - rate)])
    kept = np.flatnonzero(expected.min(axis=0) >= 5)
    number = np.full(n_groups, -1)
    number[kept] = np.arange(len(kept))
    chosen = number[group] >= 0
    score, label, group = score[chosen], label[chosen], number[group[chosen]]
    clusters, cluster = np.unique(cluster[chosen], return_inverse=True)
    used = _fit_shared(score, np.ones_like(score), label) if len(kept) > 1 else None
    if used is None or len(clusters) < MIN_CLUSTERS:
        return None
    design = np.column_stack([np.ones_like(score), logit(score)])
    rate = expit(design @ used)
    # One row for each cluster, and two columns for each group: its sums of (y - p) and of (y - p) logit f.
    place = np.concatenate([2 * group, 2 * group + 1])
    terms = ((label - rate)[:, np.newaxis] * design).T.ravel()
    shape = (len(clusters), 2 * len(kept))
    each = sparse.coo_array((terms, (np.tile(cluster, 2), place)), shape=shape).toarray()
    information = np.zeros((len(kept), 2, 2))
    np.add.at(
        information, group, (rate * (1 - rate))[:, None, None] * design[:, :, None] * design[:, None, :]
    )
    shared = each.reshape(len(clusters), len(kept), 2).sum(axis=1)
    total = np.linalg.pinv(information.sum(axis=0), rcond=1e-9, hermitian=True)
    own = each - shared @ total @ information.reshape(-1, 2).T
    covariance = len(clusters) / (len(clusters) - 1) * own.T @ own
    degrees = int(np.linalg.matrix_rank(covariance, tol=1e-9 * float(np.trace(covariance)), hermitian=True))
    rest = len(clusters) - degrees
    if degrees < 1 or rest < degrees:
        return None
    excess = own.sum(axis=0)
    statistic = float(excess @ np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) @ excess)
    scaled = statistic * rest / (degrees * (len(clusters) - 1))
    return Difference(statistic, degrees, float(fdtrc(degrees, rest, scaled)), n_groups - len(kept))


def inner_scores(sample: Sample) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return score, count and positives of the groups whose score has a logit.

    Parameters
    ----------
    sample : Sample
        The predictions.
    """
    inside = (sample.score > 1e-9) & (sample.score < 1 - 1e-9)
    return sample.score[inside], sample.count[inside], sample.positives[inside]


def _expected(part: tuple[FloatArray, FloatArray, FloatArray], line: FloatArray) -> tuple[float, float]:
    score, count, _ = part
    rate = expit(line[0] + line[1] * logit(score))
    return float(count @ rate), float(count @ (1 - rate))


def _fit_shared(score: FloatArray, count: FloatArray, positives: FloatArray) -> FloatArray | None:
    if not 0 < positives.sum() < count.sum():
        return None
    offset = logit(score)
    if np.ptp(score) < 1e-9:
        return np.array([logit(positives.sum() / count.sum()) - offset[0], 1.0])
    fit = fit_logistic(np.column_stack([np.ones_like(offset), offset]), 0 * offset, count, positives)
    return None if fit.at_bound.any() else fit.x
