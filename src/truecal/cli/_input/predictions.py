"""From a file to predictions: a plan is made, and carried out once.

All tables take the same steps; only the last one differs: rows become a `Sample`, a large table is summarised to
`Cells`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecal._lib.text import listing
from truecal.cli._input import plan as planning
from truecal.cli._input.columns import Columns, Reading
from truecal.cli._input.files import open_table
from truecal.cli._input.labels import GOLD, LABEL, LabelKind
from truecal.cli._input.plan import Plan, make_plan
from truecal.cli._input.scores import read_scores
from truecal.cli._input.table import Table
from truecal.cli._input.values import Field, Frame, called
from truecal.cli._output import naming
from truecal.data import as_samples, probabilities_from_logits, read_rows
from truecal.data.arrays import MULTILABEL
from truecal.data.faults import CLASSES, are_classes
from truecal.data.groups import split_rows, split_sample
from truecal.data.labels import Labels
from truecal.exceptions import InputError

if TYPE_CHECKING:
    from truecal.data.sample import Sample
    from truecal.inference._test_result import TestResult
    from truecal.results import Estimate


def load(
    file: str,
    *,
    input_format: str | None = None,
    encoding: str | None = None,
    as_models: bool = False,
    cells: bool = False,
    **options: Any,
) -> Predictions:
    """Read the predictions that the options describe; `as_models`: several columns of scores are several models."""
    if cells:
        return _load_cells(open_table(file, input_format, encoding), **options)
    kind, rest = LabelKind.from_options(options)
    columns = Columns(**{name: rest.pop(name) for name in _names(Columns) & rest.keys()})
    reading = Reading(**rest)
    table = open_table(file, input_format, encoding)
    if kind is None:
        columns = columns.complete(table, logits=reading.logits)
    else:
        table, kind = kind.join(table)
        columns = replace(columns, label_columns=kind.columns)
        columns = columns.complete(table, logits=reading.logits, labelled=kind.uses_label)
        kind = kind.complete(columns)
    with naming(table.source, names_of(columns) if table.is_large else {}):
        return carry_out(make_plan(table, columns, reading, as_models=as_models, kind=kind))


def _names(options: type) -> set[str]:
    """Return the names of the options that a dataclass holds."""
    return {field.name for field in fields(options)}


def scores_of(table: Table, names: Sequence[str], reading: Mapping[str, Any]) -> NDArray[Any]:
    """Return the columns of scores of a table that need not have labels."""
    options = Reading(**{name: reading[name] for name in _names(Reading) & reading.keys()})
    with naming(table.source, {}):
        frame = Frame(table, names, options)
        parts = frame.expand(*names)
        values, _ = read_scores(frame, parts)
        rows = table.collect(
            frame.lazy.select(**dict(zip(planning.names_in_frame(parts), values, strict=True)))
        )
        return _matrix(rows, parts, frame, None)


def carry_out(plan: Plan) -> Predictions:
    """Read the rows as planned."""
    lazy, notes = plan.lazy, [*plan.notes]
    kept: NDArray[Any] | None = None
    if plan.frame.reading.drop_missing:
        lazy, kept, note = _drop(plan, lazy)
        notes.append(note)
    read = _summarized if plan.frame.is_large else _in_memory
    further, content = read(plan, lazy, kept)
    return Predictions(
        table=plan.frame.table,
        columns=plan.columns,
        notes=(*notes, *further),
        target="confidence in the predicted class" if plan.columns.predicted else "",
        **content,
    )


def _in_memory(plan: Plan, lazy: pl.LazyFrame, kept: NDArray[Any] | None) -> tuple[list[str], dict[str, Any]]:
    """Return the rows as arrays, with notes on clusters and on columns that are not used."""
    columns, table = plan.columns, plan.frame.table
    rows = table.collect(lazy)
    group = {name: rows[f"group {k}"] for k, name in enumerate(plan.groups)}
    y_true: Any
    if plan.kind is not None:
        with naming(table.source, plan.kind.names(), kept):
            y_true = plan.kind.labels(rows)
    else:
        several = [name for name in plan.values if name.startswith(LABEL)]
        y_true = rows[several].to_numpy() if several else rows[plan.label].to_numpy()
        planning.refuse_outcomes(group, y_true, remedy=planning.EARLIER_GROUPS)
    options = dict(plan.options)
    if columns.weight:
        options["sample_weight"] = rows[planning.WEIGHT].to_numpy()
    if columns.cluster:
        options["clusters"] = rows[planning.CLUSTER].to_numpy()
    notes = (
        [plan.cluster_note(rows[planning.CLUSTER].n_unique())] if columns.cluster else plan.suggest_clusters()
    )
    models = {name: _matrix(rows, fields, plan.frame, kept) for name, fields in plan.models.items()}
    return [*notes, *plan.suggest_columns()], {
        "y_true": y_true,
        "n_rows": len(y_true),
        "models": models,
        "options": options,
        "group": group,
        "features": {name: rows[f"feature {k}"].to_numpy() for k, name in enumerate(plan.features)},
        "kept": kept,
        "are_logits": plan.frame.reading.logits and plan.frame.reading.keep_logits,
    }


def _summarized(
    plan: Plan, lazy: pl.LazyFrame, kept: NDArray[Any] | None
) -> tuple[list[str], dict[str, Any]]:
    """Return the cells of a large table, with a note on clusters."""
    if plan.kind is not None:
        raise InputError(
            f"has too many rows for {plan.kind.name}, which needs them in memory",
            remedy="Take a random sample of the rows.",
        )
    groups = [f"group {k}" for k in range(len(plan.groups))]
    cells = _summarize(plan, lazy, groups)
    if sum(map(len, plan.models.values())) == 1:
        planning.refuse_groups_of_one_label(list(plan.groups), cells)
    content: dict[str, Any] = {"options": plan.options, "cells": cells}
    if not plan.columns.cluster:
        return [], content
    samples = list(cells.values())
    if groups:  # a cluster may lie in several groups
        content["whole"] = _summarize(plan, lazy, [])[()]
        samples.append(content["whole"])
    n_clusters = max(sample.dependence.n_named or 0 for sample in samples)
    return [plan.cluster_note(n_clusters)], content


def _summarize(plan: Plan, lazy: pl.LazyFrame, groups: list[str]) -> dict[tuple[Any, ...], Sample]:
    """Return the cells of each group; without groups, under the key ()."""
    from narwhals.exceptions import NarwhalsError  # what narwhals makes of errors of Polars

    from truecal.data.frames import summarize

    scores = [name for fields in plan.models.values() for name in planning.names_in_frame(fields)]
    multiclass = plan.options.get("multiclass", "top")
    several = len(scores) > 1 and multiclass != "top"
    if len(plan.models) > 1 or several:
        what = f"--multiclass {multiclass}" if several else "comparing models"
        raise InputError(f"has too many rows for {what}, which needs them in memory")
    given: dict[str, Any] = {
        "score": scores if len(scores) > 1 else scores[0],
        "label": plan.label,
        "weight": planning.WEIGHT if plan.columns.weight else None,
        "cluster": planning.CLUSTER if plan.columns.cluster else None,
        "logits": plan.frame.reading.logits,
        **{name: value for name, value in plan.options.items() if value != "classwise"},
    }
    with plan.frame.table.reading(NarwhalsError):
        return dict(summarize(lazy, by=groups, **given)) if groups else {(): summarize(lazy, **given)}


def _matrix(
    rows: pl.DataFrame, fields: Sequence[Field], frame: Frame, kept: NDArray[Any] | None
) -> NDArray[Any]:
    """Return the scores of a model; logits become probabilities unless they are kept."""
    matrix = rows[planning.names_in_frame(fields)]
    values = matrix.to_series().to_numpy() if len(fields) == 1 else matrix.to_numpy()
    if not frame.reading.logits or frame.reading.keep_logits:
        return values
    with naming(frame.table.source, {"logits": called([part.name for part in fields])}, kept):
        return probabilities_from_logits(values)


def _drop(plan: Plan, lazy: pl.LazyFrame) -> tuple[pl.LazyFrame, NDArray[Any] | None, str]:
    """Drop rows with missing values; return the remaining rows, their positions, and a note."""
    table, schema = plan.frame.table, lazy.collect_schema()
    needed = [name for name in plan.values if name != GOLD]
    missing = pl.any_horizontal(
        *(pl.col(name).is_null() for name in needed),
        *(pl.col(name).is_nan().fill_null(False) for name in needed if schema[name].is_float()),
    )
    found = table.collect(lazy.select(n=pl.len(), dropped=missing.sum())).row(0, named=True)
    if found["dropped"] == found["n"]:
        raise InputError("has a missing value in every row")
    kept = None
    if not plan.frame.is_large:
        kept = np.flatnonzero(~table.collect(lazy.select(missing.alias("missing")))["missing"].to_numpy())
    note = f"dropped {found['dropped']:,} of {found['n']:,} rows with missing values"
    return lazy.filter(~missing), kept, note


def _load_cells(
    table: Table, *, group: Sequence[str] = (), counts: bool = False, **others: Any
) -> Predictions:
    """Read a table of cells, as the query of ``truecal sql`` returns them; no other options describe rows."""
    from truecal.data import sql

    given = [name for name, value in others.items() if value and name != "feature"]
    if given:
        options = listing([f"--{name.replace('_', '-')}" for name in given])
        raise InputError(f"--cells cannot be combined with {options}, which the query has applied already")
    with naming(table.source, {}):
        found = sql.find_columns(table.columns)
        cluster = found.pop(sql.CLUSTER, None)
        known = list(found.values())
        frame = Frame(table, [*known, *group, *([cluster] if cluster else [])])
        columns = dict(zip(known, frame.numbers([frame.field(name) for name in known]), strict=True))
        columns |= zip(group, frame.groups(group), strict=True)
        if cluster:
            columns[cluster] = frame.names_of_rows(frame.field(cluster))
        rows = table.collect(frame.lazy.select(**columns))
        weighting = "counts" if counts else "sampling"
        cells = sql.read_cells(rows, by=list(group), weighting=weighting)
    left = [name for name in table.columns if name not in (*known, *group, cluster)]
    notes = [f"merged the groups of {listing(left)}; --group measures each"] if left else []
    return Predictions(
        table=table,
        columns=Columns(group=tuple(group), cluster=cluster),
        notes=tuple(notes),
        cells=dict(cells),
        n_rows=int(rows[found["rows"]].sum()),
    )


# --- Predictions as the commands use them ---------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions of a file, read as the options say.

    Attributes
    ----------
    table : Table
        The file.
    columns : Columns
        The columns used.
    notes : tuple of str
        What was detected or left out.
    y_true : ndarray or labels that are not the truth, or None
        Labels; None if the table is too large for memory.
    models : dict of str to ndarray
        Probabilities, or logits, by column or group of columns; one entry unless several models were asked for.
    options : dict
        Arguments of the library: pos_label, labels, multiclass, and sample_weight and clusters where given.
    group : dict of str to polars.Series
        Columns of groups.
    features : dict of str to ndarray
        Columns of features.
    kept : ndarray, or None
        Numbers of the rows that were kept, if rows were dropped.
    are_logits : bool
        Whether the models are logits.
    cells : dict of tuple to Cells
        For a large table: the summary of each group, with the key () for all rows.
    whole : Cells, or None
        The summary of all rows, where it cannot be merged from those of groups.
    n_rows : int, or None
        Number of rows, where it is known and is not the sum of the weights.
    target : str
        What the scores are the probability of, in words, where the library cannot know it; else empty.
    """

    table: Table
    columns: Columns
    notes: tuple[str, ...]
    y_true: Any = None
    models: dict[str, NDArray[Any]] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    group: dict[str, pl.Series] = field(default_factory=dict)
    features: dict[str, NDArray[Any]] = field(default_factory=dict)
    kept: NDArray[Any] | None = None
    are_logits: bool = False
    cells: dict[tuple[Any, ...], Sample] = field(default_factory=dict)
    whole: Sample | None = None
    n_rows: int | None = None
    target: str = ""

    def __post_init__(self) -> None:
        """Note scores that look like predicted classes, wherever they come from."""
        scores: dict[Any, NDArray[Any]] = dict(self.models) or {
            key: cells.score for key, cells in self.cells.items()
        }
        hard = [name for name, one in scores.items() if are_classes(one)]
        if hard and (self.models or len(hard) == len(scores)):
            which = f"{called(hard)}: " if len(self.models) > 1 else ""
            note = f"{which}{CLASSES[0].lower() if which else CLASSES[0]}{CLASSES[1:]}"
            object.__setattr__(self, "notes", (*self.notes, note))

    @property
    def source(self) -> str:
        """The file, as messages name it."""
        return self.table.source

    @property
    def y_proba(self) -> NDArray[Any]:
        """Probabilities, or logits, of the first model."""
        return next(iter(self.models.values()))

    def require_rows(self, purpose: str) -> None:
        """Refuse a table that is too large for memory."""
        if self.y_true is None:
            raise InputError(f"{self.source} has too many rows for {purpose}, which needs them in memory")

    def check_labels(self) -> None:
        """Refuse labels whose classes are not known, which a recalibrator would take in their sorted order."""
        with self.naming():
            labels, pos_label = Labels(self.y_true, len(self.y_proba)), self.options.get("pos_label")
            if self.y_proba.ndim == 1:
                labels.binary(pos_label)
            else:
                n_classes, classes = self.y_proba.shape[1], self.options.get("labels")
                labels.columns(n_classes, pos_label=pos_label, classes=classes)

    def naming(self) -> Any:
        """Return a context in which errors of the library name the file and its columns."""
        return naming(self.source, names_of(self.columns), self.kept)

    def reversals(self) -> list[str]:
        """Return sentences that name models whose higher scores go with fewer events."""
        from truecal.inference.c_statistic import reversed_scores

        if self.y_true is None:
            found = {"": reversed_scores(self.sample)}
        else:
            with self.naming():
                each = {
                    name: as_samples(self.y_true, one, **self.options)
                    for name, one in self.probabilities().items()
                }
            found = {name: reversed_scores(*samples) for name, samples in each.items() if len(samples) == 1}
        sentences = [(name, sentence) for name, sentence in found.items() if sentence is not None]
        return [f"{name}: {sentence}" if len(self.models) > 1 else sentence for name, sentence in sentences]

    def probabilities(self) -> dict[str, NDArray[Any]]:
        """Return the probabilities of each model."""
        logits = self.models if self.are_logits else {}
        return {**self.models, **{name: probabilities_from_logits(one) for name, one in logits.items()}}

    @property
    def rows(self) -> dict[str, Any]:
        """Labels, probabilities and options as the library takes them; empty if the table is too large."""
        return {} if self.y_true is None else {"y_true": self.y_true, "y_proba": self.y_proba, **self.options}

    def arguments(self) -> dict[str, Any]:
        """Return the arguments for `truecal.estimate` and its like: one sample, or arrays where all classes count."""
        multiclass = self.options.get("multiclass")
        classwise = multiclass == "classwise" and "pos_label" not in self.options
        vectors = classwise or multiclass in ("canonical", "top_by_class", MULTILABEL)
        return self.rows if vectors and self.rows else {"y_true": self.sample}

    @cached_property
    def _rows(self) -> Any:
        with self.naming():
            (rows,) = read_rows(self.y_true, self.y_proba, **self.options)
        return replace(rows, event=self.target) if self.target else rows

    @cached_property
    def sample(self) -> Sample:
        """All rows."""
        if self.y_true is None:
            from truecal.data.cells import merge_all

            sample: Sample = self.whole or merge_all(self.cells.values())  # type: ignore[arg-type]
        else:
            sample = self._rows.group()
        return replace(sample, target=self.target) if self.target else sample

    @cached_property
    def groups(self) -> dict[str, Sample]:
        """The sample of each group, by its name."""
        if not self.columns.group:
            return {}
        if self.y_true is not None:
            split = split_rows(self.group, len(self.y_true))
            return {split.names[k]: sample for k, sample in split_sample(self._rows, split).items()}
        keys = list(zip(*self.cells, strict=True))
        split = split_rows(dict(zip(self.columns.group, keys, strict=True)), len(self.cells))
        samples = dict(zip(split.group.tolist(), self.cells.values(), strict=True))
        return {name: samples[k] for k, name in enumerate(split.names)}

    def group_tests(self, **options: Any) -> dict[str, TestResult]:
        """Return the test of each group, with p-values adjusted for the number of groups."""
        from truecal.inference._test_result import adjusted_together
        from truecal.inference.calibration_test import calibration_test

        tests = [calibration_test(sample, **options) for sample in self.groups.values()]
        adjusted = adjusted_together(tests, dependent=bool(self.columns.cluster))
        return dict(zip(self.groups, adjusted, strict=True))

    @property
    def has_sampling_weights(self) -> bool:
        """Whether rows have weights that are not counts, so that their sum is not the number of rows."""
        if self.y_true is None:
            # Cells of a query have no column of weights, and clusters that count the same have squares without weights.
            return any(
                not sample.counted and (self.columns.weight is not None or not sample.dependence.equal)
                for sample in self.cells.values()
            )
        return self.columns.weight is not None and self.options.get("weighting") != "counts"

    def size(self, result: Estimate | TestResult) -> str:
        """Return the number of rows behind a result; with sampling weights the effective number of rows."""
        if self.has_sampling_weights and result.effective_size is not None:
            return f"{result.effective_size:,.1f}"
        return f"{result.n:,.10g}"

    @property
    def by(self) -> dict[str, Any] | None:
        """The groups as `truecal.assess` takes them."""
        if not self.columns.group:
            return None
        return dict(self.group) if self.rows else {", ".join(self.columns.group): self.groups}


def names_of(columns: Columns) -> dict[str, str]:
    """Return what messages call the arguments of the library."""
    label, score = called(columns.label or columns.label_columns), called(columns.score)
    weight = called([columns.weight or "weight"])
    names = {"y_true": label, "y": label, "sample_weight": weight, called([planning.WEIGHT]): weight}
    names |= dict.fromkeys(("y_proba", "logits", "scores", "X"), score)
    cluster = called([columns.cluster or "cluster"])
    return names | ({"clusters": cluster, called([planning.CLUSTER]): cluster} if columns.cluster else {})
