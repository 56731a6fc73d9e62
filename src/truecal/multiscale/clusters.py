r"""Sums in nested bins when the rows of a cluster depend on each other.

Products of residuals count only if their rows belong to different clusters, so that :math:`m_2` and Q of a bin are sums
over clusters of the squares of their sums. With :math:`e_{kc}` the residual sum of cluster c in bin k under the beta
curve, the covariance of the bin sums is :math:`\sum_c e_{kc} e_{lc}`, corrected for the fitted parameters, and the
variance of a level's increment is

.. math:: \frac{2}{N^2} \sum_{c \ne c'} \Big(\sum_k a_k e_{kc} e_{kc'} - \sum_p a_p e_{pc} e_{pc'}\Big)^2 ,

with k the bins of the level and p those of the level before.

Variances that are sums over clusters are themselves uncertain. How much depends on the effective number of clusters
:math:`G = (\sum_c m_c)^2 / \sum_c m_c^2`, the number of clusters of equal weight m that would be as uncertain. With it
sums of squared deviations get the factor :math:`G / (G - 1)`, Wald statistics the distribution of Hotelling, and
confidence limits the variance :math:`\nu / (\nu - 2)` of Student's t with :math:`\nu = G - 1` degrees of freedom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.multiscale.curves import Curve, cluster_scores
from truecal.multiscale.units import Units, gram, total

#: Fewer clusters say too little about how much clusters differ.
MIN_CLUSTERS = 15
#: So do clusters whose effective number is no larger: Student's t has no variance then.
_MIN_EFFECTIVE = 3.0


def enough_clusters(n_clusters: int, effective_number: float) -> bool:
    """Return whether clusters are enough, and equal enough in weight, to tell how much they differ."""
    return n_clusters >= MIN_CLUSTERS and effective_number > _MIN_EFFECTIVE


def inflation(effective_number: float) -> float:
    """Return the variance of Student's t that belongs to an effective number of clusters; 1 if it has none."""
    freedom = effective_number - 1
    return freedom / (freedom - 2) if effective_number > _MIN_EFFECTIVE else 1.0


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums of one level by cluster.

    Attributes
    ----------
    weight2, residual2 : ndarray
        Sums over clusters of the squared weight and of the squared residual sum, by bin.
    covariance : ndarray of shape (n_bins, n_bins)
        Covariance of the bin sums of the beta curve's residuals.
    error : sparse array or ndarray, of shape (n_clusters, n_bins)
        Residual sum of each cluster in each bin under the beta curve.
    """

    weight2: FloatArray
    residual2: FloatArray
    covariance: FloatArray
    error: Any

    def squares(self, factor: FloatArray) -> FloatArray:
        """Return, for each cluster, the sum over bins of factor times its squared residual sum."""
        return np.asarray(self.error**2 @ factor)


def sums_by_cluster(units: Units, curve: Curve) -> list[ClusterSums]:
    """Return the sums of the levels from 4 bins on, coarse to fine."""
    table = units.clusters
    assert table is not None
    mean, design = curve(units.score), curve.design(units.score)
    scores, error = cluster_scores(units, mean, design)
    weight = units.weight * mean * (1 - mean)
    n_bins = 2**units.depth
    slope = np.stack([total(units.bin, weight * column, n_bins) for column in design], axis=1)
    slope = slope @ curve.inverse  # effect of a cluster's score vector on the bin sums, through the fit

    # By cluster, so that at every level the entries of a cluster in a bin follow one another.
    order, bounds = table.by_cluster
    bins = units.bin.astype(np.int32)[table.unit][order]
    columns = (table.weight, table.residual, error)
    matrices = [_by_bin(column[order], bins, bounds, n_bins) for column in columns]
    cross = (matrices[2].T @ scores) @ slope.T
    plain = gram(matrices[2]) - cross - cross.T + slope @ (scores.T @ scores) @ slope.T
    covariance = np.asarray(plain) * table.variance_factor
    found: list[ClusterSums] = []
    while True:
        weight2, residual2 = (np.asarray((matrix**2).sum(axis=0), np.float64) for matrix in matrices[:2])
        found.insert(0, ClusterSums(weight2, residual2, covariance, matrices[2]))
        if n_bins <= 4:
            return found
        n_bins = n_bins // 2
        matrices = [_coarser(matrix) for matrix in matrices]
        covariance = covariance.reshape(n_bins, 2, n_bins, 2).sum(axis=(1, 3))


def _by_bin(
    values: FloatArray, bins: NDArray[Any], bounds: NDArray[Any], n_bins: int
) -> scipy.sparse.csr_array:
    """Return sums of values, sorted by cluster and bin, as a matrix; `bounds` says where each cluster begins."""
    matrix = scipy.sparse.csr_array((values, bins.copy(), bounds.copy()), shape=(len(bounds) - 1, n_bins))
    matrix.sum_duplicates()
    return matrix


def _coarser(matrix: Any) -> Any:
    """Return the sums in bins of twice the width, as an array once most of them are not 0."""
    if isinstance(matrix, np.ndarray):
        return matrix[:, 0::2] + matrix[:, 1::2]
    coarse = _by_bin(matrix.data.copy(), matrix.indices >> 1, matrix.indptr, matrix.shape[1] // 2)
    return coarse.toarray() if 2 * coarse.nnz > math.prod(coarse.shape) else coarse


def null_variance(
    mine: ClusterSums, factor: FloatArray, above: ClusterSums | None, factor_above: FloatArray, size: float
) -> float:
    """Return the variance of a level's increment if its residuals are noise.

    Parameters
    ----------
    mine, above : ClusterSums
        The level and the one before, if there is one.
    factor, factor_above : ndarray
        What the squared sums of their bins are multiplied by.
    size : float
        N.
    """
    value = float(factor @ mine.covariance**2 @ factor)
    own = mine.squares(factor)
    if above is not None:
        n_above = len(factor_above)
        mixed = mine.covariance.reshape(len(factor), n_above, 2).sum(axis=2)
        value += float(factor_above @ above.covariance**2 @ factor_above)
        value -= 2 * float(factor @ mixed**2 @ factor_above)
        own = own - above.squares(factor_above)
    return max(2 * (value - float(own @ own)) / size**2, 0.0)
