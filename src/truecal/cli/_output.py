"""Where results go: standard output, or a file that is written whole or not at all."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from truecal._lib.files import write_text
from truecal.results import plain

_REMARKS = "truecal.remarks"


def say_later(text: str) -> None:
    """Keep a remark for the end of the command, so that an error stands alone."""
    click.get_current_context().meta.setdefault(_REMARKS, []).append(text)


def say_remarks() -> None:
    """Print the remarks that were kept, on standard error."""
    context = click.get_current_context(silent=True)
    for text in context.meta.pop(_REMARKS, []) if context else []:
        click.echo(text, err=True)


def emit(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file and say so."""
    say_remarks()
    if output is None:
        click.echo(text)
    else:
        write_text(output, text + "\n")
        say_written(output)


def check_folder(path: Path | None) -> None:
    """Refuse a file that could not be written, before the work and not after it."""
    if path is not None and not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}.")


def say_written(path: Path) -> None:
    """Say that a file was written."""
    say_remarks()
    click.echo(f"truecal: wrote {path}.", err=True)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Show on a terminal what is being done, and take it away when it is done."""
    if not sys.stderr.isatty():
        yield
        return
    click.echo(f"\r\x1b[2K{name} ...", err=True, nl=False)
    try:
        yield
    finally:
        click.echo("\r\x1b[2K", err=True, nl=False)


def as_json(content: dict[str, Any]) -> str:
    """Return JSON with the version of its layout; what is not a number is null, as JSON has no NaN."""
    return json.dumps(plain({"schema_version": 1, **content}), indent=2, ensure_ascii=False, allow_nan=False)


def as_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int = 1) -> str:
    """Lay out a table for people; the first columns are text, the others numbers."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in [head, *rows]:
        cells = [
            cell.ljust(width) if place < text_columns else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
