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
from truecal.cli.input.table import Table, as_array
from truecal.cli.input.values import Field, Frame, called
from truecal.exceptions import InputError

if TYPE_CHECKING:
    import polars as pl

    from truecal.data.sample import Sample

#: How far outside [0, 1] a score may lie by rounding.
_ROUNDING = 1e-3


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


class _Preparation:
    """The steps from a table to predictions, the same for a table in memory and for a large one."""

    def __init__(self, table: Table, columns: Columns, reading: Reading, as_models: bool) -> None:
        self.table, self.columns, self.reading, self.as_models = table, columns, reading, as_models
        self.notes = list(columns.detected)
        names = [*columns.label, *columns.score, *columns.group, *columns.feature]
        names += [name for name in (columns.weight, columns.cluster, columns.predicted) if name]
        self.frame = Frame(table, names)
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
            (tidy[WEIGHT],) = self.frame.numbers([self.frame.field(columns.weight)], decimal_comma=comma)
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
        return Predictions(
            **common,
            notes=tuple(self.notes),
            y_true=y_true,
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
        if not self.reading.logits:
            return values
        from truecal.data import probabilities_from_logits

        with naming(self.table.source, {"logits": called([part.name for part in parts])}, self.kept):
            return probabilities_from_logits(values)

    def _scores(self, fields: Sequence[Field]) -> list[pl.Expr]:
        """Return the columns of scores as numbers, clipped and normalised if asked for."""
        import polars as pl

        reading, names = self.reading, called([part.name for part in fields])
        scores = self.frame.numbers(fields, percent=reading.percent)
        if reading.clip:
            scores = [
                pl.when((score - 0.5).abs() < 0.5 + _ROUNDING).then(score.clip(0, 1)).otherwise(score)
                for score in scores
            ]
        if reading.percent:
            self._check_percentages(fields, scores)
        if reading.logits:
            low = pl.min_horizontal(*(score.min() for score in scores))
            high = pl.max_horizontal(*(score.max() for score in scores))
            self._question_logits(names, len(scores), **self.frame.ask(low=low, high=high))
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

    def _check_percentages(self, fields: Sequence[Field], scores: Sequence[pl.Expr]) -> None:
        """Refuse percentages that are below 0 or above 100, and note those that look like something else."""
        import polars as pl

        outside = [score.is_not_nan() & ((score < 0) | (score > 1)) for score in scores]
        found = self.frame.ask(
            high=pl.max_horizontal(*(score.max() for score in scores)),
            n=pl.len() * len(scores),
            below1=pl.sum_horizontal(*(((score > 0) & (score < 0.01)).sum() for score in scores)),
            below2=pl.sum_horizontal(*(((score >= 0.01) & (score < 0.02)).sum() for score in scores)),
            **{f"outside{k}": bad.sum() for k, bad in enumerate(outside)},
        )
        for k, part in enumerate(fields if not self.reading.logits else ()):
            if n := found[f"outside{k}"]:
                row, value = self.frame.first(outside[k], part.values)
                raise part.error(
                    f"has {counted(n, 'value')} outside 0% to 100%",
                    count=n,
                    first_row=row,
                    value=value,
                    remedy="Remove or fix these rows; add --clip if this is rounding.",
                )
        names, high = called([part.name for part in fields]), found["high"]
        if high is not None and 0 < high <= 0.01:
            self.notes.append(
                f"no value of {names} is above 1%: are they probabilities, and not percentages?"
            )
        elif high is not None and 0 < high <= 0.1:
            self.notes.append(
                f"no value of {names} is above 10%: are they percentages, and not from 0 to 10?"
            )
        elif 10 * found["below1"] >= found["n"] and 10 * found["below2"] < found["below1"]:
            self.notes.append(
                f"{found['below1']:,} values of {names} are below 1%, and few are from 1% to 2%: are some of them "
                f"probabilities, and not percentages?"
            )

    def _question_logits(self, names: str, n_columns: int, low: float | None, high: float | None) -> None:
        """Note logits that look like something else."""
        if low is None or high is None or low < 0:
            return
        if high <= 1:
            self.notes.append(f"all values of {names} lie in [0, 1]: are they probabilities, and not logits?")
        elif n_columns == 1:
            what = "percentages (--percent)" if high > 30 else "something else"
            self.notes.append(f"no value of {names} is negative: are they {what}, and not logits?")

    def _note_clusters(self, n: int) -> None:
        """Note how many clusters there are, and what counts the same."""
        same = "every cluster" if self.reading.equal_clusters else "every row"
        self.notes.append(f"{counted(n, 'cluster')} in {self.columns.cluster!r}; {same} counts the same")

    def _suggest_clusters(self) -> None:
        """Note a column that looks like the name of a question or a patient, and whose values repeat."""
        columns = self.columns
        used = {
            *columns.label,
            *columns.score,
            *columns.group,
            *columns.feature,
            columns.weight,
            columns.predicted,
        }
        for name in self.table.columns:
            if name in used or not _UNIT.search(name):
                continue
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
