"""Writing results to standard output or a file."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from truecal._lib.checks import require
from truecal._lib.files import write_text
from truecal._lib.text import WIDTH, printable
from truecal.exceptions import InputError
from truecal.results import SCHEMA_VERSION, jsonable

if TYPE_CHECKING:
    from truecal.cli._input.predictions import Predictions

#: Where a command keeps whether to report each step.
VERBOSE = "truecal.verbose"


@dataclass(frozen=True)
class Output:
    """How and where a command writes its result: the options --format, --output and --quiet."""

    style: str = "table"
    path: Path | None = None
    quiet: bool = False

    def finish(
        self,
        command: str,
        content: Callable[[], dict[str, Any]],
        text: Callable[[], str],
        predictions: Predictions | None = None,
    ) -> None:
        """Write the result of a command: text, or JSON with the columns used and what was detected."""
        if self.style == "json":
            head = json_head(command)
            if predictions is not None:
                head |= {"source": predictions.source, "columns": predictions.columns.to_dict()}
                head["detected"] = list(predictions.notes)
            result = as_json({**head, **content()})
        else:
            result = text()
        show_notes(predictions, quiet=self.quiet)
        if self.path is None:
            click.echo(printable(fitted(result) if sys.stdout.isatty() and self.style != "json" else result))
        else:
            write_text(self.path, result + "\n")
            show_written(self.path)


def json_head(command: str) -> dict[str, Any]:
    """Return what the JSON of every command begins with."""
    return {"schema_version": SCHEMA_VERSION, "command": command}


def show_notes(predictions: Predictions | None, *, quiet: bool = False) -> None:
    """Print what was detected, on standard error; with --verbose also how the file was read."""
    if predictions is not None and is_verbose():
        click.echo(printable(f"truecal: {predictions.source} has {predictions.table.describe()}."), err=True)
    for note in predictions.notes if predictions is not None and not quiet else ():
        click.echo(printable(f"truecal: {note}{'' if note.endswith(('?', '.')) else '.'}"), err=True)


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


def check_picture(path: Path | None, source: str | None, purpose: str, problem: str) -> None:
    """Refuse a picture that cannot be drawn or written; `problem` is that of another format, with ``{path}``."""
    if path is not None:
        require("matplotlib", extra="app", purpose=purpose)
        if path.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise InputError(problem.format(path=path))
        check_target(path, *([source] if source else []))


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Show the current step on a terminal until it is done; with --verbose, report its time."""
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
    """Return JSON; non-finite values become null, since JSON has no NaN."""
    return json.dumps(jsonable(content), indent=2, ensure_ascii=False, allow_nan=False)


def fitted(text: str, width: int | None = None) -> str:
    r"""Return text whose prose fits the terminal, down to 60 columns; tables, which have columns, stay as they are.

    Examples
    --------
    >>> print(fitted("a sentence of some words\na  table  of  columns", 14))
    a sentence of
    some words
    a  table  of  columns
    """
    width = max(shutil.get_terminal_size().columns, 60) if width is None else width
    lines = [
        [line]
        if len(line) <= width or "  " in line.strip()
        else textwrap.wrap(line, width, break_long_words=False)
        for line in text.splitlines()
    ]
    return "\n".join(part for line in lines for part in line)


def wrapped(*sentences: str) -> str:
    """Return sentences in lines of at most 80 characters."""
    return textwrap.fill(" ".join(sentences), WIDTH, break_long_words=False, break_on_hyphens=False)
