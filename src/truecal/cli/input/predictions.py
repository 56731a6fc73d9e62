"""From the columns of a table to predictions.

All tables take the same steps; only the last one differs: rows become a `Sample`, a large table is summarised to
`Cells`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.text import counted, listing
from truecal.cli._errors import naming
from truecal.cli.input.columns import Columns, without_common_prefix
from truecal.cli.input.files import Table, open_table
from truecal.cli.input.values import MARKS, Field, Frame, Labels, called
from truecal.exceptions import InputError, Remedy

if TYPE_CHECKING:
    import polars as pl

    from truecal.data.sample import Sample

#: How far outside [0, 1] a score may lie by rounding.
_ROUNDING = 1e-3
#: Negative and positive labels in words.
_PAIRS = (("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"), ("negative", "positive"), ("neg", "pos"))
#: Names of columns in the frame that predictions are made from.
_WEIGHT, _CLUSTER = "weight of the row", "cluster of the row"


@dataclass(frozen=True)
class Reading:
    """How the columns are read: the options of the command line of the same names."""

    pos_label: str | None = None
    classes: str | None = None
    multiclass: str | None = None
    logits: bool = False
    percent: bool = False
    normalize: bool = False
    clip: bool = False
    drop_missing: bool = False
    counts: bool = False


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
    y_true : ndarray, or None
        Labels; None if the table is too large for memory.
    models : dict of str to ndarray
        Probabilities, or logits, by column or group of columns; one entry unless several models were asked for.
    options : dict
        Arguments of the library: pos_label, labels, multiclass, and sample_weight and clusters where given.
    group, features : dict of str to ndarray
        Columns of groups, and of features.
    kept : ndarray, or None
        Numbers of the rows that were kept, if rows were dropped.
    cells : dict of tuple to Cells
        For a large table: the summary of each group, with the key () for all rows.
    """

    table: Table
    columns: Columns
    notes: tuple[str, ...]
    y_true: NDArray[Any] | None = None
    models: dict[str, NDArray[Any]] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    group: dict[str, NDArray[Any]] = field(default_factory=dict)
    features: dict[str, NDArray[Any]] = field(default_factory=dict)
    kept: NDArray[Any] | None = None
    cells: dict[tuple[Any, ...], Sample] = field(default_factory=dict)
    target: str = ""

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

    def naming(self) -> Any:
        """Return a context in which errors of the library name the file and its columns."""
        return naming(self.source, _names_of(self.columns))

    @property
    def rows(self) -> dict[str, Any]:
        """Labels, probabilities and options as the library takes them; empty if the table is too large."""
        return {} if self.y_true is None else {"y_true": self.y_true, "y_proba": self.y_proba, **self.options}

    def arguments(self) -> dict[str, Any]:
        """Return the arguments for `truecal.estimate` and its like: one sample, or arrays for classwise."""
        is_classwise = self.options["multiclass"] == "classwise" and self.options.get("pos_label") is None
        return self.rows if is_classwise and self.rows else {"y_true": self.sample}

    @cached_property
    def _rows(self) -> Any:
        from truecal.data import read_rows

        with self.naming():
            (rows,) = read_rows(self.y_true, self.y_proba, **self.options)
        return replace(rows, target=self.target) if self.target else rows

    @cached_property
    def sample(self) -> Sample:
        """All rows."""
        if self.y_true is None:
            from truecal.data.cells import merge_all

            sample: Sample = merge_all(self.cells.values())  # type: ignore[arg-type]
        else:
            sample = self._rows.group()
        return replace(sample, target=self.target) if self.target else sample

    @cached_property
    def groups(self) -> dict[str, Sample]:
        """The sample of each group, by its name."""
        from truecal.assessment.sections import split_sample
        from truecal.data.groups import split_rows

        if not self.columns.group:
            return {}
        if self.y_true is not None:
            split = split_rows(self.group, len(self.y_true))
            return {split.names[k]: sample for k, sample in split_sample(self._rows, split).items()}
        keys = list(zip(*self.cells, strict=True))
        split = split_rows(dict(zip(self.columns.group, keys, strict=True)), len(self.cells))
        samples = dict(zip(split.group.tolist(), self.cells.values(), strict=True))
        return {name: samples[k] for k, name in enumerate(split.names)}

    @property
    def by(self) -> dict[str, Any] | None:
        """The groups as `truecal.assess` takes them."""
        if not self.columns.group:
            return None
        return dict(self.group) if self.rows else {", ".join(self.columns.group): self.groups}


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
    **reading
        The fields of `Reading`.
    """
    table = open_table(file, input_format, encoding)
    options = Reading(**reading)
    columns = Columns(tuple(label), tuple(score), weight, cluster, predicted, tuple(group), tuple(feature))
    columns = columns.complete(table, logits=options.logits)
    with naming(table.source, {}) if not table.is_large else naming(table.source, _names_of(columns)):
        return _Preparation(table, columns, options, as_models).run()


def scores_of(table: Table, names: Sequence[str], **reading: Any) -> NDArray[Any]:
    """Return the columns of scores of a table that need not have labels."""
    with naming(table.source, {}):
        return _Preparation(table, Columns(score=tuple(names)), Reading(**reading), False).scores_only()


class _Preparation:
    """The steps from a table to predictions, the same for a table in memory and for a large one."""

    def __init__(self, table: Table, columns: Columns, reading: Reading, as_models: bool) -> None:
        self.table, self.columns, self.reading, self.as_models = table, columns, reading, as_models
        self.notes = list(columns.detected)
        names = [*columns.label, *columns.score, *columns.group, *columns.feature]
        names += [name for name in (columns.weight, columns.cluster, columns.predicted) if name]
        self.frame = Frame(table, names)

    def run(self) -> Predictions:
        """Return the predictions."""
        columns, reading = self.columns, self.reading
        if reading.counts and not columns.weight:
            raise InputError("--counts needs --weight")
        models = {name: self.frame.expand(name) for name in columns.score}
        scores = [part for parts in models.values() for part in parts]
        if not self.as_models:
            models = {" ".join(columns.score): scores}
        # Polars takes a name such as "^s.*$" for a pattern.
        tidy = dict(zip([_plain(part.name) for part in scores], self._scores(scores), strict=True))
        label = " or ".join(columns.label)
        while label in tidy:
            label += " (label)"
        tidy[label], options = self._label(scores[:1] if self.as_models else scores)
        if columns.weight:
            comma = self.table.separator != ","  # else "1,234" between quotes may be a thousand
            (tidy[_WEIGHT],) = self.frame.numbers([self.frame.field(columns.weight)], decimal_comma=comma)
        if columns.cluster:
            tidy[_CLUSTER] = self.frame.field(columns.cluster).values
        groups = {f"group {k}": part for k, part in enumerate(self.frame.groups(columns.group))}
        fields = [part for part in map(self.frame.field, columns.feature) if not part.dtype.is_nested()]
        features = {f"feature {k}": self.frame.labels(part).values for k, part in enumerate(fields)}
        lazy, kept = self.frame.lazy.select(**tidy, **groups, **features), None
        if reading.drop_missing:
            lazy, kept = self._drop(lazy, list(tidy))
        options |= {"multiclass": reading.multiclass}
        target = "confidence in the predicted class" if columns.predicted else ""
        common: dict[str, Any] = {
            "table": self.table,
            "columns": columns,
            "target": target,
            "options": options,
        }
        if self.frame.is_large:
            cells = self._summarize(
                lazy, [_plain(part.name) for part in scores], label, options, list(groups)
            )
            return Predictions(**common, notes=tuple(self.notes), cells=cells)
        rows = self.table.collect(lazy)
        if columns.weight:
            options["sample_weight"] = rows[_WEIGHT].to_numpy()
            options |= {"weights": "counts"} if reading.counts else {}
        if columns.cluster:
            options["clusters"] = rows[_CLUSTER].to_numpy()
        return Predictions(
            **common,
            notes=tuple(self.notes),
            y_true=rows[label].to_numpy(),
            models={name: self._matrix(rows, parts) for name, parts in models.items()},
            group={name: rows[key].to_numpy() for name, key in zip(columns.group, groups, strict=True)},
            features={part.name: rows[key].to_numpy() for part, key in zip(fields, features, strict=True)},
            kept=kept,
        )

    def scores_only(self) -> NDArray[Any]:
        """Return the scores."""
        scores = [part for name in self.columns.score for part in self.frame.expand(name)]
        tidy = dict(zip([_plain(part.name) for part in scores], self._scores(scores), strict=True))
        return self._matrix(self.table.collect(self.frame.lazy.select(**tidy)), scores)

    def _matrix(self, rows: pl.DataFrame, parts: Sequence[Field]) -> NDArray[Any]:
        matrix = rows[[_plain(part.name) for part in parts]]
        values = matrix.to_series().to_numpy() if len(parts) == 1 else matrix.to_numpy()
        if not self.reading.logits:
            return values
        from truecal.data import probabilities_from_logits

        with naming(self.table.source, {"logits": called([part.name for part in parts])}):
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
        if reading.logits:
            low = pl.min_horizontal(*(score.min() for score in scores))
            high = pl.max_horizontal(*(score.max() for score in scores))
            self._question_logits(names, len(scores), **self.frame.ask(low=low, high=high))
        if reading.normalize:
            if self.as_models or len(fields) < 2:
                raise InputError("--normalize needs a column of scores for each class")
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

    def _question_logits(self, names: str, n_columns: int, low: float | None, high: float | None) -> None:
        """Note logits that look like something else."""
        if low is None or high is None or low < 0:
            return
        if high <= 1:
            self.notes.append(f"all values of {names} lie in [0, 1]: are they probabilities, and not logits?")
        elif n_columns == 1:
            what = "percentages (--percent)" if high > 30 else "something else"
            self.notes.append(f"no value of {names} is negative: are they {what}, and not logits?")

    # --- Labels ------------------------------------------------------------------------------------

    def _label(self, scores: Sequence[Field]) -> tuple[pl.Expr, dict[str, Any]]:
        """Return the labels, and the arguments pos_label and labels of the library."""
        columns, reading = self.columns, self.reading
        parts = [part for name in columns.label for part in self.frame.expand(name)]
        if columns.predicted:
            if len(parts) > 1 or len(scores) > 1:
                raise InputError("--predicted needs one column of labels and one of scores")
            return self._was_right(parts[0], self.frame.field(columns.predicted)), {}
        if len(parts) > 1:
            return self._one_hot(parts, scores)
        labels = self.frame.labels(parts[0])
        pos_label = _as_label(reading.pos_label, labels.kind, "--pos-label")
        if reading.classes is not None:
            names = next(csv.reader([reading.classes], skipinitialspace=True), [])
            classes = [_as_label(name.strip(), labels.kind, "--classes") for name in names]
            return labels.values, {"pos_label": pos_label, "labels": classes}
        if len(scores) > 1:
            found = self._classes(scores, labels)
            if (
                found
                and len(found) == 2
                and labels.kind != "text"
                and not (reading.pos_label or reading.multiclass)
            ):
                pos_label = max(found)  # and not the class of the second column
            return labels.values, {"pos_label": pos_label, "labels": found}
        if pos_label is None and labels.kind == "text":
            return self._words(labels), {}
        if pos_label is None and re.fullmatch(r".*[a-z_]0", scores[0].name):
            self.notes.append(
                f"column {scores[0].name!r} is read as the probability of label 1; if it is that of label 0, add "
                f"--pos-label 0"
            )
        return labels.values, {"pos_label": pos_label}

    def _words(self, labels: Labels) -> pl.Expr:
        """Return labels such as no and yes as booleans, and others as they are."""
        import polars as pl

        words = {word.lower() for word in labels.seen} - set(MARKS)
        for negative, positive in _PAIRS:
            if words and words <= {negative, positive}:
                self.notes.append(f"using {positive!r} as the positive label")
                lower = labels.values.str.to_lowercase()
                return pl.when(lower.is_in([negative, positive])).then(lower == positive)
        return labels.values

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
        if labels.kind == "boolean" and {name.lower() for name in names} == {"true", "false"}:
            return [name.lower() == "true" for name in names]
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

        if len(parts) != len(scores):
            raise InputError(f"has {len(parts)} columns of labels for {len(scores)} columns of scores")
        if self.reading.classes is not None:
            raise InputError("--classes cannot be combined with a column of labels for each class")
        label_ends = without_common_prefix([part.name for part in parts])
        score_ends = without_common_prefix([part.name for part in scores])
        if set(label_ends) == set(score_ends):
            parts = [parts[label_ends.index(end)] for end in score_ends]
        hot = self.frame.numbers(parts)
        known = pl.all_horizontal(*((value == 0) | (value == 1) for value in hot))
        wrong = (pl.sum_horizontal(*(value == 1 for value in hot)) != 1) | ~known
        if self.reading.drop_missing:
            wrong &= ~pl.any_horizontal(*(value.is_null() for value in hot))
        n = self.frame.ask(n=wrong.sum())["n"]
        if n:
            names = called([part.name for part in parts])
            row, _ = self.frame.first(wrong)
            raise InputError(
                f"has {counted(n, 'row')} without a single 1 among 0s", argument=names, first_row=row
            )
        weighted = (value * k for k, value in enumerate(hot))
        number = pl.sum_horizontal(*weighted, ignore_nulls=False).cast(pl.Int64)
        if scores[0].name.endswith("]") or not all(score_ends):
            return number, {"pos_label": _as_label(self.reading.pos_label, "number", "--pos-label")}
        named = number.replace_strict(dict(enumerate(score_ends)), return_dtype=pl.String)
        return named, {"pos_label": self.reading.pos_label, "labels": score_ends}

    # --- Rows and cells ----------------------------------------------------------------------------

    def _drop(self, lazy: pl.LazyFrame, needed: Sequence[str]) -> tuple[pl.LazyFrame, NDArray[Any] | None]:
        """Leave out rows with missing values and note how many; also return the numbers of those kept."""
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
        kept = None
        if not self.frame.is_large:
            kept = np.flatnonzero(
                ~self.table.collect(lazy.select(missing.alias("missing")))["missing"].to_numpy()
            )
        return lazy.filter(~missing), kept

    def _summarize(
        self, lazy: pl.LazyFrame, scores: list[str], label: str, options: dict[str, Any], groups: list[str]
    ) -> dict[tuple[Any, ...], Sample]:
        """Return the cells of each group; without groups, under the key ()."""
        from truecal.data.frames import summarize

        if self.as_models or self.columns.cluster or options["multiclass"] == "classwise":
            what = (
                "comparing models" if self.as_models else "--cluster" if self.columns.cluster else "classwise"
            )
            raise InputError(f"has too many rows for {what}, which needs them in memory")
        if self.columns.weight and not self.reading.counts:
            problem = "has too many rows for sampling weights, which are needed in memory"
            raise InputError(problem, remedy="If the weights are counts, add --counts.")
        given: dict[str, Any] = {
            "score": scores if len(scores) > 1 else scores[0],
            "label": label,
            "weight": _WEIGHT if self.columns.weight else None,
            "logits": self.reading.logits,
            **{name: value for name, value in options.items() if value is not None},
        }
        with self.table.reading():
            return dict(summarize(lazy, by=groups, **given)) if groups else {(): summarize(lazy, **given)}


def _plain(name: str) -> str:
    return name.removeprefix("^")


def _as_label(text: str | None, kind: str, option: str) -> Any:
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


def _names_of(columns: Columns) -> dict[str, str]:
    """Return what messages call the arguments of the library."""
    label, score = called(columns.label), called(columns.score)
    weight = called([columns.weight or "weight"])
    names = {"y_true": label, "y": label, "sample_weight": weight, called([_WEIGHT]): weight}
    names |= dict.fromkeys(("y_proba", "logits", "scores", "X"), score)
    return names | ({"clusters": called([columns.cluster])} if columns.cluster else {})
