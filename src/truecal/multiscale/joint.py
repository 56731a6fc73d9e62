r"""Several classes at once: the mean of their squared errors, with the dependence between them.

The classes of one row share its label, so that their estimates depend on each other. To first order that is in the
influence functions: the mean over classes of :math:`\psi_k = 2 r_k d_k - d_k^2`, row by row, has the variance of the
mean squared error. What is left at an error of 0 is added as for independent classes. The evidence is the mean of the
classes' Bayes factors, which needs no assumption on their dependence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.multiscale.analysis import Multiscale, pvalue_of_evidence
from truecal.multiscale.clusters import enough_clusters, inflation
from truecal.multiscale.intervals import Limits
from truecal.multiscale.upper import combined


def joint_limits(
    classes: Sequence[Multiscale],
    influence: FloatArray | None = None,
    *,
    norm: float = 2,
    weight: FloatArray | None = None,
    cluster: NDArray[np.intp] | None = None,
    independent: bool = False,
    counts: bool = False,
    share: FloatArray | None = None,
    resolution: int | None = None,
    dependence: float = 1.0,
) -> Limits:
    """Return the confidence limits of the lp mean over classes of their errors, p being 1 or 2.

    Parameters
    ----------
    classes : sequence of Multiscale
        One for each class.
    influence : ndarray of shape (n,), optional
        Mean over the classes of the rows' influence for the norm; of independent parts, the influence of each row on
        its own. Without it the estimates of the classes are taken to rise and fall together, which is the worst case.
    norm : {1, 2}
        Order of the norm.
    weight : ndarray of shape (n,), optional
        Weights of the rows.
    cluster : ndarray of int, optional
        Numbers of the clusters of the rows.
    independent : bool
        Whether the parts are not classes of the same rows but different rows, such as folds.
    counts : bool
        Whether weight 2 stands for two rows.
    share : ndarray, optional
        Share of each class in the mean; by default all count the same.
    resolution : int, optional
        Number of intervals of scores of each class for upper limits.
    dependence : float
        How much the labels of different classes depend on each other: see `class_dependence`.
    """
    part = np.full(len(classes), 1 / len(classes)) if share is None else share
    parts = [one.limits_for(norm, resolution) for one in classes]
    each = np.array([one.variance(norm) for one in classes])
    if influence is not None:
        variance = float(mean_covariance(influence[np.newaxis], weight, cluster, counts=counts)[0, 0])
    else:
        variance = float(part**2 @ each) if independent else float(part @ np.sqrt(each)) ** 2
    clusters = _count_clusters(classes, weight, cluster, independent=independent)
    energy = float(part @ [one.energy for one in classes])
    slope = variance / max(energy, 1e-30) if norm == 2 else 4 * variance
    log_evidence = [one.posterior.log_evidence for one in classes]
    factor = 1.0 if clusters is None else inflation(clusters[1])

    def mean(values: list[float]) -> float:
        """Return the mean of squares, or the square of the mean root."""
        return float(part @ values if norm == 2 else (part @ np.sqrt(np.maximum(values, 0.0))) ** 2)

    return Limits(
        error=math.sqrt(mean([one.error**2 for one in parts])),
        square=mean([one.square for one in parts]),
        slope=factor
        * (slope + 2 / (sum(one.size for one in classes) if independent else classes[0].size) ** 2),
        null_variance=float(part**2 @ [one.null_variance for one in parts]),
        noise_variance=float(part**2 @ [one.noise_variance for one in parts]),
        largest=math.sqrt(mean([one.largest**2 for one in parts])),
        pvalue=pvalue_of_evidence(float(scipy.special.logsumexp(log_evidence, b=part))),
        above=combined(
            [one.above for one in parts], part, 0.0 if independent or len(parts) == 1 else dependence
        ),
        reliable=clusters is None or enough_clusters(*clusters),
    )


def class_dependence(scores: Sequence[NDArray[Any]]) -> float:
    r"""Return by what part the variance of sums of squares grows because classes of a row share its label.

    If calibrated, the labels of a row have the covariances :math:`-p_j p_k`. If rows that share an interval in one
    class share it in all, which is the worst case, that is
    :math:`\sum_i \sum_{j \ne k} p_{ij}^2 p_{ik}^2 / \sum_i \sum_j p_{ij}^2 (1 - p_{ij})^2`, at most 1.

    Parameters
    ----------
    scores : sequence of ndarray of shape (n,)
        Scores of the rows for each class.
    """
    second, fourth, own = np.zeros((3, len(scores[0])))
    for score in scores:
        square = np.square(score, dtype=np.float64)
        second += square
        fourth += square**2
        own += square * (1 - np.asarray(score, dtype=np.float64)) ** 2
    total = float(own.sum())
    return min(max(float(np.sum(second**2 - fourth)) / total, 0.0), 1.0) if total > 0 else 1.0


def _count_clusters(
    classes: Sequence[Multiscale],
    weight: FloatArray | None,
    cluster: NDArray[np.intp] | None,
    *,
    independent: bool,
) -> tuple[int, float] | None:
    """Return the number of clusters of all classes or parts, and their effective number; None without clusters."""
    if cluster is not None:
        weights = np.bincount(cluster, weight)
        return int(np.count_nonzero(weights)), float(weights.sum() ** 2 / (weights @ weights))
    tables = [one.units.clusters for one in classes]
    first = tables[0]
    if first is None:
        return None
    if not independent:
        return first.n_clusters, first.effective_number
    known = [table for table in tables if table is not None]
    squares = sum(float(table.weight.sum()) ** 2 / table.effective_number for table in known)
    number = sum(float(table.weight.sum()) for table in known) ** 2 / squares
    return sum(table.n_clusters for table in known), number


def mean_covariance(
    values: FloatArray,
    weight: FloatArray | None = None,
    cluster: NDArray[np.intp] | None = None,
    *,
    counts: bool = False,
) -> FloatArray:
    """Return the covariance of the (weighted) means of several values over rows, or over dependent rows in clusters.

    Parameters
    ----------
    values : ndarray of shape (k, n)
        k values for each row.
    weight : ndarray of shape (n,), optional
        Weights.
    cluster : ndarray of int, optional
        Number of the cluster of each row.
    counts : bool
        Whether weight 2 stands for two rows, and not for one that counts twice.
    """
    weight = np.ones(values.shape[1]) if weight is None else weight
    total = float(weight.sum())
    spread = np.sqrt(weight) if counts and cluster is None else weight
    each = spread * (values - (values @ weight)[:, np.newaxis] / total)
    if cluster is not None:
        each = np.stack([np.bincount(cluster, row) for row in each])
        each = each * math.sqrt(each.shape[1] / max(each.shape[1] - 1, 1))
    return np.asarray(each @ each.T) / total**2
