"""Errors of the library in the terms of the command line: columns, options, and rows counted from 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

from truecal.exceptions import InputError, Remedy

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
        first = error.first_row if rows is None or error.first_row is None else int(rows[error.first_row])
        missing = (Remedy.DROP_ROWS, Remedy.UNLABELLED)
        dropped = rows is not None and error.remedy in missing  # --drop-missing was given already
        remedy = Remedy.DROP_ROWS.value if dropped else error.remedy
        moved = InputError(
            error.problem, argument=error.argument, first_row=first, value=error.value, remedy=remedy
        )
        moved.others = error.others
        message = describe(moved, columns)
        raise InputError(message if message.startswith(source) else f"{source}: {message}") from error
