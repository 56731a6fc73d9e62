"""What is read from a table, and how: decided by questions about its columns, before its rows are read."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecal._lib.text import counted
from truecal.cli._input.columns import Columns, Reading
from truecal.cli._input.labels import LABEL, LabelKind, LabelRules, match_labels
from truecal.cli._input.scores import read_scores
from truecal.cli._input.table import Table, free_name
from truecal.cli._input.values import Field, Frame, called
from truecal.data.arrays import MULTILABEL
from truecal.exceptions import InputError

if TYPE_CHECKING:
    from truecal.data.sample import Sample

#: Names of columns in the frame that predictions are made from.
WEIGHT, CLUSTER = "weight of the row", "cluster of the row"

#: Names of columns that say which question, patient and so on a row belongs to.
_UNIT = re.compile(
    r"^(question|prompt|problem|task|item|patient|subject|participant|person|user|customer|client|hospital|clinic"
    r"|session|document|doc|image|case|sample|cluster)s?([ _.-]?(id|no|nr|num|number|key|name|uid))?$",
    re.IGNORECASE,
)
#: Names of columns of weights, and of models of which each has rows of its own.
_WEIGHT = re.compile(r"^(sample|sampling|case|survey)?[ _.-]?weights?$", re.IGNORECASE)
_MODEL = re.compile(r"^(model|classifier|llm)s?([ _.-]?(id|name))?$", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Plan:
    """The columns, classes and conversions by which a table becomes predictions.

    Attributes
    ----------
    frame : Frame
        The columns as they are.
    columns : Columns
        Which column is what.
    models : dict of str to list of Field
        The columns of scores of each model; one entry unless several models were asked for.
    label : str
        The labels, as a name in `values`; empty if they are made from several columns.
    kind : LabelKind or None
        What the labels are, if they are not the truth.
    values : dict of str to polars.Expr
        Scores, labels, weights and clusters as the library takes them.
    groups, features : dict of str to polars.Expr
        Columns of groups and features.
    options : dict
        Arguments of the library that were given or detected: pos_label, labels, multiclass and weighting.
    notes : tuple of str
        What was detected, and what is odd.
    """

    frame: Frame
    columns: Columns
    models: dict[str, list[Field]]
    label: str
    kind: LabelKind | None
    values: dict[str, pl.Expr]
    groups: dict[str, pl.Expr]
    features: dict[str, pl.Expr]
    options: dict[str, Any]
    notes: tuple[str, ...]

    @property
    def lazy(self) -> pl.LazyFrame:
        """The rows, with the columns of `values`, and those of groups and features by number."""
        groups = {f"group {k}": values for k, values in enumerate(self.groups.values())}
        features = {f"feature {k}": values for k, values in enumerate(self.features.values())}
        return self.frame.lazy.select(**self.values, **groups, **features)

    def cluster_note(self, n: int) -> str:
        """Return a note with the number of clusters and the weighting."""
        same = "every cluster" if self.frame.reading.equal_clusters else "every row"
        return f"{counted(n, 'cluster')} in {self.columns.cluster!r}; {same} counts the same"

    def suggest_columns(self) -> list[str]:
        """Return notes on columns that look like weights or like several models, and that are not used."""
        notes = [
            f"column {name!r} is not used; 'truecal measure --weight {name}' takes it as weights"
            for name in (self._unused(_WEIGHT) if not self.columns.weight else ())
        ]
        for name in self._unused(_MODEL):
            column = self._values(name)
            if 1 < (distinct := column.n_unique()) <= len(column) / 2:
                notes.append(
                    f"column {name!r} has {distinct:,} values, and the rows of all of them are taken together; "
                    f"'truecal measure --group {name}' takes each alone"
                )
        return notes

    def suggest_clusters(self) -> list[str]:
        """Return a note on a column that looks like the name of a question or a patient, and whose values repeat."""
        for name in self._unused(_UNIT):
            column = self._values(name)
            distinct, n = column.n_unique(), len(column)
            if 1 < distinct <= n / 1.5 and not column.dtype.is_nested() and not column.dtype.is_float():
                note = (
                    f"{name!r} has {distinct:,} values in {n:,} rows: if rows with the same value depend on each "
                    f"other, name it with --cluster, or intervals are too short"
                )
                return [note]
        return []

    def _unused(self, pattern: re.Pattern[str]) -> list[str]:
        """Return the columns whose names match, and that are not used."""
        used = self.columns.used
        return [name for name in self.frame.table.columns if name not in used and pattern.search(name)]

    def _values(self, name: str) -> pl.Series:
        table = self.frame.table
        return table.collect(table.scan([name])).to_series()


def make_plan(
    table: Table,
    columns: Columns,
    reading: Reading,
    *,
    as_models: bool = False,
    kind: LabelKind | None = None,
) -> Plan:
    """Return how the columns of a table are read, or refuse them."""
    frame = Frame(table, columns.used, reading)
    _check_options(columns, reading)
    if reading.missing:
        weight = [columns.weight] if columns.weight else []
        frame.refuse_unused_codes([*columns.score, *columns.label, *weight])
    models = {name: frame.expand(name) for name in columns.score}
    scores = list(chain.from_iterable(models.values()))
    models = models if as_models else {" ".join(columns.score): scores}
    numbers, odd = read_scores(frame, scores)
    values = dict(zip(names_in_frame(scores), numbers, strict=True))
    own_scores, label = scores[:1] if as_models else scores, ""
    if kind is None and reading.multiclass != MULTILABEL:
        label = free_name(_plain(" or ".join(columns.label)), values, " (label)")
    made_from, options, detected = _labels(frame, columns, kind, own_scores, label)
    values |= made_from
    values |= _of_rows(frame, columns)
    options |= {"multiclass": reading.multiclass, "weighting": reading.weighting}
    doubt = [table.doubt] if table.doubt and kind is None else []
    groups = dict(zip(columns.group, frame.groups(columns.group), strict=True))
    fields = [part for part in map(frame.field, columns.feature) if not part.dtype.is_nested()]
    return Plan(
        frame,
        columns,
        models=models,
        label=label,
        kind=kind,
        values=values,
        groups=groups,
        features={part.name: frame.labels(part).values for part in fields},
        options={name: value for name, value in options.items() if value is not None},
        notes=(*table.notes, *doubt, *columns.detected, *odd, *detected),
    )


def _labels(
    frame: Frame, columns: Columns, kind: LabelKind | None, scores: Sequence[Field], label: str
) -> tuple[dict[str, pl.Expr], dict[str, Any], Sequence[str]]:
    """Return the columns that labels are made from, options of functions that take them, and what was detected."""
    if kind is not None:
        several, pos_label = len(scores) > 1, frame.reading.pos_label
        made_from, detected = kind.values(frame, None if several else pos_label)
        return made_from, {"pos_label": pos_label if several else None}, detected
    if frame.reading.multiclass == MULTILABEL:
        return _several_labels(frame, columns, scores)
    rules = LabelRules(frame, columns)
    truth, options = rules.read(scores)
    return {label: truth}, options, rules.notes


def _several_labels(
    frame: Frame, columns: Columns, scores: Sequence[Field]
) -> tuple[dict[str, pl.Expr], dict[str, Any], list[str]]:
    """Return columns of 0 and 1, of which a row can have any number, in the order of the columns of scores."""
    parts, names = match_labels(frame, columns, scores)
    if columns.group or columns.predicted or frame.reading.pos_label or frame.reading.classes:
        problem = f"{MULTILABEL} cannot be combined with --group, --predicted, --pos-label or --classes"
        raise InputError(problem, argument="--multiclass")
    return {f"{LABEL} {k}": value for k, value in enumerate(frame.numbers(parts))}, {"labels": names}, []


def _of_rows(frame: Frame, columns: Columns) -> dict[str, pl.Expr]:
    """Return the weights and clusters of the rows, where there are any."""
    values = {}
    if columns.weight:
        comma = frame.table.separator != ","  # else "1,234" between quotes may be a thousand
        (values[WEIGHT],) = frame.numbers(frame.expand(columns.weight), decimal_comma=comma)
    if columns.cluster:
        values[CLUSTER] = frame.names_of_rows(frame.field(columns.cluster))
    return values


def _check_options(columns: Columns, reading: Reading) -> None:
    if reading.counts and not columns.weight:
        raise InputError("needs --weight", argument="--counts")
    if reading.equal_clusters and not columns.cluster:
        raise InputError("needs --cluster", argument="--equal-clusters")
    if reading.equal_clusters and reading.counts:
        raise InputError("cannot be given with --counts", argument="--equal-clusters")


def names_in_frame(fields: Sequence[Field]) -> list[str]:
    """Return the names of columns where Polars does not take one such as "^s.*$" for a pattern."""
    return [_plain(part.name) for part in fields]


def _plain(name: str) -> str:
    return name.removeprefix("^")


# --- Columns that must not be used -----------------------------------------------------------------

EARLIER_GROUPS = "Choose groups that are known before the outcome."
#: Rows of a label, and mean rows of a value, below which one label for each value may be chance.
_FEW_ROWS = 10


def refuse_outcomes(columns: Mapping[str, Any], label: NDArray[Any], *, remedy: str) -> None:
    """Refuse columns that determine the label: given the outcome, no probability but 0 and 1 is calibrated."""
    labels = _series(label).alias("label")
    sizes = labels.value_counts()["count"].sort(descending=True)
    if len(sizes) < 2 or sizes[1] < _FEW_ROWS:
        return
    for name, column in columns.items():
        values = _series(column).alias("value")
        rows = pl.DataFrame([values, labels])
        # The first rows rule out nearly all columns.
        if _is_one_label(rows.head(1000)) and _is_one_label(rows):
            n = values.n_unique()
            if n * _FEW_ROWS <= len(values):
                raise _is_outcome(name, n, remedy)


def refuse_groups_of_one_label(groups: Sequence[str], cells: Mapping[tuple[Any, ...], Sample]) -> None:
    """Do the same for the cells of groups, from the numbers of rows and events of each value."""
    for k, name in enumerate(groups):
        totals: dict[Any, Any] = defaultdict(lambda: np.zeros(2))
        for key, sample in cells.items():
            totals[key[k]] += sample.positives.sum(), (sample.count - sample.positives).sum()
        events = np.array(list(totals.values()))
        one_label = events.min(axis=1) <= 1e-9 * events.max(axis=1)
        few = min(events.sum(axis=0)) < _FEW_ROWS or len(events) * _FEW_ROWS > events.sum()
        if one_label.all() and not few:
            raise _is_outcome(name, len(events), EARLIER_GROUPS)


def _is_outcome(name: str, n_values: int, remedy: str) -> InputError:
    return InputError(
        f"has {n_values:,} values, and all rows with the same value have the same label: it is the outcome, or was "
        f"known only after it",
        argument=called([name]),
        remedy=remedy,
    )


def _series(values: Any) -> Any:
    is_object = isinstance(values, np.ndarray) and values.dtype.kind == "O"
    return pl.Series(values=values.tolist() if is_object else values, strict=False)


def _is_one_label(rows: Any) -> bool:
    """Return whether all rows with the same value have the same label."""
    return bool(rows.n_unique() == rows["value"].n_unique())
