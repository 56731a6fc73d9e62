"""From columns of labels to what the library takes: one column, words, classes, one-hot, or not the truth."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from truecal._lib.text import counted, listing
from truecal.cli._input.columns import Columns, class_named, join_gold
from truecal.cli._input.table import Table
from truecal.cli._input.values import Field, Frame, Labels, called, remedy_of_stray
from truecal.data.labels import classes_of, without_common_prefix
from truecal.exceptions import InputError, Remedy

if TYPE_CHECKING:
    from truecal.data.pseudo_labels import ImperfectLabels

#: Negative and positive labels in words.
_PAIRS = (
    ("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"), ("negative", "positive"), ("neg", "pos"),
    ("incorrect", "correct"), ("wrong", "right"), ("i", "c"),
)  # fmt: skip


#: Labels of which there is at most one in this many are strays.
_FEW = 20


class LabelRules:
    """The rules by which the labels of a table are read; `notes` say what they detected."""

    def __init__(self, frame: Frame, columns: Columns) -> None:
        self.frame, self.columns, self.reading = frame, columns, frame.reading
        self.notes: list[str] = []

    def read(self, scores: Sequence[Field]) -> tuple[pl.Expr, dict[str, Any]]:
        """Return the labels, and the arguments pos_label and labels of the library."""
        predicted = self.columns.predicted
        parts = self.frame.expand(*self.columns.label)
        if predicted:
            if len(parts) > 1 or len(scores) > 1:
                raise InputError("needs one column of labels and one of scores", argument="--predicted")
            return self._was_right(parts[0], self.frame.field(predicted)), {}
        if len(parts) > 1:
            return self._one_hot(scores)
        labels = self.frame.labels(parts[0])
        self._refuse_one_left(parts[0].name, labels)
        if self.reading.classes is None and len(scores) == 1:
            self._refuse_strays(parts[0], labels)
            return self._single(labels, scores[0].name)
        return labels.values, self._of_classes(labels, scores)

    def _refuse_one_left(self, name: str, labels: Labels) -> None:
        """Refuse codes for missing values that are all labels but one."""
        if not self.reading.missing or len(labels.seen) > 1:
            return
        if len(self.frame.labels(self.frame.field(name)).seen) > 1:
            problem = f"leaves only the label {listing(labels.seen)} in {called([name])}"
            raise InputError(problem, argument="--missing")

    def _refuse_strays(self, part: Field, labels: Labels) -> None:
        """Refuse a few labels beside two others: the row of a footer, a stray class, a mark of missing values."""
        seen = labels.without_marks.seen
        between = any(not isinstance(one, str) and 0 < one < 1 for one in seen)  # fractions of annotators
        if self.reading.pos_label or len(seen) < 3 or between:
            return
        values = labels.without_marks.values
        rows = self.frame.lazy.select(label=values).drop_nulls().group_by("label").len()
        counts = self.frame.table.collect(rows.sort("len", "label", descending=True))
        strays, n = counts["label"][2:], int(counts["len"][2:].sum())
        if _FEW * n > counts["len"].sum():
            return
        row, value = self.frame.first(labels.values.is_in(strays.implode()), labels.values)
        usual = sorted(counts["label"][:2].to_list(), key=str)
        problem = f"has {counted(n, 'label')} other than {' and '.join(map(_shown, usual))}"
        value = int(value) if isinstance(value, float) and value.is_integer() else value
        raise part.error(problem, first_row=row, value=value, remedy=remedy_of_stray(value))

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
            known = labels.without_marks
            pos_label = class_named(score, known.seen)
            if pos_label is None:
                positive = _positive_words(known, self.notes)
                return labels.values if positive is None else positive, {}
            self.notes.append(f"using {pos_label!r} as the positive label, by the name of column {score!r}")
            return known.values, {"pos_label": pos_label}
        if pos_label is None and re.fullmatch(r".*[a-z_]0", score):
            self.notes.append(
                f"column {score!r} is read as the probability of label 1; if it is that of label 0, add "
                f"--pos-label 0"
            )
        return labels.values, {"pos_label": pos_label}

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
        found = classes_of(names, labels.seen) if labels.seen else None
        if found is None and labels.kind == "text":
            return self._named(names, labels)
        if found is None:
            shown = ", ".join(f"{k} for {name!r}" for k, name in list(enumerate(names))[:6])
            self.notes.append(f"using the labels by the order of the columns: {shown}")
        if len(scores) > 2 and labels.seen and set(labels.seen) <= {0, 1}:
            self.notes.append(f"only the labels {listing(labels.seen)} occur, for {len(scores)} classes")
        return found

    def _named(self, names: list[str], labels: Labels) -> list[str]:
        """Return the labels that names such as p_home stand for, or else the names, which the validator refuses."""
        seen = labels.without_marks.seen
        named = [one for name in names if (one := class_named(name, seen))]
        if not len({*named, *seen}) == len(named) == len(names):
            return names
        shown = ", ".join(f"{one!r} for {name!r}" for one, name in zip(named, names, strict=True))
        self.notes.append(f"using the labels {shown}")
        return named

    def _was_right(self, label: Field, predicted: Field) -> pl.Expr:
        """Return whether the predicted class is the true one."""
        sides = [self.frame.labels(part) for part in (label, predicted)]
        kinds = ["text" if side.kind == "text" else "numbers" for side in sides]
        if kinds[0] != kinds[1]:
            problem = f"holds {kinds[0]} and column {predicted.name!r} {kinds[1]}, so they cannot be compared"
            raise label.error(problem, remedy="Write both in the same way.")
        values = [side.values.cast(pl.Float64) if side.kind == "boolean" else side.values for side in sides]
        if not self.reading.drop_missing:
            for part, value in zip((label, predicted), values, strict=True):
                self.frame.refuse(value.is_null(), [part.name], "missing value", remedy=Remedy.DROP_ROWS)
        return values[0] == values[1]

    def _one_hot(self, scores: Sequence[Field]) -> tuple[pl.Expr, dict[str, Any]]:
        """Return the class of each row from one column of 0 and 1 for each class."""
        if self.reading.classes is not None:
            raise InputError(
                "cannot be combined with a column of labels for each class", argument="--classes"
            )
        parts, score_ends = match_labels(self.frame, self.columns, scores)
        hot = self.frame.numbers(parts)
        known = pl.all_horizontal(*((value == 0) | (value == 1) for value in hot))
        wrong = (pl.sum_horizontal(*(value == 1 for value in hot)) != 1) | ~known
        if self.reading.drop_missing:  # rows with missing values are dropped later
            wrong &= ~pl.any_horizontal(*(value.is_null() for value in hot))
        self.frame.refuse(wrong, [part.name for part in parts], "row", " without a single 1 among 0s")
        weighted = (value * k for k, value in enumerate(hot))
        number = pl.sum_horizontal(*weighted, ignore_nulls=False).cast(pl.Int64)
        if scores[0].name.endswith("]") or not all(score_ends):
            return number, {"pos_label": as_label(self.reading.pos_label, "number", "--pos-label")}
        named = number.replace_strict(dict(enumerate(score_ends)), return_dtype=pl.String)
        return named, {"pos_label": self.reading.pos_label, "labels": score_ends}


def match_labels(frame: Frame, columns: Columns, scores: Sequence[Field]) -> tuple[list[Field], list[str]]:
    """Return a column of labels for each column of scores, by their names where these match, and these names."""
    parts = frame.expand(*columns.label)
    if len(parts) != len(scores):
        raise InputError(f"has {counted(len(parts), 'column')} of labels for {len(scores)} columns of scores")
    label_ends = without_common_prefix([part.name for part in parts])
    score_ends = without_common_prefix([part.name for part in scores])
    if set(label_ends) == set(score_ends):
        parts = [parts[label_ends.index(end)] for end in score_ends]
    return parts, score_ends


def _positive_words(labels: Labels, notes: list[str]) -> pl.Expr | None:
    """Return whether each word of a pair such as no and yes is positive, and add a note; None for other words."""
    words = {word.lower() for word in labels.seen}
    pair = next((pair for pair in _PAIRS if words and words <= set(pair)), None)
    if pair is None:
        return None
    note = f"using {pair[1]!r} as the positive label"
    notes += [note] if note not in notes else []
    lower = labels.values.str.to_lowercase()
    return pl.when(lower.is_in(pair)).then(lower == pair[1])


def _shown(label: Any) -> str:
    is_word = isinstance(label, str) and not label.isdecimal()
    return repr(label) if is_word else f"{float(label):g}"


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
    words = {name.lower(): name for name in classes}
    return next((words[positive] for negative, positive in _PAIRS if {*words} == {negative, positive}), None)


# --- Labels that are not the truth: a judge's, soft, censored, misclassified ------------------------

#: Functions of `truecal.labels`: what the labels are, the options that ask for them, and those that are needed.
_KINDS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "judged": ("a judge", ("judge", "gold", "gold_probability"), ("gold",)),
    "soft": ("soft labels", ("soft",), ()),
    "censored": ("censored outcomes", ("time", "event", "horizon", "strata"), ("time", "event", "horizon")),
    "misclassified": (
        "misclassified labels", ("sensitivity", "specificity", "validated"), ("sensitivity", "specificity"),
    ),
}  # fmt: skip
_OPTIONS = {name for _, names, _ in _KINDS.values() for name in names}
#: Options that name columns, with their arguments; arguments that the label column is if no option names it; arguments
#: that are numbers, while others are labels.
_COLUMNS = {
    "judge": "judge", "gold": "gold", "gold_probability": "probability", "time": "time", "event": "event",
    "strata": "strata",
}  # fmt: skip
_LABEL_ARGUMENTS = {"judged": "judge", "soft": "fraction", "misclassified": "label"}
_NUMBERS = ("probability", "time", "fraction")
#: The gold labels, in the frame of a plan; rows without one are kept. And one of several columns of labels.
GOLD, LABEL = "gold of the row 0", "label of the row"


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _is_given(value: Any) -> bool:
    return value is not None and value is not False and value != ()


def _kind_of(given: dict[str, Any]) -> str:
    """Return the function of `truecal.labels` that options ask for, or refuse them."""
    asked = {kind: [name for name in names if name in given] for kind, (_, names, _) in _KINDS.items()}
    (function, first), *others = [(kind, names[0]) for kind, names in asked.items() if names]
    if others:
        other = _option(others[0][1])
        raise InputError(f"{_option(first)} and {other} describe different kinds of labels; give one of them")
    if lacking := [_option(name) for name in _KINDS[function][2] if name not in given]:
        raise InputError(f"needs {' and '.join(lacking)}", argument=_option(first))
    return function


@dataclass(frozen=True)
class LabelKind:
    """How labels that are not the truth are made.

    Attributes
    ----------
    function : str
        The function of `truecal.labels`.
    arguments : dict of str to tuple of str
        The columns of each of its arguments.
    settings : dict
        Its other arguments.
    """

    function: str
    arguments: dict[str, tuple[str, ...]]
    settings: dict[str, Any]

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> tuple[LabelKind | None, dict[str, Any]]:
        """Return the kind that options ask for, None if they ask for none, and the other options."""
        rest = {name: value for name, value in options.items() if name not in _OPTIONS}
        given = {name: options[name] for name in options if name in _OPTIONS and _is_given(options[name])}
        if not given:
            return None, rest
        function = _kind_of(given)
        arguments: dict[str, tuple[str, ...]] = {}
        settings: dict[str, Any] = {}
        for name, value in given.items():
            if name == "strata" and value.isdigit():
                settings[name] = int(value)
            elif name in _COLUMNS:
                arguments[_COLUMNS[name]] = (value,) if isinstance(value, str) else value
            elif name != "soft":
                settings[name] = value
        return cls(function, arguments, settings), rest

    @property
    def name(self) -> str:
        """What the labels are, in words."""
        return _KINDS[self.function][0]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it names."""
        return tuple(dict.fromkeys(chain.from_iterable(self.arguments.values())))

    @property
    def uses_label(self) -> bool:
        """Whether the label column is one of them: soft, misclassified, or a judge's."""
        return self.function in _LABEL_ARGUMENTS and "judge" not in self.arguments

    def join(self, table: Table) -> tuple[Table, LabelKind]:
        """Return the table with gold labels that are in a file of their own."""
        (gold,) = self.arguments.get("gold", ("",))
        if not gold or gold in table.columns or not Path(gold).is_file():
            return table, self
        table, name = join_gold(table, gold)
        return table, replace(self, arguments={**self.arguments, "gold": (name,)})

    def complete(self, columns: Columns) -> LabelKind:
        """Refuse options that do not go together; take the label column where none is named."""
        if columns.predicted:
            raise InputError(
                f"cannot be combined with {self.name}",
                argument="--predicted",
                remedy="Labels then say whether the prediction was right.",
            )
        if not self.uses_label and columns.label:
            option = _option(_KINDS[self.function][1][0])
            raise InputError(f"and {option} name the labels twice; give one of them", argument="--label")
        if len(columns.label) > 1:
            raise InputError(
                f"names {len(columns.label)} columns, and {self.name} are in one", argument="--label"
            )
        if not self.uses_label:
            return self
        return replace(self, arguments={**self.arguments, _LABEL_ARGUMENTS[self.function]: columns.label})

    def values(self, frame: Frame, pos_label: str | None) -> tuple[dict[str, pl.Expr], list[str]]:
        """Return the columns that the labels are made from, and what was detected."""
        values: dict[str, pl.Expr] = {}
        notes: list[str] = []
        for argument, names in self.arguments.items():
            fields = frame.expand(*names)
            if argument != "judge" and len(fields) > 1:
                problem = f"is one of {len(fields)} parts of {called(names)}; one value in each row is needed"
                raise fields[0].error(problem)
            for k, part in enumerate(fields):
                if argument in _NUMBERS:
                    (value,) = frame.numbers([part])
                elif argument == "strata":
                    value = frame.names_of_rows(part)
                else:
                    value = _as_binary(frame, part, pos_label, notes)
                values[f"{argument} of the row {k}"] = value
        return values, notes

    def labels(self, rows: pl.DataFrame) -> ImperfectLabels:
        """Return the labels of these rows."""
        from truecal import labels

        arguments: dict[str, Any] = dict(self.settings)
        for argument in self.arguments:
            names = [name for name in rows.columns if name.startswith(f"{argument} of the row ")]
            numbers = rows[names] if argument == "strata" else rows[names].cast(pl.Float64)
            arguments[argument] = (
                numbers.to_numpy() if argument == "judge" else numbers.to_series().to_numpy()
            )
        made: ImperfectLabels = getattr(labels, self.function)(**arguments)
        return made

    def names(self) -> dict[str, str]:
        """Return what messages call the arguments of `truecal.labels`."""
        return {argument: called(names) for argument, names in self.arguments.items()}


def _as_binary(frame: Frame, part: Field, pos_label: str | None, notes: list[str]) -> pl.Expr:
    """Return labels as 0 and 1, null where one is missing: numbers, booleans, or words such as no and yes."""
    labels = frame.labels(part).without_marks
    values = labels.values
    if pos_label is not None:
        chosen = as_label(pos_label, labels.kind, "--pos-label")
        return pl.when(values.is_not_null()).then(values == chosen)
    if labels.kind != "text" or not labels.seen:
        return values.cast(pl.Float64, strict=False)
    positive = _positive_words(labels, notes)
    if positive is None:
        remedy = "Write 0 and 1, or name the positive label with --pos-label."
        raise part.error(f"holds {listing(labels.seen)}", remedy=remedy)
    return positive
