"""What is read from a table, and how: decided by questions about its columns, before its rows are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from truecal.cli._input.columns import Columns, Reading
from truecal.cli._input.kinds import LabelKind
from truecal.cli._input.labels import read_labels
from truecal.cli._input.scores import read_scores
from truecal.cli._input.table import Table, free_name
from truecal.cli._input.values import Field, Frame
from truecal.exceptions import InputError

if TYPE_CHECKING:
    import polars as pl

#: Names of columns in the frame that predictions are made from.
WEIGHT, CLUSTER = "weight of the row", "cluster of the row"


@dataclass(frozen=True, eq=False)
class Plan:
    """The columns, classes and conversions by which a table becomes predictions.

    Attributes
    ----------
    frame : Frame
        The columns as they are.
    columns : Columns
        Which column is what.
    reading : Reading
        The options.
    as_models : bool
        Whether several columns of scores are several models, and not several classes.
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
        Arguments of the library: pos_label, labels and multiclass.
    notes : tuple of str
        What was detected, and what is odd.
    """

    frame: Frame
    columns: Columns
    reading: Reading
    as_models: bool
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

    @property
    def weighting(self) -> str:
        """What weights are, as the library calls it."""
        if self.reading.equal_clusters:
            return "clusters"
        return "counts" if self.reading.counts else "sampling"


def make_plan(
    table: Table,
    columns: Columns,
    reading: Reading,
    *,
    as_models: bool = False,
    kind: LabelKind | None = None,
) -> Plan:
    """Return how the columns of a table are read, or refuse them."""
    frame = Frame(table, columns.used, missing=reading.missing)
    _check_options(columns, reading)
    if reading.missing:
        weight = [columns.weight] if columns.weight else []
        frame.refuse_unused_codes([*columns.score, *columns.label, *weight])
    models = {name: frame.expand(name) for name in columns.score}
    scores = [part for parts in models.values() for part in parts]
    if not as_models:
        models = {" ".join(columns.score): scores}
    numbers, odd = read_scores(frame, scores, reading, as_models=as_models)
    values = dict(zip(names_in_frame(scores), numbers, strict=True))
    own_scores = scores[:1] if as_models else scores
    if kind is not None:
        label, several = "", len(own_scores) > 1
        made_from, detected = kind.values(frame, columns, reading, several_scores=several)
        options = {"pos_label": reading.pos_label if several else None}
    else:
        label = free_name(_plain(" or ".join(columns.label)), values, " (label)")
        truth, options, detected = read_labels(frame, columns, reading, own_scores)
        made_from = {label: truth}
    values |= made_from
    values |= _of_rows(frame, columns)
    doubt = [table.doubt] if table.doubt and kind is None else []
    groups = dict(zip(columns.group, frame.groups(columns.group), strict=True))
    fields = [part for part in map(frame.field, columns.feature) if not part.dtype.is_nested()]
    return Plan(
        frame,
        columns,
        reading,
        as_models=as_models,
        models=models,
        label=label,
        kind=kind,
        values=values,
        groups=groups,
        features={part.name: frame.labels(part).values for part in fields},
        options=options | {"multiclass": reading.multiclass},
        notes=(*table.notes, *doubt, *columns.detected, *odd, *detected),
    )


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
