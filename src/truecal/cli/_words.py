"""The library speaks of arguments; the command line of columns and options."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TO_OPTIONS = (
    (r"Pass pos_label=(.+?) \(or another\)", r"Pass --pos-label \1 (or another)"),
    (r"[Ff]or logits use truecal\.data\.from_logits", "for logits add --logits"),
    (r"pass numpy\.clip\(y_proba, 0, 1\)", "add --clip"),
    (r"Pass labels=\[\.\.\.\] to name the class of each column", "Name the class of each column: --classes a,b,c"),
    (r"For one class against the rest pass y_true == .*?, or y_proba with one column for each class\.",
     "For one class against the rest name the columns of all classes with --score, and the class with --pos-label."),
    (r"For several classes pass y_proba with one column for each class",
     "For several classes name one column for each with --score, or the predicted class with --predicted"),
    (r"Pass labels=\[first, second\], or the column of the positive class with pos_label",
     "Say the order with --classes first,second, or name the column of the positive class alone"),
    (r"Labels come first, then probabilities: are they the wrong way round\?",
     "Are --label and --score the wrong way round?"),
    (r"multiclass='(\w+)'", r"--multiclass \1"),
    (r"estimator='(\w+)'", r"--estimator \1"),
    (r"\bpos_label\b", "--pos-label"),
    (r"\bn_bins\b", "--n-bins"),
    (r"\bconfidence_level\b", "--confidence-level"),
    (r"\bn_resamples\b", "--resamples"),
)  # fmt: skip


def for_command_line(message: str, columns: Mapping[str, str]) -> str:
    """Return a message of the library in the words of the command line.

    Parameters
    ----------
    message : str
        What the library said; rows are counted from 0.
    columns : mapping
        What to call the arguments ``y_true``, ``y_proba`` and ``sample_weight``. Empty before a file was read.

    Examples
    --------
    >>> for_command_line("y_proba has 1 value (first at row 2: 1.7) outside [0, 1].", {"y_proba": "column 'p'"})
    "column 'p' has 1 value (in data row 3: 1.7) outside [0, 1]."
    """
    for pattern, words in _TO_OPTIONS:
        message = re.sub(pattern, words, message)
    for argument, column in columns.items():
        message = re.sub(rf"\b{argument}\b", lambda _, column=column: column, message)  # type: ignore[misc]
    message = re.sub(r"\b1 ([\w() ]+) \(first at row (\d+)", _in_one_row, message)
    message = re.sub(r"\bfirst at row (\d+)", lambda match: f"first in data row {int(match[1]) + 1}", message)
    return re.sub(r"\brow (\d+), sums", lambda match: f"data row {int(match[1]) + 1}, sums", message)


def _in_one_row(match: re.Match[str]) -> str:
    return f"1 {match[1]} (in data row {int(match[2]) + 1}"
