"""The bytes of a file or a pipe: unpacked, text in UTF-8, in memory or in a temporary file."""

from __future__ import annotations

import atexit
import codecs
import gzip
import io
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from truecal.cli.input.sniffing import GZIP, UTF8_MARK, ZSTD, encoding_of, is_utf8
from truecal.cli.input.table import first_line
from truecal.exceptions import InputError

#: Bytes that a pipe or a compressed file may unpack to in memory; beyond that, a temporary file holds them.
_IN_MEMORY = 1 << 28
#: Bytes that stay free on the disk of that temporary file.
_DISK_RESERVE = 1 << 30
#: Bytes that tell the format, and bytes that are read at once.
HEAD, _CHUNK = 1 << 16, 1 << 22

#: Where the bytes of a table are: files, or memory.
Content = list[Path] | bytes


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
    """Return the bytes of a pipe, a gzip file or text in another encoding: unpacked, text in UTF-8.

    They are kept in memory while they are few, else in a temporary file, so memory is bounded.
    """
    chunks = iter(lambda: stream.read(_CHUNK), b"")
    raw: IO[bytes] = cast("IO[bytes]", io.BufferedReader(_Chained(head, chunks)))
    if head.startswith(GZIP):
        raw = cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
        head = unpacked(head)
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


def head_of(name: str, content: Content) -> bytes:
    """Return the first bytes, unpacked; refuse an empty file."""
    if isinstance(content, bytes):
        head = content[:HEAD]
    else:
        with content[0].open("rb") as file:
            head = file.read(HEAD)
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
            f"{name} cannot be read: damaged or empty zstd file ({first_line(error)})"
        ) from error
    return "\n".join(line or "" for line in frame.to_series()).encode() + b"\n"
