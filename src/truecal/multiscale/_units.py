r"""A sample as units: the smallest groups of rows that the core tells apart, and the nested bins above them.

Everything in `truecal.multiscale` is computed from sums over units of the residuals :math:`r = f - y`. With weights
w, scaled so that they sum to Kish's effective size :math:`N = (\sum w)^2 / \sum w^2`, a unit keeps

.. math:: m = \sum w, \quad m_2 = \sum w^2, \quad R = \sum w r, \quad R_2 = \sum w^2 r, \quad Q = \sum w^2 r^2,
    \quad p_2 = \sum w^2 y.

Rows that are counted, not weighted, have :math:`m_2 = m`, :math:`R_2 = R` and so on. Labels that are not the truth
(`truecal.data.pseudo_labels`) take the place of y, with the noise :math:`V = \sum w^2 v` of their variances v in place
of that of 0 and 1. Their weights sum to the number of rows with true labels that would be as informative,
:math:`N = (\sum w)^2 / \sum w^2 \cdot \sum w^2 f (1 - f) / \sum w^2 v`, so that everything that depends on N scales.

Level j of the bins has :math:`2^j` bins of equal mass: the bin of a score is :math:`\lfloor 2^j u \rfloor`, where u is
the middle of its ranks divided by N. A score exactly on an edge lies in the bin above it if it is above 1/2, else in
the one below, so that exchanging the two classes changes nothing. Equal scores are never separated, and the bins of one
level lie inside those of the level before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from truecal._lib.numeric import run_ends
from truecal._lib.types import FloatArray
from truecal.data.cells import LARGEST_CELL, Cells, cell_of
from truecal.data.clusters import Clusters, variance_factor
from truecal.data.sample import Sample
from truecal.multiscale import _constants as const

IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ClusterUnits:
    """Sums over the rows of one cluster in one unit, sorted by unit.

    Attributes
    ----------
    cluster, unit : ndarray of int
        Which cluster, from 0, and which unit.
    weight, residual : ndarray
        Sum of the weights, and of the weights times score less label.
    n_clusters : int
        Number of clusters, or of blocks of whole clusters if these are many (`in_blocks`).
    effective_number : float
        G: number of clusters, or less if few of them hold most of the weight.
    """

    cluster: IntArray
    unit: IntArray
    weight: FloatArray
    residual: FloatArray
    n_clusters: int
    effective_number: float

    @property
    def variance_factor(self) -> float:
        """G / (G - 1): makes a sum over clusters of squared deviations an unbiased variance."""
        return variance_factor(self.effective_number)

    def squares(self) -> tuple[float, float]:
        """Return the sums over clusters of their squared weight and their squared residual sum."""
        sums = (np.bincount(self.cluster, column) for column in (self.weight, self.residual))
        weight2, residual2 = (float(np.square(one).sum()) for one in sums)
        return weight2, residual2

    def variance(self, size: float, slope: FloatArray, shift: FloatArray) -> float:
        """Return the variance of the mean over rows of ``slope * r - shift``, from sums over clusters."""
        each = self.residual * slope[self.unit] - self.weight * shift[self.unit]
        mean = float(each.sum()) / size
        sums = np.bincount(self.cluster, each - mean * self.weight, self.n_clusters)
        return self.variance_factor * float(sums @ sums) / size**2


def enough_clusters(n_clusters: float, effective_number: float) -> bool:
    """Return whether there are enough clusters, of sufficiently equal weight, to estimate how much they differ."""
    return n_clusters >= const.MIN_CLUSTERS and effective_number > const.MIN_EFFECTIVE_CLUSTERS


def inflation(effective_number: float) -> float:
    """Return the variance of Student's t that belongs to an effective number of clusters; 1 if it has none."""
    freedom = effective_number - 1
    return 1 + 2 / (freedom - 2) if effective_number > const.MIN_EFFECTIVE_CLUSTERS else 1.0


@dataclass(frozen=True, eq=False)
class Units:
    """Sums of a sample by unit, in ascending order of score.

    Arrays have a leading axis for samples, because several can be analysed together (`units_of_samples`).

    Attributes
    ----------
    size : float
        Effective number of rows N; the weights sum to it.
    score : ndarray of shape (n_samples, n_units)
        Mean score.
    weight, weight2, residual, residual2, residual_weight2, positives2 : ndarray of shape (n_samples, n_units)
        The sums m, m_2, R, Q, R_2 and p_2 of the module's docstring.
    bin : ndarray of int, of shape (n_samples, n_units)
        Bin of each unit at the finest level.
    depth : int
        The finest level has ``2**depth`` bins; below 2 there are too few rows for bins.
    saturated : bool
        Whether a further level, in which every distinct score is a bin, is finer and worth a look. Scores of one cell
        (see `truecal.data.cells`) are then one unit, so that a sample and its cells have the same level.
    rank : ndarray of shape (n_samples, n_units), or None
        Middle of the ranks of each unit, divided by N; None if the units are the bins of the finest level.
    start : ndarray of int or None
        First score group of each unit; None if each group is a unit.
    clusters : ClusterUnits or None
        The same sums by cluster, if rows of a cluster depend on each other.
    noise : ndarray of shape (n_samples, n_units), or None
        V, if labels are not the truth.
    """

    size: float
    score: FloatArray
    weight: FloatArray
    weight2: FloatArray
    residual: FloatArray
    residual2: FloatArray
    residual_weight2: FloatArray
    positives2: FloatArray
    bin: IntArray
    depth: int
    saturated: bool = False
    rank: FloatArray | None = None
    start: IntArray | None = None
    clusters: ClusterUnits | None = None
    noise: FloatArray | None = None

    def __len__(self) -> int:
        return int(self.score.shape[-1])

    @property
    def independent_truth(self) -> bool:
        """Whether rows are independent and labels are the truth, so that the likelihood is valid."""
        return self.clusters is None and self.noise is None

    def squares(self) -> tuple[float, float]:
        """Return the sums of w^2 and of w^2 r^2 over all rows, or those of the squared sums of clusters."""
        if self.clusters is not None:
            return self.clusters.squares()
        return float(self.weight2.sum()), float(self.residual2.sum())

    def variance(self, slope: FloatArray, shift: FloatArray) -> FloatArray:
        """Return the variance of the mean of ``slope * r - shift`` over rows, or over clusters."""
        if self.clusters is not None:
            return np.array([self.clusters.variance(self.size, slope[0], shift[0])])
        mean = (np.vecdot(slope, self.residual) - np.vecdot(shift, self.weight)) / self.size
        shift = shift + mean[:, np.newaxis]  # centred
        total = (
            np.vecdot(slope**2, self.residual2)
            - 2 * np.vecdot(slope * shift, self.residual_weight2)
            + np.vecdot(shift**2, self.weight2)
        )
        return np.asarray(np.maximum(total, 0.0) / self.size**2)

    def sums(self, values: FloatArray, depth: int) -> FloatArray:
        """Return the sums of values of the units over the bins of the level with ``2**depth``."""
        if len(self) == 2**self.depth:  # the units are the bins of the finest level
            return values if depth == self.depth else values.reshape(len(values), 2**depth, -1).sum(axis=-1)
        return total(self.bin >> (self.depth - depth), values, 2**depth)


def total(place: IntArray, values: FloatArray, n_bins: int) -> FloatArray:
    """Return the sums of values over bins; `place` is the bin of each value, in each of the samples."""
    if values.size == place.size == values.shape[-1]:  # one sample
        sums = np.bincount(place.ravel(), values.ravel(), n_bins)
    else:
        place, values = np.broadcast_arrays(place, values)
        place = place + n_bins * np.arange(len(values))[:, np.newaxis]
        sums = np.bincount(place.ravel(), values.ravel(), len(values) * n_bins)
    return sums.astype(np.float64, copy=False).reshape(*values.shape[:-1], n_bins)


def sums_of_runs(
    start: IntArray, n: int, columns: Callable[[slice], Sequence[FloatArray]]
) -> list[FloatArray]:
    """Return the sums of columns of n rows over runs of these, which begin at `start`.

    `columns` makes those of some of the rows: of so many at once that they fit into the cache of a processor.
    """
    step = max(1, const.PIECE_ROWS * len(start) // n)
    pieces = []
    for first in range(0, len(start), step):
        begin = start[first : first + step]
        end = start[first + step] if first + step < len(start) else n
        pieces.append([np.add.reduceat(one, begin - begin[0]) for one in columns(slice(begin[0], end))])
    return [np.concatenate(sums) for sums in zip(*pieces, strict=True)]


def over(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return a ratio, or 0 where the denominator is 0."""
    positive = below > 0
    if positive.all():
        return np.asarray(above / below)
    return np.divide(
        above, below, out=np.zeros(np.broadcast_shapes(above.shape, below.shape)), where=positive
    )


def first_of_runs(place: IntArray) -> IntArray:
    """Return where values that differ from the one before begin."""
    return np.concatenate([[0], (place[1:] != place[:-1]).nonzero()[0] + 1])


def place_of(rank: FloatArray, score: FloatArray, n_bins: int | FloatArray) -> IntArray:
    """Return the bins of scores with ranks u, among bins of equal mass."""
    scaled = rank * n_bins
    place = scaled.astype(np.intp)
    place -= (place == scaled) & _below_its_edge(rank, score)
    return place


def _below_its_edge(rank: FloatArray, score: FloatArray) -> BoolArray:
    """Return whether a score that is exactly on an edge lies in the bin below it; 1/2 goes towards the middle."""
    return np.asarray((score < 0.5) | ((score == 0.5) & (rank >= 0.5)))


def hardly_sparse(n_entries: int, shape: tuple[int, ...]) -> bool:
    """Return whether products are quicker if a matrix is dense."""
    return n_entries >= const.SPARSE_SHARE * math.prod(shape)


def sum_matrices(row: IntArray, column: IntArray, shape: tuple[int, int], *values: FloatArray) -> list[Any]:
    """Return the sums of each of several values by row and column as matrices, dense if they are hardly sparse."""
    if not hardly_sparse(len(row), shape):
        return [scipy.sparse.csr_array((one, (row, column)), shape=shape) for one in values]
    place = row * shape[1] + column
    return [total(place, one, math.prod(shape)).reshape(shape) for one in values]


def gram(matrix: scipy.sparse.csr_array | FloatArray) -> FloatArray:
    """Return the products of all pairs of columns of a matrix; one that is hardly sparse becomes dense first."""
    if isinstance(matrix, np.ndarray):
        return np.asarray(matrix.T @ matrix)
    n_rows, n_columns = matrix.shape
    if not hardly_sparse(matrix.nnz, matrix.shape):
        return np.asarray((matrix.T @ matrix).toarray())
    products = np.zeros((n_columns, n_columns))
    for first in range(0, n_rows, const.DENSE_ROWS):
        dense = matrix[first : first + const.DENSE_ROWS].toarray()
        products += dense.T @ dense
    return products


def make_units(sample: Sample) -> Units:
    """Return the units of a sample, with the nested bins that its size allows: its groups, or its finest bins."""
    n_groups, size = len(sample), sample.effective_size
    depth = _depth(min(size, sample.n**2 / float(sample.weight2.sum())))
    depth = min(depth, max(2, math.ceil(math.log2(n_groups)) + 1))
    if sample.clusters is not None:
        return _units_of_clusters(sample, sample.clusters, depth)
    discrete = n_groups <= size / 2
    if discrete:
        cells = _in_cells(sample)
        discrete = _n_scores(cells, size / sample.n) <= size / 2
        if discrete and len(cells) < n_groups:
            return _units_of_cells(sample, cells)
    if not discrete and n_groups > const.MOST_SINGLE_SCORES:
        return _units_of_bins(sample, depth)
    units = _units_of_groups(sample, depth)
    saturated = discrete and depth >= 2 and len(first_of_runs(units.bin[0])) < n_groups
    return replace(units, saturated=True) if saturated else units


def _ranks(sample: Sample) -> FloatArray:
    """Return the middle of the ranks of each group, divided by N."""
    size = sample.effective_size
    weight = sample.count * (size / sample.n)
    return np.asarray((np.cumsum(weight) - weight / 2) / size)


def _units_of_groups(sample: Sample, depth: int) -> Units:
    rank = _ranks(sample)
    place = np.minimum(place_of(rank, sample.score, 2**depth), 2**depth - 1)
    return _make(
        sample,
        sample.count,
        _columns(sample, slice(None)),
        score=sample.score[np.newaxis],
        bin=place[np.newaxis],
        depth=depth,
        rank=rank[np.newaxis],
    )


def _units_of_clusters(sample: Sample, clusters: Clusters, depth: int) -> Units:
    depth = min(depth, _depth_for_clusters(clusters, _ranks(sample), sample.score))
    cluster, n_clusters = in_blocks(clusters.cluster, clusters.n_clusters, clusters.n_weightless)
    scale = sample.effective_size / sample.n
    table = ClusterUnits(
        cluster=cluster,
        unit=clusters.group,
        weight=clusters.weight * scale,
        residual=clusters.residual(sample.score) * scale,
        n_clusters=n_clusters,
        effective_number=clusters.effective_number,
    )
    return replace(_units_of_groups(sample, depth), clusters=table)


def _units_of_bins(sample: Sample, depth: int) -> Units:
    """Return the bins of the finest level as units."""
    place, start = _bins(sample, depth)
    positives, residual, *rest = sums_of_runs(start, len(sample), partial(_columns, sample))
    weight = sample.rows_between(start, run_ends(start, len(sample)))
    return _make(
        sample,
        weight,
        [positives, residual, *rest],
        score=((residual + positives) / weight)[np.newaxis],
        bin=place[np.newaxis],
        depth=depth,
        start=start,
    )


def _bins(sample: Sample, depth: int) -> tuple[IntArray, IntArray]:
    """Return which of ``2**depth`` bins of equal mass are not empty, and the first group of each."""
    edge = np.arange(2**depth) * (sample.n / 2**depth)
    if sample.one_row_each:
        at: IntArray = edge.astype(np.intp)
    else:
        at = sample.cumulative_count[1:].searchsorted(edge, "right")
    middle = sample.rows_between(np.zeros_like(at), at) + sample.count[at] / 2
    below = (middle < edge) | ((middle == edge) & _below_its_edge(edge / sample.n, sample.score[at]))
    start = at + below
    filled = np.diff(start, append=len(sample)) > 0
    return filled.nonzero()[0], start[filled]


def _columns(sample: Sample, groups: slice) -> list[FloatArray]:
    """Return p, R and f (R_2 - p_2) of groups; with sampling weights also m_2, p_2, R_2 and the squares of labels; V.

    The sum of (f - y)^2 is that of f (R_2 - p_2) and of the squared labels.
    """
    score, positives = sample.score[groups], sample.positives[groups]
    residual = sample.score_sum[groups] - positives
    if sample.counted:
        squares, excess = [], residual - positives
    else:
        weight2, positives2 = sample.weight2[groups], sample.positives2[groups]
        residual2 = score * weight2 - positives2
        squares, excess = [weight2, positives2, residual2, sample.labels2[groups]], residual2 - positives2
    excess *= score
    noise = [] if sample.noise is None else [sample.noise[groups]]
    return [positives, residual, excess, *squares, *noise]


def _make(sample: Sample, weight: FloatArray, columns: Sequence[FloatArray], **rest: Any) -> Units:
    """Return units from the sums of `_columns`, with weights that sum to the effective size."""
    size = float(sample.effective_size)
    scale = size / sample.n
    columns = [one[np.newaxis] for one in (weight, *columns)]
    if scale != 1:
        columns = [scale * one for one in columns[:3]] + [scale**2 * one for one in columns[3:]]
    weight, positives, residual, excess, *squares = columns
    weight2, positives2, residual_weight2, labels2 = squares[:4] or (weight, positives, residual, positives)
    return Units(
        size=size,
        weight=weight,
        weight2=weight2,
        residual=residual,
        residual2=excess + labels2,
        residual_weight2=residual_weight2,
        positives2=positives2,
        noise=squares[4] if len(squares) > 4 else None,
        **rest,
    )


def _in_cells(sample: Sample) -> Sample:
    """Return the sample as `Cells`, or as it is if its scores are so far apart that each has a cell of its own."""
    if sample.noise is not None:
        return sample
    if not isinstance(sample, Cells) and np.diff(sample.score).min(initial=1.0) > LARGEST_CELL:
        return sample
    return Cells.from_sample(sample)


def _n_scores(sample: Sample, scale: float) -> float:
    """Return the number of distinct scores; in a cell of several scores every row counts as one.

    So it is the same for rows and for their cells, and both or neither have a level of distinct scores.
    """
    if not isinstance(sample, Cells):
        return len(sample)
    return float(np.where(sample.end > sample.score, sample.count * scale, 1.0).sum())


def _units_of_cells(sample: Sample, cells: Sample) -> Units:
    """Return the units of the cells of a sample, which are those of its own groups."""
    units, start = make_units(cells), first_of_runs(cell_of(sample.score))
    return replace(units, start=start if units.start is None else start[units.start])


def _depth(size: float) -> int:
    """Return the finest level at which bins hold enough rows on average; 0, one bin, if there are very few rows."""
    return max(math.floor(math.log2(max(size, 1) / const.ROWS_PER_BIN)), 0)


def units_of_samples(score: FloatArray, label: FloatArray) -> Units | None:
    """Return the rows of several samples, sorted by score, as units that can be analysed together; None if they cannot.

    Rows with the same score count as units of their own, which changes no sum: they stand at the middle of their ranks.
    They cannot if samples are large, or if scores repeat so often that some levels may be missing or needed.
    """
    n = score.shape[1]
    depth = _depth(n)
    new = np.ones(score.shape, dtype=np.bool_)
    np.not_equal(score[:, 1:], score[:, :-1], out=new[:, 1:])
    if depth < 2 or n > const.MOST_SINGLE_SCORES or np.count_nonzero(new, axis=1).min() <= n / 2:
        return None
    place = np.arange(n)
    first = np.maximum.accumulate(np.where(new, place, 0), axis=1)
    new[:, :-1], new[:, -1] = new[:, 1:].copy(), True  # which are the last of their score
    last = np.minimum.accumulate(np.where(new, place, n)[:, ::-1], axis=1)[:, ::-1]
    rank, residual, one = (first + last + 1) / (2 * n), score - label, np.ones((1, n))
    return Units(
        size=float(n),
        score=score,
        weight=one,
        weight2=one,
        residual=residual,
        residual2=residual**2,
        residual_weight2=residual,
        positives2=label,
        bin=place_of(rank, score, 2**depth),
        depth=depth,
        rank=rank,
    )


def _depth_for_clusters(clusters: Clusters, rank: FloatArray, score: FloatArray) -> int:
    """Return the finest level at which bins hold rows of six different clusters, on average."""
    most = 2**const.MOST_LEVELS_CLUSTERED
    if clusters.n_clusters >= const.ROWS_PER_BIN * most:
        return const.MOST_LEVELS_CLUSTERED
    place = np.minimum(place_of(rank, score, most), most - 1).astype(np.int16)
    order, bounds = clusters.by_cluster
    place = place[clusters.group][order]
    # By the bits in which the bin of an entry differs from the one before; the highest is the level that separates them
    change = place[1:] ^ place[:-1]
    change[bounds[1:-1] - 1] = 0  # not of the same cluster
    changes = np.bincount(change, minlength=most)
    n_clusters, depth = clusters.n_clusters, 1
    while depth < const.MOST_LEVELS_CLUSTERED:
        pairs = n_clusters + changes[most >> (depth + 1) :].sum()
        if pairs < const.ROWS_PER_BIN * 2 ** (depth + 1):
            break
        depth += 1
    return depth


def in_blocks(cluster: IntArray, n_clusters: int, n_single: int = 0) -> tuple[IntArray, int]:
    """Return clusters, or blocks of whole clusters if these are many, and their number; the last `n_single` stay."""
    n_merged = n_clusters - n_single
    if n_merged <= 2 * const.MOST_BLOCKS:
        return cluster, n_clusters
    block = cluster % const.MOST_BLOCKS
    if n_single:
        block = np.where(cluster < n_merged, block, cluster - n_merged + const.MOST_BLOCKS)
    return block, const.MOST_BLOCKS + n_single
