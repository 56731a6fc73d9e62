"""Where results go: standard output, or a file."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from truecal._lib.files import write_text
from truecal.exceptions import InputError
from truecal.results import plain

if TYPE_CHECKING:
    from truecal.cli.input.loaded import Predictions

#: Control characters, and those that reverse the direction of text.
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
#: Where a command keeps whether to report each step.
VERBOSE = "truecal.verbose"
#: Columns of text output, and the smallest width of a text column in a table.
WIDTH, _NARROWEST = 80, 12


def printable(text: str) -> str:
    r"""Return text whose control characters are escaped, so that a terminal does not obey them.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a\\u001b[2Jb'
    """
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def finish(
    command: str,
    content: dict[str, Any],
    text: str,
    *,
    style: str,
    output: Path | None,
    predictions: Predictions | None = None,
    quiet: bool = False,
) -> None:
    """Write the result of a command: text, or JSON with the columns used and what was detected."""
    if style == "json":
        told: dict[str, Any] = {"schema_version": 1, "command": command}
        if predictions is not None:
            told |= {"source": predictions.source, "columns": predictions.columns.to_dict()}
            told["detected"] = list(predictions.notes)
        text = as_json({**told, **content})
    show_notes(predictions, quiet=quiet)
    if output is None:
        click.echo(printable(text))
    else:
        write_text(output, text + "\n")
        show_written(output)


def show_notes(predictions: Predictions | None, *, quiet: bool = False) -> None:
    """Print what was detected, on standard error; with --verbose also how the file was read."""
    if predictions is not None and is_verbose():
        click.echo(printable(f"truecal: {predictions.source} has {predictions.table.describe()}."), err=True)
    for note in predictions.notes if predictions is not None and not quiet else ():
        click.echo(printable(f"truecal: {note}{'' if note.endswith('?') else '.'}"), err=True)


def show_written(path: Path) -> None:
    """Report that a file was written."""
    click.echo(printable(f"truecal: wrote {path}."), err=True)


def check_target(path: Path | None, *sources: str) -> None:
    """Refuse an output file that cannot be written, or that is the input, before the work starts."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}")
    for source in sources:
        if path.is_file() and Path(source).is_file() and path.samefile(source):
            raise InputError(f"{path} is the input and would be overwritten. Choose another output file")


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Show on a terminal what is being done, and remove it when it is done; with --verbose, report the time."""
    if is_verbose():
        start = perf_counter()
        yield
        click.echo(f"truecal: {name} took {perf_counter() - start:.2f} s.", err=True)
        return
    if not sys.stderr.isatty():
        yield
        return
    click.echo(f"\r\x1b[2K{name} ...", err=True, nl=False)
    try:
        yield
    finally:
        click.echo("\r\x1b[2K", err=True, nl=False)


def is_verbose() -> bool:
    """Return whether the running command was given --verbose."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(VERBOSE))


def as_json(content: dict[str, Any]) -> str:
    """Return JSON; a value that is not finite is null, for JSON has no NaN."""
    return json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False)


def as_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int = 1) -> str:
    """Lay out a table in at most 80 columns; the first columns are text, which is shortened, the others numbers."""
    lines = [[printable(cell) for cell in row] for row in [head, *rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for _ in range(text_columns):
        widest = max(range(text_columns), key=widths.__getitem__)
        excess = sum(widths) + 2 * (len(widths) - 1) - WIDTH
        widths[widest] = max(widths[widest] - max(excess, 0), min(widths[widest], _NARROWEST))
    return "\n".join(
        "  ".join(
            _shortened(cell, width).ljust(width) if k < text_columns else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in lines
    )


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."


def wrapped(*sentences: str) -> str:
    """Return sentences in lines of at most 80 characters."""
    return textwrap.fill(" ".join(sentences), WIDTH, break_long_words=False, break_on_hyphens=False)
