"""Cells: a summary of fixed size, for data that does not fit in memory, arrives in parts, or is elsewhere.

Scores fall into at most 2^16 cells. A cell keeps the number of its rows, the sums of their scores and labels,
and their smallest score. All of these can be added up (or compared), so parts are summarised anywhere, in any
order, and merged.

Two grids lie over each other, and a cell ends where either has a line.

- **Even in the score**, 25,200 steps. That is 2^4 * 3^2 * 5^2 * 7, so 0.1, 0.25, 1/15 and every edge of
  10, 12, 15, 20, 25, 30, 50 or 100 bins begin a cell: equal-width bins cut none.
- **Even in the logit**, log(p / (1 - p)), 40,334 steps between -37 and 37, which is where float64 ends. Models
  keep over half of their rows within 10^-5 of 1, where an even grid has one cell for all of them.

Scores of exactly 0 and 1 have cells of their own. A cell is at most 0.00004 wide in the score, and at most
0.0018 in the logit. Floor, log and the four operations find it, which every engine has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.files import whole_file
from truecal._lib.numeric import expit
from truecal._lib.types import FloatArray
from truecal.data.clusters import Clusters, make_clusters, merge_clusters
from truecal.data.sample import Sample
from truecal.exceptions import InputError

CellArray = NDArray[np.int64]

#: The number of cells; the first and the last hold scores of exactly 0 and 1.
N_CELLS = 1 << 16
#: Steps of the grid that is even in the score, and of the one that is even in the logit.
SCORE_STEPS = 25_200
LOGIT_STEPS = N_CELLS - 2 - SCORE_STEPS
#: The logit at which the grid ends: 1 / (1 + e^37) is below the distance from 1 to the float before it.
LOGIT_LIMIT = 37.0

#: Formula for the cell of a score p between 0 and 1, in NumPy and in each engine:
#: ``1 + floor(p * SCORE_SCALE) + floor(log(p / (1 - p)) * LOGIT_SCALE + LOGIT_SHIFT)``, p clipped to these limits.
#: A float32 of 0.7 is less than 0.7 by one part in 2^24 at most; the scale makes up for that.
SCORE_SCALE = SCORE_STEPS * (1 + 2.0**-23)
LOGIT_SCALE = LOGIT_STEPS / (2 * LOGIT_LIMIT)
LOGIT_SHIFT = LOGIT_STEPS / 2
LEAST_INSIDE, GREATEST_INSIDE = 8.54e-17, 1 - 2.0**-53

#: No cell is wider: scores further apart are in different cells.
LARGEST_CELL = 1 / SCORE_STEPS

_FILE_VERSION = 1
_COLUMNS = ("score", "count", "positives", "lower")
SQUARES = ("squares", "positive_squares")
#: Means this close to the smallest score are that score: relative to it, and to the width of the cell, as sums of
#: very many equal scores may be less exact.
_ROUNDING, _SAME = 2e-15, 1e-4


def cell_of(score: FloatArray) -> CellArray:
    """Return the number of the cell, from 0 to `N_CELLS` - 1, of each score.

    Examples
    --------
    >>> cell_of(np.array([0.0, 1e-300, 0.5, 0.7, 1 - 2**-53, 1.0])).tolist()
    [0, 1, 32768, 38269, 65391, 65535]
    """
    by_score, by_logit = _steps(score)
    return _number(score, by_score + by_logit)


def _steps(score: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return where scores lie on the two grids; 0 and 1 count as the nearest score that is on them."""
    inside = np.clip(score, LEAST_INSIDE, GREATEST_INSIDE)
    logit = np.log(inside / (1 - inside))
    return np.floor(inside * SCORE_SCALE), np.floor(logit * LOGIT_SCALE + LOGIT_SHIFT)


def _number(score: FloatArray, step: FloatArray) -> CellArray:
    cell: CellArray = step.astype(np.int64) + 1
    cell[score == 0] = 0
    cell[score == 1] = N_CELLS - 1
    return cell


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Cells(Sample):
    """A sample whose groups are cells of scores; `score` is the mean score of a cell's rows.

    It is a `Sample` to every estimator, test, interval and picture, and can be merged and stored as well.
    Merging gives exactly the counts and labels of the whole, and its mean scores but for rounding.

    Attributes
    ----------
    score, count, positives, dtype, target
        The same as in `Sample`.
    cell : ndarray of shape (n_groups,)
        Numbers of the cells that are not empty, ascending.
    lower : ndarray of shape (n_groups,)
        Smallest score in each cell.

    See Also
    --------
    truecal.summarize : cells from a data frame of any engine.

    Examples
    --------
    >>> one = Cells.from_sample(Sample.from_predictions([0, 1], [0.2, 0.9]))
    >>> two = Cells.from_sample(Sample.from_predictions([1, 1], [0.2, 1.0]))
    >>> whole = one.merge(two)
    >>> whole.score, whole.count, whole.positives
    (array([0.2, 0.9, 1. ]), array([2., 1., 1.]), array([1., 1., 1.]))
    >>> whole
    Cells(n=4, cells=3, target='P(y = 1)')
    """

    cell: CellArray
    lower: FloatArray
    _read_only = ("score", "count", "positives", "cell", "lower")

    def __repr__(self) -> str:
        return f"Cells(n={self.n:.10g}, cells={len(self)}, target={self.target!r})"

    @property
    def exact(self) -> bool:
        """Whether every cell holds one score only, so nothing was lost."""
        return bool((self.end == self.score).all())

    @property
    def largest_variance(self) -> FloatArray:
        """Largest variance that scores within each cell can have, given their mean (Bhatia and Davis 2000)."""
        return (self.score - self.lower) * (self.end - self.score)

    # -- Making and merging ---------------------------------------------------------------------------

    @classmethod
    def from_sums(
        cls,
        cell: NDArray[Any],
        *,
        count: NDArray[Any],
        score_sum: NDArray[Any],
        positives: NDArray[Any],
        lower: NDArray[Any],
        squares: NDArray[Any] | None = None,
        positive_squares: NDArray[Any] | None = None,
        dtype: np.dtype[Any] | None = None,
        target: str = "P(y = 1)",
    ) -> Cells:
        """Make cells from sums in any order; those of the same cell are added up.

        Parameters
        ----------
        cell : ndarray of shape (n,)
            Numbers of cells, as `cell_of` gives them.
        count, score_sum, positives : ndarray of shape (n,)
            Number (or weight) of rows, sum of their scores, sum of their labels.
        lower : ndarray of shape (n,)
            Smallest score.
        squares, positive_squares : ndarray of shape (n,), optional
            Sum of the squared weights, and of those of positive rows, where weights are not counts.
        dtype : numpy.dtype, optional
            The type that the scores came in; float64 by default.
        target : str
            What the score is the probability of, in words.

        Returns
        -------
        Cells
        """
        cell = np.asarray(cell)
        given = (count, score_sum, positives, lower, squares, positive_squares)
        parts = [np.asarray(part, dtype=np.float64) for part in given if part is not None]
        filled = parts[0] > 0
        if not filled.all():
            cell, parts = cell[filled], [part[filled] for part in parts]
        if (cell[1:] < cell[:-1]).any():
            order = np.argsort(cell.astype(np.uint16), kind="stable")  # 16 bits are sorted in linear time
            cell, parts = cell[order], [part[order] for part in parts]
        start = np.flatnonzero(np.diff(cell.astype(np.int64), prepend=-1))
        return cls(
            **_merged(parts, start), dtype=dtype or np.dtype(np.float64), target=target, cell=cell[start]
        )

    @classmethod
    def from_sample(cls, sample: Sample, keys: NDArray[np.uint64] | None = None) -> Cells:
        """Reduce the groups of a sample to cells.

        Parameters
        ----------
        sample : Sample
            The predictions; cells are returned as they are.
        keys : ndarray of uint64, optional
            What each of its clusters is known by in other parts, which these can then be merged with.

        Returns
        -------
        Cells
        """
        if isinstance(sample, Cells):
            return sample
        if sample.pseudo is not None:
            raise InputError(
                f"holds {sample.label_kind}, and cells hold true labels, 0 and 1", argument="y_true"
            )
        cell, sums = cell_of(sample.score), _sums_of(sample, weighted=not sample.counted)
        cells = cls.from_sums(cell, **sums, lower=sample.score, dtype=sample.dtype, target=sample.target)
        table, known = sample.clusters, keys is not None
        if table is None:
            return cells
        keys = np.arange(table.n_clusters, dtype=np.uint64) if keys is None else keys
        return with_clusters(
            cells,
            keys,
            table.cluster,
            cell[table.group],
            weight=table.weight,
            scores=table.weight * sample.score[table.group],
            positives=table.positives,
            rows=table.rows,
            equal=table.equal,
            **({} if known else {"keys": None}),
        )

    def groups_of(self, cell: NDArray[Any]) -> NDArray[np.intp]:
        """Return the positions of cells of given numbers, all of which must be here."""
        position = np.zeros(N_CELLS, dtype=np.intp)
        position[self.cell] = np.arange(len(self))
        return np.asarray(position[cell])

    def merge(self, *others: Cells) -> Cells:
        """Merge these cells with those of other parts; the order does not matter.

        Parameters
        ----------
        *others : Cells
            The other parts, whose scores are probabilities of the same `target`.
        """
        if not others:
            return self
        parts = (self, *others)
        check_same_target(parts)
        weighted = any(not part.counted for part in parts)
        sums = [_sums_of(part, weighted=weighted) for part in parts]
        cells = Cells.from_sums(
            np.concatenate([part.cell for part in parts]),
            **{name: np.concatenate([each[name] for each in sums]) for name in sums[0]},
            lower=np.concatenate([part.lower for part in parts]),
            # Edges are compared in the finest type that any part had.
            dtype=reduce(np.promote_types, (part.dtype for part in parts)),
            target=self.target,
        )
        tables, groups = [part.clusters for part in parts], [cells.groups_of(part.cell) for part in parts]
        return replace(cells, clusters=merge_clusters(tables, groups))

    @property
    def end(self) -> FloatArray:
        """The score at which each cell ends; for a cell of one score that score."""
        by_score, by_logit = _steps(self.lower)
        next_logit = (by_logit + 1 - LOGIT_SHIFT) / LOGIT_SCALE
        end = np.minimum((by_score + 1) / SCORE_SCALE, expit(next_logit))
        same = self.score - self.lower <= _SAME * (end - self.lower)
        return np.where(same, self.score, np.clip(end, self.score, 1.0))

    def _columns(self) -> tuple[str, ...]:
        return _COLUMNS if self.counted else (*_COLUMNS, *SQUARES)

    # -- Files ----------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the cells to a file of at most some 2 MB, and more with clusters, whole or not at all.

        Parameters
        ----------
        path : str or Path
            The file, in NumPy's npz format whatever its name.
        """
        with whole_file(path, "wb") as file:
            np.savez_compressed(
                file,
                version=_FILE_VERSION,
                cell=self.cell.astype(np.uint16),
                dtype=self.dtype.str,
                target=self.target,
                **{name: getattr(self, name) for name in self._columns()},
                **(self.clusters.to_arrays() if self.clusters else {}),
            )

    @classmethod
    def load(cls, path: str | Path) -> Cells:
        """Read a file that `save` wrote.

        Parameters
        ----------
        path : str or Path
            The file, in NumPy's npz format.

        Returns
        -------
        Cells

        Raises
        ------
        InputError
            If it holds anything but cells, or a later truecal wrote it.
        """
        path = Path(path)
        try:
            with np.load(path, allow_pickle=False) as file:
                version = int(file["version"])
                if version != _FILE_VERSION:
                    raise ValueError(
                        f"version {version} of the layout is not known; was it written by a later truecal?"
                    )
                names = [*_COLUMNS, *(name for name in SQUARES if name in file)]
                columns: dict[str, Any] = {name: _numbers(file[name]) for name in names}
                cells = cls(
                    **columns,
                    dtype=np.dtype(str(file["dtype"])),
                    target=str(file["target"]),
                    cell=file["cell"].astype(np.int64),
                    clusters=Clusters.from_arrays(file, len(file["cell"])),
                )
            _check(cells)
        except OSError:
            raise
        except Exception as error:
            raise InputError(f"{path} is not a file of cells: {error}") from error
        return cells


def with_clusters(
    cells: Cells, keys: NDArray[np.uint64], cluster: NDArray[np.intp], cell: NDArray[Any], /, **columns: Any
) -> Cells:
    """Return cells with the sums of their clusters, which `make_clusters` makes."""
    return replace(cells, clusters=make_clusters(keys, cluster, cells.groups_of(cell), **columns))


def check_same_target(parts: Sequence[Cells]) -> None:
    """Refuse to merge scores that are probabilities of different things."""
    for part in parts:
        if part.target != parts[0].target:
            raise InputError(f"Cells of {part.target} cannot be merged with cells of {parts[0].target}")


def merge_all(parts: Iterable[Cells]) -> Cells:
    """Merge any number of cells, at least one."""
    first, *others = parts
    return first.merge(*others)


def _sums_of(sample: Sample, *, weighted: bool) -> dict[str, FloatArray]:
    """Return the sums over the rows of each group, with those of squares if there are sampling weights."""
    sums = {"count": sample.count, "score_sum": sample.score_sum, "positives": sample.positives}
    return sums | ({"squares": sample.weight2, "positive_squares": sample.positives2} if weighted else {})


def _merged(parts: list[FloatArray], start: NDArray[np.intp]) -> dict[str, Any]:
    """Add up runs of counts, sums of scores and positives, and take the mean and the smallest score of each."""
    count, score_sum, positives = (np.add.reduceat(part, start) for part in parts[:3])
    lower = np.minimum.reduceat(parts[3], start)
    squares = dict(zip(SQUARES, (np.add.reduceat(part, start) for part in parts[4:]), strict=False))
    # Rounding must not carry a mean out of its cell: scores would no longer ascend, and the mean of many times
    # 0.4 would fall below the edge at 0.4.
    mean = np.minimum(score_sum / count, np.append(np.nextafter(lower[1:], 0), 1.0))
    return {
        "score": np.where(mean <= lower * (1 + _ROUNDING), lower, mean),
        "count": count,
        "positives": np.clip(positives, 0.0, count),
        "lower": lower,
        **squares,
    }


def _numbers(array: NDArray[Any]) -> FloatArray:
    if array.dtype.kind not in "fiu":
        raise ValueError(f"a column holds {array.dtype} values instead of numbers")
    return array.astype(np.float64)


def _check(cells: Cells) -> None:
    """Refuse arrays that cannot be cells, such as those of a damaged file."""
    arrays = [cells.cell, *(getattr(cells, name) for name in cells._columns())]
    if not len(cells) or any(array.shape != (len(cells),) for array in arrays):
        raise ValueError("its columns are empty or have different lengths")
    if cells.dtype not in (np.dtype(kind) for kind in ("f2", "f4", "f8")):
        raise ValueError(f"scores of the type {cells.dtype} are not known")
    sound = (
        (np.diff(cells.cell) > 0).all()
        and (cell_of(cells.lower) == cells.cell).all()
        and np.isfinite(cells.count).all()
        and (cells.count > 0).all()
        and ((cells.positives >= 0) & (cells.positives <= cells.count)).all()
        and ((cells.lower >= 0) & (cells.lower <= cells.score)).all()
        and (np.diff(cells.score) > 0).all()
        and (cells.score <= 1).all()
    )
    if not sound:
        raise ValueError("its columns contradict each other")


#: In how many ways `cell_error` lays out the rows of the cells, and what it multiplies the largest change by. With 2
#: it held in 95% to 100% of cases, depending on the estimator.
_LAYOUTS, _SAFETY = 8, 2.0


def cell_error(cells: Cells, measure: Callable[[Sample], float]) -> float:
    """Return how far `measure` may be from its value on single rows, by random layouts of the rows within cells.

    Which label belongs to which score of a cell is not known; any order is as likely as another. Twice the
    largest change over eight such orders, always the same eight; 0 where no cell holds different scores. Not a
    bound: how often it held, over many data sets, is in the documentation.

    Examples
    --------
    >>> cells = Cells.from_sample(Sample.from_predictions([0, 1, 1], [0.2, 0.2, 0.9]))
    >>> cell_error(cells, lambda sample: sample.n)
    0.0
    """
    if cells.exact:
        return 0.0
    # Where rows lie within cells matters as much with clusters as without, and layouts do not keep them.
    cells = replace(cells, clusters=None)
    value, rng = measure(cells), np.random.default_rng(0)
    return _SAFETY * max(abs(measure(lay_out(cells, rng)) - value) for _ in range(_LAYOUTS))


def lay_out(cells: Cells, rng: np.random.Generator) -> Sample:
    """Return one way in which the rows may lie within the cells: each in up to four parts, labels at random."""
    columns = [cells.score, cells.count, cells.positives, cells.lower, cells.end]
    # Numbers for every cell, needed or not: rounding may decide whether a cell is cut, and must not decide
    # what the others get.
    first, *second = rng.standard_normal((3, len(cells)))
    halves, source = _halved(columns, first)
    is_right = np.append(False, source[1:] == source[:-1])
    quarters, quarter = _halved(halves, np.where(is_right, second[1][source], second[0][source]))
    score, count, positives, _, _ = quarters
    squares: dict[str, Any] = {}
    if not cells.counted:
        # The weights are spread alike over the parts of a cell, among its positive rows as among all.
        cell = source[quarter]
        squares["squares"] = cells.weight2[cell] * (count / cells.count[cell])
        hits = np.maximum(cells.positives[cell], np.finfo(np.float64).tiny)
        squares["positive_squares"] = cells.positives2[cell] * (positives / hits)
    return Sample(
        score=score, count=count, positives=positives, dtype=cells.dtype, target=cells.target, **squares
    )


def _halved(columns: list[FloatArray], noise: FloatArray) -> tuple[list[FloatArray], NDArray[np.intp]]:
    """Cut every cell of different scores in two: half of its rows each, and a random share of its labels.

    `columns` are score, count, positives, smallest score and end of each cell; `noise` has a normal number for each
    cell. Returns the columns of the parts, and the cell that each was cut from.
    """
    mean, rows, _, _, end = columns
    whole = bool((rows == np.floor(rows)).all())
    cut = (mean < end) & (rows > 1) if whole else mean < end
    score, count, positives, lower, upper = (column[cut] for column in columns)
    left = np.floor(count / 2) if whole else count / 2
    right = count - left

    # Scores that keep the mean: the ends for two rows, a quarter of the way in for many.
    reach = np.minimum((score - lower) * count / right, (upper - score) * count / left)
    apart = reach * count / np.maximum(2 * (count - 1), count)
    low, high = score - apart * right / count, score + apart * left / count

    # Labels fall into the halves as in a draw without replacement, in its normal approximation.
    share = positives / count
    variance = share * (1 - share) * left * right / np.maximum(count - 1, 1.0)
    if whole:
        variance = np.maximum(variance - 1 / 12, 0.0)  # what rounding to whole numbers adds
    drawn = left * share + np.sqrt(variance) * noise[cut]
    drawn = np.rint(drawn) if whole else drawn
    drawn = np.clip(drawn, np.maximum(positives - right, 0.0), np.minimum(positives, left))

    source = np.repeat(np.arange(len(rows)), 1 + cut)
    halves = [column[source] for column in columns]
    first = np.flatnonzero(cut) + np.arange(len(count))
    left_half = low, left, drawn, lower, np.clip(2 * low - lower, low, score)
    right_half = high, right, positives - drawn, np.clip(2 * high - upper, score, high), upper
    for column, one, other in zip(halves, left_half, right_half, strict=True):
        column[first], column[first + 1] = one, other
    return halves, source
