"""The library speaks of arguments; the command line of columns and options."""

from __future__ import annotations

import re
from collections.abc import Mapping

from truecal.exceptions import InputError, Remedy

_REMEDIES = {
    Remedy.LOGITS: "Pass probabilities; for logits add --logits.",
    Remedy.LOGITS_FLAG: "Pass probabilities; for logits add --logits.",
    Remedy.SCORES_ARE_LOGITS: "Pass probabilities; for logits add --logits.",
    Remedy.NOT_LOGITS: "Leave out --logits.",
    Remedy.CLIP: "If this is rounding, add --clip.",
    Remedy.SWAPPED: "Are --label and --score in the wrong order?",
    Remedy.POS_LABEL: "Choose the positive class with --pos-label.",
    Remedy.COLUMN_PER_CLASS: "For several classes name one column for each with --score, or the predicted class with "
    "--predicted.",
    Remedy.ONE_VERSUS_REST: "For one class against the rest name the columns of all classes with --score, and the "
    "class with --pos-label.",
    Remedy.LABELS: "Name the class of each column: --classes a,b,c.",
    Remedy.COLUMN_ORDER: "Give the order with --classes first,second, or name the column of the positive class alone.",
    Remedy.ONE_CLASS: "Choose a class with --pos-label, or the top label with --multiclass top.",
    Remedy.COUNTS: "Leave out --weight, or pass whole numbers.",
}

_TO_OPTIONS = (
    (r"multiclass='(\w+)'", r"--multiclass \1"),
    (r"estimator='(\w+)'", r"--estimator \1"),
    (r"\bpos_label\b", "--pos-label"),
    (r"\bn_bins\b", "--n-bins"),
    (r"\bconfidence_level\b", "--confidence-level"),
    (r"\bn_resamples\b", "--resamples"),
)


def for_command_line(error: ValueError, columns: Mapping[str, str]) -> str:
    """Return the message of an error of the library in the words of the command line.

    Parameters
    ----------
    error : ValueError
        The error; its rows are counted from 0.
    columns : mapping
        What to call the arguments ``y_true``, ``y_proba`` and ``sample_weight``. Empty before a file was read.

    Examples
    --------
    >>> error = InputError("has 1 value outside [0, 1]", argument="y_proba", first_row=2, value=1.7)
    >>> for_command_line(error, {"y_proba": "column 'p'"})
    "column 'p' has 1 value outside [0, 1] (first in data row 3: 1.7)."
    """
    if isinstance(error, InputError):
        remedy = _REMEDIES.get(error.remedy) if isinstance(error.remedy, Remedy) else None
        message = error.describe(
            argument=columns.get(error.argument or ""), first_row_number=1, remedy=remedy
        )
    else:
        message = str(error)
    for pattern, words in _TO_OPTIONS:
        message = re.sub(pattern, words, message)
    for argument, column in columns.items():
        message = re.sub(rf"\b{argument}\b", lambda _, column=column: column, message)  # type: ignore[misc]
    return message.replace("first at row", "first in data row")
