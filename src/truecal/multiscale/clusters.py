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

from dataclasses import dataclass

import numpy as np
import scipy

from truecal._lib.types import FloatArray
from truecal.multiscale.curves import Curve, cluster_scores
from truecal.multiscale.units import IntArray, Units, gram, total

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
    bin, cluster : ndarray of int
        Pairs of a bin and a cluster with rows in it.
    error : ndarray
        Residual sum of each pair under the beta curve.
    n_clusters : int
        Number of clusters.
    """

    weight2: FloatArray
    residual2: FloatArray
    covariance: FloatArray
    bin: IntArray
    cluster: IntArray
    error: FloatArray
    n_clusters: int

    def squares(self, factor: FloatArray) -> FloatArray:
        """Return, for each cluster, the sum over bins of factor times its squared residual sum."""
        return total(self.cluster, factor[self.bin] * self.error**2, self.n_clusters)


def sums_by_cluster(units: Units, curve: Curve) -> list[ClusterSums]:
    """Return the sums of the levels from 4 bins on, coarse to fine."""
    table = units.clusters
    assert table is not None
    n_clusters = table.n_clusters
    scores, error = cluster_scores(curve, units)
    mean = curve(units.score)
    design = curve.design(units.score)
    weight = units.weight * mean * (1 - mean)
    n_bins = 2**units.depth
    slope = np.stack([total(units.bin, weight * column, n_bins) for column in design], axis=1)
    slope = slope @ curve.inverse  # effect of a cluster's score vector on the bin sums, through the fit

    bins, cluster = units.bin[table.unit], table.cluster
    columns = [table.weight, table.residual, error]
    found: list[ClusterSums] = []
    covariance: FloatArray | None = None
    while True:
        key, place = np.unique(bins * n_clusters + cluster, return_inverse=True)
        columns = [total(place, column, len(key)) for column in columns]
        bins, cluster = key // n_clusters, key % n_clusters
        if covariance is None:
            matrix = scipy.sparse.csr_array((columns[2], (bins, cluster)), shape=(n_bins, n_clusters))
            cross = (matrix @ scores) @ slope.T
            plain = gram(matrix) - cross - cross.T + slope @ (scores.T @ scores) @ slope.T
            covariance = np.asarray(plain) * table.variance_factor
        found.insert(
            0,
            ClusterSums(
                weight2=total(bins, columns[0] ** 2, n_bins),
                residual2=total(bins, columns[1] ** 2, n_bins),
                covariance=covariance,
                bin=bins,
                cluster=cluster,
                error=columns[2],
                n_clusters=n_clusters,
            ),
        )
        if n_bins <= 4:
            return found
        bins, n_bins = bins >> 1, n_bins // 2
        covariance = covariance.reshape(n_bins, 2, n_bins, 2).sum(axis=(1, 3))


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
