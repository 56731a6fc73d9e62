"""From bytes of a known format to a table."""

from __future__ import annotations

import csv
import io
import json
import mmap
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from truecal.cli.input import table as tables
from truecal.cli.input.quotes import has_quoted_fields
from truecal.cli.input.sniffing import PARQUET, Dialect, read_dialect
from truecal.cli.input.table import Table, first_line, repeated
from truecal.cli.input.unpacking import Content, head_of
from truecal.exceptions import InputError

if TYPE_CHECKING:
    import polars as pl

#: An archive of arrays is unpacked in memory; larger ones are refused.
_MOST_UNPACKED = 4_000_000_000


def scan(name: str, content: Content, format: str) -> Table:
    """Return the table that bytes of a known format hold; errors name the file."""
    import polars as pl

    head = head_of(name, content)
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
            frame = _scan_json(content, head, is_large=n_bytes > tables.MANY_BYTES)
            return Table(
                name,
                tuple(frame.collect_schema().names()),
                frame,
                0 if is_packed else n_bytes,
                bytes_per_row=len(head) / max(head.count(b"\n"), 1),
                explain=partial(_explain_json, content),
            )
        if format == "parquet" and not head.startswith(b"PAR1"):
            raise InputError("not a Parquet file")
        frame = _scan_binary(content, format, is_stream=format == "arrow" and not head.startswith(b"ARROW1"))
        explain = partial(_explain_folder, content) if isinstance(content, list) else first_line
        return Table(name, tuple(frame.collect_schema().names()), frame, explain=explain)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, InputError) as error:
        if isinstance(error, pl.exceptions.NoDataError):
            raise InputError(f"{name} is empty") from error
        is_polars = format == "jsonl" and not isinstance(error, InputError)
        reason = _explain_json(content, error) if is_polars else first_line(error)
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
    for text in _texts(content):
        with text, suppress(csv.Error):
            lines = csv.reader(text, delimiter=dialect.separator)
            long = next((lines.line_num for row in lines if len(row) > n_columns), None)
            if long is not None:
                return f"line {long} has more fields than the header, which has {n_columns}"
    return first_line(error)


def _texts(content: Content) -> Iterator[io.TextIOWrapper]:
    for part in [content] if isinstance(content, bytes) else content:
        data = io.BytesIO(part) if isinstance(part, bytes) else part.open("rb")
        yield io.TextIOWrapper(cast("IO[bytes]", data), "utf-8", "replace", newline="")


def _explain_json(content: Content, error: BaseException) -> str:
    """Return which line is not valid JSON, the usual reason; else what Polars found."""
    for text in _texts(content):
        with text:
            lines = ((number, line) for number, line in enumerate(text, start=1) if line.strip())
            number, line = next(lines, (1, "null"))
            try:
                while True:
                    json.loads(line)
                    number, line = next(lines)
            except StopIteration:
                continue
            except (ValueError, RecursionError) as problem:
                if number > 1:
                    return f"line {number} is not valid JSON ({problem.args[0]})"
            try:  # one value over several lines
                json.loads(line + text.read())
            except (ValueError, RecursionError) as problem:
                return f"not valid JSON ({problem.args[0]})"
    return first_line(error)


def _scan_json(content: Content, head: bytes, *, is_large: bool) -> pl.LazyFrame:
    import polars as pl

    first = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    _refuse_repeated_keys(first)
    lines = first.split(b"\n", 2)
    if first[:1] == b"[" or (len(lines) > 1 and not lines[0].rstrip().endswith(b"}")) or len(lines) == 1:
        parts = [io.BytesIO(content)] if isinstance(content, bytes) else content
        if first[:1] == b"{" and (rows := _rows_of_pandas(parts[0])) is not None:
            return pl.read_ndjson(rows, infer_schema_length=None).lazy()
        frame = pl.concat([pl.read_json(part, infer_schema_length=None) for part in parts])
        nested = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
        is_table = len(nested) > 1 or len(nested) == frame.width
        if frame.height == 1 and first[:1] == b"{" and is_table:  # {"label": [...], "score": [...]}
            lengths = frame.select(pl.col(name).list.len() for name in nested).row(0)
            if len(set(lengths)) > 1:
                each = ", ".join(f"{name!r} {n}" for name, n in zip(nested, lengths, strict=True))
                raise InputError(f"its columns differ in length: {each}")
            frame = frame.select(nested).explode(nested)
        return frame.lazy()
    frame_of_lines = pl.scan_ndjson(content, infer_schema_length=10_000 if is_large else None)
    if is_large:  # a type that fits the first rows may not fit the others
        schema = frame_of_lines.collect_schema()
        text = {name: pl.String for name, dtype in schema.items() if not dtype.is_nested()}
        return pl.scan_ndjson(content, infer_schema_length=10_000, schema_overrides=text)
    return frame_of_lines


def _rows_of_pandas(part: io.BytesIO | Path) -> io.BytesIO | None:
    """Return the rows of a table that pandas wrote as one object, as JSON lines; None for anything else.

    These are its orientations "columns", the default, "index", "split" and "table". Polars would make a column of each
    row.
    """
    try:
        table = json.loads(part.getvalue() if isinstance(part, io.BytesIO) else part.read_bytes())
    except (ValueError, RecursionError):
        return None  # Polars reports it
    rows: Any = table.get("data") if isinstance(table, dict) else None
    names = table.get("columns") if isinstance(rows, list) else None
    if isinstance(names, list) and all(isinstance(row, list) and len(row) == len(names) for row in rows):
        rows = [dict(zip(names, row, strict=True)) for row in rows]
    elif isinstance(table, dict) and table and all(isinstance(one, dict) for one in table.values()):
        (first, *_), values = table.values(), list(table.values())
        if not first or any(one.keys() != first.keys() for one in values):
            return None
        if all(name.isdecimal() for name in table):
            rows = values
        else:
            rows = [
                dict(zip(table, row, strict=True))
                for row in zip(*(one.values() for one in values), strict=True)
            ]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        return None
    if isinstance(part, io.BytesIO):
        part.seek(0)
    return io.BytesIO("\n".join(map(json.dumps, rows)).encode())


def _refuse_repeated_keys(head: bytes) -> None:
    """Refuse rows that give a key twice, of which programs take the first or the last.

    A program that writes such rows writes all of them so; the first ones are enough to see it.
    """
    reader = json.JSONDecoder(object_pairs_hook=unique_keys)
    text = head.decode("utf-8", "replace").lstrip("[")
    while text:
        try:
            _, end = reader.raw_decode(text)
        except (ValueError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            return  # damaged, or cut off: Polars reports the former
        text = text[end:].lstrip(" \t\r\n,")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of JSON with these keys and values, or refuse a key that is given twice."""
    names = repeated([name for name, _ in pairs])
    if names:
        raise InputError(f"the key {names[0]!r} is given more than once in a row")
    return dict(pairs)


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

    names = [set(pl.read_parquet_schema(path)) for path in paths if path.suffix.lower() in PARQUET]
    odd = next((path for path, columns in zip(paths, names, strict=False) if columns != names[0]), None)
    return first_line(error) if odd is None else f"{odd.name} has other columns than {paths[0].name}"


def _load_arrays(content: Content, format: str) -> dict[str, NDArray[Any]]:
    # The file is opened here, for NumPy leaves that of a damaged archive open.
    with io.BytesIO(content) if isinstance(content, bytes) else content[0].open("rb") as file:
        try:
            _check_size(file)
            loaded = np.load(file, allow_pickle=False)
            arrays = _columns_of(loaded) if isinstance(loaded, np.ndarray) else dict(loaded)
        except (MemoryError, InputError):
            raise
        except ValueError as error:  # also of arrays of objects
            raise InputError(
                "not a file of arrays, or one of pickled objects, which are not loaded"
            ) from error
        except Exception as error:  # damaged archives raise whatever zipfile, zlib and struct raise
            raise InputError(first_line(error)) from error
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
