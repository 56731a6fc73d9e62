"""Bands and intervals of a calibration curve whose rows depend on each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri, stdtrit

from truecal._lib.types import FloatArray
from truecal.data.sample import Clusters, Sample
from truecal.inference.dependence import summary_of
from truecal.multiscale.analysis import analyse

#: Signs that are drawn at a time.
_MOST_SIGNS = 4_000_000


@dataclass(frozen=True, eq=False)
class ClusterBins:
    r"""The clusters of each bin of scores: how many rows they are worth, and how well their variance is known.

    Attributes
    ----------
    effective : ndarray of shape (n_bins,)
        Number of independent rows that would determine the observed rate as well, :math:`\bar y (1 - \bar y) / V` with
        the jackknife variance V over clusters; at most the number of rows. If all labels of a bin agree, each cluster
        counts as one row; a bin with a single cluster counts as none.
    freedom : ndarray of shape (n_bins,)
        Degrees of freedom of V: one less than the number of clusters, fewer if sizes differ.
    """

    effective: FloatArray
    freedom: FloatArray

    def widening(self, confidence_level: float) -> FloatArray:
        """Return the ratio of the quantile of Student's t to the normal one."""
        tail = (1 - confidence_level) / 2
        return np.asarray(stdtrit(self.freedom, tail) / ndtri(tail))


def bin_clusters(sample: Sample, table: Clusters, start: NDArray[np.intp]) -> ClusterBins:
    r"""Return what the clusters of each bin say about its observed rate.

    Cluster c of a bin has weight :math:`m_c` and excess :math:`E_c = \sum_{i \in c} w_i (y_i - \bar y)`. The jackknife
    variance of the rate is :math:`V = \frac{G-1}{G} \sum_c (E_c / (m - m_c))^2`. The degrees of freedom are those of a
    sum of squares with variances :math:`v_c = m_c (1 + (m_c - 1) \mathrm{ICC})`, which is
    :math:`(\sum v_c)^2 / \sum v_c^2`, less 1.

    Parameters
    ----------
    sample, table
        The predictions and their clusters.
    start : ndarray of int
        First group of each bin.
    """
    n_bins = len(start)
    place = np.searchsorted(start, table.group, side="right") - 1
    key, pair = np.unique(place * table.n_clusters + table.cluster, return_inverse=True)
    of_pair = key // table.n_clusters
    rows = table.weight if table.rows is None else table.rows
    weight, positives, count = (
        np.bincount(pair, values).astype(np.float64) for values in (table.weight, table.positives, rows)
    )

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(of_pair, values, n_bins).astype(np.float64, copy=False)

    clusters, mass = total(np.ones(len(key))), total(weight)
    rate = total(positives) / mass
    others = (mass[of_pair] - weight) / mass[of_pair]
    share = (positives - rate[of_pair] * weight) / mass[of_pair]
    share = np.divide(share, others, out=np.zeros_like(share), where=others > 1e-12)
    variance = (clusters - 1) / clusters * total(share**2)
    effective = np.divide(rate * (1 - rate), variance, out=clusters.copy(), where=variance > 1e-12)
    icc = summary_of(sample, table).icc
    spread = count * (1 + (count - 1) * (0.0 if math.isnan(icc) else min(max(icc, 0.0), 1.0)))
    freedom = np.maximum(total(spread) ** 2 / total(spread**2) - 1, 1.0)
    return ClusterBins(np.where(clusters > 1, np.minimum(effective, total(count)), 0.0), freedom)


def consistent_draws(
    sample: Sample,
    table: Clusters,
    start: NDArray[np.intp],
    scale: FloatArray,
    n_resamples: int,
    rng: np.random.Generator,
    keep: Callable[[int, FloatArray], None],
) -> None:
    """Draw sums of labels of a calibrated model whose clusters vary as much as those of the data.

    The residuals of each cluster around the estimated calibration curve are multiplied by a random sign and added to
    the scores, which are the observed frequencies of a calibrated model.

    Parameters
    ----------
    sample, table
        The predictions and their clusters.
    start : ndarray of int
        First group of each block of scores.
    scale : ndarray
        Factor on the residuals of each block.
    n_resamples : int
        Number of draws.
    rng : Generator
        Draws the signs.
    keep : callable
        Called with the number of each draw and its sums of labels by block.
    """
    curve = sample.score - analyse(sample).gap
    error = table.residual(sample.score) + table.weight * (curve - sample.score)[table.group]
    block = np.searchsorted(start, table.group, side="right") - 1
    sums = sparse.csr_array(
        (error * scale[block], (table.cluster, block)), shape=(table.n_clusters, len(start))
    )
    factor = math.sqrt(table.n_clusters / max(table.n_clusters - 1, 1))
    expected = np.add.reduceat(sample.count * sample.score, start)
    size = max(_MOST_SIGNS // table.n_clusters, 1)
    for first in range(0, n_resamples, size):
        n = min(size, n_resamples - first)
        signs = rng.integers(0, 2, (n, table.n_clusters)) * 2.0 - 1.0
        for row, drawn in enumerate(expected + factor * np.asarray(signs @ sums), start=first):
            keep(row, drawn)
