"""From the name of a file to its columns."""

from __future__ import annotations

import difflib
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

#: What a column of labels, or of scores, is usually called.
LABEL_NAMES = ("y_true", "label", "labels", "target", "y", "truth", "outcome", "correct", "true_label")
SCORE_NAMES = (
    "y_proba", "y_prob", "y_score", "y_pred_proba", "score", "scores", "proba", "prob", "probs",
    "probability", "probabilities", "p", "confidence",
)  # fmt: skip

_SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".npz": "npz", ".npy": "npy",
}  # fmt: skip
FORMATS = tuple(dict.fromkeys(_SUFFIXES.values()))
_COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of a file: a lazy Polars frame, or arrays where the file holds arrays."""

    source: str
    frame: pl.LazyFrame | None
    arrays: Mapping[str, NDArray[Any]]
    #: Bytes on disk, to tell large inputs; 0 where that is not known.
    size: int
    #: What the file's lines are read as, to say more of a value that cannot be read.
    format: str

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in the order of the file."""
        return list(self.arrays) if self.frame is None else self.frame.collect_schema().names()

    def require(self, names: Sequence[str]) -> None:
        """Refuse names that are not columns, with the nearest one that is."""
        columns = self.columns
        for name in names:
            if name not in columns:
                close = difflib.get_close_matches(name, columns, n=1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise ValueError(f"{self.source} has no column {name!r}. It has: {', '.join(columns)}.{hint}")

    def guess(self, what: str, usual: Sequence[str]) -> str:
        """Return the one column with a usual name, or ask for it to be named."""
        columns = self.columns
        found = [name for name in columns if name.strip().lower() in usual]
        if len(found) == 1:
            return found[0]
        why = f"several could be it ({', '.join(found)})" if found else "none has a usual name"
        raise ValueError(
            f"{self.source}: which column is the {what}? {why[0].upper()}{why[1:]}. "
            f"Name it with --{what}. Columns: {', '.join(columns)}."
        )

    def take(self, names: Sequence[str], numbers: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
        """Return columns as arrays; where one of `numbers` holds something else, that is said."""
        names = list(dict.fromkeys(names))
        self.require(names)
        if self.frame is None:
            return {name: self.arrays[name] for name in names}
        import polars as pl

        try:
            frame = self.frame.select(names).collect(engine="streaming")
        except pl.exceptions.ComputeError as error:
            raise ValueError(self._unreadable(numbers, error)) from error
        if frame.height == 0:
            raise ValueError(f"{self.source} is empty: it has a header and no rows.")
        for name in numbers:
            if frame[name].dtype == pl.String:
                raise ValueError(_bad_numbers(self.source, name, frame[name]))
        return {name: _to_array(frame[name]) for name in names}

    def _unreadable(self, numbers: Sequence[str], error: Exception) -> str:
        """Read a text file again, as text, to say which value is not a number and where."""
        import polars as pl

        if self.format in ("csv", "tsv") and Path(self.source).is_file():
            text = pl.scan_csv(self.source, separator=_separator(self.format), infer_schema=False)
            for name in numbers:
                column = text.select(name).collect()[name]
                if column.cast(pl.Float64, strict=False).null_count() > column.null_count():
                    return _bad_numbers(self.source, name, column)
        return f"{self.source} cannot be read: {str(error).splitlines()[0]}."


def open_table(source: str, format: str | None = None) -> Table:
    """Open a file, a folder or glob of Parquet files, or ``-`` for standard input.

    Parameters
    ----------
    source : str
        CSV, TSV, Parquet, JSON lines, Arrow or Feather, NPZ or NPY; text may be compressed (gz, zst).
    format : str, optional
        One of `FORMATS`, where the name does not tell it.
    """
    from truecal._checks import require

    if source == "-":
        return _open_stdin(format)
    path = Path(source)
    known = format or _format_of(path)
    if known in ("npz", "npy"):
        return Table(source, None, _load_arrays(path, known), _size(path), known)
    require("polars", extra="app", purpose="Reading tables")
    is_glob = any(mark in source for mark in "*?[") and not path.exists()
    if not is_glob and not path.exists():
        raise FileNotFoundError(f"{source}: there is no such file.")
    if not is_glob and path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"{source} is empty.")
    return Table(source, _scan(source, known), {}, _size(path) if not is_glob else _glob_size(source), known)


def _format_of(path: Path) -> str:
    if path.is_dir():
        return "parquet"
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _COMPRESSED]
    if not suffixes or suffixes[-1] not in _SUFFIXES:
        raise ValueError(
            f"{path}: what kind of file is this? Its name should end in {', '.join(_SUFFIXES)} "
            f"(text also in .gz or .zst), or name it with --input-format."
        )
    return _SUFFIXES[suffixes[-1]]


def _scan(source: Any, format: str) -> pl.LazyFrame:
    import polars as pl

    try:
        if format in ("csv", "tsv"):
            frame = pl.scan_csv(source, separator=_separator(format), infer_schema_length=10_000)
        elif format == "jsonl":
            frame = pl.scan_ndjson(source, infer_schema_length=10_000)
        elif format == "arrow":
            frame = pl.scan_ipc(source)
        else:
            frame = pl.scan_parquet(source)
        frame.collect_schema()
    except pl.exceptions.NoDataError as error:
        raise ValueError(f"{_name(source)} is empty.") from error
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ValueError(
            f"{_name(source)} cannot be read as {format}: {str(error).splitlines()[0]}."
        ) from error
    return frame


def _open_stdin(format: str | None) -> Table:
    content = sys.stdin.buffer.read()
    if not content:
        raise ValueError("standard input is empty.")
    if format is None:
        format = "parquet" if content[:4] == b"PAR1" else "jsonl" if content.lstrip()[:1] == b"{" else "csv"
        if format == "csv" and b"\t" in content.split(b"\n", 1)[0]:
            format = "tsv"
    if format in ("npz", "npy"):
        return Table("standard input", None, _load_arrays(io.BytesIO(content), format), len(content), format)
    return Table("standard input", _scan(io.BytesIO(content), format), {}, len(content), format)


def _load_arrays(file: Path | io.BytesIO, format: str) -> dict[str, NDArray[Any]]:
    try:
        loaded = np.load(file, allow_pickle=False)
    except FileNotFoundError:
        raise FileNotFoundError(f"{file}: there is no such file.") from None
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(
            f"{_name(file)} cannot be read as {format}, without pickled objects: {error}."
        ) from error
    if format == "npz":
        with loaded:
            arrays = {name: loaded[name] for name in loaded.files}
    elif loaded.dtype.names:
        arrays = {name: loaded[name] for name in loaded.dtype.names}
    else:
        columns = loaded.reshape(len(loaded), -1)
        arrays = {f"column_{k}": columns[:, k] for k in range(columns.shape[1])}
    return {name: array for name, array in arrays.items() if array.ndim}


def _to_array(series: pl.Series) -> NDArray[Any]:
    import polars as pl

    if isinstance(series.dtype, pl.List):
        return np.array(series.to_list())
    return series.to_numpy()


def _bad_numbers(source: str, name: str, column: pl.Series) -> str:
    import polars as pl

    bad = (column.cast(pl.Float64, strict=False).is_null() & column.is_not_null()).arg_true()
    row = int(bad[0])
    return (
        f"{source}: column {name!r} has {len(bad)} value{'s' if len(bad) > 1 else ''} that are no numbers "
        f"(first in data row {row + 1}: {column[row]!r}). Mend or remove these rows."
    )


def _separator(format: str) -> str:
    return "\t" if format == "tsv" else ","


def _name(source: Any) -> str:
    return "standard input" if isinstance(source, io.BytesIO) else str(source)


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*")) if path.is_dir() else path.stat().st_size


def _glob_size(pattern: str) -> int:
    anchor = Path(Path(pattern).anchor)
    return sum(file.stat().st_size for file in anchor.glob(str(Path(pattern).relative_to(anchor))))
