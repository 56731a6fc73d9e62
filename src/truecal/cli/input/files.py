"""From the name of a file to its bytes, unpacked and with text in UTF-8, and to a table."""

from __future__ import annotations

import atexit
import codecs
import gzip
import io
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from truecal._lib.checks import did_you_mean, require
from truecal.cli.input.formats import (
    GZIP,
    HEAD,
    PARQUET,
    SUFFIXES,
    TEXT,
    ZSTD,
    format_by_content,
    format_by_name,
    scan,
)
from truecal.cli.input.logs import open_log
from truecal.cli.input.table import Content, Table, first_line, repeated
from truecal.cli.input.text_tables import UTF8_MARK
from truecal.exceptions import InputError

if TYPE_CHECKING:
    import polars as pl

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
        CSV, TSV, Parquet, JSON lines, Arrow or Feather, NPZ or NPY, or a log of Inspect (.eval); text may be
        compressed (gz, zst).
    format : str, optional
        One of `truecal.cli.input.formats.FORMATS`; by default from the name, or the content of a pipe.
    encoding : str, optional
        Encoding of a text file. By default UTF-8, or UTF-16 where the file says so.
    """
    require("polars", extra="app", purpose="Reading tables")
    from truecal import datasets

    if source in datasets.NAMES and not Path(source).exists():
        path, label, scores = datasets.table(source)
        opened = open_table(str(path))
        return replace(opened, source=source, label=label, scores=scores)
    if source == "-":
        return _open_stream("standard input", sys.stdin.buffer, format, encoding)
    paths = _find(source)
    if (
        source.startswith(("/dev/", "/proc/")) or not paths[0].is_file()
    ):  # a pipe, which can be read once only
        with paths[0].open("rb") as stream:
            return _open_stream(source, stream, format, encoding, paths[0])
    format = format or ("parquet" if Path(source).is_dir() else format_by_name(paths[0]))
    if format is None:
        raise InputError(
            f"{source}: unrecognised file extension; expected one of {', '.join(SUFFIXES)} (text also with .gz "
            f"or .zst). Pass --input-format"
        )
    if format == "eval":
        return open_log(source, paths[0])
    if format not in TEXT:
        return scan(source, paths, format)
    if len(paths) > 1:
        return _joined(source, [open_table(str(path), format, encoding) for path in paths])
    return scan(source, _text_of(source, paths[0], format, encoding), format)


def _open_stream(
    name: str, stream: IO[bytes], format: str | None, encoding: str | None, path: Path | None = None
) -> Table:
    """Open a stream that can be read only once; its format is given, or implied by its name or content."""
    with named(name):
        head = stream.read(HEAD)
        format = format or (path and format_by_name(path)) or format_by_content(unpacked(head))
        content = unpack(name, head, stream, format, encoding)
    return scan(name, content, format)


def _text_of(name: str, path: Path, format: str, encoding: str | None) -> Content:
    """Return a text file itself if Polars can read it, else its bytes unpacked and in UTF-8."""
    with named(name), path.open("rb") as stream:
        head = stream.read(HEAD)
        is_marked = format == "jsonl" and head.startswith(UTF8_MARK)  # which Polars does not skip there
        is_plain = not head.startswith(GZIP) and is_utf8(encoding or encoding_of(head)) and not is_marked
        if is_plain or head.startswith(ZSTD):
            return [path]
        return unpack(name, head, stream, format, encoding)


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
        reasons = (f"{part.source}: {part.explain(error)}" for part in parts)
        return next(
            (reason for reason in reasons if not reason.endswith(first_line(error))), first_line(error)
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
    from truecal import datasets

    raise InputError(f"{source}: no such file", remedy=did_you_mean(source, datasets.NAMES))


def encoding_of(head: bytes) -> str:
    """Return the encoding that the first bytes declare, UTF-8 where they declare none."""
    return "utf-16" if head.startswith(_UTF16_MARKS) else "utf-8"


def is_utf8(encoding: str) -> bool:
    """Return whether an encoding is UTF-8 under any of its names, or refuse one that is unknown."""
    try:
        "".encode(encoding)  # which refuses encodings of bytes, such as hex
        return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")
    except LookupError:
        raise InputError(
            f"{encoding!r} is unknown. Use a name such as latin-1", argument="--encoding"
        ) from None


@contextmanager
def named(name: str) -> Iterator[None]:
    """Name the file in every error that unpacking or decoding its bytes raises."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name} cannot be read: damaged gzip file ({error})") from error
    except UnicodeError as error:
        raise InputError(f"{name} cannot be read: {first_line(error)}. Pass the right --encoding") from error


def unpacked(head: bytes) -> bytes:
    """Return the beginning of a file, unpacked if it is gzip."""
    return gzip.GzipFile(fileobj=io.BytesIO(head)).read1(HEAD) if head.startswith(GZIP) else head


def unpack(name: str, head: bytes, stream: IO[bytes], format: str, encoding: str | None) -> Content:
    """Return the bytes of a pipe, a gzip file or text in another encoding: unpacked, text in UTF-8."""
    chunks = iter(lambda: stream.read(_CHUNK), b"")
    raw: IO[bytes] = cast("IO[bytes]", io.BufferedReader(_Chained(head, chunks)))
    if head.startswith(GZIP):
        raw = cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
        head = unpacked(head)
    if format in TEXT and not is_utf8(encoding or encoding_of(head)):
        return _keep(name, _in_utf8(raw, encoding or encoding_of(head)))
    if format == "jsonl" and head.startswith(UTF8_MARK):
        return _keep(name, _in_utf8(raw, "utf-8-sig"))
    return _keep(name, iter(lambda: raw.read(_CHUNK), b""))


def _in_utf8(raw: IO[bytes], encoding: str) -> Iterator[bytes]:
    """Yield text in another encoding as UTF-8."""
    decode = codecs.getincrementaldecoder(encoding)().decode
    encode = codecs.getincrementalencoder("utf-8")().encode
    while chunk := raw.read(_CHUNK):
        yield encode(decode(chunk))
    yield encode(decode(b"", True), True)


def _keep(name: str, chunks: Iterator[bytes]) -> Content:
    """Return bytes in memory while they are few, else in a temporary file, so that memory is bounded."""
    memory = io.BytesIO()
    for chunk in chunks:
        memory.write(chunk)
        if memory.tell() > _IN_MEMORY:
            return [_on_disk(name, chain([memory.getvalue()], chunks))]
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
