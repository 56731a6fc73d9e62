r"""What rows say about each alternative.

The logarithms of likelihood ratios add up over rows. With r constant in a cell with middle :math:`p_0`,

.. math::

    y \log r - \log(1 + p\,(r - 1)) \ge y \log r - \log m - (p - p_0)\,\frac{r - 1}m , \qquad m = 1 + p_0\,(r - 1) ,

since the logarithm is concave. The right-hand side is used: it needs only the number of rows, of positive labels and
the sum of scores of each cell, and its expected exponential is at most 1. What is lost is about 1e-6 of the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.inference.monitor.alternatives import (
    CELL_EDGES,
    CELL_SCORES,
    DEPTH,
    EXCESS,
    N_CELLS,
    N_CURVES,
    N_LEAVES,
    SHIFTS,
    cells_of,
)


def _tables() -> tuple[FloatArray, FloatArray]:
    """Return factors of rows, labels and scores of each cell, and the squared sensitivities of the ratios."""
    mean = 1 + CELL_SCORES[:, np.newaxis] * EXCESS
    slope = EXCESS / mean
    factors = np.stack([CELL_SCORES[:, np.newaxis] * slope - np.log(mean), np.log1p(EXCESS), -slope])
    # The largest in the cell, so that an allowed error cannot contribute more than is taken off for it.
    ends = [EXCESS / (1 + edge[:, np.newaxis] * EXCESS) for edge in (CELL_EDGES[:-1], CELL_EDGES[1:])]
    return factors, np.square(np.maximum(*np.abs(ends)))


def _by_leaf(table: FloatArray) -> FloatArray:
    """Return the part of the shifts of a table of shape (k, N_CELLS, ...), as one matrix for each leaf."""
    parts = table[:, :, N_CURVES:].reshape(len(table), N_LEAVES, -1, len(SHIFTS))
    return np.ascontiguousarray(np.moveaxis(parts, 1, 0).reshape(N_LEAVES, -1, len(SHIFTS)))


_FACTORS, _SQUARES = _tables()
_RATIO_TABLES = np.ascontiguousarray(_FACTORS[:, :, :N_CURVES].reshape(-1, N_CURVES)), _by_leaf(_FACTORS)
_SQUARE_TABLES = np.ascontiguousarray(_SQUARES[:, :N_CURVES]), _by_leaf(_SQUARES[np.newaxis])


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a batch says about each alternative.

    Attributes
    ----------
    log_ratio : ndarray of shape (..., N_ALTERNATIVES)
        Sum of the logarithms of the likelihood ratios.
    squares : ndarray of shape (..., N_ALTERNATIVES)
        Sum of the squared sensitivities of the ratios to an error of the score, for null hypotheses that allow one.
    rows, units : float
        Number of rows, and of independent units: clusters, or rows.
    independent : bool
        Whether each row is a unit.
    """

    log_ratio: FloatArray
    squares: FloatArray
    rows: float
    units: float
    independent: bool = True


def tally(score: FloatArray, count: FloatArray, positives: FloatArray) -> FloatArray:
    """Return the numbers of rows, of positive labels and the sums of scores of each cell.

    Parameters
    ----------
    score, count, positives : ndarray of shape (n,)
        Scores in any order, float64; number of rows, and of those with a positive label, at each.

    Returns
    -------
    ndarray of shape (3, N_CELLS)
    """
    cell = cells_of(score)
    return np.stack([np.bincount(cell, column, N_CELLS) for column in (count, positives, count * score)])


def weigh(cells: FloatArray, rows: float | None = None) -> Evidence:
    """Return the evidence of independent rows.

    Parameters
    ----------
    cells : ndarray of shape (3, N_CELLS), or (n_streams, 3, N_CELLS)
        What `tally` gives, of one batch or of a batch for each of many streams.
    rows : float, optional
        Number of rows of a batch; by default that of the only one.

    Examples
    --------
    >>> found = weigh(tally(np.array([0.3]), np.array([100.0]), np.array([50.0])))
    >>> best = found.log_ratio.argmax()
    >>> SHIFTS[(best - N_CURVES) % len(SHIFTS)]
    np.float64(0.8)
    """
    total = float(cells[..., 0, :].sum()) if rows is None else rows
    squares = _apply(cells[..., :1, :], *_SQUARE_TABLES)
    return Evidence(_apply(cells, *_RATIO_TABLES), squares, total, total)


def _apply(cells: FloatArray, curves: FloatArray, shifts: FloatArray) -> FloatArray:
    """Return the sums over cells of tables: over all cells for curves, and over those of each node for shifts."""
    leading, columns = cells.shape[:-2], cells.shape[-2]
    flat = cells.reshape(-1, columns * N_CELLS)
    parts = np.moveaxis(cells.reshape(len(flat), columns, N_LEAVES, -1), 2, 0)
    leaves = np.moveaxis(parts.reshape(N_LEAVES, len(flat), -1) @ shifts, 0, 1)
    both = [flat @ curves, _sum_nodes(leaves).reshape(len(flat), -1)]
    return np.concatenate(both, axis=1).reshape(*leading, -1)


def weigh_clusters(
    score: FloatArray, count: FloatArray, positives: FloatArray, cluster: NDArray[np.intp]
) -> Evidence:
    """Return the evidence of clusters, whose rows may depend on each other in any way.

    The factor of a cluster is the mean of the likelihood ratios of its rows. Each has expectation 1, so their mean
    has it too.

    Parameters
    ----------
    score, count, positives : ndarray of shape (n,)
        Number of rows and of positive labels at each score of each cluster.
    cluster : ndarray of shape (n,)
        Number of the cluster.

    Examples
    --------
    >>> score, one = np.array([0.3, 0.6]), np.ones(2)
    >>> alone = weigh_clusters(score, one, one, np.array([0, 1])).log_ratio
    >>> bool(np.allclose(alone, weigh(tally(score, one, one)).log_ratio, atol=1e-5))
    True
    """
    cell = cells_of(score)
    order = np.lexsort((cell, cluster))
    p, n, k = (part[order, np.newaxis] for part in (score, count, positives))
    cell, cluster = cell[order], cluster[order]
    first = np.flatnonzero(np.diff(cluster, prepend=-1))
    size = np.add.reduceat(n, first)
    owner = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(p))))
    excess = EXCESS[cell]
    gain = (k * excess + n) / (1 + p * excess) - n
    curves = np.log1p(np.add.reduceat(gain[:, :N_CURVES], first) / size).sum(axis=0)
    tables = []
    for depth in range(DEPTH + 1):
        node = cell // (N_CELLS >> depth)
        part = np.flatnonzero(np.diff(owner * N_LEAVES + node, prepend=-1))
        factor = np.log1p(np.add.reduceat(gain[:, N_CURVES:], part) / size[owner[part]])
        table = np.zeros((1 << depth, len(SHIFTS)))
        np.add.at(table, node[part], factor)
        tables.append(table)
    # The mean of d c over the rows of a cluster is at most the product of their root mean squares.
    share: FloatArray = np.bincount(cell, (n / size[owner])[:, 0], N_CELLS).astype(np.float64)
    return Evidence(
        np.concatenate([curves, np.concatenate(tables).ravel()]),
        _apply(share[np.newaxis], *_SQUARE_TABLES),
        float(count.sum()),
        float(len(first)),
        independent=False,
    )


def _sum_nodes(leaf: FloatArray) -> FloatArray:
    """Return the sums over all dyadic intervals, the coarsest first, from those over the finest."""
    tables = [leaf]
    while tables[-1].shape[-2] > 1:
        finer = tables[-1]
        tables.append(finer[..., 0::2, :] + finer[..., 1::2, :])
    return np.concatenate(tables[::-1], axis=-2)
