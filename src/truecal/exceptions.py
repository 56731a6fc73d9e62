"""Errors and warnings of truecal: typed, so that callers need not read their text."""

from __future__ import annotations

import numbers
import sys
import warnings
from enum import Enum
from functools import partial
from typing import Any


class Remedy(Enum):
    """What to do about bad input: in Python, which is the value, and with the options of the command line."""

    def __new__(cls, text: str, on_command_line: str) -> Remedy:
        """Store both texts; the value of a member is the first."""
        remedy = object.__new__(cls)
        remedy._value_, remedy.on_command_line = text, on_command_line
        return remedy

    on_command_line: str

    LOGITS = (
        "Pass probabilities; for logits use truecal.Sample.from_logits.",
        "Pass probabilities; for logits add --logits.",
    )
    LOGITS_FLAG = (
        "Pass probabilities, or logits with logits=True.",
        "Pass probabilities; for logits add --logits.",
    )
    SCORES_ARE_LOGITS = (
        "Pass probabilities, or set input='logits'.",
        "Pass probabilities; for logits add --logits.",
    )
    NOT_LOGITS = (
        "Pass input='probabilities'.",
        "Leave out --logits.",
    )
    PERCENT = (
        "Pass fractions: divide percentages by 100.",
        "If these are percentages, add --percent; for logits add --logits.",
    )
    SCALE_10 = (
        "Pass fractions: divide scores from 0 to 10 by 10.",
        "If the scores run from 0 to 10, add --scale 10; for logits add --logits.",
    )
    SCALE = (
        "Pass fractions: divide the scores by the largest possible score.",
        "If the scores run from 0 to a largest score, pass it with --scale, such as --scale 1000.",
    )
    ONE_SCALE = (
        "Some values look like fractions and others do not: write all of them as fractions.",
        "Some values look like fractions and others do not: write all of them on one scale.",
    )
    SCORES_ARE_LOG_PROBABILITIES = (
        "Pass numpy.exp of log probabilities, or set input='logits' for logits.",
        "For log probabilities add --log-probabilities; for logits add --logits.",
    )
    LOG_PROBABILITIES = (
        "Pass probabilities: numpy.exp of log probabilities; for logits use truecal.Sample.from_logits.",
        "For log probabilities add --log-probabilities; for logits add --logits.",
    )
    MISSING_CODE = (
        "If {value} stands for a missing value, remove or fix these rows.",
        "If {value} stands for a missing value, add --missing {value} --drop-missing.",
    )
    CLIP = (
        "If this is rounding, pass numpy.clip(y_proba, 0, 1).",
        "If this is rounding, add --clip.",
    )
    NORMALIZE = (
        "Pass one probability for each class; divide each row by its sum if this is rounding.",
        (
            "Pass one probability for each class (for several models use compare); if this is rounding, add "
            "--normalize; for logits add --logits."
        ),
    )
    DROP_ROWS = (
        "Remove or fix these rows.",
        "Fix these rows, or leave them out with --drop-missing.",
    )
    SWAPPED = (
        (
            "Labels come first, then probabilities: are they in the wrong order? Fractions of annotators are "
            "passed with truecal.labels.soft, a judge's or model's probabilities beside gold labels with "
            "truecal.labels.judged."
        ),
        (
            "Are --label and --score in the wrong order? For fractions of annotators add --soft; a model's "
            "probabilities are those of a judge: --judge, with gold labels in some rows, --gold "
            "(truecal.labels.soft, judged)."
        ),
    )
    UNLABELLED = (
        (
            "Remove these rows (--drop-missing on the command line), or pass these labels as gold labels beside "
            "those of a judge: truecal.labels.judged."
        ),
        (
            "Leave these rows out with --drop-missing, or pass these labels as --gold beside those of a --judge "
            "(truecal.labels.judged)."
        ),
    )
    POS_LABEL = (
        "Choose the positive class with pos_label.",
        "Choose the positive label with --pos-label.",
    )
    COLUMN_PER_CLASS = (
        "For several classes pass y_proba with one column for each class.",
        "For several classes name one column for each with --score, or the predicted class with --predicted.",
    )
    ONE_VERSUS_REST = (
        "For one class against the rest pass y_true == pos_label, or one column for each class.",
        (
            "For one class against the rest name the columns of all classes with --score, and the class with "
            "--pos-label."
        ),
    )
    LABELS = (
        "Name the class of each column with labels=[...].",
        "Name the class of each column: --classes a,b,c.",
    )
    COLUMN_ORDER = (
        "Pass labels=[first, second], or the column of the positive class alone together with pos_label.",
        "Give the order with --classes first,second, or name the column of the positive class alone.",
    )
    ONE_CLASS = (
        "Choose a class with pos_label, or the top label with multiclass='top'.",
        "Choose a class with --pos-label, or the top label with --multiclass top.",
    )
    COUNTS = (
        "Leave out sample_weight, or pass whole numbers.",
        "Leave out --weight, or pass whole numbers.",
    )
    SAMPLING = (
        "Leave out weighting='counts' for sampling weights.",
        "Leave out --counts for sampling weights.",
    )
    NO_CLUSTERS = (
        "Leave out clusters.",
        "Leave out --cluster.",
    )


class InputError(ValueError):
    """Input that cannot be used: what is wrong, where, how many times, and what to do.

    The message is built from the fields, so that the command line can name a column instead of an
    argument, count rows from 1, and name an option instead of a keyword.

    Parameters
    ----------
    problem : str
        What is wrong. With `argument`, a predicate ("has 3 values outside [0, 1]"); else a whole clause.
    argument : str, optional
        Name of the argument that is wrong.
    count : int, optional
        Number of values that are wrong.
    first_row : int, optional
        Row of the first of them, counted from 0.
    value : object, optional
        The first of them.
    remedy : Remedy or str, optional
        What to do about it, as a sentence.

    Examples
    --------
    >>> error = InputError("has 2 values outside [0, 1]", argument="y_proba", count=2, first_row=17, value=1.2)
    >>> print(error)
    y_proba has 2 values outside [0, 1] (first at row 17: 1.2).
    >>> error.describe(argument="column 'p'", first_row_number=1)
    "column 'p' has 2 values outside [0, 1] (first at row 18: 1.2)."
    """

    def __init__(
        self,
        problem: str,
        *,
        argument: str | None = None,
        count: int | None = None,
        first_row: int | None = None,
        value: Any = None,
        remedy: Remedy | str | None = None,
    ) -> None:
        self.problem = problem
        self.argument = argument
        self.count = count
        self.first_row = first_row
        self.value = value
        self.remedy = remedy
        #: Errors about other values of the same input.
        self.others: tuple[InputError, ...] = ()
        super().__init__(self.describe())

    def describe(
        self, *, argument: str | None = None, first_row_number: int = 0, remedy: str | None = None
    ) -> str:
        """Return the message, optionally with another name of the argument, row numbers or remedy.

        Parameters
        ----------
        argument : str, optional
            What to call the argument; by default its own name.
        first_row_number : int
            Number of the first row: 0, or 1 for people.
        remedy : str, optional
            What to do; by default the remedy of the error.

        Returns
        -------
        str
        """
        name = argument or self.argument
        text = f"{name} {self.problem}" if name else self.problem
        if self.first_row is not None:
            shown = "" if self.value is None else f": {show_value(self.value)}"
            text += f" (first at row {self.first_row + first_row_number}{shown})"
        own = self.remedy.value if isinstance(self.remedy, Remedy) else self.remedy
        advice = (remedy or own or "").replace("{value}", show_value(self.value))
        text = text if text.endswith((".", "?")) else f"{text}."
        return f"{text} {advice}" if advice else text


def first_of(errors: list[InputError]) -> InputError:
    """Return the first of several errors about the same input, with the others as notes.

    Examples
    --------
    >>> first_of([InputError("p is missing"), InputError("y is missing")]).__notes__
    ['y is missing.']
    """
    first, *others = errors
    first.others = tuple(others)
    for other in others:
        first.add_note(str(other))
    return first


def show_value(value: Any) -> str:
    """Return a value as a message shows it, without its NumPy type and not too long."""
    if hasattr(value, "dtype") and not getattr(value, "ndim", 0):
        # A float32 of 1.2 prints as 1.2000000476837158, which the user did not write.
        text = str(value) if isinstance(value, numbers.Real) else repr(value.item())
    else:
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class CalibrationWarning(UserWarning):
    """Something about the data or the result that its reader should know."""


def warn_user(text: str) -> None:
    """Issue a `CalibrationWarning` at the line that called truecal."""
    level, frame = 1, sys._getframe(0)
    while frame.f_globals.get("__name__", "").partition(".")[0] == "truecal" and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, CalibrationWarning, stacklevel=level)


class MissingExtraError(ImportError):
    """An optional package is not installed; the message has the pip command that installs it."""

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        self.package = package
        self.extra = extra
        self.purpose = purpose
        super().__init__(
            f"{purpose} needs the package {package!r}. Install it with: pip install 'truecal[{extra}]'",
            name=package,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(MissingExtraError, self.package, extra=self.extra, purpose=self.purpose), ()
