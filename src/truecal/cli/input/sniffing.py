"""What kind of file this is, told from its name and its first bytes."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".json": "jsonl", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".npz": "npz", ".npy": "npy",
}  # fmt: skip
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
_COMPRESSED = (".gz", ".zst")
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: How files begin that are not text.
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",  # a stream of it
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_HEAD = 1 << 16
_SEPARATORS = ",\t;|"


def format_by_name(path: Path) -> str:
    """Return the format that the name of a file tells, or ask for it."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _COMPRESSED]
    if not suffixes or suffixes[-1] not in SUFFIXES:
        raise ValueError(
            f"{path}: what kind of file is this? Its name should end in {', '.join(SUFFIXES)} "
            f"(text also in .gz or .zst), or name the kind with --input-format."
        )
    return SUFFIXES[suffixes[-1]]


def format_by_content(head: bytes) -> str:
    """Return the format that the first bytes tell; text that is not JSON is taken for CSV."""
    for magic, format in _MAGIC.items():
        if head.startswith(magic):
            return format
    return "jsonl" if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[") else "csv"


def read_head(source: Path | bytes) -> bytes:
    """Return the first bytes of a file, unpacked if it is compressed."""
    raw = source[:_HEAD] if isinstance(source, bytes) else _first_bytes(source)
    if raw.startswith(_GZIP):
        try:
            return gzip.GzipFile(fileobj=io.BytesIO(raw)).read1(_HEAD)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"its compression (gzip) is damaged: {error}") from error
    if raw.startswith(_ZSTD):
        return _first_lines_of_zstd(source)
    return raw


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)


def _first_lines_of_zstd(source: Path | bytes) -> bytes:
    """Let Polars unpack two lines: before 3.14 Python itself cannot read zstd."""
    import polars as pl

    try:
        frame = pl.read_csv(
            source,
            n_rows=2,
            has_header=False,
            separator="\x1f",
            quote_char=None,
            infer_schema=False,
            encoding="utf8-lossy",
        )
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"its compression (zstd) is damaged or it is empty: {error}") from error
    return "\n".join(line or "" for line in frame.to_series()).encode()


@dataclass(frozen=True)
class Dialect:
    """How the lines of a text file are to be cut, and the names in its first line."""

    separator: str
    decimal_comma: bool
    names: tuple[str, ...]

    @property
    def repeated(self) -> set[str]:
        """Names that more than one column has."""
        return {name for name, times in Counter(self.names).items() if times > 1}


def read_dialect(head: bytes, format: str) -> Dialect:
    r"""Tell the separator and the decimal sign from the first lines; refuse what is no text.

    Examples
    --------
    >>> read_dialect(b"label;score\n1;0,25\n", "csv")
    Dialect(separator=';', decimal_comma=True, names=('label', 'score'))
    """
    for magic, other in _MAGIC.items():
        if head.startswith(magic):
            kind = "ZIP (NPZ, Excel)" if other == "npz" else other
            raise ValueError(f"it is no text but a file of the kind {kind}; name that with --input-format")
    if head.startswith(_UTF16):
        raise ValueError("it is text in UTF-16; save it as UTF-8")
    if b"\0" in head:
        raise ValueError("it holds bytes that no text has")
    first, _, rest = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")
    try:
        header = first.decode().strip("\r")
    except UnicodeDecodeError:
        raise ValueError("the names in its first line are not UTF-8; save it as UTF-8") from None
    bare = re.sub(r'"[^"]*"', "", header)
    separator = "\t" if format == "tsv" else max(_SEPARATORS, key=bare.count)
    names = tuple(name.strip() for name in next(csv.reader([header], delimiter=separator), []))
    second = rest.partition(b"\n")[0].decode(errors="replace")
    fields = next(csv.reader([second], delimiter=separator), [])
    decimal_comma = separator != "," and any(re.fullmatch(r"\s*-?\d*,\d+\s*", field) for field in fields)
    if names and all(re.fullmatch(r"-?[\d.]+(e-?\d+)?", name) for name in names):
        raise ValueError(
            "its first line holds numbers only; put a line with the names of the columns before it"
        )
    return Dialect(separator, decimal_comma, names)


def find_long_line(path: Path, separator: str, n_columns: int) -> int | None:
    """Return the number of the first line with more fields than there are columns."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=separator)
        return next((reader.line_num for row in reader if len(row) > n_columns), None)
