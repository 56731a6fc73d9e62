"""From the options of a command to predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from truecal.cli._output import say_later
from truecal.cli.input.columns import LABEL_NAMES, classes_of, guess_column, guess_scores
from truecal.cli.input.files import MISSING, Table, open_table

if TYPE_CHECKING:
    from truecal.data.sample import Sample

#: How far outside [0, 1] a score may lie by rounding.
_ROUNDING = 1e-3
#: More groups are a mistake: a column of identifiers, say.
_MOST_GROUPS = 1000


@dataclass(frozen=True, eq=False)
class Predictions:
    """Labels and probabilities of a file, with what is needed to read them."""

    source: str
    score_columns: list[str]
    y_true: NDArray[Any]
    y_proba: NDArray[Any]
    sample_weight: NDArray[Any] | None = None
    pos_label: Any = None
    group: NDArray[Any] | None = None
    labels: list[Any] | None = None
    multiclass: str | None = None

    def arguments(self, rows: NDArray[np.bool_] | None = None) -> dict[str, Any]:
        """Return keyword arguments for `truecal.estimate` and its like, for all rows or some."""

        def chosen(array: NDArray[Any] | None) -> NDArray[Any] | None:
            return array if rows is None or array is None else array[rows]

        return {
            "y_true": chosen(self.y_true),
            "y_proba": chosen(self.y_proba),
            "sample_weight": chosen(self.sample_weight),
            "pos_label": self.pos_label,
            "labels": self.labels,
            "multiclass": self.multiclass,
        }

    def groups(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name and the arguments of each group, if there are any."""
        if self.group is not None:
            for name in in_order(np.unique(self.group).tolist()):
                yield name, self.arguments(self.group == name)


@dataclass(frozen=True, eq=False)
class Summary:
    """A file with too many rows for memory, as cells: of all rows, and of each group."""

    source: str
    score_columns: list[str]
    cells: Sample
    of_groups: dict[str, Sample] = field(default_factory=dict)
    multiclass: str | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the keyword argument for `truecal.estimate` and its like."""
        return {"y_true": self.cells}

    def groups(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name and the argument of each group, if there are any."""
        for name in in_order(self.of_groups):
            yield name, {"y_true": self.of_groups[name]}


@dataclass(frozen=True)
class _Roles:
    """Which columns are what."""

    label: str
    scores: list[str]
    weight: str | None
    group: str | None
    predicted: str | None

    @property
    def numbers(self) -> list[str]:
        return [*self.scores, *([self.weight] if self.weight else [])]

    @property
    def all(self) -> list[str]:
        return [self.label, *self.numbers, *(name for name in (self.group, self.predicted) if name)]


def load(file: str, *, input_format: str | None = None, **what: Any) -> Predictions | Summary:
    """Read the predictions that the options describe; what is too large for memory is summarised."""
    table = open_table(file, input_format)
    roles, reading = _roles(table, **what)
    return _summarize(table, roles, **reading) if table.is_large else _read(table, roles, **reading)


def load_rows(file: str, *, input_format: str | None = None, **what: Any) -> Predictions:
    """Read the predictions that the options describe, row by row."""
    table = open_table(file, input_format)
    roles, reading = _roles(table, **what)
    if table.is_large:
        raise ValueError(
            f"{table.source} has too many rows for this. Take some of them: a million tell as much."
        )
    return _read(table, roles, **reading)


def _roles(
    table: Table,
    *,
    label: str | None,
    score: Sequence[str],
    weight: str | None,
    group: str | None = None,
    predicted: str | None = None,
    **reading: Any,
) -> tuple[_Roles, dict[str, Any]]:
    """Return what the columns are, guessed where it was not said, and the other options."""
    label_name = label or guess_column(table, "label", LABEL_NAMES)
    names = list(score) or guess_scores(
        table, label_name, [name for name in (weight, group, predicted) if name]
    )
    told = []
    if not score:
        told.append(f"{', '.join(map(repr, names))} for the score{'s' if len(names) > 1 else ''}")
    if label is None:
        told.append(f"{label_name!r} for the label")
    if told:
        say_later(f"truecal: taking {' and '.join(told)}.")
    return _Roles(label_name, names, weight, group, predicted), reading


def _read(
    table: Table,
    roles: _Roles,
    *,
    pos_label: str | None,
    logits: bool = False,
    multiclass: str | None = None,
    classes: str | None = None,
    clip: bool = False,
) -> Predictions:
    columns = table.take(roles.all, numbers=roles.numbers, groups=[roles.group] if roles.group else ())
    _name_arguments(table.source, roles)
    y_true = columns[roles.label]
    if roles.predicted:
        y_true = _was_right(table.source, roles.label, y_true, roles.predicted, columns[roles.predicted])
    scores = [columns[name] for name in roles.scores]
    y_proba = scores[0] if len(scores) == 1 else _stack(table.source, roles.scores, scores)
    if logits:
        from truecal.data import probabilities_from_logits

        y_proba = probabilities_from_logits(y_proba)
    if clip:
        y_proba = np.where(np.abs(y_proba - 0.5) < 0.5 + _ROUNDING, np.clip(y_proba, 0, 1), y_proba)
    groups = columns[roles.group] if roles.group else None
    if roles.group and groups is not None:
        _check_groups(table.source, roles.group, len(np.unique(groups)))
    labels = _classes(classes, roles.scores, y_true, y_proba)
    return Predictions(
        source=table.source,
        score_columns=roles.scores,
        y_true=y_true,
        y_proba=y_proba,
        sample_weight=columns[roles.weight] if roles.weight else None,
        pos_label=_as_label(pos_label, y_true),
        group=groups,
        labels=labels,
        multiclass=multiclass,
    )


def _summarize(
    table: Table,
    roles: _Roles,
    *,
    pos_label: str | None,
    logits: bool,
    multiclass: str | None,
    classes: str | None,
    clip: bool,
) -> Summary:
    import polars as pl

    from truecal.data.cells import merge_all
    from truecal.data.frames import summarize

    table.require(roles.all)
    assert table.scan is not None
    frame = table.scan(())
    if clip:
        inside = [pl.col(name).cast(pl.Float64).clip(0, 1) for name in roles.scores]
        near = [(pl.col(name) - 0.5).abs() < 0.5 + _ROUNDING for name in roles.scores]
        frame = frame.with_columns(
            pl.when(is_near).then(value).otherwise(pl.col(name)).alias(name)
            for is_near, value, name in zip(near, inside, roles.scores, strict=True)
        )
    label = roles.label
    if roles.predicted:
        first = frame.select(label, roles.predicted).head(1).collect()
        _check_same_kind(
            table.source, label, first[label].to_numpy(), roles.predicted, first[roles.predicted].to_numpy()
        )
        label = f"{roles.label} == {roles.predicted}"
        frame = frame.with_columns((pl.col(roles.label) == pl.col(roles.predicted)).alias(label))
    first_label = frame.select(label).head(1).collect()[label].to_numpy()
    options: dict[str, Any] = {
        "weight": roles.weight,
        "pos_label": _as_label(pos_label, first_label),
        "labels": None if classes is None else _named_classes(classes, first_label),
        "multiclass": multiclass,
        "logits": logits,
    }
    score = roles.scores if len(roles.scores) > 1 else roles.scores[0]
    _name_arguments(table.source, roles)
    of_groups: dict[str, Sample] = {}
    try:
        if roles.group is None:
            cells = summarize(frame, score, label, **options)
        else:
            found = frame.select(pl.col(roles.group).n_unique()).collect(engine="streaming").item()
            _check_groups(table.source, roles.group, found)
            parts = summarize(frame, score, label, by=roles.group, **options)
            of_groups = {MISSING if name is None else str(name): part for name, part in parts.items()}
            cells = merge_all(parts.values())
    except pl.exceptions.PolarsError as error:
        raise ValueError(table.unreadable(error)) from error
    return Summary(table.source, roles.scores, cells, of_groups)


def _check_groups(source: str, group: str, found: int) -> None:
    if found > _MOST_GROUPS:
        raise ValueError(
            f"{source}: column {group!r} has {found:,} different values, and at most {_MOST_GROUPS:,} "
            f"groups are taken. Is it a name of rows?"
        )


def _was_right(
    source: str, label: str, y_true: NDArray[Any], predicted: str, y_pred: NDArray[Any]
) -> NDArray[np.bool_]:
    """Return whether the predicted class is the true one; both must be there."""
    from truecal.data.arrays import find_missing

    _check_same_kind(source, label, y_true, predicted, y_pred)
    for name, column in ((label, y_true), (predicted, y_pred)):
        missing = find_missing(column)
        if missing is not None:
            n = int(missing.sum())
            raise ValueError(
                f"{source}: column {name!r} has {n} missing value{'' if n == 1 else 's'}. "
                f"Remove or mend these rows."
            )
    return np.asarray(y_true == y_pred)


def _check_same_kind(
    source: str, label: str, y_true: NDArray[Any], predicted: str, y_pred: NDArray[Any]
) -> None:
    kinds = ["text" if _is_text(column) else "numbers" for column in (y_true, y_pred)]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"{source}: column {label!r} holds {kinds[0]} and column {predicted!r} {kinds[1]}: they cannot be "
            f"compared. Write both in the same way."
        )


def _name_arguments(source: str, roles: _Roles) -> None:
    """Note what the library's arguments are called here, for its messages."""
    names = ", ".join(map(repr, roles.scores[:6]))
    told = {
        "y_true": f"column {roles.label!r}",
        "y_proba": f"column {names}" if len(roles.scores) == 1 else f"the group of columns {names}",
        "sample_weight": f"column {roles.weight!r}",
    }
    click.get_current_context().meta["truecal.words"] = (source, told)


def forget_arguments() -> None:
    """Note that messages are no longer on the file that was read."""
    click.get_current_context().meta.pop("truecal.words", None)


def _stack(source: str, names: Sequence[str], scores: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if any(column.ndim > 1 for column in scores) or len({len(column) for column in scores}) > 1:
        raise ValueError(f"{source}: {', '.join(map(repr, names))} are not columns of one length.")
    return np.column_stack(scores)


def _classes(
    classes: str | None, names: list[str], y_true: NDArray[Any], y_proba: NDArray[Any]
) -> list[Any] | None:
    """Return the class of each column of scores, as the user or the columns' names tell."""
    if y_true.ndim > 1 or any(value is None for value in y_true[:1]):
        return None
    if classes is not None:
        return _named_classes(classes, y_true)
    if y_proba.ndim == 1:
        return None
    seen = _distinct(y_true)
    if len(names) > 1:
        return classes_of(names, seen)
    if _is_text(y_true) and len(seen) == y_proba.shape[1] > 2:
        shown = ",".join(map(str, seen))
        say_later(f"truecal: taking the columns of {names[0]!r} in the order {shown} (or say --classes).")
    return None


def _distinct(y_true: NDArray[Any]) -> list[Any]:
    """Return the labels that occur; none where some are missing or have no order, which `read` refuses."""
    try:
        seen = np.unique(y_true).tolist()
    except TypeError:
        return []
    return [int(label) if isinstance(label, float) and label.is_integer() else label for label in seen]


def _is_text(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind in "OUST"


def _named_classes(classes: str, y_true: NDArray[Any]) -> list[Any]:
    return [_as_label(name.strip(), y_true, option="--classes") for name in classes.split(",")]


def _as_label(text: str | None, y_true: NDArray[Any], option: str = "--pos-label") -> Any:
    """Return a label in the type of the labels, as the command line has only text."""
    if text is None or _is_text(y_true):
        return text
    if y_true.dtype.kind == "b":
        if text.lower() not in ("true", "false", "1", "0"):
            raise ValueError(f"{option} must be true or false, as the labels are. Got {text!r} instead.")
        return text.lower() in ("true", "1")
    try:
        return int(text) if float(text).is_integer() else float(text)
    except ValueError:
        raise ValueError(f"{option} {text!r} is no number, and the labels are numbers.") from None


def in_order(names: Sequence[str] | dict[str, Any]) -> list[str]:
    """Return names of groups sorted, numbers by their size; what is missing comes last."""

    def place(name: str) -> tuple[int, float, str]:
        try:
            return 0, float(name), name
        except ValueError:
            return 2 if name == MISSING else 1, 0.0, name

    return sorted(names, key=place)
