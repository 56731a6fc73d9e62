"""What commands write: results, notes, progress, and errors of the library in the terms of the command line."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click
from numpy.typing import NDArray

from truecal._lib.checks import require
from truecal._lib.files import whole_file, write_text
from truecal._lib.text import Progress, fitted, printable, text_width
from truecal.exceptions import InputError, Remedy
from truecal.results import SCHEMA_VERSION, jsonable

if TYPE_CHECKING:
    from truecal.cli._input.predictions import Predictions
    from truecal.results import Interval

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
        *,
        fit: bool = True,
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
            show(result, fit=fit and self.style != "json")
        else:
            write_text(self.path, result + "\n")
            say(f"wrote {self.path}")


def json_head(command: str) -> dict[str, Any]:
    """Return what the JSON of every command begins with."""
    return {"schema_version": SCHEMA_VERSION, "command": command}


def show_notes(predictions: Predictions | None, *, quiet: bool = False) -> None:
    """Print what was detected, on standard error; with --verbose also how the file was read."""
    if predictions is not None and is_verbose():
        say(f"{predictions.source} has {predictions.table.describe()}")
    for note in predictions.notes if predictions is not None and not quiet else ():
        say(note)


def show(text: str, *, fit: bool = True) -> None:
    """Print a result, fitted to the width of a terminal."""
    click.echo(printable(fitted(text, text_width()) if fit and sys.stdout.isatty() else text))


def say(note: str) -> None:
    """Print a sentence on standard error, on a terminal in its width."""
    text = printable(f"truecal: {note}{'' if note.endswith(('?', '.')) else '.'}")
    click.echo(fitted(text, text_width()) if sys.stderr.isatty() else text, err=True)


def save_picture(figure: Any, path: Path, **options: Any) -> None:
    """Write a figure to a file, in the format that its name implies."""
    with whole_file(path, "wb") as file:
        figure.savefig(file, format=path.suffix[1:].lower(), **options)
    say(f"wrote {path}")


def check_target(path: Path | None, *sources: str) -> None:
    """Refuse an output file that cannot be written, or that is the input, before the work starts."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}")
    for source in sources:
        if path.is_file() and Path(source).is_file() and path.samefile(source):
            raise InputError(f"{path} is the input and would be overwritten. Choose another output file")


def check_picture(path: Path | None, *sources: str) -> None:
    """Refuse a picture that cannot be drawn or written."""
    if path is not None:
        require("matplotlib", extra="app", purpose="The picture")
        if path.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise InputError(f"{path}: choose a name that ends in .png, .svg or .pdf")
        check_target(path, *sources)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Show a step that takes long on a terminal until it is done; with --verbose, report its time."""
    if is_verbose():
        start = perf_counter()
        yield
        say(f"{name} took {perf_counter() - start:.2f} s")
        return
    with Progress(name):
        yield


def is_verbose() -> bool:
    """Return whether the running command was given --verbose."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(VERBOSE))


def as_json(content: dict[str, Any], indent: int | None = 2) -> str:
    """Return JSON; non-finite values become null, since JSON has no NaN."""
    return json.dumps(jsonable(content), indent=indent, ensure_ascii=False, allow_nan=False)


def wrapped(text: str) -> str:
    """Return text in lines of at most 80 characters, or of the width of the terminal."""
    return textwrap.fill(text, text_width(), break_long_words=False, break_on_hyphens=False)


def as_notes(notes: Iterable[str]) -> list[str]:
    """Return remarks as they are printed below a result."""
    return [wrapped(f"Note: {note}") for note in notes]


def ends(interval: Interval) -> str:
    """Return the two ends of an interval."""
    return f"{interval.low:.4f} to {interval.high:.4f}"


# --- Errors: columns, options, and rows counted from 1 ---------------------------------------------

#: Options whose name is not that of the argument.
_OPTIONS = {
    "n_resamples": "--resamples",
    "true_error": "--error",
    "names": "--score",
    "labels": "--classes",
    "clusters": "--cluster",
    "sample_weight": "--weight",
    "rng": "--seed",
    "by": "--group",
    "table": "--table",
    "neg_label": "--neg-label",
    "thresholds": "--threshold",
}
_SAME = (
    "alpha", "at_most", "average_run_length",
    "confidence_level", "criterion", "estimator", "horizon", "length", "max_depth", "method", "min_rows", "multiclass",
    "n_bins", "n_jobs", "norm", "pos_label", "power", "repeats", "sensitivity",
    "specificity", "validated",
)  # fmt: skip
_OPTIONS |= {name: f"--{name.replace('_', '-')}" for name in _SAME}


def describe(error: InputError, columns: Mapping[str, str] | None = None) -> str:
    """Return the message of an error of the library.

    Parameters
    ----------
    error : InputError
        The error; its rows are counted from 0.
    columns : mapping, optional
        What to call the arguments that are columns of a file.

    Examples
    --------
    >>> error = InputError("has 1 value outside [0, 1]", argument="y_proba", first_row=2, remedy=Remedy.CLIP)
    >>> describe(error, {"y_proba": "column 'p'"})
    "column 'p' has 1 value outside [0, 1] (first at row 3). If this is rounding, add --clip."
    """
    known = _OPTIONS | dict(columns or {})
    remedy = error.remedy.on_command_line if isinstance(error.remedy, Remedy) else None
    text = error.describe(argument=known.get(error.argument or ""), first_row_number=1, remedy=remedy)
    return " ".join([text, *(describe(other, columns) for other in error.others)])


@contextmanager
def naming(source: str, columns: Mapping[str, str], rows: NDArray[Any] | None = None) -> Iterator[None]:
    """Name the file and its columns in errors of the library; errors about options stay as they are.

    Parameters
    ----------
    source : str
        The file.
    columns : mapping
        What to call the arguments that are its columns.
    rows : ndarray of int, optional
        Numbers of the rows of the file that the library was given, if not all.
    """
    try:
        yield
    except InputError as error:
        if error.argument in _OPTIONS and error.argument not in columns:
            raise
        if rows is not None:
            if error.first_row is not None:
                error.first_row = int(rows[error.first_row])
            if error.remedy in (Remedy.DROP_ROWS, Remedy.UNLABELLED):  # --drop-missing was given already
                error.remedy = Remedy.DROP_ROWS.value
        message = describe(error, columns)
        raise InputError(message if message.startswith(source) else f"{source}: {message}") from error
