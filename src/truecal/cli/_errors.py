"""Errors of the library in the terms of the command line: columns, options, and rows counted from 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

from truecal.exceptions import InputError, Remedy

#: What to do about bad input, with the options of the command line.
_REMEDIES = {
    "LOGITS": "Pass probabilities; for logits add --logits.",
    "LOGITS_FLAG": "Pass probabilities; for logits add --logits.",
    "SCORES_ARE_LOGITS": "Pass probabilities; for logits add --logits.",
    "NOT_LOGITS": "Leave out --logits.",
    "PERCENT": "If these are percentages, add --percent; for logits add --logits.",
    "SCALE_10": "If the scores run from 0 to 10, add --scale 10; for logits add --logits.",
    "SCALE": "If the scores run from 0 to a largest score, pass it with --scale, such as --scale 1000.",
    "ONE_SCALE": "Some values look like fractions and others do not: write all of them on one scale.",
    "LOG_PROBABILITIES": "For log probabilities add --log-probabilities; for logits add --logits.",
    "SCORES_ARE_LOG_PROBABILITIES": "For log probabilities add --log-probabilities; for logits add --logits.",
    "MISSING_CODE": "If {value} stands for a missing value, add --missing {value} --drop-missing.",
    "CLIP": "If this is rounding, add --clip.",
    "NORMALIZE": "Pass one probability for each class; if this is rounding, add --normalize; for logits add --logits.",
    "DROP_ROWS": "Fix these rows, or leave them out with --drop-missing.",
    "SWAPPED": "Are --label and --score in the wrong order? For fractions of annotators add --soft; a model's "
    "probabilities are those of a judge: --judge, with gold labels in some rows, --gold (truecal.labels.soft, judged).",
    "UNLABELLED": "Leave these rows out with --drop-missing, or pass these labels as --gold beside those of a --judge "
    "(truecal.labels.judged).",
    "POS_LABEL": "Choose the positive label with --pos-label.",
    "COLUMN_PER_CLASS": "For several classes name one column for each with --score, or the predicted class with "
    "--predicted.",
    "ONE_VERSUS_REST": "For one class against the rest name the columns of all classes with --score, and the class "
    "with --pos-label.",
    "LABELS": "Name the class of each column: --classes a,b,c.",
    "COLUMN_ORDER": "Give the order with --classes first,second, or name the column of the positive class alone.",
    "ONE_CLASS": "Choose a class with --pos-label, or the top label with --multiclass top.",
    "COUNTS": "Leave out --weight, or pass whole numbers.",
    "SAMPLING": "Leave out --counts for sampling weights.",
    "NO_CLUSTERS": "Leave out --cluster.",
}
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
    remedy = _REMEDIES.get(error.remedy.name) if isinstance(error.remedy, Remedy) else None
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
