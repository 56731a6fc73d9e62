"""From columns of labels to what the library takes: one column, words, classes, one-hot, or not the truth."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from truecal._lib.text import counted, listing
from truecal.cli._input.columns import Columns, Reading, class_named
from truecal.cli._input.table import as_array
from truecal.cli._input.values import MARKS, Field, Frame, Labels, called, remedy_of_stray
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
            return self._one_hot(scores)
        labels = self.frame.labels(parts[0])
        self._refuse_one_left(parts[0].name, labels)
        if self.reading.classes is None and len(scores) == 1:
            self._refuse_strays(parts[0], labels)
            return self._single(labels, scores[0].name)
        return labels.values, self._of_classes(labels, scores)

    def _refuse_one_left(self, name: str, labels: Labels) -> None:
        """Refuse codes for missing values that are all labels but one."""
        if not self.frame.missing or len(labels.seen) > 1:
            return
        if len(self.frame.labels(self.frame.field(name)).seen) > 1:
            problem = f"leaves only the label {listing(labels.seen)} in {called([name])}"
            raise InputError(problem, argument="--missing")

    def _refuse_strays(self, part: Field, labels: Labels) -> None:
        """Refuse a few labels beside two others: the row of a footer, a stray class, a mark of missing values."""
        seen = [one for one in labels.seen if str(one).lower() not in MARKS]
        between = any(not isinstance(one, str) and 0 < one < 1 for one in seen)  # fractions of annotators
        if self.reading.pos_label or len(seen) < 3 or between:
            return
        rows = self.frame.lazy.select(label=labels.values).drop_nulls().group_by("label").len()
        counts = self.frame.table.collect(rows.sort("len", "label", descending=True))
        if labels.kind == "text":
            counts = counts.filter(~pl.col("label").str.to_lowercase().is_in(MARKS))
        strays, n = counts["label"][2:], int(counts["len"][2:].sum())
        if _FEW * n > counts["len"].sum():
            return
        row, value = self.frame.first(labels.values.is_in(strays.implode()), labels.values)
        usual = sorted(counts["label"][:2].to_list(), key=str)
        problem = f"has {counted(n, 'label')} other than {' and '.join(map(_shown, usual))}"
        value = int(value) if isinstance(value, float) and value.is_integer() else value
        raise part.error(problem, count=n, first_row=row, value=value, remedy=remedy_of_stray(value))

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
            pos_label = class_named(score, [word for word in labels.seen if word.lower() not in MARKS])
            if pos_label is None:
                return self._words(labels), {}
            self.notes.append(f"using {pos_label!r} as the positive label, by the name of column {score!r}")
            known = ~labels.values.str.to_lowercase().is_in(MARKS)
            return pl.when(known).then(labels.values), {"pos_label": pos_label}
        if pos_label is None and re.fullmatch(r".*[a-z_]0", score):
            self.notes.append(
                f"column {score!r} is read as the probability of label 1; if it is that of label 0, add "
                f"--pos-label 0"
            )
        return labels.values, {"pos_label": pos_label}

    def _words(self, labels: Labels) -> pl.Expr:
        """Return labels such as no and yes as booleans, and others as they are."""
        positive = _positive_words(labels.values, labels.seen, self.notes)
        return labels.values if positive is None else positive

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
        seen = [word for word in labels.seen if word.lower() not in MARKS]
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
        for part, value in zip((label, predicted), values, strict=True):
            n = self.frame.ask(n=value.is_null().sum())["n"]
            if n and not self.reading.drop_missing:
                row, _ = self.frame.first(value.is_null())
                problem = f"has {counted(n, 'missing value')}"
                raise part.error(problem, count=n, first_row=row, remedy=Remedy.DROP_ROWS)
        return values[0] == values[1]

    def _one_hot(self, scores: Sequence[Field]) -> tuple[pl.Expr, dict[str, Any]]:
        """Return the class of each row from one column of 0 and 1 for each class."""
        if self.reading.classes is not None:
            raise InputError(
                "cannot be combined with a column of labels for each class", argument="--classes"
            )
        parts, score_ends = match_labels(self.frame, self.columns, scores)
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


def match_labels(frame: Frame, columns: Columns, scores: Sequence[Field]) -> tuple[list[Field], list[str]]:
    """Return a column of labels for each column of scores, by their names where these match, and these names."""
    parts = [part for name in columns.label for part in frame.expand(name)]
    if len(parts) != len(scores):
        raise InputError(f"has {counted(len(parts), 'column')} of labels for {len(scores)} columns of scores")
    label_ends = without_common_prefix([part.name for part in parts])
    score_ends = without_common_prefix([part.name for part in scores])
    if set(label_ends) == set(score_ends):
        parts = [parts[label_ends.index(end)] for end in score_ends]
    return parts, score_ends


def _positive_words(values: pl.Expr, seen: Sequence[str], notes: list[str]) -> pl.Expr | None:
    """Return whether each word of a pair such as no and yes is positive, and add a note; None for other words."""
    words = {word.lower() for word in seen} - set(MARKS)
    pair = next((pair for pair in _PAIRS if words and words <= set(pair)), None)
    if pair is None:
        return None
    note = f"using {pair[1]!r} as the positive label"
    notes += [note] if note not in notes else []
    lower = values.str.to_lowercase()
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

#: The options of each kind of labels; those in the second tuple are needed.
_KINDS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("a judge", ("judge", "gold", "gold_probability"), ("gold",)),
    ("soft labels", ("soft",), ()),
    ("censored outcomes", ("time", "event", "horizon", "strata"), ("time", "event", "horizon")),
    ("misclassified labels", ("sensitivity", "specificity", "validated"), ("sensitivity", "specificity")),
)
#: Names, in the frame of a plan, of what the labels are made from; rows without a gold label are kept.
JUDGE, GOLD, CHANCE = "judge of the row", "gold label of the row", "probability of the row"
TIME, EVENT, STRATUM, LABEL = "time of the row", "event of the row", "stratum of the row", "label of the row"


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@dataclass(frozen=True)
class LabelKind:
    """What labels that are not the truth are made from: the options of the same names."""

    judge: tuple[str, ...] = ()
    gold: str | None = None
    gold_probability: str | None = None
    soft: bool = False
    time: str | None = None
    event: str | None = None
    horizon: float | None = None
    strata: str | None = None
    sensitivity: float | None = None
    specificity: float | None = None
    validated: tuple[int, int] | None = None

    @classmethod
    def from_options(cls, given: dict[str, Any]) -> tuple[LabelKind | None, dict[str, Any]]:
        """Return the kind that options ask for, None if they ask for none, and the other options."""
        own = {field.name for field in fields(cls)}
        kind = cls(**{name: value for name, value in given.items() if name in own})
        rest = {name: value for name, value in given.items() if name not in own}
        # The first option that was given of each kind, and what that kind needs.
        asked = [(found[0], needed) for _, names, needed in _KINDS if (found := kind._given(names))]
        if not asked:
            return None, rest
        (first, needed), *others = asked
        if others:
            raise InputError(
                f"{first} and {others[0][0]} describe different kinds of labels; give one of them"
            )
        if lacking := [_option(name) for name in needed if not kind._given([name])]:
            raise InputError(f"needs {' and '.join(lacking)}", argument=first)
        return kind, rest

    def _given(self, names: Sequence[str]) -> list[str]:
        """Return which of these options were given, as they are written."""
        return [_option(name) for name in names if getattr(self, name) not in ((), None, False)]

    @property
    def name(self) -> str:
        """What the labels are, in words."""
        return next(what for what, names, _ in _KINDS if self._given(names))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it names."""
        single = (self.gold, self.gold_probability, self.time, self.event)
        strata = (self.strata,) if self.strata and not self.strata.isdigit() else ()
        return tuple(dict.fromkeys([*self.judge, *(name for name in single if name), *strata]))

    @property
    def uses_label(self) -> bool:
        """Whether the label column is one of them: soft, misclassified, or a judge's."""
        return self.time is None and not self.judge

    def complete(self, columns: Columns) -> LabelKind:
        """Refuse options that do not go together; take the label column as the judge where none is named."""
        if columns.predicted:
            raise InputError(
                f"cannot be combined with {self.name}",
                argument="--predicted",
                remedy="Labels then say whether the prediction was right.",
            )
        if not self.uses_label and columns.label:
            option = "--judge" if self.judge else "--time"
            raise InputError(f"and {option} name the labels twice; give one of them", argument="--label")
        if len(columns.label) > 1:
            raise InputError(
                f"names {len(columns.label)} columns, and {self.name} are in one", argument="--label"
            )
        return replace(self, judge=columns.label) if self.gold and not self.judge else self

    def values(
        self, frame: Frame, columns: Columns, reading: Reading, *, several_scores: bool
    ) -> tuple[dict[str, pl.Expr], list[str]]:
        """Return the columns that the labels are made from, and what was detected."""
        binary = _Binary(frame, None if several_scores else reading.pos_label)
        values: dict[str, pl.Expr] = {}
        if self.gold:
            parts = [part for name in self.judge for part in frame.expand(name)]
            values |= {f"{JUDGE} {k}": binary.read(part) for k, part in enumerate(parts)}
            values[GOLD] = binary.read(_one(frame, self.gold))
            if self.gold_probability:
                (values[CHANCE],) = frame.numbers([_one(frame, self.gold_probability)])
        elif self.time:
            assert self.event is not None
            (values[TIME],) = frame.numbers([_one(frame, self.time)])
            values[EVENT] = binary.read(_one(frame, self.event))
            if self.strata and not self.strata.isdigit():
                values[STRATUM] = frame.names_of_rows(frame.field(self.strata))
        else:
            part = _one(frame, columns.label[0])
            values[LABEL] = frame.numbers([part])[0] if self.soft else binary.read(part)
        return values, binary.notes

    def labels(self, rows: pl.DataFrame) -> ImperfectLabels:
        """Return the labels of these rows."""
        from truecal import labels

        def column(name: str) -> Any:
            return as_array(rows[name].cast(pl.Float64))

        if self.gold:
            judges = [column(name) for name in rows.columns if name.startswith(JUDGE)]
            chance = column(CHANCE) if self.gold_probability else None
            return labels.judged(np.column_stack(judges), column(GOLD), chance)
        if self.time:
            assert self.horizon is not None
            strata: Any = None
            if self.strata:
                strata = int(self.strata) if self.strata.isdigit() else rows[STRATUM].to_numpy()
            return labels.censored(column(TIME), column(EVENT), horizon=self.horizon, strata=strata)
        if self.soft:
            return labels.soft(column(LABEL))
        rates: dict[str, Any] = {"sensitivity": self.sensitivity, "specificity": self.specificity}
        return labels.misclassified(column(LABEL), **rates, validated=self.validated)

    def names(self, columns: Columns) -> dict[str, str]:
        """Return what messages call the arguments of `truecal.labels`."""
        given = {
            "judge": self.judge,
            "gold": (self.gold,),
            "probability": (self.gold_probability,),
            "time": (self.time,),
            "event": (self.event,),
            "strata": (self.strata,) if self.strata and not self.strata.isdigit() else (),
            "fraction": columns.label,
            "label": columns.label,
        }
        return {name: called(list(filter(None, some))) for name, some in given.items() if any(some)}


class _Binary:
    """Columns of labels as 0 and 1: numbers, booleans, or words such as no and yes."""

    def __init__(self, frame: Frame, pos_label: str | None) -> None:
        self.frame, self.pos_label = frame, pos_label
        self.notes: list[str] = []

    def read(self, part: Field) -> pl.Expr:
        """Return the numbers of a column, null where a value is missing."""
        found = self.frame.labels(part)
        values, seen = found.values, found.seen
        if found.kind == "text":
            seen = [word for word in seen if word.lower() not in MARKS]
            values = pl.when(~values.str.to_lowercase().is_in(MARKS)).then(values)
        if self.pos_label is not None:
            chosen = as_label(self.pos_label, found.kind, "--pos-label")
            return pl.when(values.is_not_null()).then(values == chosen)
        if found.kind != "text" or not seen:
            return values.cast(pl.Float64, strict=False)
        positive = _positive_words(values, seen, self.notes)
        if positive is None:
            remedy = "Write 0 and 1, or name the positive label with --pos-label."
            raise part.error(f"holds {listing(seen)}", remedy=remedy)
        return positive


def _one(frame: Frame, name: str) -> Field:
    parts: Sequence[Field] = frame.expand(name)
    if len(parts) > 1:
        raise parts[0].error(
            f"is one of {len(parts)} parts of {called([name])}; one value in each row is needed"
        )
    return parts[0]
