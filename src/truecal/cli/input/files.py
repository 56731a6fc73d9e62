"""From the name of a file to a table of columns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from truecal._lib.checks import did_you_mean, require
from truecal.cli.input.scanning import scan
from truecal.cli.input.sniffing import (
    GZIP,
    PARQUET,
    SUFFIXES,
    UTF8_MARK,
    ZSTD,
    encoding_of,
    format_by_content,
    format_by_name,
    is_utf8,
)
from truecal.cli.input.table import Table, first_line, repeated
from truecal.cli.input.unpacking import HEAD, named, unpack, unpacked
from truecal.exceptions import InputError

if TYPE_CHECKING:
    import polars as pl


def open_table(source: str, format: str | None = None, encoding: str | None = None) -> Table:
    """Open a file, a folder or glob of Parquet files, bundled data, or ``-`` for standard input.

    Parameters
    ----------
    source : str
        CSV, TSV, Parquet, JSON lines, Arrow or Feather, NPZ or NPY; text may be compressed (gz, zst).
    format : str, optional
        One of `truecal.cli.input.sniffing.FORMATS`; by default from the name, or the content of a pipe.
    encoding : str, optional
        Encoding of a text file. By default UTF-8, or UTF-16 where the file says so.
    """
    require("polars", extra="app", purpose="Reading tables")
    from truecal import datasets

    if source in datasets.NAMES and not Path(source).exists():
        path, label, scores = datasets.table(source)
        opened = open_table(str(path))
        return replace(opened, source=source, label=label, scores=scores)
    name = "standard input" if source == "-" else source
    paths = [] if source == "-" else _find(source)
    is_stream = source == "-" or source.startswith(("/dev/", "/proc/"))
    if is_stream or not paths[0].is_file():  # a pipe can be read once only
        with named(name), sys.stdin.buffer if source == "-" else paths[0].open("rb") as stream:
            head = stream.read(HEAD)
            format = format or (paths and format_by_name(paths[0])) or format_by_content(unpacked(head))
            content = unpack(name, head, stream, format, encoding)
        return scan(name, content, format)
    format = format or ("parquet" if Path(source).is_dir() else format_by_name(paths[0]))
    if format is None:
        raise InputError(
            f"{source}: unrecognised file extension; expected one of {', '.join(SUFFIXES)} (text also with .gz "
            f"or .zst). Pass --input-format"
        )
    content = paths
    if format in ("csv", "tsv", "jsonl"):
        if len(paths) > 1:
            return _joined(name, [open_table(str(path), format, encoding) for path in paths])
        with named(name), paths[0].open("rb") as stream:
            head = stream.read(HEAD)
            is_marked = format == "jsonl" and head.startswith(UTF8_MARK)  # which Polars does not skip there
            is_plain = not head.startswith(GZIP) and is_utf8(encoding or encoding_of(head)) and not is_marked
            if not is_plain and not head.startswith(ZSTD):
                content = unpack(name, head, stream, format, encoding)
    return scan(name, content, format)


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
    """Return the files that are meant, at least one."""
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
