"""The formats of tables: recognised by the name or the first bytes of a file, and read."""

from __future__ import annotations

import io
import zipfile
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truecal.cli.input import table as tables
from truecal.cli.input.table import Content, Table, first_line
from truecal.cli.input.text_tables import (
    UTF8_MARK,
    explain_json,
    explain_text,
    read_dialect,
    scan_json,
    scan_text,
)
from truecal.exceptions import InputError

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".json": "jsonl", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".npz": "npz", ".npy": "npy", ".eval": "eval",
}  # fmt: skip
PARQUET = tuple(suffix for suffix, format in SUFFIXES.items() if format == "parquet")
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
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
_EXCEL = (".xlsx", ".xls", ".xlsm", ".ods")
#: An archive of arrays is unpacked in memory; larger ones are refused.
_MOST_UNPACKED = 4_000_000_000
#: Bytes that tell the format.
HEAD = 1 << 16


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


def scan(name: str, content: Content, format: str) -> Table:
    """Return the table that bytes of a known format hold; errors name the file."""
    import polars as pl

    head = head_of(name, content)
    try:
        if format in ("npz", "npy"):
            arrays = _load_arrays(content, format)
            return Table(name, tuple(arrays), arrays)
        scan_format = _scan_text if format in TEXT else _scan_binary
        return scan_format(name, content, head, format)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, InputError) as error:
        if isinstance(error, pl.exceptions.NoDataError):
            raise InputError(f"{name} is empty") from error
        is_polars = format == "jsonl" and not isinstance(error, InputError)
        reason = explain_json(content, error) if is_polars else first_line(error)
        raise InputError(f"{name} cannot be read as {format}: {reason}") from error


def _scan_text(name: str, content: Content, head: bytes, format: str) -> Table:
    """Return a table of text; how many rows it has is judged by its bytes, unless they are packed."""
    n_bytes = len(content) if isinstance(content, bytes) else sum(path.stat().st_size for path in content)
    is_packed = not isinstance(content, bytes) and content[0].name.lower().endswith(".zst")
    size: dict[str, Any] = {
        "n_bytes": 0 if is_packed else n_bytes,
        "bytes_per_row": len(head) / max(head.count(b"\n"), 1),
    }
    if format == "jsonl":
        frame = scan_json(content, head, is_large=n_bytes > tables.MANY_BYTES)
        names = tuple(frame.collect_schema().names())
        return Table(name, names, frame, **size, explain=partial(explain_json, content))
    for magic, other in _MAGIC.items():
        if head.startswith(magic):
            kind = "ZIP: NPZ or Excel" if other == "npz" else other
            raise InputError(f"not a text file (looks like {kind}). Pass --input-format")
    dialect = read_dialect(head, format)
    frame = scan_text(content, dialect, is_packed=is_packed)
    explain = partial(explain_text, content, dialect)
    return Table(name, dialect.names, frame, separator=dialect.separator, **size, explain=explain)


def _scan_binary(name: str, content: Content, head: bytes, format: str) -> Table:
    if format == "parquet" and not head.startswith(b"PAR1"):
        raise InputError("not a Parquet file")
    frame = _binary_frame(content, format, is_stream=format == "arrow" and not head.startswith(b"ARROW1"))
    explain = partial(_explain_folder, content) if isinstance(content, list) else first_line
    return Table(name, tuple(frame.collect_schema().names()), frame, explain=explain)


def _binary_frame(content: Content, format: str, *, is_stream: bool) -> pl.LazyFrame:
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
    # Opened here, because NumPy leaves a damaged archive open.
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
