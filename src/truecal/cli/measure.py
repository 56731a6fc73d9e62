"""``truecal measure``: the calibration error of a file of predictions; ``truecal estimators``: what can measure it."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from truecal._lib.checks import check_norm
from truecal._lib.text import as_table, counted, level, text_width
from truecal.cli._options import (
    Command,
    check_estimators,
    complete_estimators,
    option,
    output_options,
    shared,
)
from truecal.cli._output import Output, as_notes, ends, stage, wrapped

if TYPE_CHECKING:
    from truecal.cli._input.predictions import Predictions
    from truecal.estimators._registry import EstimatorSpec
    from truecal.inference._test_result import TestResult
    from truecal.results import Estimate

#: For comparison with the recommended estimator: the paper's two, and the usual ECE.
_OTHERS = ("em_sweep", "em_debias", "ew_bin")
#: Estimators that take a number of bins.
_WITH_BINS = ("ew_bin", "em_bin")


@click.command("measure", cls=Command)
@shared("scores", "table", "labels", "group", "cells")
@click.option(
    "--estimator",
    shell_complete=complete_estimators,
    multiple=True,
    help="An estimator, see 'truecal estimators'; repeatable.",
)
@shared("norm")
@click.option("--n-bins", type=int, help="Number of bins, for estimators with bins.")
@option("--confidence-level", 0.95, float, "Level of the intervals; 0 for none.")
@shared("resolution")
@click.option(
    "--no-bins",
    "bins",
    is_flag=True,
    flag_value=False,
    default=True,
    help="With --format json: leave out the bins.",
)
@shared("seed")
@output_options
def command(
    file: str,
    out: Output,
    estimator: tuple[str, ...],
    norm: float,
    n_bins: int | None,
    confidence_level: float,
    resolution: int | None,
    bins: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Measure the calibration error of the predictions in FILE.

    FILE is a CSV, TSV, Parquet, JSON lines, Arrow, NPZ or NPY file, a folder or glob of Parquet files, a log of
    Inspect (.eval), - for standard input, or the name of bundled data: flights, digits. Errors are fractions: 0.05
    is five percentage points.

    Labels need not be the truth: a judge's with some gold labels (--judge, --gold), fractions of annotators (--soft),
    censored outcomes (--time, --event, --horizon), or labels of known sensitivity and specificity.
    """
    from truecal.assessment._verdict import data_warnings
    from truecal.cli._input.predictions import load
    from truecal.inference.calibration_test import calibration_test

    if norm < math.inf or not estimator:  # the largest gap is for estimators with bins
        check_norm(norm)
    check_estimators(estimator)
    with stage("reading"):
        predictions = load(file, **reading)
        everything = predictions.arguments()
        names = estimator or _estimators(predictions, n_bins)
        parts: list[tuple[str | None, dict[str, Any]]] = [(None, everything)]
        parts += [(name, {"y_true": sample}) for name, sample in predictions.groups.items()]
    with stage("measuring"), predictions.naming():
        options: dict[str, Any] = {"norm": norm, "n_bins": n_bins, "resolution": resolution, "rng": seed}
        results = [
            (part, _measure(arguments, name, confidence_level if name == names[0] else 0, **options))
            for part, arguments in parts
            for name in names
        ]
        test, by_group = calibration_test(**everything, rng=seed), predictions.group_tests(rng=seed)
    is_sample = len(everything) == 1
    warnings = (*predictions.reversals(), *data_warnings(predictions.sample)) if is_sample else ()
    measured = _Measured(predictions, results, test, by_group, warnings)
    out.finish("measure", lambda: measured.content(bins=bins), measured.text, predictions)


def _estimators(predictions: Predictions, n_bins: int | None) -> tuple[str, ...]:
    """Return the estimators to report where none was named."""
    from truecal.data.pseudo_labels import ImperfectLabels
    from truecal.estimators._registry import DEFAULT_ESTIMATOR

    if predictions.options.get("multiclass") == "canonical":
        return ("skce",)
    if n_bins:
        return _WITH_BINS
    # Bins would take the noise of labels that are not the truth for miscalibration.
    alone = predictions.columns.group or isinstance(predictions.y_true, ImperfectLabels)
    return (DEFAULT_ESTIMATOR, *(() if alone else _OTHERS))


def _measure(
    arguments: dict[str, Any],
    name: str,
    level: float,
    *,
    norm: float,
    resolution: int | None,
    **options: Any,
) -> Estimate:
    from truecal.estimators._registry import DEFAULT_ESTIMATOR, get_estimator
    from truecal.inference.estimate import estimate

    has_interval = level != 0 and norm in (1, 2) and get_estimator(name).name == DEFAULT_ESTIMATOR
    interval: dict[str, Any] = {"confidence_level": level, "resolution": resolution} if has_interval else {}
    return estimate(**arguments, estimator=name, norm=norm, **interval, **options)


@dataclass(frozen=True)
class _Measured:
    """What was measured: estimates of all rows (group None) and of each group, with their tests."""

    predictions: Predictions
    results: list[tuple[str | None, Estimate]]
    test: TestResult
    by_group: dict[str, TestResult]
    warnings: tuple[str, ...]

    @property
    def first(self) -> Estimate:
        """The estimate that is reported."""
        return self.results[0][1]

    @property
    def grouped(self) -> bool:
        """Whether groups were asked for."""
        return bool(self.predictions.columns.group)

    def content(self, *, bins: bool) -> dict[str, Any]:
        """Return the result for JSON."""
        first = self.first.to_dict()
        content = {key: first[key] for key in ("value", "interval", "estimator", "norm", "n", "target")}
        content["results"] = []
        for group, estimate in self.results:
            pvalue = None if group is None else self.by_group[group].adjusted_pvalue
            row = {"group": group, "adjusted_pvalue": pvalue, **estimate.to_dict()}
            content["results"].append({key: row[key] for key in row if bins or key != "bins"})
        test = self.test
        content["test"] = {"method": test.method, "pvalue": test.pvalue, "tested": test.tested}
        return content | {"warnings": self.warnings}

    def text(self) -> str:
        """Return the table and the sentences below it."""
        norm = "" if self.first.norm is None else f" (l{self.first.norm:g})"
        title = f"Calibration error{norm} of {self.first.target} in {self.predictions.source}, {self._size()}"
        lines = [title, "", self._table(), "", *self._interval_lines(), *self._test_lines()]
        lines += self._advice()
        notes = dict.fromkeys(
            note if found.label_kind else f"{found.estimator}: {note}"
            for _, found in self.results
            for note in found.notes
        )
        further = [*([] if self.test.tested else [self.test.why_not_tested]), *self.warnings]
        known = self.predictions.notes
        shown = [*notes, *(note for note in further if note not in known)]
        return "\n".join([*lines, *as_notes(shown)])

    def _size(self) -> str:
        predictions, first = self.predictions, self.first
        size = counted(first.n, "row")
        if predictions.has_sampling_weights:
            size = f"effective n = {predictions.size(first)}"
            if predictions.n_rows is not None:
                size = f"{counted(predictions.n_rows, 'row')}, {size}"
        if first.label_kind is not None:
            size += f"; {first.label_kind}"
            if first.effective_size is not None:
                size += f", worth {first.effective_size:,.0f} true labels"
        return size if first.n_clusters is None else f"{size} in {counted(first.n_clusters, 'cluster')}"

    def _table(self) -> str:
        if not self.grouped:
            body = [[found.estimator, found.shown, str(found.n_bins or "-")] for _, found in self.results]
            return as_table(["estimator", "error", "bins"], body)
        predictions, interval = self.predictions, self.first.interval
        rows = "effective n" if predictions.has_sampling_weights else "rows"
        head = [", ".join(predictions.columns.group), "estimator", "error", rows]
        head += [f"{level(interval.confidence_level)} interval"] if interval else []
        head += ["adjusted p"] if self.by_group else []
        body = []
        for group, found in self.results:
            row = [
                "(all)" if group is None else group,
                found.estimator,
                found.shown,
                predictions.size(found),
            ]
            if interval:
                row.append(ends(found.interval) if found.interval else "-")
            if self.by_group:
                row.append("-" if group is None else self.by_group[group].shown_pvalue)
            body.append(row)
        return as_table(head, body, text_columns=2)

    def _interval_lines(self) -> list[str]:
        interval = self.first.interval
        if interval is None or self.grouped:
            return []
        confidence = level(interval.confidence_level)
        sentence = f"{confidence} confidence interval of the true error: {ends(interval)}."
        if not interval.reliable:
            return [sentence, f"{interval.assumption[0].upper()}{interval.assumption[1:]}."]
        return [sentence, wrapped(f"Its upper end allows {interval.assumption}.")]

    def _test_lines(self) -> list[str]:
        sentence = f"Test of perfect calibration: {self.test.evidence}"
        if not self.by_group:
            return [f"{sentence}."]
        lines = [f"{sentence}; adjusted for {counted(len(self.by_group), 'group')} in the table."]
        if self.first.interval is not None and len(self.by_group) > 1:
            lines.append("Each interval is for its group alone, not adjusted for the number of groups.")
        return lines

    def _advice(self) -> list[str]:
        from truecal.estimators._registry import DEFAULT_ESTIMATOR

        first = self.first
        if first.interval is not None and first.value not in first.interval:
            return [f"{first.estimator} lies outside the interval, probably because of its bias."]
        if first.estimator == DEFAULT_ESTIMATOR and len(self.results) > 1 and not self.grouped:
            return [f"Report the {first.estimator} value; the others are for comparison."]
        return []


@click.command("estimators", cls=Command)
@shared("format")
def estimators(style: str) -> None:
    """List the estimators with what they estimate."""
    from truecal import list_estimators

    specs = list_estimators()
    keys = ("name", "summary", "estimand", "norms", "reference", "aliases")
    content = {"results": [{key: getattr(spec, key) for key in keys} for spec in specs]}
    Output(style).finish(
        "estimators",
        lambda: content,
        lambda: "\n".join([_HEAD, *(line for spec in specs for line in _lines(spec))]),
    )


_HEAD = f"{'estimator':<13} what it is, what it estimates, reference"


def _lines(spec: EstimatorSpec) -> list[str]:
    """Return the name of an estimator with what it does, what it estimates, and where it comes from."""
    names = ", ".join((spec.name, *spec.aliases))
    text = f"{spec.summary} Estimates the {spec.estimand}. {spec.reference}"
    return textwrap.wrap(text, text_width(), initial_indent=f"{names:<13} ", subsequent_indent=" " * 14)
