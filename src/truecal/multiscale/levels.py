r"""Sums in nested bins, and the unbiased squared errors that they give.

For a bin with weight m, sum of squared weights :math:`m_2`, residual sum R and sum of squared residuals Q,

.. math:: u = \frac{R^2 - Q}{m^2 - m_2}

is the mean of :math:`r_i r_{i'}` over all pairs of different rows in the bin (of different clusters, if there are any).
It is unbiased for the square of the mean error in the bin, up to the variance of the error within it over the number
of rows. A row that is alone in its bin says nothing there, and takes over u from the bin around it. The binned squared
error is

.. math:: U = \frac1N \sum_k m_k u_k .
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from truecal._lib.types import FloatArray
from truecal.multiscale.clusters import ClusterSums, null_variance, sums_by_cluster
from truecal.multiscale.curves import Curve
from truecal.multiscale.units import IntArray, Units, total


@dataclass(frozen=True, eq=False)
class Level:
    """One partition into bins; bins may be empty.

    Attributes
    ----------
    size : float
        N.
    parent : Level or None
        The next coarser level.
    inside : ndarray of int or None
        Bin of the parent in which each bin lies; None if bins 2k and 2k + 1 lie in k.
    weight, weight2 : ndarray
        m and m_2.
    residual, residual2 : ndarray
        Sum of w (f - y), and of w^2 (f - y)^2.
    gap : ndarray
        Sum of w (f - g), for the beta curve g.
    error2 : ndarray
        Sum of w^2 (y - g)^2.
    noise : ndarray
        Variance of the residual sum under the beta curve, sum of w^2 g (1 - g).
    effect : ndarray of shape (3, n_bins) or None
        What the noise of the beta curve's parameters does to the sums of w g: B, with B'B their covariance.
        None for bins finer than the cells of the fit, in which the curve moves as one.
    within : float
        Squared gap of the beta curve inside the bins, averaged, less what the noise of its parameters adds.
    clusters : ClusterSums or None
        The sums by cluster, if rows depend on each other.
    """

    size: float
    parent: Level | None
    inside: IntArray | None
    weight: FloatArray
    weight2: FloatArray
    residual: FloatArray
    residual2: FloatArray
    gap: FloatArray
    error2: FloatArray
    noise: FloatArray
    effect: FloatArray | None
    within: float
    clusters: ClusterSums | None = None

    def up(self, values: FloatArray) -> FloatArray:
        """Return, for each bin, the value of the parent's bin around it."""
        return np.asarray(np.repeat(values, 2) if self.inside is None else values[self.inside])

    def down(self, values: FloatArray) -> FloatArray:
        """Return the sums of values over the bins inside each bin of the parent."""
        if self.inside is None:
            return np.asarray(values[0::2] + values[1::2])
        assert self.parent is not None
        return total(self.inside, values, len(self.parent.weight))

    @cached_property
    def filled(self) -> int:
        """Number of bins that are not empty."""
        return int(np.count_nonzero(self.weight))

    @cached_property
    def pairs(self) -> FloatArray:
        """m^2 - m_2: the weight of the pairs of rows in each bin; 0 where a row is alone."""
        pairs = self.weight**2 - self.weight2
        return np.where(pairs > 1e-9 * self.weight**2, pairs, 0.0)

    @cached_property
    def factor(self) -> FloatArray:
        """M / (m^2 - m_2), or 0 where a row is alone."""
        return np.divide(self.weight, self.pairs, out=np.zeros_like(self.weight), where=self.pairs > 0)

    @cached_property
    def mean_residual(self) -> FloatArray:
        """Mean residual score - label of each bin; 0 if it is empty."""
        return np.divide(self.residual, self.weight, out=np.zeros_like(self.weight), where=self.weight > 0)

    @cached_property
    def mean_error(self) -> FloatArray:
        """Mean residual label - g of each bin; 0 if it is empty."""
        error = self.gap - self.residual
        return np.divide(error, self.weight, out=np.zeros_like(self.weight), where=self.weight > 0)

    def _density(self, total: FloatArray, squares: FloatArray, above: FloatArray | None) -> FloatArray:
        alone = self.pairs == 0
        density = np.divide(total**2 - squares, self.pairs, out=np.zeros_like(total), where=~alone)
        if above is not None and alone.any():
            density[alone] = self.up(above)[alone]
        return density

    @cached_property
    def residual_density(self) -> FloatArray:
        """U of each bin, for the residuals score - label."""
        above = None if self.parent is None else self.parent.residual_density
        return self._density(self.residual, self.residual2, above)

    @cached_property
    def error_density(self) -> FloatArray:
        """U of each bin, for the residuals label - g of the beta curve."""
        above = None if self.parent is None else self.parent.error_density
        return self._density(self.gap - self.residual, self.error2, above)

    @cached_property
    def square(self) -> float:
        """U: the binned squared error of the scores."""
        return float(self.weight @ self.residual_density) / self.size

    @cached_property
    def error_square(self) -> float:
        """The same for the beta curve."""
        return float(self.weight @ self.error_density) / self.size

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the bin sums of the beta curve's residuals, for levels of few bins."""
        if self.clusters is not None:
            return self.clusters.covariance
        assert self.effect is not None
        return np.asarray(np.diag(self.noise) - self.effect.T @ self.effect)

    @cached_property
    def _factor_above(self) -> FloatArray:
        """The parent's factors, times the share of its weight in bins of more than one row."""
        assert self.parent is not None
        weight = self.parent.weight
        several = self.down(np.where(self.pairs > 0, self.weight, 0.0))
        return self.parent.factor * np.divide(several, weight, out=np.zeros_like(weight), where=weight > 0)

    def _contrast(self, sums: FloatArray) -> FloatArray:
        """Return A v for each row v of `sums`: v'Av is the sum of v^2 m / (m^2 - m_2) less that of the parent."""
        own = self.factor * sums
        if self.parent is None:
            return own
        return np.stack(
            [one - self.up(self._factor_above * self.down(row)) for one, row in zip(own, sums, strict=True)]
        )

    @cached_property
    def fitted(self) -> FloatArray:
        """B A B': what fitting the beta curve has taken out of the noise of this level less its parent."""
        if self.effect is None:
            return np.zeros((3, 3))
        return np.asarray(self.effect @ self._contrast(self.effect).T)

    @cached_property
    def noise_mean(self) -> float:
        """Mean of e'Ae for residual sums e of the beta curve that are pure noise, divided by N."""
        total = float(self.factor @ self.noise) - float(np.trace(self.fitted))
        if self.parent is not None:
            total -= float(self._factor_above @ self.parent.noise)
        return total / self.size

    @cached_property
    def null_variance(self) -> float:
        """Variance of the increment of U at this level, if the beta curve is right."""
        if self.clusters is not None:
            if self.parent is None:
                return null_variance(self.clusters, self.factor, None, np.zeros(0), self.size)
            return null_variance(
                self.clusters, self.factor, self.parent.clusters, self._factor_above, self.size
            )
        mine = self.noise**2 * self._pair_share
        total = float(self.factor**2 @ mine)
        if self.parent is not None:
            above = self._factor_above
            total += float(above**2 @ (self.parent.noise**2 * self.parent._pair_share))
            total -= 2 * float((self.factor * self.up(above)) @ mine)
        if self.effect is not None:
            total += float(np.sum(self.fitted**2))
            total -= 2 * float(np.sum(self._contrast(self.effect) ** 2 @ self.noise))
        return max(2 * total / self.size**2, 0.0)

    @property
    def error_increment(self) -> float:
        """Increment of the beta curve's squared error at this level; its mean is 0 if the curve is right."""
        before = 0.0 if self.parent is None else self.parent.error_square
        return self.error_square - before + float(np.trace(self.fitted)) / self.size

    @cached_property
    def _pair_share(self) -> FloatArray:
        """1 - m_2 / m^2."""
        square = self.weight**2
        return np.divide(self.pairs, square, out=np.zeros_like(square), where=square > 0)


def make_levels(units: Units, curve: Curve, mean: FloatArray) -> list[Level]:
    """Return the levels from 4 bins on, coarse to fine; `mean` is the curve at the units' scores."""
    if units.depth < 2:
        return []
    gap = units.weight * (units.score - mean)
    noise = units.weight2 * mean * (1 - mean)
    error2 = units.positives2 * (1 - 2 * mean) + units.weight2 * mean**2
    sums = np.stack([units.weight, units.weight2, units.residual, units.residual2, gap, error2, noise])
    n_bins = 2**units.depth
    finest = sums
    if len(units) != n_bins:
        finest = np.stack([total(units.bin, row, n_bins) for row in sums])
    tree = [finest]
    while tree[0].shape[1] > 4:
        tree.insert(0, tree[0][:, 0::2] + tree[0][:, 1::2])
    everywhere = float((units.score - mean) @ gap) - curve.noise.total
    effects = _effects(units, curve)
    by_cluster = [None] * len(tree) if units.clusters is None else sums_by_cluster(units, curve)
    levels: list[Level] = []
    for one, clusters in zip(tree, by_cluster, strict=True):
        effect = effects.get(one.shape[1])
        noise_between = curve.noise.total if effect is None else _sum_ratio(np.sum(effect**2, axis=0), one[0])
        inside = (everywhere - _sum_ratio(one[4] ** 2, one[0]) + noise_between) / units.size
        level = _level(units.size, levels[-1] if levels else None, None, one, effect, inside)
        levels.append(level if clusters is None else _with_clusters(level, clusters))
    if units.saturated:
        levels.append(_level(units.size, levels[-1], units.bin, sums, None, 0.0))
    return levels


def _level(
    size: float,
    parent: Level | None,
    inside: IntArray | None,
    sums: FloatArray,
    effect: FloatArray | None,
    within: float,
) -> Level:
    weight, weight2, residual, residual2, gap, error2, noise = sums
    return Level(
        size, parent, inside, weight, weight2, residual, residual2, gap, error2, noise, effect, within
    )


def _with_clusters(level: Level, clusters: ClusterSums) -> Level:
    """Replace the sums of squares by those over clusters, which allow for the fit already."""
    noise = np.diag(clusters.covariance)
    return replace(
        level,
        weight2=clusters.weight2,
        residual2=clusters.residual2,
        error2=noise,
        noise=noise,
        effect=None,
        clusters=clusters,
    )


def one_bin(units: Units) -> Level:
    """Return the level of a single bin, for its residuals; it knows nothing of the beta curve."""
    weight2, residual2 = units.weight2.sum(), units.residual2.sum()
    if units.clusters is not None:
        table = units.clusters
        weight2 = np.square(np.bincount(table.cluster, table.weight)).sum()
        residual2 = np.square(np.bincount(table.cluster, table.residual)).sum()
    sums = [units.weight.sum(), weight2, units.residual.sum(), residual2, 0.0, 0.0, 0.0]
    return _level(units.size, None, None, np.array(sums)[:, np.newaxis], None, 0.0)


def _effects(units: Units, curve: Curve) -> dict[int, FloatArray]:
    """Return the noise of the curve's bin sums, by number of bins, as far as the cells of the fit resolve it."""
    noise, depth = curve.noise, units.depth
    place = units.bin[noise.start]
    if len(noise.start) < len(units) and depth > 8:
        place, depth = place >> (depth - 8), 8
    rows: FloatArray = np.stack([np.bincount(place, row, 2**depth) for row in noise.effect.T]).astype(
        np.float64
    )
    found: dict[int, FloatArray] = {}
    while True:
        found[rows.shape[1]] = rows
        if rows.shape[1] <= 4:
            return found
        rows = rows[:, 0::2] + rows[:, 1::2]


def _sum_ratio(above: FloatArray, below: FloatArray) -> float:
    return float(np.sum(np.divide(above, below, out=np.zeros_like(above), where=below > 0)))
