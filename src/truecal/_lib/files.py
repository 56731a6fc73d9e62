"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

from truecal.exceptions import InputError


@contextmanager
def whole_file(
    path: str | Path, mode: Literal["w", "wb"] = "w", *, newline: str | None = None
) -> Iterator[IO[Any]]:
    """Open a file for writing that gets its final name only when it is complete.

    It is written beside `path` under another name and then renamed. If anything goes wrong, the previous file is left
    unchanged. A device or a pipe, such as ``/dev/stdout``, is written to directly.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "answer.txt"
    >>> with whole_file(path) as file:
    ...     _ = file.write("42")
    >>> path.read_text()
    '42'
    """
    path = Path(path)
    encoding = "utf-8" if mode == "w" else None
    if path.exists() and not path.is_file():
        try:
            with path.open(mode, encoding=encoding, newline=newline) as file:
                yield file
        except OSError as error:
            _name_file(error, None, path)
            raise
        return
    path = path.resolve()  # follow a symbolic link, which must stay one
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}.")
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        # Opened by name, not by `tempfile`, so that the file gets the usual permissions.
        with temporary.open("x" if mode == "w" else "xb", encoding=encoding, newline=newline) as file:
            yield file
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            _name_file(error, temporary, path)
        # From a library that has its own words for it; Polars also has errors of its own around that of the system.
        system = re.search(r"([^:]*) \(os error (\d+)\)$", str(error))
        if isinstance(error, Exception) and (system or (isinstance(error, OSError) and error.errno is None)):
            number, words = (int(system[2]), system[1].strip()) if system else (errno.EIO, str(error))
            raise OSError(number, words, str(path)) from error
        raise


def _name_file(error: OSError, temporary: Path | None, path: Path) -> None:
    """Put the user's file name into an OSError; other errors keep their text."""
    if error.errno is not None and error.filename in (None, str(temporary)):
        error.filename = str(path)


@contextmanager
def exclusive(path: str | Path) -> Iterator[None]:
    """Lock a file for writing during a block; raise if another process holds the lock.

    The lock is on a file beside `path` and ends with the process, however that ends.

    Examples
    --------
    >>> import tempfile
    >>> with exclusive(Path(tempfile.mkdtemp()) / "study.csv"):
    ...     pass
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}.")
    beside = path.with_name(f".{path.name[:100]}.lock")
    with beside.open("a+b") as file:
        try:
            _lock(file)
            if not os.path.samestat(beside.stat(), os.fstat(file.fileno())):
                raise OSError("removed by the process that held the lock before")
        except OSError as error:
            raise InputError(
                f"another process is writing {path}. Wait for it, or use another file"
            ) from error
        try:
            yield
        finally:
            if sys.platform != "win32":  # where an open file cannot be removed
                beside.unlink(missing_ok=True)


def _lock(file: IO[bytes]) -> None:
    if sys.platform == "win32":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as file:
        file.write(text)
