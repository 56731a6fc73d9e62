"""``truecal measure``: the calibration error of a file of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecal._lib.text import as_table
from truecal.cli._options import (
    Command,
    cells_option,
    check_estimators,
    complete_estimators,
    group_option,
    input_options,
    norm_option,
    output_options,
    resolution_option,
    seed_option,
)
from truecal.cli._output import check_target, finish, stage, wrapped

if TYPE_CHECKING:
    from truecal.cli.input.loaded import Predictions
    from truecal.results import Estimate

#: For comparison with the recommended estimator: the paper's two, and the usual ECE.
_OTHERS = ("em_sweep", "em_debias", "ew_bin")
#: Estimators that take a number of bins.
_WITH_BINS = ("ew_bin", "em_bin")


@click.command("measure", cls=Command)
@input_options
@group_option
@cells_option
@click.option(
    "--estimator",
    shell_complete=complete_estimators,
    multiple=True,
    help="An estimator, see 'truecal estimators'; repeatable.",
)
@norm_option
@click.option("--n-bins", type=int, help="Number of bins, for estimators with bins.")
@click.option(
    "--confidence-level",
    type=float,
    default=0.95,
    show_default=True,
    help="Level of the intervals; 0 for none.",
)
@resolution_option
@click.option("--bins/--no-bins", default=True, help="With --format json: the bins of each estimate.")
@seed_option
@output_options
def command(
    file: str,
    group: tuple[str, ...],
    estimator: tuple[str, ...],
    norm: float,
    n_bins: int | None,
    confidence_level: float,
    resolution: int | None,
    bins: bool,
    seed: int,
    style: str,
    output: Path | None,
    quiet: bool,
    **reading: Any,
) -> None:
    """Measure the calibration error of the predictions in FILE.

    FILE is a CSV, TSV, Parquet, JSON lines, Arrow, NPZ or NPY file, a folder or glob of Parquet files, - for
    standard input, or the name of bundled data: flights, digits. Errors are fractions: 0.05 is five percentage
    points.
    """
    from truecal._lib.checks import check_norm
    from truecal.assessment._verdict import data_warnings
    from truecal.cli.input.predictions import load
    from truecal.estimators._registry import DEFAULT_ESTIMATOR
    from truecal.inference.calibration_test import calibration_test
    from truecal.inference.multiplicity import adjusted_together

    check_norm(norm)
    check_target(output, file)
    check_estimators(estimator)
    names = estimator or (_WITH_BINS if n_bins else (DEFAULT_ESTIMATOR, *(() if group else _OTHERS)))
    if reading["multiclass"] == "canonical" and not estimator:
        names = ("skce",)
    with stage("reading"):
        predictions = load(file, group=group, **reading)
        parts: list[tuple[str | None, dict[str, Any]]] = [(None, predictions.arguments())]
        parts += [(name, {"y_true": sample}) for name, sample in predictions.groups.items()]
    with stage("measuring"), predictions.naming():
        options: dict[str, Any] = {"norm": norm, "n_bins": n_bins, "resolution": resolution, "rng": seed}
        results = [
            (part, _measure(arguments, name, confidence_level if name == names[0] else 0, **options))
            for part, arguments in parts
            for name in names
        ]
        test, *tests = (calibration_test(**arguments, rng=seed) for _, arguments in parts)
        adjusted = adjusted_together(tests, dependent=bool(predictions.columns.cluster))
        by_group = dict(zip(predictions.groups, adjusted, strict=True))
    first = results[0][1].to_dict()
    content = {key: first[key] for key in ("value", "interval", "estimator", "norm", "n", "target")}
    rows = [
        {
            "group": part,
            "adjusted_pvalue": None if part is None else by_group[part].adjusted_pvalue,
            **found.to_dict(),
        }
        for part, found in results
    ]
    content["results"] = [{key: row[key] for key in row if bins or key != "bins"} for row in rows]
    content["test"] = {"method": test.method, "pvalue": test.pvalue, "tested": test.tested}
    content["warnings"] = ()
    if len(parts[0][1]) == 1:
        content["warnings"] = (*predictions.reversals(), *data_warnings(predictions.sample))
    shown = {name: found.shown_pvalue for name, found in by_group.items()}
    text = _text(predictions, results, test.evidence, shown, ", ".join(group))
    notes = [*([] if test.tested else [test.why_not_tested]), *content["warnings"]]
    notes = [note for note in notes if note not in predictions.notes]
    text = "\n".join([text, *(wrapped(f"Note: {note}") for note in notes)])
    finish("measure", content, text, style=style, output=output, predictions=predictions, quiet=quiet)


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


def _text(
    predictions: Predictions,
    results: list[tuple[str | None, Estimate]],
    shown_pvalue: str,
    pvalues: dict[str, str],
    group: str,
) -> str:
    from truecal._lib.text import counted, level
    from truecal.estimators._registry import DEFAULT_ESTIMATOR

    first = results[0][1]
    norm = "" if first.norm is None else f" (l{first.norm:g})"
    weighted = predictions.has_sampling_weights
    size = f"effective n = {predictions.size(first)}" if weighted else counted(first.n, "row")
    if weighted and predictions.n_rows is not None:
        size = f"{counted(predictions.n_rows, 'row')}, {size}"
    size += "" if first.n_clusters is None else f" in {counted(first.n_clusters, 'cluster')}"
    lines = [f"Calibration error{norm} of {first.target} in {predictions.source}, {size}", ""]
    head = ["estimator", "error", "bins"]
    body = [[found.estimator, found.shown, str(found.n_bins or "-")] for _, found in results]
    if group:
        head = [group, "estimator", "error", "effective n" if weighted else "rows"]
        body = [
            ["(all)" if name is None else name, row[0], row[1], predictions.size(found)]
            for (name, found), row in zip(results, body, strict=True)
        ]
    if group and first.interval is not None:
        head.append(f"{level(first.interval.confidence_level)} interval")
        for (_, found), row in zip(results, body, strict=True):
            row.append(f"{found.interval.low:.4f} to {found.interval.high:.4f}" if found.interval else "-")
    if pvalues:
        head.append("adjusted p")
        for (name, _), row in zip(results, body, strict=True):
            row.append(pvalues.get(name or "", "-"))
    lines.append(as_table(head, body, text_columns=2 if group else 1))
    lines.append("")
    if first.interval is not None and not group:
        ends = f"{first.interval.low:.4f} to {first.interval.high:.4f}"
        lines.append(
            f"{level(first.interval.confidence_level)} confidence interval of the true error: {ends}."
        )
        if first.interval.resolution is None:  # no interval for so few rows or clusters
            lines.append(f"{first.interval.assumption[0].upper()}{first.interval.assumption[1:]}.")
        else:
            lines.append(wrapped(f"Its upper end allows {first.interval.assumption}."))
    lines.append(f"Test of perfect calibration: {shown_pvalue}.")
    if pvalues:
        lines[-1] = lines[-1][:-1] + f"; adjusted for {counted(len(pvalues), 'group')} in the table."
        if first.interval is not None and len(pvalues) > 1:
            lines.append("Each interval is for its group alone, not adjusted for the number of groups.")
    if first.interval is not None and first.value not in first.interval:
        lines.append(f"{first.estimator} lies outside the interval, probably because of its bias.")
    elif first.estimator == DEFAULT_ESTIMATOR and len(results) > 1 and not group:
        lines.append(f"Report {first.estimator}; the others are for comparison.")
    notes = dict.fromkeys(f"Note: {found.estimator}: {note}" for _, found in results for note in found.notes)
    return "\n".join([*lines, *map(wrapped, notes)])
