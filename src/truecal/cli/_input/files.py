"""From the name of a file to its bytes, unpacked and with text in UTF-8, and to a table by its format."""

from __future__ import annotations

import atexit
import codecs
import gzip
import io
import os
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from lzma import LZMAError
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecal import datasets
from truecal._lib.checks import did_you_mean, require
from truecal._lib.text import counted, listing
from truecal.cli._input import table as tables
from truecal.cli._input.table import Content, Table, first_line, opened
from truecal.cli._options import SUFFIXES
from truecal.exceptions import InputError

#: Bytes that a pipe or a compressed file may unpack to in memory; beyond that, a temporary file holds them.
_IN_MEMORY = 1 << 28
#: Bytes to leave free on the disk of that temporary file.
_DISK_RESERVE = 1 << 30
#: Bytes that are read at once.
_CHUNK = 1 << 22
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def open_table(source: str, format: str | None = None, encoding: str | None = None) -> Table:
    """Open a file, a folder or glob of Parquet files, bundled data, or ``-`` for standard input.

    Parameters
    ----------
    source : str
        CSV, TSV, Parquet, JSON lines, Arrow or Feather, NPZ or NPY, a spreadsheet, or a log of Inspect (.eval); text
        may be compressed (gz, zst), and any of them the one file of an archive (zip).
    format : str, optional
        What --input-format takes; by default from the name, or the content of a pipe.
    encoding : str, optional
        Encoding of a text file. By default UTF-8, or UTF-16 where the file says so.
    """
    if source in datasets.NAMES and not Path(source).exists():
        path, label, scores = datasets.table(source)
        return replace(open_table(str(path)), source=source, label=label, scores=scores)
    if source == "-":
        return _open_stream("standard input", sys.stdin.buffer, format, encoding)
    path, *others = paths = _find(source)
    if others:
        return _open_files(source, paths, format, encoding)
    # A pipe can be read once only.
    if source.startswith(("/dev/", "/proc/")) or not path.is_file():
        with path.open("rb") as stream:
            return _open_stream(source, stream, format or format_by_name(path), encoding)
    return _open_file(source, path, format, encoding)


def _open_file(source: str, path: Path, format: str | None, encoding: str | None) -> Table:
    """Open a file by its format."""
    if path.suffix.lower() == ".zip":
        return _open_zip(source, path, format, encoding)
    format = format or format_by_name(path)
    if format is None:
        raise InputError(
            f"{source}: unrecognised file extension; expected one of {', '.join(SUFFIXES)} (also in a .zip file, "
            f"text with .gz or .zst). Pass --input-format"
        )
    if format == "eval":
        return open_log(source, path)
    if format == "excel":
        return _open_sheet(source, path)
    return _open_content(source, path, format, encoding)


def _open_files(source: str, paths: list[Path], format: str | None, encoding: str | None) -> Table:
    """Open several files of one format as one table."""
    known = format or format_by_name(paths[0])
    if known in ("parquet", "arrow"):
        return scan(source, paths[0], known, paths[1:])
    if known in ("eval", "npz", "npy"):
        raise InputError(
            f"{source} matches {len(paths)} files of the format {known}", remedy="Name one of them."
        )
    return _joined(source, [_open_file(str(path), path, format, encoding) for path in paths])


def _open_stream(name: str, stream: IO[bytes], format: str | None, encoding: str | None) -> Table:
    """Open a stream that can be read only once."""
    return _open_content(name, _keep(name, _chunks(stream)), format, encoding)


def _open_content(name: str, content: Content, format: str | None, encoding: str | None) -> Table:
    """Open bytes, unpacked if they are gzip, and text in UTF-8; their beginning tells a format that is not given."""
    with _named(name), opened(content) as file:
        raw = cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if _starts_with(content, GZIP) else file
        head = raw.read(HEAD)
        raw.seek(0)
        format = format or format_by_content(head)
        other = _other_encoding(head, encoding, format) if format in TEXT else None
        if other is not None:
            content = _keep(name, _in_utf8(raw, other))
        elif raw is not file:
            content = _keep(name, _chunks(raw))
    return scan(name, content, format)


def _open_zip(source: str, path: Path, format: str | None, encoding: str | None) -> Table:
    """Open the one file in an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [
                name for name in archive.namelist() if not name.startswith("__MACOSX/") and name[-1] != "/"
            ]
            if len(names) != 1:
                problem = f"{source} holds {counted(len(names), 'file')}"
                remedy = "Unpack it and name one of them, or keep one in it."
                raise InputError(f"{problem}: {listing(names)}" if names else problem, remedy=remedy)
            _check_unpacked(source, archive)
            with archive.open(names[0]) as member:
                content = _keep(source, _chunks(member))
    # Damaged; or, as RuntimeErrors, with a password or a compression that Python does not know.
    except (zipfile.BadZipFile, RuntimeError, EOFError, zlib.error, LZMAError) as error:
        raise InputError(f"{source} cannot be read as zip: {first_line(error)}") from error
    return _open_content(source, content, format or format_by_name(Path(names[0])), encoding)


def _open_sheet(source: str, path: Path) -> Table:
    """Open the first sheet of a spreadsheet that is not empty."""
    excel = require("fastexcel", extra="excel", purpose="Reading spreadsheets")
    try:
        sheets = pl.read_excel(path, sheet_id=0, raise_if_empty=False, infer_schema_length=None)
    except (pl.exceptions.PolarsError, excel.FastExcelError, OSError) as error:
        raise InputError(f"{source} cannot be read as a spreadsheet: {first_line(error)}") from error
    filled = {name: sheet for name, sheet in sheets.items() if sheet.height}
    if not filled:
        raise InputError(f"{source} has no rows")
    name, sheet = next(iter(filled.items()))
    notes = (f"using the sheet {name!r}, the first of {len(filled)}",) if len(filled) > 1 else ()
    return Table(source, tuple(sheet.columns), sheet.lazy(), notes=notes)


def _joined(name: str, parts: Sequence[Table]) -> Table:
    """Return the rows of several text files, whose columns may differ in order."""
    first = parts[0]
    for part in parts:
        if sorted(part.columns) != sorted(first.columns) or tables.repeated(part.columns):
            raise InputError(f"{name}: {part.source} has other columns than {first.source}")
    frames = [
        cast("pl.LazyFrame", part.frame).select(
            pl.nth(part.columns.index(column)).alias(f"c{k}") for k, column in enumerate(first.columns)
        )
        for part in parts
    ]

    sizes = [part.n_rows for part in parts]

    def explain(error: BaseException) -> str:
        reasons = (f"{part.source}: {part.explain(error)}" for part in parts)
        return next(
            (reason for reason in reasons if not reason.endswith(first_line(error))), first_line(error)
        )

    return Table(
        name,
        first.columns,
        pl.concat(frames, how="vertical_relaxed"),
        sum(sizes) if all(sizes) else 0,
        first.separator,
        explain=explain,
    )


def _find(source: str) -> list[Path]:
    """Return the matching files, at least one."""
    path = Path(source)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in PARQUET and file.is_file())
        if not files:
            raise InputError(f"{source} is a folder without Parquet files. Name a file")
        return files
    if path.exists():
        return [path]
    if any(mark in source for mark in "*?["):
        anchor = Path(path.anchor)
        files = sorted(file for file in anchor.glob(str(path.relative_to(anchor))) if file.is_file())
        if not files:
            raise InputError(f"{source}: no file matches")
        return files
    raise InputError(f"{source}: no such file", remedy=did_you_mean(source, datasets.NAMES))


def encoding_of(head: bytes) -> str:
    """Return the encoding that the first bytes declare, UTF-8 where they declare none."""
    return "utf-16" if head.startswith(_UTF16_MARKS) else "utf-8"


def _other_encoding(head: bytes, encoding: str | None, format: str) -> str | None:
    """Return the encoding of text that Polars cannot read as it is; refuse an encoding that is unknown."""
    encoding = encoding or encoding_of(head)
    try:
        "".encode(encoding)  # which refuses encodings of bytes, such as hex
        name = codecs.lookup(encoding).name
        if name not in ("utf-8", "utf-8-sig", "ascii"):
            return None if head.startswith(ZSTD) else name
        return "utf-8-sig" if format == "jsonl" and head.startswith(tables.UTF8_MARK) else None
    except LookupError:
        raise InputError(
            f"{encoding!r} is unknown. Use a name such as latin-1", argument="--encoding"
        ) from None


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Name the file in every error that unpacking or decoding its bytes raises."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name} cannot be read: damaged gzip file ({error})") from error
    except UnicodeError as error:
        raise InputError(f"{name} cannot be read: {first_line(error)}. Pass the right --encoding") from error


def _starts_with(content: Content, mark: bytes) -> bool:
    with opened(content) as file:
        return file.read(len(mark)) == mark


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: stream.read(_CHUNK), b"")


def _in_utf8(raw: IO[bytes], encoding: str) -> Iterator[bytes]:
    """Yield text in another encoding as UTF-8."""
    decode = codecs.getincrementaldecoder(encoding)().decode
    encode = codecs.getincrementalencoder("utf-8")().encode
    for chunk in _chunks(raw):
        yield encode(decode(chunk))
    yield encode(decode(b"", True), True)


def _keep(name: str, chunks: Iterator[bytes]) -> Content:
    """Return bytes in memory while they are few, else in a temporary file, so that memory is bounded."""
    memory = io.BytesIO()
    for chunk in chunks:
        memory.write(chunk)
        if memory.tell() > _IN_MEMORY:
            return _on_disk(name, chain([memory.getvalue()], chunks))
    return memory.getvalue()


def _on_disk(name: str, chunks: Iterable[bytes]) -> Path:
    path = _temporary_file()
    with path.open("wb") as file:
        for chunk in chunks:
            file.write(chunk)
            if shutil.disk_usage(tempfile.gettempdir()).free < _DISK_RESERVE:
                file.truncate(0)
                raise InputError(f"{name} does not fit on the disk of {tempfile.gettempdir()} when unpacked")
    return path


def _temporary_file() -> Path:
    """Return a file that the system deletes when this process ends, if it can."""
    number, name = tempfile.mkstemp(prefix="truecal-")
    path, alive = Path(name), Path(f"/proc/self/fd/{number}")
    if alive.exists():  # the file has no name any more; `number` stays open until the end
        path.unlink()
        return alive
    os.close(number)
    atexit.register(path.unlink, missing_ok=True)
    return path


# --- Formats, recognised by the name or the first bytes of a file ---------------------------------

PARQUET = tuple(suffix for suffix, format in SUFFIXES.items() if format == "parquet")
TEXT = ("csv", "tsv", "jsonl")
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: The first bytes of binary files.
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",  # an Arrow stream
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
}
#: An archive of arrays is unpacked in memory; larger ones are refused.
_MOST_UNPACKED = 4_000_000_000
#: Bytes that tell the format.
HEAD = 1 << 16


def format_by_name(path: Path) -> str | None:
    """Return the format that the name of a file implies, or None."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".zst")]
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


def format_by_content(head: bytes) -> str:
    """Return the format that the first bytes imply; text that is not JSON is taken for CSV."""
    for magic, format in _MAGIC.items():
        if head.startswith(magic):
            return format
    return "jsonl" if head.removeprefix(tables.UTF8_MARK).lstrip()[:1] in (b"{", b"[") else "csv"


def _head_of(name: str, content: Content) -> bytes:
    """Return the first bytes, unpacked if they are zstd; refuse an empty file."""
    with opened(content) as file:
        head = file.read(HEAD)
    if head.startswith(ZSTD):
        head = _first_lines_of_zstd(name, content)
    if not head.strip():
        raise InputError(f"{name} is empty")
    return head


def _first_lines_of_zstd(name: str, content: Content) -> bytes:
    """Let Polars unpack two lines: before 3.14 Python itself cannot read zstd."""
    whole = {"has_header": False, "separator": "\x1f", "quote_char": None, "infer_schema": False}
    try:
        frame = pl.scan_csv(content, n_rows=2, encoding="utf8-lossy", **whole).collect()  # type: ignore[arg-type]
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            f"{name} cannot be read: damaged or empty zstd file ({first_line(error)})"
        ) from error
    return "\n".join(line or "" for line in frame.to_series()).encode() + b"\n"


def scan(name: str, content: Content, format: str, others: Sequence[Path] = ()) -> Table:
    """Return the table that bytes of a known format hold, and further files of a folder; errors name the file."""
    head = _head_of(name, content)
    try:
        if format in ("npz", "npy"):
            arrays = _load_arrays(content, format)
            return Table(name, tuple(arrays), arrays)
        if format in TEXT:
            return _scan_text(name, content, head, format)
        return _scan_binary(name, content, head, format, others)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, InputError) as error:
        if isinstance(error, pl.exceptions.NoDataError):
            raise InputError(f"{name} is empty") from error
        is_polars = format == "jsonl" and not isinstance(error, InputError)
        reason = tables.explain_json(content, error) if is_polars else first_line(error)
        raise InputError(f"{name} cannot be read as {format}: {reason}") from error


def _scan_text(name: str, content: Content, head: bytes, format: str) -> Table:
    """Return a table of text; how many rows it has is judged by its bytes, unless they are packed."""
    n_bytes = len(content) if isinstance(content, bytes) else content.stat().st_size
    is_packed = _starts_with(content, ZSTD)
    # A long line counts as several rows.
    bytes_per_row = min(len(head) / max(head.count(b"\n"), 1), tables.MANY_BYTES / tables.MANY_ROWS)
    n_rows = n_bytes / bytes_per_row
    if format == "jsonl":
        frame = tables.scan_json(content, head, is_large=n_rows > tables.MANY_ROWS)
        names = tuple(frame.collect_schema().names())
        return Table(
            name, names, frame, 0 if is_packed else n_rows, explain=partial(tables.explain_json, content)
        )
    for magic, other in _MAGIC.items():
        if head.startswith(magic):
            kind = "ZIP: NPZ or Excel" if other == "npz" else other
            raise InputError(f"not a text file (looks like {kind}). Pass --input-format")
    dialect = tables.read_dialect(head, format)
    frame = tables.scan_text(content, dialect, is_packed=is_packed)
    explain = partial(tables.explain_text, content, dialect)
    n_rows = 0 if is_packed else n_rows
    return Table(name, dialect.names, frame, n_rows, dialect.separator, explain=explain)


def _scan_binary(name: str, content: Content, head: bytes, format: str, others: Sequence[Path]) -> Table:
    if format == "parquet" and not head.startswith(b"PAR1"):
        raise InputError("not a Parquet file")
    source: Any = content if isinstance(content, bytes) else [content, *others]
    # The folders of a partitioned table are columns: year=2026/part-0.parquet
    hive = not isinstance(content, bytes) and all("=" in path.parent.name for path in source)
    if format == "parquet":
        # Some files of a folder may be float32 and others float64.
        casts = pl.ScanCastOptions(integer_cast="upcast", float_cast="upcast")
        frame = pl.scan_parquet(source, glob=False, hive_partitioning=hive, cast_options=casts)
    elif head.startswith(b"ARROW1"):
        frame = pl.scan_ipc(source, glob=False, hive_partitioning=hive)
    else:
        frame = pl.concat([pl.read_ipc_stream(part) for part in (content, *others)]).lazy()
    explain = partial(_explain_folder, source) if others else first_line
    return Table(name, tuple(frame.collect_schema().names()), frame, explain=explain)


def _explain_folder(paths: list[Path], error: BaseException) -> str:
    """Return which file has other columns than the first, if that is the problem."""
    names = [set(pl.read_parquet_schema(path)) for path in paths if path.suffix.lower() in PARQUET]
    odd = next((path for path, columns in zip(paths, names, strict=False) if columns != names[0]), None)
    return first_line(error) if odd is None else f"{odd.name} has other columns than {paths[0].name}"


def _load_arrays(content: Content, format: str) -> dict[str, NDArray[Any]]:
    # Opened here, because NumPy leaves a damaged archive open.
    with opened(content) as file:
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
        _check_unpacked("it", zipfile.ZipFile(file))
    file.seek(0)


def _check_unpacked(name: str, archive: zipfile.ZipFile) -> None:
    size = sum(member.file_size for member in archive.infolist())
    if size > _MOST_UNPACKED:
        raise InputError(
            f"{name} unpacks to {size / 1e9:.1f} GB. Save it as Parquet, which is read in batches"
        )


def _columns_of(array: NDArray[Any]) -> dict[str, NDArray[Any]]:
    if array.dtype.names:
        return {name: array[name] for name in array.dtype.names}
    columns = array.reshape(len(array), -1)
    return {f"column_{k}": columns[:, k] for k in range(columns.shape[1])}


# --- Logs of language models ----------------------------------------------------------------------


def open_log(source: str, path: Path) -> Table:
    """Return the answers of a log of Inspect: question, epoch, whether the answer is right, and its confidence."""
    from truecal.integrations.llm import read_eval_log

    answers = read_eval_log(path)
    columns = {
        "question": answers.question.astype(str),
        "epoch": answers.repeat,
        "correct": answers.correct,
        "confidence": answers.confidence,
    }
    return Table(
        source,
        tuple(columns),
        columns,
        label="correct",
        cluster="" if answers.clusters is None else "question",
        scores=("confidence",),
        notes=tuple(filter(None, (answers.left_out, answers.incomplete))),
        doubt=answers.doubt,
    )
