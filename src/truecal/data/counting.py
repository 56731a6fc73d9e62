"""Rows that are counted instead of sorted, for estimators that need only their sums over bins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.runs import IntArray
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample

#: Labels and scores of rows.
Columns = tuple[NDArray[Any], NDArray[Any]]

#: Rows counted in one step; its arrays fit into the cache of a processor.
STEP = 1 << 15

#: A score is rounded to a multiple of 2^-26, and what is left to one of 2^-53. Sums of such parts are exact for so many
#: rows: their order cannot matter.
_COARSE, _FINE, MOST_COUNTED_ROWS = 2.0**-26, 2.0**-53, 1 << 26


class Counting(ABC):
    """A way to count rows in bins, which gives an estimator the same bins as sorted rows do."""

    @abstractmethod
    def count(self, label: NDArray[Any], score: NDArray[Any], target: str) -> Sample | None:
        """Return a sample whose groups lie within bins, or None if sorting is quicker, or counting not exact.

        Parameters
        ----------
        label : ndarray of shape (n,)
            Labels, 0 and 1.
        score : ndarray of shape (n,)
            Scores in [0, 1].
        target : str
            What the score is the probability of, in words.
        """

    def count_classes(
        self, column: NDArray[Any], proba: NDArray[Any], targets: Sequence[str]
    ) -> Iterable[Sample] | None:
        """Return the samples of all classes, each against the rest, or None if they are not counted together.

        Parameters
        ----------
        column : ndarray of shape (n,)
            The class of each row.
        proba : ndarray of shape (n, K)
            Probabilities of the classes.
        targets : sequence of str
            What the scores of each class are probabilities of, in words.
        """
        return None


class CellSums:
    """Sums by cell that are exact for any order of rows: rows, and their scores in a coarse and a fine part."""

    def __init__(self, n_cells: int) -> None:
        self.table = np.zeros((3, n_cells))

    def add(self, cell: IntArray, score: FloatArray) -> None:
        """Add rows; `cell` is the number of the cell of each."""
        rows, coarse, fine = self.table
        rows += np.bincount(cell, minlength=len(rows))
        part = rounded(score, _COARSE)
        coarse += np.bincount(cell, part, len(rows))
        np.subtract(score, part, out=part)
        fine += np.bincount(cell, rounded(part, _FINE, out=part), len(rows))

    def add_labelled(self, cell: IntArray, label: NDArray[Any], score: FloatArray) -> None:
        """Add rows to cells that are split by label: cell c has the numbers 2c and 2c + 1."""
        cell <<= 1
        cell |= label.astype(np.intp, copy=False)
        self.add(cell, score)

    def by_label(self) -> tuple[FloatArray, FloatArray]:
        """Return the table of cells that were split by label, and the positive labels of each cell."""
        table = self.table.reshape(3, -1, 2)
        return table.sum(axis=2), table[0, :, 1]


def rounded(values: FloatArray, unit: float, out: FloatArray | None = None) -> FloatArray:
    """Return multiples of a power of two; values must be smaller than 2^51 times this unit."""
    constant = 1.5 * 2.0**52 * unit  # its last binary digit is the unit
    multiple = np.add(values, constant, out=out)
    multiple -= constant
    return np.asarray(multiple)


def mean_in_cell(table: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return mean scores, which rounding must not move out of their cells [lower, upper)."""
    rows, coarse, fine = table
    return np.asarray(np.clip((coarse + fine) / rows, lower, np.nextafter(upper, 0)))
