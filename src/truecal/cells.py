"""Cells: a summary of fixed size, for data that does not fit in memory, arrives in parts, or is elsewhere.

Scores fall into at most 2^16 cells, and each cell keeps the number of its rows, the sum of their scores and
the sum of their labels. Such sums add up, so that parts can be summarised anywhere, in any order, and merged.

The grid is even in the logit, log(p / (1 - p)), between -37 and 37, which is where float64 ends. Models keep
over half of their rows within 10^-5 of 1, and an even grid in p would put them all into one cell. Scores of
exactly 0 and 1 have cells of their own. In p a cell is p (1 - p) * 0.0011 wide: at most 0.00028, at p = 1/2.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.sample import FloatArray, Sample

#: The number of cells; the first and the last hold scores of exactly 0 and 1.
N_CELLS = 1 << 16
#: The logit at which the grid ends: 1 / (1 + e^37) is below the distance from 1 to the float before it.
LOGIT_LIMIT = 37.0
#: Cells for each unit of the logit. The grid is `1 + floor((logit + LOGIT_LIMIT) * CELLS_PER_LOGIT)`.
CELLS_PER_LOGIT = (N_CELLS - 2) / (2 * LOGIT_LIMIT)

_FILE_VERSION = 1


def cell_of(score: FloatArray) -> NDArray[np.int64]:
    """Return the number of the cell, from 0 to `N_CELLS` - 1, of each score.

    Examples
    --------
    >>> cell_of(np.array([0.0, 1e-300, 0.5, 1 - 2**-53, 1.0])).tolist()
    [0, 1, 32768, 65301, 65535]
    """
    with np.errstate(divide="ignore"):
        logit = np.log(score) - np.log1p(-score)
    inner = np.floor((logit + LOGIT_LIMIT) * CELLS_PER_LOGIT).clip(0, N_CELLS - 3)
    cell: NDArray[np.int64] = inner.astype(np.int64) + 1
    cell[score == 0] = 0
    cell[score == 1] = N_CELLS - 1
    return cell


@dataclass(frozen=True, eq=False, repr=False)
class Cells(Sample):
    """A sample whose groups are cells of scores; `score` is the mean score of a cell's rows.

    It is a `Sample` to every estimator, test, interval and picture, and can be merged and stored as well.
    Merging gives exactly the counts and labels of the whole, and its mean scores but for rounding.

    Attributes
    ----------
    cell : ndarray of shape (n_groups,)
        Numbers of the cells that are not empty, ascending.

    Examples
    --------
    >>> from truecal.readers import read
    >>> one = Cells.from_sample(*read([0, 1], [0.2, 0.9]))
    >>> two = Cells.from_sample(*read([1, 1], [0.2, 1.0]))
    >>> whole = one.merge(two)
    >>> whole.score, whole.count, whole.positives
    (array([0.2, 0.9, 1. ]), array([2., 1., 1.]), array([1., 1., 1.]))
    """

    cell: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def from_sums(
        cls,
        cell: NDArray[Any],
        count: NDArray[Any],
        score_sum: NDArray[Any],
        positives: NDArray[Any],
        *,
        dtype: np.dtype[Any] | None = None,
        target: str = "P(y = 1)",
    ) -> Cells:
        """Make cells from sums in any order; sums of the same cell are added up."""
        index = np.asarray(cell, dtype=np.int64)
        found, place = np.unique(index, return_inverse=True)
        counts, scores, labels = (
            np.bincount(place, np.asarray(values, dtype=np.float64), len(found)).astype(np.float64)
            for values in (count, score_sum, positives)
        )
        filled = counts > 0
        return cls(
            score=np.clip(scores[filled] / counts[filled], 0.0, 1.0),
            count=counts[filled],
            positives=np.minimum(labels[filled], counts[filled]),
            dtype=np.dtype(np.float64) if dtype is None else dtype,
            target=target,
            cell=found[filled],
        )

    @classmethod
    def from_sample(cls, sample: Sample) -> Cells:
        """Reduce the groups of a sample to cells."""
        return cls.from_sums(
            cell_of(sample.score),
            sample.count,
            sample.score * sample.count,
            sample.positives,
            dtype=sample.dtype,
            target=sample.target,
        )

    def merge(self, *others: Cells) -> Cells:
        """Return the cells of this and other parts together; the order does not matter."""
        parts = (self, *others)
        for part in others:
            if part.target != self.target:
                raise ValueError(f"cells of {part.target} cannot be merged with cells of {self.target}.")
        return Cells.from_sums(
            np.concatenate([part.cell for part in parts]),
            np.concatenate([part.count for part in parts]),
            np.concatenate([part.score * part.count for part in parts]),
            np.concatenate([part.positives for part in parts]),
            # Edges are compared in the finest type that any part had.
            dtype=reduce(np.promote_types, (part.dtype for part in parts)),
            target=self.target,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Cells, (self.score, self.count, self.positives, self.dtype, self.target, self.cell)

    def save(self, path: str | Path) -> None:
        """Write the cells to a file, whole or not at all."""
        path = Path(path)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as file:
                np.savez_compressed(
                    file,
                    version=_FILE_VERSION,
                    cell=self.cell.astype(np.uint16),
                    count=self.count,
                    score=self.score,
                    positives=self.positives,
                    dtype=self.dtype.str,
                    target=self.target,
                )
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: str | Path) -> Cells:
        """Read a file that `save` wrote."""
        path = Path(path)
        try:
            with np.load(path, allow_pickle=False) as file:
                content = {name: file[name] for name in file.files}
            version = int(content["version"])
            if version > _FILE_VERSION:
                raise ValueError(f"it was written by a later truecal (version {version} of the layout)")
            return cls(
                score=content["score"],
                count=content["count"],
                positives=content["positives"],
                dtype=np.dtype(str(content["dtype"])),
                target=str(content["target"]),
                cell=content["cell"].astype(np.int64),
            )
        except FileNotFoundError:
            raise
        except Exception as error:
            raise ValueError(f"{path} is not a file of cells: {error}.") from error


def merge_all(parts: Iterable[Cells]) -> Cells:
    """Merge any number of cells, at least one."""
    first, *others = parts
    return first.merge(*others)
