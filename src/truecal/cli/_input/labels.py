"""From the columns of labels to what the library takes: one column, words, classes, one-hot, or right and wrong."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from truecal._lib.text import counted, listing
from truecal.cli._input.columns import Columns, Reading
from truecal.cli._input.values import MARKS, Field, Frame, Labels, called
from truecal.exceptions import InputError, Remedy

if TYPE_CHECKING:
    import polars as pl

#: Negative and positive labels in words.
_PAIRS = (
    ("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"), ("negative", "positive"), ("neg", "pos"),
    ("incorrect", "correct"), ("wrong", "right"), ("i", "c"),
)  # fmt: skip


def read_labels(
    frame: Frame, columns: Columns, reading: Reading, scores: Sequence[Field]
) -> tuple[pl.Expr, dict[str, Any], list[str]]:
    """Return the labels, the arguments pos_label and labels of the library, and what was detected."""
    rules = _Rules(frame, columns, reading)
    values, options = rules.read(scores)
    return values, options, rules.notes


class _Rules:
    """The rules by which the labels of a table are read."""

    def __init__(self, frame: Frame, columns: Columns, reading: Reading) -> None:
        self.frame, self.columns, self.reading = frame, columns, reading
        self.notes: list[str] = []

    def read(self, scores: Sequence[Field]) -> tuple[pl.Expr, dict[str, Any]]:
        """Return the labels and options: right or wrong, one-hot, or one column."""
        predicted = self.columns.predicted
        parts = [part for name in self.columns.label for part in self.frame.expand(name)]
        if predicted:
            if len(parts) > 1 or len(scores) > 1:
                raise InputError("needs one column of labels and one of scores", argument="--predicted")
            return self._was_right(parts[0], self.frame.field(predicted)), {}
        if len(parts) > 1:
            return self._one_hot(parts, scores)
        labels = self.frame.labels(parts[0])
        self._refuse_one_left(parts[0].name, labels)
        if self.reading.classes is None and len(scores) == 1:
            return self._single(labels, scores[0].name)
        return labels.values, self._of_classes(labels, scores)

    def _refuse_one_left(self, name: str, labels: Labels) -> None:
        """Refuse codes for missing values that are all labels but one."""
        if not self.frame.missing or len(labels.seen) > 1:
            return
        if len(self.frame.labels(self.frame.field(name)).seen) > 1:
            problem = f"leaves only the label {listing(labels.seen)} in {called([name])}"
            raise InputError(problem, argument="--missing")

    def _of_classes(self, labels: Labels, scores: Sequence[Field]) -> dict[str, Any]:
        """Return the positive label and the class of each column."""
        reading = self.reading
        pos_label = as_label(reading.pos_label, labels.kind, "--pos-label")
        if reading.classes is not None:
            names = next(csv.reader([reading.classes], skipinitialspace=True), [])
            classes = [as_label(name.strip(), labels.kind, "--classes") for name in names]
            return {"pos_label": pos_label, "labels": classes}
        found = self._classes(scores, labels)
        if found and len(found) == 2 and not (reading.pos_label or reading.multiclass):
            pos_label = _positive_of(found, labels.kind)  # and not the class of the second column
        if found and len(found) > 2 and found == list(range(len(found))):
            found = None  # the order of the columns, which the validator compares with the labels
        return {"pos_label": pos_label, "labels": found}

    def _single(self, labels: Labels, score: str) -> tuple[pl.Expr, dict[str, Any]]:
        """Return the labels of one column of scores."""
        pos_label = as_label(self.reading.pos_label, labels.kind, "--pos-label")
        if pos_label is None and labels.kind == "text":
            return self._words(labels), {}
        if pos_label is None and re.fullmatch(r".*[a-z_]0", score):
            self.notes.append(
                f"column {score!r} is read as the probability of label 1; if it is that of label 0, add "
                f"--pos-label 0"
            )
        return labels.values, {"pos_label": pos_label}

    def _words(self, labels: Labels) -> pl.Expr:
        """Return labels such as no and yes as booleans, and others as they are."""
        import polars as pl

        pair = pair_of(labels.seen)
        if pair is None:
            return labels.values
        self.notes.append(f"using {pair[1]!r} as the positive label")
        lower = labels.values.str.to_lowercase()
        return pl.when(lower.is_in(pair)).then(lower == pair[1])

    def _classes(self, scores: Sequence[Field], labels: Labels) -> list[Any] | None:
        """Return the class of each column of scores, from the names of columns or of the fields of one."""
        first, *others = self.columns.score
        names = [first, *others]
        if not others:
            names = [part.name[len(first) + 1 :] for part in scores]
            if scores[0].name.endswith("]"):  # numbers without names
                if labels.kind != "text":
                    return None
                problem = f"has {len(scores)} numbers in each row, and the labels are {listing(labels.seen)}"
                raise InputError(problem, argument=called([first]), remedy=Remedy.LABELS)
        from truecal.data.labels import classes_of

        found = classes_of(names, labels.seen) if labels.seen else None
        if found is None and labels.kind == "text":
            return names  # which the validator refuses, with the reason
        if found is None:
            shown = ", ".join(f"{k} for {name!r}" for k, name in list(enumerate(names))[:6])
            self.notes.append(f"using the labels by the order of the columns: {shown}")
        if len(scores) > 2 and labels.seen and set(labels.seen) <= {0, 1}:
            self.notes.append(f"only the labels {listing(labels.seen)} occur, for {len(scores)} classes")
        return found

    def _was_right(self, label: Field, predicted: Field) -> pl.Expr:
        """Return whether the predicted class is the true one."""
        import polars as pl

        sides = [self.frame.labels(part) for part in (label, predicted)]
        kinds = ["text" if side.kind == "text" else "numbers" for side in sides]
        if kinds[0] != kinds[1]:
            problem = f"holds {kinds[0]} and column {predicted.name!r} {kinds[1]}, so they cannot be compared"
            raise label.error(problem, remedy="Write both in the same way.")
        values = [side.values.cast(pl.Float64) if side.kind == "boolean" else side.values for side in sides]
        for part, value in zip((label, predicted), values, strict=True):
            n = self.frame.ask(n=value.is_null().sum())["n"]
            if n and not self.reading.drop_missing:
                row, _ = self.frame.first(value.is_null())
                problem = f"has {counted(n, 'missing value')}"
                raise part.error(problem, count=n, first_row=row, remedy=Remedy.DROP_ROWS)
        return values[0] == values[1]

    def _one_hot(self, parts: Sequence[Field], scores: Sequence[Field]) -> tuple[pl.Expr, dict[str, Any]]:
        """Return the class of each row from one column of 0 and 1 for each class."""
        import polars as pl

        from truecal.data.labels import without_common_prefix

        if len(parts) != len(scores):
            raise InputError(f"has {len(parts)} columns of labels for {len(scores)} columns of scores")
        if self.reading.classes is not None:
            raise InputError(
                "cannot be combined with a column of labels for each class", argument="--classes"
            )
        label_ends = without_common_prefix([part.name for part in parts])
        score_ends = without_common_prefix([part.name for part in scores])
        if set(label_ends) == set(score_ends):
            parts = [parts[label_ends.index(end)] for end in score_ends]
        hot = self.frame.numbers(parts)
        self._refuse_not_hot(parts, hot)
        weighted = (value * k for k, value in enumerate(hot))
        number = pl.sum_horizontal(*weighted, ignore_nulls=False).cast(pl.Int64)
        if scores[0].name.endswith("]") or not all(score_ends):
            return number, {"pos_label": as_label(self.reading.pos_label, "number", "--pos-label")}
        named = number.replace_strict(dict(enumerate(score_ends)), return_dtype=pl.String)
        return named, {"pos_label": self.reading.pos_label, "labels": score_ends}

    def _refuse_not_hot(self, parts: Sequence[Field], hot: Sequence[pl.Expr]) -> None:
        """Refuse rows without a single 1; those with missing values may be dropped later."""
        import polars as pl

        known = pl.all_horizontal(*((value == 0) | (value == 1) for value in hot))
        wrong = (pl.sum_horizontal(*(value == 1 for value in hot)) != 1) | ~known
        if self.reading.drop_missing:
            wrong &= ~pl.any_horizontal(*(value.is_null() for value in hot))
        n = self.frame.ask(n=wrong.sum())["n"]
        if n:
            names = called([part.name for part in parts])
            row, _ = self.frame.first(wrong)
            problem = f"has {counted(n, 'row')} without a single 1 among 0s"
            raise InputError(problem, argument=names, first_row=row)


def pair_of(seen: Sequence[str]) -> tuple[str, str] | None:
    """Return the negative and the positive word of which labels are made, None if they are others."""
    words = {word.lower() for word in seen} - set(MARKS)
    return next((pair for pair in _PAIRS if words and words <= set(pair)), None)


def as_label(text: str | None, kind: str, option: str) -> Any:
    """Return a label in the type of the labels."""
    if text is None or kind == "text":
        return text
    if kind == "boolean":
        if text.lower() not in ("true", "false", "1", "0"):
            raise InputError(f"must be true or false, like the labels. Got {text!r} instead", argument=option)
        return text.lower() in ("true", "1")
    try:
        return int(text) if float(text).is_integer() else float(text)
    except ValueError:
        raise InputError(f"must be numeric, like the labels. Got {text!r} instead", argument=option) from None


def _positive_of(classes: list[Any], kind: str) -> Any:
    """Return which of two classes is the positive one: the larger number, or yes and not no; None if unknown."""
    if kind != "text":
        return max(classes)
    return next(
        (
            name
            for negative, positive in _PAIRS
            for name in classes
            if name.lower() == positive and {other.lower() for other in classes} == {negative, positive}
        ),
        None,
    )
