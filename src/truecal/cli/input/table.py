"""Columns of a file, in memory or on disk."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from truecal._lib.checks import did_you_mean
from truecal._lib.text import counted, listing
from truecal.exceptions import InputError

if TYPE_CHECKING:
    import polars as pl

#: Files with more rows, or bytes of text, are summarised in passes instead of loaded into memory.
MANY_ROWS, MANY_BYTES = 20_000_000, 1_000_000_000


#: Where the bytes of a table are: files, or memory.
Content = list[Path] | bytes


def first_line(error: BaseException) -> str:
    """Return the first line of the text of an error, without its full stop."""
    return (str(error).splitlines() or [type(error).__name__])[0].strip().rstrip(".")


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of a file.

    Attributes
    ----------
    source : str
        The file, as messages name it.
    columns : tuple of str
        Names of the columns.
    frame : polars.LazyFrame, or mapping of str to ndarray
        The columns in this order, by position; NumPy files hold arrays, which may differ in length.
    n_bytes : int
        Size of a text table; 0 for formats that know their number of rows.
    separator : str
        What separates the fields of a text table.
    bytes_per_row : float
        Mean length of the first lines of a text table.
    label, cluster, scores : str, str and tuple of str
        Columns of labels, clusters and scores of bundled data and logs, where they are known.
    notes : tuple of str
        What a reader must know of the file.
    doubt : str
        Why its labels may not be the truth, if there is a reason.
    """

    source: str
    columns: tuple[str, ...]
    frame: pl.LazyFrame | Mapping[str, NDArray[Any]]
    n_bytes: int = 0
    separator: str = ""
    bytes_per_row: float = math.inf
    label: str = ""
    cluster: str = ""
    scores: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    doubt: str = ""
    explain: Callable[[BaseException], str] = field(default=first_line, repr=False)

    @cached_property
    def is_large(self) -> bool:
        """Whether the table has too many rows for memory."""
        if isinstance(self.frame, Mapping):
            return False
        if self.n_bytes:
            return self.n_bytes > min(MANY_BYTES, MANY_ROWS * self.bytes_per_row)
        import polars as pl

        return int(self.collect(self.frame.select(pl.len())).item()) > MANY_ROWS

    def describe(self) -> str:
        """Return the number of columns and how the rows are read, in words."""
        separator = f" separated by {self.separator!r}" if self.separator else ""
        rows = "summarised in batches" if self.is_large else "read into memory"
        return f"{counted(len(self.columns), 'column')}{separator}, and its rows are {rows}"

    def scan(self, names: Sequence[str]) -> pl.LazyFrame:
        """Return the named columns, or fields of columns such as ``pred.p``, as ``c0``, ``c1`` and so on."""
        import polars as pl

        paths = [self._find(name) for name in names]
        if isinstance(self.frame, Mapping):
            arrays = [self.frame[self.columns[column]] for column, _ in paths]
            if len({len(array) for array in arrays}) > 1:
                lengths = ", ".join(
                    f"{name!r} {len(array)}" for name, array in zip(names, arrays, strict=True)
                )
                raise InputError(f"{self.source}: columns differ in length: {lengths}")
            return pl.LazyFrame({f"c{k}": _as_column(array) for k, array in enumerate(arrays)})
        # By position, for Polars reads a name such as "^s.*$" as a pattern.
        columns = []
        for k, (column, fields) in enumerate(paths):
            values = pl.nth(column)
            for part in fields:
                values = values.struct.field(part)
            columns.append(values.alias(f"c{k}"))
        return self.frame.select(columns)

    def _find(self, name: str) -> tuple[int, list[str]]:
        """Return the number of a column and the path within it, or refuse a name that is not there."""
        if self.columns.count(name) > 1:
            raise InputError(f"{self.source} has several columns named {name!r}. Rename all but one")
        if name in self.columns:
            return self.columns.index(name), []
        head, *fields = name.split(".")
        if fields and head in self.columns and self._has_field(head, fields):
            return self.columns.index(head), fields
        raise InputError(
            f"{self.source} has no column {name!r}. It has: {listing(self.columns, 20)}",
            remedy=did_you_mean(name, self.columns),
        )

    def _has_field(self, column: str, fields: list[str]) -> bool:
        import polars as pl

        dtype = self.scan([column]).collect_schema()["c0"]
        for part in fields:
            if not isinstance(dtype, pl.Struct) or part not in (known.name for known in dtype.fields):
                return False
            dtype = cast("pl.DataType", dtype.to_schema()[part])
        return True

    def collect(self, frame: pl.LazyFrame) -> pl.DataFrame:
        """Run a query on the table, in batches of rows."""
        with self.reading():
            return frame.collect(engine="streaming")

    @contextmanager
    def reading(self, *errors: type[Exception]) -> Iterator[None]:
        """Name the file in errors of Polars, and in others that reading it may raise."""
        import polars as pl

        expected: tuple[type[BaseException], ...]
        expected = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, *errors)
        try:
            yield
        except expected as error:
            raise InputError(f"{self.source} cannot be read: {self.explain(error)}") from error


def _as_column(array: NDArray[Any]) -> pl.Series:
    """Return an array as a column: (n, K) as a column of K numbers each."""
    import polars as pl

    if array.ndim > 1 and array.shape[-1] == array.size // max(len(array), 1) == 1:
        array = array.reshape(-1)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:  # long double, which Polars does not have
        array = array.astype(np.float64)
    if array.dtype.kind in "fiu" and not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return pl.Series(values=np.ascontiguousarray(array), strict=False)


def as_array(column: pl.Series) -> NDArray[Any]:
    """Return a column as an array.

    What was read in pieces is put together by NumPy, whose large pages of memory cost less than those of Polars.
    """
    if column.n_chunks() == 1 or not column.dtype.is_numeric() or column.has_nulls():
        return column.to_numpy()
    return np.concatenate([piece.to_numpy() for piece in column.get_chunks()])


def repeated(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once."""
    return [name for name, times in Counter(names).items() if times > 1]
