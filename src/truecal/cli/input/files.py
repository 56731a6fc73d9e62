"""From the name of a file to its columns."""

from __future__ import annotations

import difflib
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truecal.cli.input.sniffing import (
    FORMATS,
    SUFFIXES,
    Dialect,
    find_long_line,
    format_by_content,
    format_by_name,
    read_dialect,
    read_head,
)

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FORMATS", "MISSING", "Table", "open_table"]

#: What rows without a group are called.
MISSING = "(missing)"
#: How many lines tell the type of a column of text.
_LOOKED_AT = 10_000
#: Beyond so many rows, or bytes of text, a file is summarised where it lies and not taken into memory.
_MANY_ROWS, _MANY_BYTES = 20_000_000, 1_000_000_000
_PARQUET = tuple(suffix for suffix, format in SUFFIXES.items() if format == "parquet")

#: Makes a lazy frame, with the named columns read as text.
Scan = Callable[[Sequence[str]], "pl.LazyFrame"]


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of a file: a lazy Polars frame, or arrays where the file holds arrays."""

    source: str
    scan: Scan | None
    arrays: Mapping[str, NDArray[Any]]
    columns: tuple[str, ...]
    #: Names that more than one column has.
    repeated: frozenset[str] = frozenset()
    #: Bytes of text; 0 for formats that know their number of rows.
    text_size: int = 0
    #: Says what is wrong with the file, of an error that Polars raised.
    explain: Callable[[Exception], str] = str

    @property
    def is_large(self) -> bool:
        """Whether the rows are too many to be taken into memory."""
        if self.scan is None or self.text_size:
            return self.text_size > _MANY_BYTES
        import polars as pl

        try:
            return int(self.scan(()).select(pl.len()).collect().item()) > _MANY_ROWS
        except pl.exceptions.PolarsError as error:
            raise ValueError(self.unreadable(error)) from error

    def unreadable(self, error: Exception) -> str:
        """Say that the file cannot be read, and why, of an error that Polars raised."""
        return f"{self.source} cannot be read: {self.explain(error)}."

    def require(self, names: Sequence[str]) -> None:
        """Refuse names that are not columns, with the nearest one that is."""
        for name in names:
            if name not in self.columns:
                close = difflib.get_close_matches(name, self.columns, n=1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise ValueError(
                    f"{self.source} has no column {name!r}. It has: {_listing(self.columns)}.{hint}"
                )
            if name in self.repeated:
                raise ValueError(f"{self.source} has several columns named {name!r}. Rename all but one.")

    def take(
        self, names: Sequence[str], *, numbers: Sequence[str] = (), groups: Sequence[str] = ()
    ) -> dict[str, NDArray[Any]]:
        """Return columns as arrays; where one of `numbers` holds something else, that is said.

        Parameters
        ----------
        names : sequence of str
            The columns.
        numbers : sequence of str
            Those that must be numbers.
        groups : sequence of str
            Those that are names of groups: they come as text, and what is missing has a name, too.
        """
        names = list(dict.fromkeys(names))
        self.require(names)
        if self.scan is None:
            return {
                name: _as_text(self.arrays[name]) if name in groups else self.arrays[name] for name in names
            }
        import polars as pl

        try:
            frame = self.scan(()).select(names).collect(engine="streaming")
        except pl.exceptions.PolarsError as error:
            raise ValueError(
                self._unreadable([name for name in names if name not in groups], error)
            ) from error
        if frame.height == 0:
            raise ValueError(f"{self.source} is empty: it has columns and no rows.")
        return {
            name: _group_names(frame[name])
            if name in groups
            else self._numbers(frame[name])
            if name in numbers
            else _labels(frame[name])
            for name in names
        }

    def _numbers(self, column: pl.Series) -> NDArray[Any]:
        import polars as pl

        if column.dtype == pl.String:
            said = self._bad_numbers(column)
            if said is not None:
                raise ValueError(said)
            column = column.str.strip_chars().cast(pl.Float64)
        if column.dtype.is_decimal():
            column = column.cast(pl.Float64)
        return np.array(column.to_list()) if isinstance(column.dtype, pl.List) else column.to_numpy()

    def _unreadable(self, names: Sequence[str], error: Exception) -> str:
        """Read columns again, as text, to say which value is not a number and where."""
        import polars as pl

        assert self.scan is not None
        for name in names:
            try:
                column = self.scan([name]).select(name).collect()[name]
            except pl.exceptions.PolarsError:
                break  # what is wrong is not in a column
            said = self._bad_numbers(column) if column.dtype == pl.String else None
            if said is not None:
                return said
        return self.unreadable(error)

    def _bad_numbers(self, column: pl.Series) -> str | None:
        import polars as pl

        as_number = column.str.strip_chars().cast(pl.Float64, strict=False)
        bad = (as_number.is_null() & column.is_not_null()).arg_true()
        if not len(bad):
            return None
        row = int(bad[0])
        amount = "a value that is no number" if len(bad) == 1 else f"{len(bad)} values that are no numbers"
        where = "" if len(bad) == 1 else "first "
        return (
            f"{self.source}: column {column.name!r} has {amount} ({where}in data row {row + 1}: {column[row]!r}). "
            f"Mend or remove {'this row' if len(bad) == 1 else 'these rows'}."
        )


def open_table(source: str, format: str | None = None) -> Table:
    """Open a file, a folder or glob of Parquet files, or ``-`` for standard input.

    Parameters
    ----------
    source : str
        CSV, TSV, Parquet, JSON lines, Arrow or Feather, NPZ or NPY; text may be compressed (gz, zst).
    format : str, optional
        One of `FORMATS`, where the name does not tell it.
    """
    from truecal._lib.checks import require

    if source == "-":
        content = sys.stdin.buffer.read()
        return _open("standard input", content, format or format_by_content(_head("standard input", content)))
    paths = _find(source)
    format = format or ("parquet" if Path(source).is_dir() else format_by_name(paths[0]))
    if format not in ("npz", "npy"):
        require("polars", extra="app", purpose="Reading tables")
    return _open(source, paths, format)


def _find(source: str) -> list[Path]:
    """Return the files that are meant, at least one."""
    path = Path(source)
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.suffix.lower() in _PARQUET and file.is_file())
        if not found:
            raise ValueError(f"{source} is a folder without Parquet files. Name a file.")
        return found
    if path.exists():
        return [path]
    if any(mark in source for mark in "*?["):
        found = sorted(file for file in _glob(source) if file.is_file())
        if not found:
            raise FileNotFoundError(f"{source}: no file has such a name.")
        return found
    raise FileNotFoundError(f"{source}: there is no such file.")


def _glob(pattern: str) -> Iterator[Path]:
    anchor = Path(Path(pattern).anchor)
    return anchor.glob(str(Path(pattern).relative_to(anchor)))


def _head(name: str, source: Path | bytes) -> bytes:
    try:
        head = read_head(source)
    except ValueError as error:
        raise ValueError(f"{name} cannot be read: {error}.") from error
    if not head.strip():
        raise ValueError(f"{name} is empty.")
    return head


def _open(name: str, source: list[Path] | bytes, format: str) -> Table:
    head = _head(name, source if isinstance(source, bytes) else source[0])
    if format in ("npz", "npy"):
        arrays = _load_arrays(name, source, format)
        return Table(name, None, arrays, tuple(arrays))
    import polars as pl

    repeated: frozenset[str] = frozenset()
    explain = _first_line
    try:
        if format in ("csv", "tsv"):
            dialect = read_dialect(head, format)
            repeated = frozenset(dialect.repeated)
            explain = partial(_explain_text, source, dialect)
            scan = _scan_text(source, dialect.separator, dialect.decimal_comma)
        elif format == "jsonl":
            scan = _scan_json(source, is_list=head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[")
        elif format == "parquet" and not head.startswith(b"PAR1"):
            raise ValueError("it is no Parquet file")
        else:
            scan = _scan_binary(
                source, format, is_stream=format == "arrow" and not head.startswith(b"ARROW1")
            )
        columns = tuple(scan(()).collect_schema().names())
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        if isinstance(error, pl.exceptions.NoDataError):
            raise ValueError(f"{name} is empty.") from error
        raise ValueError(f"{name} cannot be read as {format}: {_first_line(error)}.") from error
    text_size = 0 if format in ("parquet", "arrow") else _size(source)
    return Table(name, scan, {}, columns, repeated, text_size, explain)


def _explain_text(source: list[Path] | bytes, dialect: Dialect, error: Exception) -> str:
    """Say which line has too many fields, where that is what Polars stumbled over."""
    if "more fields" in str(error) and not isinstance(source, bytes):
        for path in source:
            line = find_long_line(path, dialect.separator, len(dialect.names))
            if line is not None:
                return f"line {line} has more fields than the first, which has {len(dialect.names)}"
    return _first_line(error)


def _size(source: list[Path] | bytes) -> int:
    return len(source) if isinstance(source, bytes) else sum(path.stat().st_size for path in source)


def _again(source: list[Path] | bytes) -> Any:
    """Return what Polars reads from; bytes must be opened anew for each reading."""
    return io.BytesIO(source) if isinstance(source, bytes) else source


def _scan_text(source: list[Path] | bytes, separator: str, decimal_comma: bool) -> Scan:
    import polars as pl

    def scan(as_text: Sequence[str]) -> pl.LazyFrame:
        frame = pl.scan_csv(
            _again(source),
            separator=separator,
            decimal_comma=decimal_comma,
            infer_schema=not as_text,
            infer_schema_length=_LOOKED_AT,
            encoding="utf8-lossy",  # what is wrong in a column that nobody asked for does not matter
            glob=False,
        )
        # Files written by hand have blanks around their names: "label, score".
        return frame.rename(str.strip)

    return scan


def _scan_json(source: list[Path] | bytes, *, is_list: bool) -> Scan:
    import polars as pl

    def scan(as_text: Sequence[str]) -> pl.LazyFrame:
        overrides = dict.fromkeys(as_text, pl.String)
        if is_list:
            parts = [source] if isinstance(source, bytes) else source
            frames = [
                pl.read_json(part, schema_overrides=overrides, infer_schema_length=None) for part in parts
            ]
            return pl.concat(frames).lazy()
        return pl.scan_ndjson(_again(source), infer_schema_length=_LOOKED_AT, schema_overrides=overrides)

    return scan


def _scan_binary(source: list[Path] | bytes, format: str, *, is_stream: bool) -> Scan:
    import polars as pl

    # The folders of a partitioned table are columns: year=2026/part-0.parquet
    hive = not isinstance(source, bytes) and all("=" in path.parent.name for path in source)

    def scan(as_text: Sequence[str]) -> pl.LazyFrame:
        if is_stream:
            parts = [source] if isinstance(source, bytes) else source
            return pl.concat([pl.read_ipc_stream(part) for part in parts]).lazy()
        if format == "arrow":
            return pl.scan_ipc(_again(source), glob=False, hive_partitioning=hive)
        # Some files of a folder may be float32 and others float64.
        casts = pl.ScanCastOptions(integer_cast="upcast", float_cast="upcast")
        return pl.scan_parquet(_again(source), glob=False, hive_partitioning=hive, cast_options=casts)

    return scan


def _load_arrays(name: str, source: list[Path] | bytes, format: str) -> dict[str, NDArray[Any]]:
    # The file is opened here, for NumPy leaves that of a damaged archive open.
    with io.BytesIO(source) if isinstance(source, bytes) else source[0].open("rb") as file:
        try:
            arrays = _arrays_of(np.load(file, allow_pickle=False), format)
        except Exception as error:  # damaged archives raise whatever zipfile, zlib and struct raise
            raise ValueError(
                f"{name} cannot be read as {format}, without pickles: {_first_line(error)}."
            ) from error
    arrays = {key: array for key, array in arrays.items() if array.ndim}
    if not arrays:
        raise ValueError(f"{name} is empty: it holds no columns.")
    return arrays


def _arrays_of(loaded: Any, format: str) -> dict[str, NDArray[Any]]:
    if (format == "npy") != isinstance(loaded, np.ndarray):
        other = "npz" if format == "npy" else "npy"
        raise ValueError(f"it is of the kind {other}; name that with --input-format")
    return _columns_of(loaded) if format == "npy" else dict(loaded)


def _columns_of(array: NDArray[Any]) -> dict[str, NDArray[Any]]:
    if array.dtype.names:
        return {name: array[name] for name in array.dtype.names}
    columns = array.reshape(len(array), -1)
    return {f"column_{k}": columns[:, k] for k in range(columns.shape[1])}


def _labels(column: pl.Series) -> NDArray[Any]:
    """Return labels; text is stripped, and text that holds numbers only is numbers."""
    import polars as pl

    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype == pl.String:
        column = column.str.strip_chars()
        for kind in (pl.Int64, pl.Float64):
            as_number = column.cast(kind, strict=False)
            if as_number.null_count() == column.null_count() < len(column):
                return as_number.to_numpy()
    if column.dtype.is_decimal():
        column = column.cast(pl.Float64)
    return np.array(column.to_list()) if isinstance(column.dtype, pl.List) else column.to_numpy()


def _group_names(column: pl.Series) -> NDArray[Any]:
    import polars as pl

    return column.cast(pl.String).fill_null(MISSING).to_numpy()


def _as_text(array: NDArray[Any]) -> NDArray[Any]:
    return np.array(
        [MISSING if value is None or value != value else str(value) for value in array.tolist()], object
    )


def _listing(columns: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(map(repr, columns[:most]))
    return shown if len(columns) <= most else f"{shown} and {len(columns) - most} more"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].strip().rstrip(".")
