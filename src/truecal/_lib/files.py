"""Files that are written whole or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal


@contextmanager
def whole_file(
    path: str | Path, mode: Literal["w", "wb"] = "w", *, newline: str | None = None
) -> Iterator[IO[Any]]:
    """Open a file for writing that takes its name only when all of it is there.

    It is written beside `path` under another name and then renamed. If anything goes wrong, what stood there
    before stays as it was. A device or a pipe, such as ``/dev/stdout``, is written to directly.

    Parameters
    ----------
    path : str or Path
        The file; its folder must be there.
    mode : {"w", "wb"}
        Text, in UTF-8, or bytes.
    newline : str, optional
        As for `open`.

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
        with path.open(mode, encoding=encoding, newline=newline) as file:
            yield file
        return
    path = path.resolve()  # through a link, which is to stay one
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}.")
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        # Opened by name, not by `tempfile`, so that the file gets the usual permissions.
        with temporary.open("x" if mode == "w" else "xb", encoding=encoding, newline=newline) as file:
            yield file
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as file:
        file.write(text)
