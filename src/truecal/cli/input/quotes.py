"""Quotation marks in text tables: around fields, plain characters, or in places where readers disagree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from truecal.exceptions import InputError

_QUOTE, _CHUNK = ord('"'), 1 << 26


def has_quoted_fields(content: list[Path] | bytes, separator: str) -> bool:
    r"""Return whether quotation marks stand around fields; if all of them are plain characters, they do not.

    A mark inside a field, as in ``5"2``, turns the next line breaks into text for some readers, and rows vanish. A
    table that has such marks beside quoted fields is refused.

    Parameters
    ----------
    content : list of Path, or bytes
        The table.
    separator : str
        What separates the fields.

    Examples
    --------
    >>> has_quoted_fields(b'label,score,text\n1,0.5,"yes, please"\n', ",")
    True
    >>> has_quoted_fields(b'label,score,size\n1,0.5,5"2\n', ",")
    False
    """
    quoted = False
    for part in [content] if isinstance(content, bytes) else content:
        data = (
            np.frombuffer(part, np.uint8) if isinstance(part, bytes) else np.memmap(part, np.uint8, mode="r")
        )
        opened, stray = _examine(data, separator)
        if opened and stray is not None:
            line = int(np.count_nonzero(data[:stray] == ord("\n"))) + 1
            raise InputError(
                f"line {line} has a quotation mark that neither begins nor ends a field. Double it, and put the "
                f"field in quotation marks"
            )
        quoted |= opened
    return quoted


def _examine(data: NDArray[np.uint8], separator: str) -> tuple[bool, int | None]:
    """Return whether any mark begins a field, and where the first stands that neither begins nor ends one."""
    around, begin = np.zeros((2, 256), bool)  # whether a byte may stand beside a mark, and before a field
    around[[*separator.encode(), *b"\r\n \t", _QUOTE]] = True
    begin[[*separator.encode(), *b"\r\n", 0xBF]] = True  # the last is that of a byte order mark
    opened, stray, n_before, last = False, None, 0, 0
    for start in range(0, len(data), _CHUNK):
        at = np.flatnonzero(data[start : start + _CHUNK] == _QUOTE) + start
        if not len(at):
            continue
        newline = np.uint8(ord("\n"))
        before = np.where(at > 0, data[at - 1], newline)
        after = np.where(at + 1 < len(data), data[np.minimum(at + 1, len(data) - 1)], newline)
        opening = (n_before + np.arange(len(at))) % 2 == 0
        is_begin = begin[before]
        opened |= bool(is_begin.any())
        wrong = np.where(opening, ~(is_begin | around[before]), ~around[after])
        if stray is None and wrong.any():
            stray = int(at[wrong.argmax()])
        n_before, last = n_before + len(at), int(at[-1])
    if stray is None and n_before % 2:
        stray = last
    return opened, stray
