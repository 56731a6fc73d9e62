"""Where results go: standard output, or a file that is written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def output_options(command: Command) -> Command:
    """Add the options that say how and where to write."""
    options = [
        click.option(
            "--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True
        ),
        click.option(
            "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write to."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def write_text(path: Path, text: str) -> None:
    """Write a file under another name, then rename it, so that nothing half-written is ever seen."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def emit(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file and say so."""
    if output is None:
        click.echo(text)
    else:
        write_text(output, text + "\n")
        click.echo(f"truecal: wrote {output}.", err=True)


def as_json(content: dict[str, Any]) -> str:
    """Return JSON with the version of its layout; what is not a number is null, as JSON has no NaN."""
    return json.dumps(_plain({"schema_version": 1, **content}), indent=2, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and (value != value or abs(value) == float("inf")) else value


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
