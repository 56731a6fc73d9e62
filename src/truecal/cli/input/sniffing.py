"""What kind of file this is, from its name and its first bytes."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from truecal.exceptions import InputError

SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".json": "jsonl", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".npz": "npz", ".npy": "npy",
}  # fmt: skip
PARQUET = tuple(suffix for suffix, format in SUFFIXES.items() if format == "parquet")
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
#: The first bytes of binary files.
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",  # an Arrow stream
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
}
_EXCEL = (".xlsx", ".xls", ".xlsm", ".ods")
_SEPARATORS = ",\t;|"
_NUMBER = re.compile(r"\s*[+-]?[\d.]+(e[+-]?\d+)?\s*", re.IGNORECASE)


def format_by_name(path: Path) -> str | None:
    """Return the format that the name of a file implies, or None."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".zst")]
    if suffixes and suffixes[-1] in _EXCEL:
        raise InputError(f"{path}: spreadsheets are not supported. Save the sheet as CSV")
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


def format_by_content(head: bytes) -> str:
    """Return the format that the first bytes imply; text that is not JSON is taken for CSV."""
    for magic, format in _MAGIC.items():
        if head.startswith(magic):
            return format
    return "jsonl" if head.removeprefix(UTF8_MARK).lstrip()[:1] in (b"{", b"[") else "csv"


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


@dataclass(frozen=True)
class Dialect:
    """How a text table is laid out.

    Attributes
    ----------
    names : tuple of str
        Names of the columns.
    separator : str
        What separates the fields.
    end_of_line : str
        What ends a line: a line feed (a carriage return before it does not matter), or a carriage return.
    skip_lines : int
        Lines before the header.
    has_header : bool
        Whether the first line after these is the header.
    """

    names: tuple[str, ...]
    separator: str = ","
    end_of_line: str = "\n"
    skip_lines: int = 0
    has_header: bool = True


def read_dialect(head: bytes, format: str) -> Dialect:
    r"""Return the layout of a text table from its first bytes, or refuse what is not a text table.

    Examples
    --------
    >>> read_dialect(b"label;score\n1;0,25\n", "csv")
    Dialect(names=('label', 'score'), separator=';', end_of_line='\n', skip_lines=0, has_header=True)
    >>> read_dialect(b"sep=;\nlabel;score\n1;0,25\n", "csv").skip_lines
    1
    """
    for magic, other in _MAGIC.items():
        if head.startswith(magic):
            kind = "ZIP: NPZ or Excel" if other == "npz" else other
            raise InputError(f"not a text file (looks like {kind}). Pass --input-format")
    if b"\0" in head:
        raise InputError("contains NUL bytes; not a text file")
    end = "\r" if b"\r" in head and b"\n" not in head else "\n"
    try:
        text = head.removeprefix(UTF8_MARK).rpartition(end.encode())[0].decode() or head.decode()
    except UnicodeDecodeError:
        text = head.removeprefix(UTF8_MARK).decode("utf-8", "replace")
    lines = [line.strip("\r") for line in text.split(end)]
    skipped, declared = 0, None
    if match := re.fullmatch(r"sep=(.)", lines[0].strip('"').strip()):
        skipped, declared = 1, match[1]
    while skipped < len(lines) - 1 and (lines[skipped].startswith("#") or not lines[skipped].strip()):
        skipped += 1
    header = lines[skipped]
    if header.count('"') % 2:
        raise InputError("the header has a line break within quotation marks, or one of these too many")
    if "\N{REPLACEMENT CHARACTER}" in header:
        raise InputError("the column names are not UTF-8. Pass --encoding, such as --encoding latin-1")
    separator = declared or ("\t" if format == "tsv" else _separator(header))
    names = _fields(header, separator)
    if all(_NUMBER.fullmatch(name) for name in names):
        comment = _fields(lines[skipped - 1].lstrip("# "), separator) if skipped else []
        if len(comment) != len(names):
            raise InputError("the first line contains only numbers. Add a header line with column names")
        return Dialect(_stripped(comment), separator, end, skipped, has_header=False)
    return Dialect(_stripped(names), separator, end, skipped)


def _separator(header: str) -> str:
    bare = re.sub(r'"[^"]*"', "", header)
    return max(_SEPARATORS, key=bare.count)


def _fields(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error as error:
        raise InputError(f"the header cannot be read: {error}") from error


def _stripped(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in names)
