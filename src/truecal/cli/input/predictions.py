"""From the columns of a table to predictions.

All tables take the same steps; only the last one differs: rows become a `Sample`, a large table is summarised to
`Cells`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.text import counted
from truecal.cli._errors import naming
from truecal.cli.input.columns import Columns, Reading
from truecal.cli.input.files import open_table
from truecal.cli.input.labels import LabelReader
from truecal.cli.input.loaded import CLUSTER, WEIGHT, Predictions, names_of
from truecal.cli.input.outcomes import refuse_outcomes
from truecal.cli.input.scales import read_scores
from truecal.cli.input.table import Table, as_array
from truecal.cli.input.values import Field, Frame, called
from truecal.exceptions import InputError

if TYPE_CHECKING:
    import polars as pl

    from truecal.data.sample import Sample


def load(
    file: str,
    *,
    input_format: str | None = None,
    encoding: str | None = None,
    label: Sequence[str] = (),
    score: Sequence[str] = (),
    weight: str | None = None,
    cluster: str | None = None,
    predicted: str | None = None,
    group: Sequence[str] = (),
    feature: Sequence[str] = (),
    as_models: bool = False,
    cells: bool = False,
    **reading: Any,
) -> Predictions:
    """Read the predictions that the options describe.

    Parameters
    ----------
    file, input_format, encoding
        As for `open_table`.
    label, score, weight, cluster, predicted, group, feature
        Names of columns.
    as_models : bool
        Whether several columns of scores are several models, and not several classes.
    cells : bool
        Whether the file holds cells, as for `load_cells`.
    **reading
        The fields of `Reading`.
    """
    if cells:
        from truecal.cli.input.cells import load_cells

        given: dict[str, Any] = {
            "label": label,
            "score": score,
            "weight": weight,
            "cluster": cluster,
            "predicted": predicted,
        }
        return load_cells(file, group=group, input_format=input_format, encoding=encoding, **given, **reading)
    table = open_table(file, input_format, encoding)
    options = Reading(**reading)
    columns = Columns(tuple(label), tuple(score), weight, cluster, predicted, tuple(group), tuple(feature))
    columns = columns.complete(table, logits=options.logits)
    with naming(table.source, {}) if not table.is_large else naming(table.source, names_of(columns)):
        return _Preparation(table, columns, options, as_models).run()


def scores_of(table: Table, names: Sequence[str], **reading: Any) -> NDArray[Any]:
    """Return the columns of scores of a table that need not have labels."""
    with naming(table.source, {}):
        return _Preparation(table, Columns(score=tuple(names)), Reading(**reading), False).scores_only()


#: Names of columns that say which question, patient and so on a row belongs to.
_UNIT = re.compile(
    r"^(question|prompt|problem|task|item|patient|subject|participant|person|user|customer|client|hospital|clinic"
    r"|session|document|doc|image|case|sample|cluster)s?([ _.-]?(id|no|nr|num|number|key|name|uid))?$",
    re.IGNORECASE,
)


#: Names of columns of weights, and of models of which each has rows of its own.
_WEIGHT = re.compile(r"^(sample|sampling|case|survey)?[ _.-]?weights?$", re.IGNORECASE)
_MODEL = re.compile(r"^(model|classifier|llm)s?([ _.-]?(id|name))?$", re.IGNORECASE)


class _Preparation:
    """The steps from a table to predictions, the same for a table in memory and for a large one."""

    def __init__(self, table: Table, columns: Columns, reading: Reading, as_models: bool) -> None:
        self.table, self.columns, self.reading, self.as_models = table, columns, reading, as_models
        self.notes = list(columns.detected)
        names = [*columns.label, *columns.score, *columns.group, *columns.feature]
        names += [name for name in (columns.weight, columns.cluster, columns.predicted) if name]
        self.frame = Frame(table, names, missing=reading.missing)
        self.kept: NDArray[Any] | None = None

    def run(self) -> Predictions:
        """Return the predictions."""
        columns, reading = self.columns, self.reading
        if reading.counts and not columns.weight:
            raise InputError("needs --weight", argument="--counts")
        if reading.equal_clusters and not columns.cluster:
            raise InputError("needs --cluster", argument="--equal-clusters")
        if reading.equal_clusters and reading.counts:
            raise InputError("cannot be given with --counts", argument="--equal-clusters")
        if reading.missing:
            weight = [columns.weight] if columns.weight else []
            self.frame.refuse_unused_codes([*columns.score, *columns.label, *weight])
        models = {name: self.frame.expand(name) for name in columns.score}
        scores = [part for parts in models.values() for part in parts]
        if not self.as_models:
            models = {" ".join(columns.score): scores}
        # Polars takes a name such as "^s.*$" for a pattern.
        tidy = dict(zip([_plain(part.name) for part in scores], self._scores(scores), strict=True))
        label = _plain(" or ".join(columns.label))
        while label in tidy:
            label += " (label)"
        labels = LabelReader(self.frame, columns, reading, self.notes)
        tidy[label], options = labels.read(scores[:1] if self.as_models else scores)
        if columns.weight:
            comma = self.table.separator != ","  # else "1,234" between quotes may be a thousand
            (tidy[WEIGHT],) = self.frame.numbers(self.frame.expand(columns.weight), decimal_comma=comma)
        if columns.cluster:
            tidy[CLUSTER] = self.frame.names_of_rows(self.frame.field(columns.cluster))
        groups = {f"group {k}": part for k, part in enumerate(self.frame.groups(columns.group))}
        fields = [part for part in map(self.frame.field, columns.feature) if not part.dtype.is_nested()]
        features = {f"feature {k}": self.frame.labels(part).values for k, part in enumerate(fields)}
        lazy = self.frame.lazy.select(**tidy, **groups, **features)
        if reading.drop_missing:
            lazy = self._drop(lazy, list(tidy))
        options |= {"multiclass": reading.multiclass}
        target = "confidence in the predicted class" if columns.predicted else ""
        common: dict[str, Any] = {
            "table": self.table,
            "columns": columns,
            "target": target,
            "options": options,
        }
        if self.frame.is_large:
            names = [_plain(part.name) for part in scores]
            cells = self._summarize(lazy, names, label, options, list(groups))
            whole = None
            if groups and columns.cluster:  # a cluster may lie in several groups
                whole = self._summarize(lazy, names, label, options, [])[()]
            if columns.cluster:
                tables = [sample.clusters for sample in (whole, *cells.values()) if sample is not None]
                self._note_clusters(max(table.n_named for table in tables if table is not None))
            return Predictions(**common, notes=tuple(self.notes), cells=cells, whole=whole)
        rows = self.table.collect(lazy)
        y_true = as_array(rows[label])
        group = {name: rows[key] for name, key in zip(columns.group, groups, strict=True)}
        refuse_outcomes(group, y_true, remedy="Choose groups that are known before the outcome.")
        if columns.weight:
            options["sample_weight"] = as_array(rows[WEIGHT])
            options |= {"weights": "counts"} if reading.counts else {}
        if columns.cluster:
            options["clusters"] = rows[CLUSTER].to_numpy()
            options |= {"weights": "clusters"} if reading.equal_clusters else {}
            self._note_clusters(rows[CLUSTER].n_unique())
        else:
            self._suggest_clusters()
        self._suggest_columns()
        return Predictions(
            **common,
            notes=tuple(self.notes),
            y_true=y_true,
            n_rows=len(y_true),
            models={name: self._matrix(rows, parts) for name, parts in models.items()},
            group=group,
            features={part.name: rows[key].to_numpy() for part, key in zip(fields, features, strict=True)},
            kept=self.kept,
        )

    def scores_only(self) -> NDArray[Any]:
        """Return the scores."""
        scores = [part for name in self.columns.score for part in self.frame.expand(name)]
        tidy = dict(zip([_plain(part.name) for part in scores], self._scores(scores), strict=True))
        return self._matrix(self.table.collect(self.frame.lazy.select(**tidy)), scores)

    def _matrix(self, rows: pl.DataFrame, parts: Sequence[Field]) -> NDArray[Any]:
        matrix = rows[[_plain(part.name) for part in parts]]
        values = as_array(matrix.to_series()) if len(parts) == 1 else matrix.to_numpy()
        if not self.reading.logits or self.reading.keep_logits:
            return values
        from truecal.data import probabilities_from_logits

        with naming(self.table.source, {"logits": called([part.name for part in parts])}, self.kept):
            return probabilities_from_logits(values)

    def _scores(self, fields: Sequence[Field]) -> list[pl.Expr]:
        """Return the columns of scores as numbers, clipped and normalised if asked for."""
        import polars as pl

        reading, names = self.reading, called([part.name for part in fields])
        scores = read_scores(self.frame, fields, reading, self.notes)
        if reading.normalize:
            if self.as_models or len(fields) < 2:
                raise InputError("needs a column of scores for each class", argument="--normalize")
            total = pl.sum_horizontal(*scores)
            bad = total <= 0
            found = self.frame.ask(low=total.min(), high=total.max(), n=bad.sum())
            if found["n"]:
                problem = (
                    f"has {counted(found['n'], 'row')} whose sum is not positive and cannot be normalised"
                )
                raise InputError(problem, argument=names, first_row=self.frame.first(bad)[0])
            self.notes.append(f"divided rows by their sum, from {found['low']:.6g} to {found['high']:.6g}")
            scores = [score / total for score in scores]
        return scores

    def _note_clusters(self, n: int) -> None:
        """Note how many clusters there are, and what counts the same."""
        same = "every cluster" if self.reading.equal_clusters else "every row"
        self.notes.append(f"{counted(n, 'cluster')} in {self.columns.cluster!r}; {same} counts the same")

    def _unused(self, pattern: re.Pattern[str]) -> list[str]:
        """Return the columns whose names match, and that are not used."""
        columns = self.columns
        used = {
            *columns.label,
            *columns.score,
            *columns.group,
            *columns.feature,
            columns.weight,
            columns.cluster,
            columns.predicted,
        }
        return [name for name in self.table.columns if name not in used and pattern.search(name)]

    def _suggest_columns(self) -> None:
        """Note columns that look like weights or like several models, and that are not used."""
        for name in self._unused(_WEIGHT) if not self.columns.weight else ():
            self.notes.append(
                f"column {name!r} is not used; 'truecal measure --weight {name}' takes it as weights"
            )
        for name in self._unused(_MODEL):
            column = self.table.collect(self.table.scan([name])).to_series()
            if 1 < (distinct := column.n_unique()) <= len(column) / 2:
                self.notes.append(
                    f"column {name!r} has {distinct:,} values, and the rows of all of them are taken together; "
                    f"'truecal measure --group {name}' takes each alone"
                )

    def _suggest_clusters(self) -> None:
        """Note a column that looks like the name of a question or a patient, and whose values repeat."""
        for name in self._unused(_UNIT):
            column = self.table.collect(self.table.scan([name])).to_series()
            distinct, n = column.n_unique(), len(column)
            if 1 < distinct <= n / 1.5 and not column.dtype.is_nested() and not column.dtype.is_float():
                self.notes.append(
                    f"{name!r} has {distinct:,} values in {n:,} rows: if rows with the same value depend on each "
                    f"other, name it with --cluster, or intervals are too short"
                )
                return

    def _drop(self, lazy: pl.LazyFrame, needed: Sequence[str]) -> pl.LazyFrame:
        """Leave out rows with missing values and note how many, and which were kept."""
        import polars as pl

        floats = [name for name, dtype in lazy.collect_schema().items() if dtype.is_float()]
        missing = pl.any_horizontal(
            *(pl.col(name).is_null() for name in needed),
            *(pl.col(name).is_nan().fill_null(False) for name in needed if name in floats),
        )
        found = self.table.collect(lazy.select(n=pl.len(), dropped=missing.sum())).row(0, named=True)
        if found["dropped"] == found["n"]:
            raise InputError("has a missing value in every row")
        self.notes.append(f"dropped {found['dropped']:,} of {found['n']:,} rows with missing values")
        if not self.frame.is_large:
            self.kept = np.flatnonzero(
                ~self.table.collect(lazy.select(missing.alias("missing")))["missing"].to_numpy()
            )
        return lazy.filter(~missing)

    def _summarize(
        self, lazy: pl.LazyFrame, scores: list[str], label: str, options: dict[str, Any], groups: list[str]
    ) -> dict[tuple[Any, ...], Sample]:
        """Return the cells of each group; without groups, under the key ()."""
        from narwhals.exceptions import NarwhalsError  # what narwhals makes of errors of Polars

        from truecal.data.frames import summarize

        several = len(scores) > 1 and options["multiclass"] not in (None, "top")
        if self.as_models or several:
            what = f"--multiclass {options['multiclass']}" if several else "comparing models"
            raise InputError(f"has too many rows for {what}, which needs them in memory")
        given: dict[str, Any] = {
            "score": scores if len(scores) > 1 else scores[0],
            "label": label,
            "weight": WEIGHT if self.columns.weight else None,
            "weights": "clusters"
            if self.reading.equal_clusters
            else "counts"
            if self.reading.counts
            else "sampling",
            "cluster": CLUSTER if self.columns.cluster else None,
            "logits": self.reading.logits,
            **{name: value for name, value in options.items() if value not in (None, "classwise")},
        }
        with self.table.reading(NarwhalsError):
            return dict(summarize(lazy, by=groups, **given)) if groups else {(): summarize(lazy, **given)}


def _plain(name: str) -> str:
    return name.removeprefix("^")
