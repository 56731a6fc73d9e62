"""From the name of a file to a table of columns."""

from __future__ import annotations

import atexit
import codecs
import csv
import gzip
import io
import json
import math
import mmap
import os
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from truecal._lib.checks import did_you_mean, require
from truecal._lib.text import counted, listing
from truecal.cli.input.quotes import has_quoted_fields
from truecal.cli.input.sniffing import (
    GZIP,
    SUFFIXES,
    UTF8_MARK,
    ZSTD,
    Dialect,
    encoding_of,
    format_by_content,
    format_by_name,
    is_utf8,
    read_dialect,
)
from truecal.exceptions import InputError

if TYPE_CHECKING:
    import polars as pl

#: Beyond so many rows, or bytes of text, a file is summarised in passes and not loaded into memory.
MANY_ROWS, MANY_BYTES = 20_000_000, 1_000_000_000
#: An archive of arrays is unpacked in memory; larger ones are refused.
_MOST_UNPACKED = 4_000_000_000
#: Bytes that a pipe or a compressed file may unpack to in memory; beyond that, a temporary file holds them.
_IN_MEMORY = 1 << 28
#: Bytes that stay free on the disk of that temporary file.
_DISK_RESERVE = 1 << 30
_HEAD, _CHUNK = 1 << 16, 1 << 22
_PARQUET = tuple(suffix for suffix, format in SUFFIXES.items() if format == "parquet")

#: Where the bytes of a table are: files, or memory.
Content = list[Path] | bytes


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
    label, scores : str and tuple of str
        Columns of labels and scores of bundled data, where they are known.
    """

    source: str
    columns: tuple[str, ...]
    frame: pl.LazyFrame | Mapping[str, NDArray[Any]]
    n_bytes: int = 0
    separator: str = ""
    bytes_per_row: float = math.inf
    label: str = ""
    scores: tuple[str, ...] = ()
    explain: Callable[[BaseException], str] = field(default=lambda error: _first_line(error), repr=False)

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
    def reading(self) -> Iterator[None]:
        """Name the file in errors of Polars."""
        import polars as pl
        from narwhals.exceptions import NarwhalsError  # what narwhals makes of them

        try:
            yield
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, NarwhalsError, OSError) as error:
            raise InputError(f"{self.source} cannot be read: {self.explain(error)}") from error


def open_table(source: str, format: str | None = None, encoding: str | None = None) -> Table:
    """Open a file, a folder or glob of Parquet files, bundled data, or ``-`` for standard input.

    Parameters
    ----------
    source : str
        CSV, TSV, Parquet, JSON lines, Arrow or Feather, NPZ or NPY; text may be compressed (gz, zst).
    format : str, optional
        One of `truecal.cli.input.sniffing.FORMATS`; by default from the name, or the content of a pipe.
    encoding : str, optional
        Encoding of a text file. By default UTF-8, or UTF-16 where the file says so.
    """
    require("polars", extra="app", purpose="Reading tables")
    from truecal import datasets

    if source in datasets.NAMES and not Path(source).exists():
        path, label, scores = datasets.table(source)
        opened = open_table(str(path))
        return replace(opened, source=source, label=label, scores=scores)
    name = "standard input" if source == "-" else source
    paths = [] if source == "-" else _find(source)
    is_stream = source == "-" or source.startswith(("/dev/", "/proc/"))
    if is_stream or not paths[0].is_file():  # a pipe can be read once only
        with _named(name), sys.stdin.buffer if source == "-" else paths[0].open("rb") as stream:
            head = stream.read(_HEAD)
            format = format or (paths and format_by_name(paths[0])) or format_by_content(_unpacked(head))
            content = _spool(name, head, stream, format, encoding)
        return _open(name, content, format)
    format = format or ("parquet" if Path(source).is_dir() else format_by_name(paths[0]))
    if format is None:
        raise InputError(
            f"{source}: unrecognised file extension; expected one of {', '.join(SUFFIXES)} (text also with .gz "
            f"or .zst). Pass --input-format"
        )
    content = paths
    if format in ("csv", "tsv", "jsonl"):
        if len(paths) > 1:
            return _joined(name, [open_table(str(path), format, encoding) for path in paths])
        with _named(name), paths[0].open("rb") as stream:
            head = stream.read(_HEAD)
            is_marked = format == "jsonl" and head.startswith(UTF8_MARK)  # which Polars does not skip there
            is_plain = not head.startswith(GZIP) and is_utf8(encoding or encoding_of(head)) and not is_marked
            if not is_plain and not head.startswith(ZSTD):
                content = _spool(name, head, stream, format, encoding)
    return _open(name, content, format)


def _joined(name: str, parts: Sequence[Table]) -> Table:
    """Return the rows of several text files, whose columns may differ in order."""
    import polars as pl

    first = parts[0]
    for part in parts:
        if sorted(part.columns) != sorted(first.columns) or repeated(part.columns):
            raise InputError(f"{name}: {part.source} has other columns than {first.source}")
    frames = [
        cast("pl.LazyFrame", part.frame).select(
            pl.nth(part.columns.index(column)).alias(f"c{k}") for k, column in enumerate(first.columns)
        )
        for part in parts
    ]

    def explain(error: BaseException) -> str:
        found = (f"{part.source}: {part.explain(error)}" for part in parts)
        return next(
            (reason for reason in found if not reason.endswith(_first_line(error))), _first_line(error)
        )

    return Table(
        name,
        first.columns,
        pl.concat(frames, how="vertical_relaxed"),
        sum(part.n_bytes for part in parts) if all(part.n_bytes for part in parts) else 0,
        first.separator,
        min(part.bytes_per_row for part in parts),
        explain=explain,
    )


def _find(source: str) -> list[Path]:
    """Return the files that are meant, at least one."""
    path = Path(source)
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.suffix.lower() in _PARQUET and file.is_file())
        if not found:
            raise InputError(f"{source} is a folder without Parquet files. Name a file")
        return found
    if path.exists():
        return [path]
    if any(mark in source for mark in "*?["):
        anchor = Path(path.anchor)
        found = sorted(file for file in anchor.glob(str(path.relative_to(anchor))) if file.is_file())
        if not found:
            raise InputError(f"{source}: no file matches")
        return found
    from truecal import datasets

    raise InputError(f"{source}: no such file", remedy=did_you_mean(source, datasets.NAMES))


# --- Bytes -----------------------------------------------------------------------------------------


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Name the file in every error that unpacking or decoding its bytes raises."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name} cannot be read: damaged gzip file ({error})") from error
    except UnicodeError as error:
        raise InputError(f"{name} cannot be read: {_first_line(error)}. Pass the right --encoding") from error


def _unpacked(head: bytes) -> bytes:
    return gzip.GzipFile(fileobj=io.BytesIO(head)).read1(_HEAD) if head.startswith(GZIP) else head


def _spool(name: str, head: bytes, stream: IO[bytes], format: str, encoding: str | None) -> Content:
    """Return the bytes of a pipe, a gzip file or text in another encoding: unpacked, text in UTF-8.

    They are kept in memory while they are few, else in a temporary file, so memory is bounded.
    """
    chunks = iter(lambda: stream.read(_CHUNK), b"")
    raw: IO[bytes] = cast("IO[bytes]", io.BufferedReader(_Chained(head, chunks)))
    if head.startswith(GZIP):
        raw = cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
        head = _unpacked(head)
    decode, encode = None, codecs.getincrementalencoder("utf-8")().encode
    if format in ("csv", "tsv", "jsonl") and not is_utf8(encoding or encoding_of(head)):
        decode = codecs.getincrementaldecoder(encoding or encoding_of(head))().decode
    elif format == "jsonl" and head.startswith(UTF8_MARK):
        decode = codecs.getincrementaldecoder("utf-8-sig")().decode
    kept: IO[bytes] = io.BytesIO()
    path = None
    while chunk := raw.read(_CHUNK):
        kept.write(chunk if decode is None else encode(decode(chunk)))
        if path is None and kept.tell() > _IN_MEMORY:
            path = _temporary_file()
            first = cast("io.BytesIO", kept).getvalue()
            kept = path.open("wb")
            kept.write(first)
        if path is not None and shutil.disk_usage(tempfile.gettempdir()).free < _DISK_RESERVE:
            kept.close()
            os.truncate(path, 0)
            raise InputError(f"{name} does not fit on the disk of {tempfile.gettempdir()} when unpacked")
    if decode is not None:
        kept.write(encode(decode(b"", True), True))
    content = [path] if path else cast("io.BytesIO", kept).getvalue()
    kept.close()
    return content


def _temporary_file() -> Path:
    """Return a file that is gone when this process ends, however it ends, where the system can do that."""
    number, name = tempfile.mkstemp(prefix="truecal-")
    path, alive = Path(name), Path(f"/proc/self/fd/{number}")
    if alive.exists():  # the file has no name any more; `number` stays open until the end
        path.unlink()
        return alive
    os.close(number)
    atexit.register(path.unlink, missing_ok=True)
    return path


class _Chained(io.RawIOBase):
    """A stream of bytes: those that were read already, then the rest."""

    def __init__(self, first: bytes, rest: Iterator[bytes]) -> None:
        self._left, self._rest = first, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._left or next(self._rest, b"")
        size = min(len(buffer), len(chunk))
        buffer[:size], self._left = chunk[:size], chunk[size:]
        return size


def _head_of(name: str, content: Content) -> bytes:
    if isinstance(content, bytes):
        head = content[:_HEAD]
    else:
        with content[0].open("rb") as file:
            head = file.read(_HEAD)
    if head.startswith(ZSTD):
        head = _first_lines_of_zstd(name, content)
    if not head.strip():
        raise InputError(f"{name} is empty")
    return head


def _first_lines_of_zstd(name: str, content: Content) -> bytes:
    """Let Polars unpack two lines: before 3.14 Python itself cannot read zstd."""
    import polars as pl

    whole = {"has_header": False, "separator": "\x1f", "quote_char": None, "infer_schema": False}
    try:
        frame = pl.scan_csv(content, n_rows=2, encoding="utf8-lossy", **whole).collect()  # type: ignore[arg-type]
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            f"{name} cannot be read: damaged or empty zstd file ({_first_line(error)})"
        ) from error
    return "\n".join(line or "" for line in frame.to_series()).encode() + b"\n"


# --- Tables ----------------------------------------------------------------------------------------


def _open(name: str, content: Content, format: str) -> Table:
    import polars as pl

    head = _head_of(name, content)
    n_bytes = len(content) if isinstance(content, bytes) else sum(path.stat().st_size for path in content)
    is_packed = not isinstance(content, bytes) and content[0].name.lower().endswith(".zst")
    try:
        if format in ("npz", "npy"):
            arrays = _load_arrays(content, format)
            return Table(name, tuple(arrays), arrays)
        if format in ("csv", "tsv"):
            dialect = read_dialect(head, format)
            frame = _scan_text(content, dialect, is_packed=is_packed)
            return Table(
                name,
                dialect.names,
                frame,
                0 if is_packed else n_bytes,
                dialect.separator,
                len(head) / max(head.count(b"\n"), 1),
                explain=partial(_explain_text, content, dialect),
            )
        if format == "jsonl":
            frame = _scan_json(content, head, is_large=n_bytes > MANY_BYTES)
            names, bytes_per_row = (
                tuple(frame.collect_schema().names()),
                len(head) / max(head.count(b"\n"), 1),
            )
            return Table(name, names, frame, 0 if is_packed else n_bytes, bytes_per_row=bytes_per_row)
        if format == "parquet" and not head.startswith(b"PAR1"):
            raise InputError("not a Parquet file")
        frame = _scan_binary(content, format, is_stream=format == "arrow" and not head.startswith(b"ARROW1"))
        explain = partial(_explain_folder, content) if isinstance(content, list) else _first_line
        return Table(name, tuple(frame.collect_schema().names()), frame, explain=explain)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, InputError) as error:
        if isinstance(error, pl.exceptions.NoDataError):
            raise InputError(f"{name} is empty") from error
        reason = _first_line(error)
        if format == "jsonl" and "TapeError" in reason:
            reason = f"not valid JSON{reason.partition('(TapeError)')[2]}"
        raise InputError(f"{name} cannot be read as {format}: {reason}") from error


def _scan_text(content: Content, dialect: Dialect, *, is_packed: bool) -> pl.LazyFrame:
    """Return a text table, every column as text: a type that fits the first rows may not fit the others."""
    import polars as pl

    frame = pl.scan_csv(
        content,
        separator=dialect.separator,
        has_header=dialect.has_header,
        skip_lines=dialect.skip_lines,
        eol_char=dialect.end_of_line,
        quote_char='"' if is_packed or has_quoted_fields(content, dialect.separator) else None,
        infer_schema=False,
        encoding="utf8-lossy",  # invalid bytes in columns that are not used do not matter
        glob=False,
    )
    if _has_blank_lines(content):
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    return frame


def _has_blank_lines(content: Content) -> bool:
    marks = (b"\n\n", b"\n\r\n", b"\r\r")
    if isinstance(content, bytes):
        return any(mark in content for mark in marks)
    for path in content:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if any(data.find(mark) >= 0 for mark in marks):
                return True
    return False


def _explain_text(content: Content, dialect: Dialect, error: BaseException) -> str:
    """Return which line has too many fields, the usual reason; else what Polars found."""
    n_columns = len(dialect.names)
    for part in [content] if isinstance(content, bytes) else content:
        data = io.BytesIO(part) if isinstance(part, bytes) else part.open("rb")
        with (
            io.TextIOWrapper(cast("IO[bytes]", data), "utf-8", "replace", newline="") as text,
            suppress(csv.Error),
        ):
            lines = csv.reader(text, delimiter=dialect.separator)
            long = next((lines.line_num for row in lines if len(row) > n_columns), None)
            if long is not None:
                return f"line {long} has more fields than the header, which has {n_columns}"
    return _first_line(error)


def _scan_json(content: Content, head: bytes, *, is_large: bool) -> pl.LazyFrame:
    import polars as pl

    first = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    _refuse_repeated_keys(first)
    lines = first.split(b"\n", 2)
    if first[:1] == b"[" or (len(lines) > 1 and not lines[0].rstrip().endswith(b"}")) or len(lines) == 1:
        parts = [io.BytesIO(content)] if isinstance(content, bytes) else content
        frame = pl.concat([pl.read_json(part, infer_schema_length=None) for part in parts])
        nested = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
        is_table = len(nested) > 1 or len(nested) == frame.width
        if frame.height == 1 and first[:1] == b"{" and is_table:  # {"label": [...], "score": [...]}
            frame = frame.select(nested).explode(nested)
        return frame.lazy()
    frame_of_lines = pl.scan_ndjson(content, infer_schema_length=10_000 if is_large else None)
    if is_large:  # a type that fits the first rows may not fit the others
        schema = frame_of_lines.collect_schema()
        text = {name: pl.String for name, dtype in schema.items() if not dtype.is_nested()}
        return pl.scan_ndjson(content, infer_schema_length=10_000, schema_overrides=text)
    return frame_of_lines


def _refuse_repeated_keys(head: bytes) -> None:
    """Refuse rows that give a key twice, of which programs take the first or the last.

    A program that writes such rows writes all of them so; the first ones are enough to see it.
    """

    def unique(pairs: list[tuple[str, Any]]) -> None:
        names = repeated([name for name, _ in pairs])
        if names:
            raise InputError(f"the key {names[0]!r} is given more than once in a row")

    reader = json.JSONDecoder(object_pairs_hook=unique)
    text = head.decode("utf-8", "replace").lstrip("[")
    while text:
        try:
            _, end = reader.raw_decode(text)
        except (ValueError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            return  # damaged, or cut off: Polars reports the former
        text = text[end:].lstrip(" \t\r\n,")


def _scan_binary(content: Content, format: str, *, is_stream: bool) -> pl.LazyFrame:
    import polars as pl

    if is_stream:
        parts = [io.BytesIO(content)] if isinstance(content, bytes) else content
        return pl.concat([pl.read_ipc_stream(part) for part in parts]).lazy()
    # The folders of a partitioned table are columns: year=2026/part-0.parquet
    hive = not isinstance(content, bytes) and all("=" in path.parent.name for path in content)
    if format == "arrow":
        return pl.scan_ipc(content, glob=False, hive_partitioning=hive)
    # Some files of a folder may be float32 and others float64.
    casts = pl.ScanCastOptions(integer_cast="upcast", float_cast="upcast")
    return pl.scan_parquet(content, glob=False, hive_partitioning=hive, cast_options=casts)


def _explain_folder(paths: list[Path], error: BaseException) -> str:
    """Return which file has other columns than the first, if that is the problem."""
    import polars as pl

    names = [set(pl.read_parquet_schema(path)) for path in paths if path.suffix.lower() in _PARQUET]
    odd = next((path for path, columns in zip(paths, names, strict=False) if columns != names[0]), None)
    return _first_line(error) if odd is None else f"{odd.name} has other columns than {paths[0].name}"


def _load_arrays(content: Content, format: str) -> dict[str, NDArray[Any]]:
    # The file is opened here, for NumPy leaves that of a damaged archive open.
    with io.BytesIO(content) if isinstance(content, bytes) else content[0].open("rb") as file:
        try:
            _check_size(file)
            loaded = np.load(file, allow_pickle=False)
            arrays = _columns_of(loaded) if isinstance(loaded, np.ndarray) else dict(loaded)
        except (MemoryError, InputError):
            raise
        except Exception as error:  # damaged archives raise whatever zipfile, zlib and struct raise
            if "pickled" in str(error):
                raise InputError(
                    "not a file of arrays, or one of pickled objects, which are not loaded"
                ) from error
            raise InputError(_first_line(error)) from error
    if (format == "npy") != isinstance(loaded, np.ndarray):
        raise InputError(f"this is {'npz' if format == 'npy' else 'npy'}. Pass --input-format")
    arrays = {key: array for key, array in arrays.items() if array.ndim}
    if not arrays:
        raise InputError("it has no columns")
    return arrays


def _check_size(file: IO[bytes]) -> None:
    """Refuse an archive that unpacks to far more than a table in memory should have."""
    if zipfile.is_zipfile(file):
        size = sum(member.file_size for member in zipfile.ZipFile(file).infolist())
        if size > _MOST_UNPACKED:
            raise InputError(
                f"it unpacks to {size / 1e9:.1f} GB. Save it as Parquet, which is read in batches"
            )
    file.seek(0)


def _columns_of(array: NDArray[Any]) -> dict[str, NDArray[Any]]:
    if array.dtype.names:
        return {name: array[name] for name in array.dtype.names}
    columns = array.reshape(len(array), -1)
    return {f"column_{k}": columns[:, k] for k in range(columns.shape[1])}


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


def repeated(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once."""
    return [name for name, times in Counter(names).items() if times > 1]


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].strip().rstrip(".")
