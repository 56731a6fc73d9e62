"""``truecal measure``: the calibration error of a file of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecal.cli._options import group_option, input_options, output_options, seed_option
from truecal.cli._output import as_json, as_table, check_folder, emit, stage

if TYPE_CHECKING:
    from truecal.cli.input.predictions import Predictions, Summary
    from truecal.results import Estimate

#: The recommended estimator, the paper's two, and what most people call the ECE.
_DEFAULT = ("averaged", "em_sweep", "em_debias", "ew_bin")


@click.command("measure")
@input_options
@group_option
@click.option("--estimator", multiple=True, help="An estimator, see 'truecal estimators'; repeatable.")
@click.option("--norm", type=float, default=2, show_default=True, help="Order of the norm.")
@click.option("--n-bins", type=int, help="Number of bins, for estimators with bins.")
@click.option(
    "--confidence-level",
    type=float,
    default=0.95,
    show_default=True,
    help="Level of the intervals; 0 for none.",
)
@seed_option
@output_options
def command(
    file: str,
    group: str | None,
    estimator: tuple[str, ...],
    norm: float,
    n_bins: int | None,
    confidence_level: float,
    seed: int,
    style: str,
    output: Path | None,
    **what: Any,
) -> None:
    """Measure the calibration error of the predictions in FILE.

    FILE is a CSV, TSV, Parquet, JSON lines, Arrow, NPZ or NPY file, a folder or glob of Parquet files, or -
    for standard input. Errors are fractions: 0.05 is five percentage points.
    """
    from truecal._lib.checks import check_norm
    from truecal.cli.input.predictions import load
    from truecal.estimators._registry import get_estimator

    check_norm(norm)
    check_folder(output)
    for name in estimator:
        get_estimator(name)
    with stage("reading"):
        predictions = load(file, group=group, **what)
    names = estimator or (("ew_bin", "em_bin") if n_bins else _DEFAULT[: 1 if group else None])
    parts = [(None, predictions.arguments()), *predictions.groups()]
    with stage("measuring"):
        results = [
            (part, _measure(arguments, name, norm, n_bins, confidence_level, seed))
            for part, arguments in parts
            for name in names
        ]
        pvalues = _pvalues(predictions, norm, seed) if group else {}
    if style == "json":
        content = [
            {"group": part, "adjusted_pvalue": pvalues.get(part), **found.to_dict()}
            for part, found in results
        ]
        first = results[0][1].to_dict()
        told = {"command": "measure", "source": predictions.source}
        told |= {key: first[key] for key in ("value", "interval", "estimator", "norm", "n", "target")}
        emit(as_json({**told, "results": content}), output)
    else:
        emit(_text(predictions.source, results, pvalues, group), output)


def _measure(
    arguments: dict[str, Any], name: str, norm: float, n_bins: int | None, level: float, seed: int
) -> Estimate:
    from truecal.estimators._registry import TRUE_ERROR, get_estimator
    from truecal.inference.estimate import estimate

    spec = get_estimator(name)
    has_interval = level != 0 and norm in (1, 2) and spec.estimand == TRUE_ERROR
    return estimate(
        **arguments,
        estimator=name,
        norm=norm,
        n_bins=n_bins,
        confidence_level=level if has_interval else None,
        rng=seed,
    )


def _pvalues(predictions: Predictions | Summary, norm: float, seed: int) -> dict[str | None, float | None]:
    """Return the corrected p-value of each group; none where fractional weights do not let labels be drawn."""
    from truecal.cli._groups import test_groups

    try:
        tests = test_groups(predictions, norm=norm, rng=seed)
    except ValueError as error:
        if "whole-number weights" not in str(error):
            raise
        return {}
    return {name: test.adjusted_pvalue for name, test in tests.items()}


def _text(
    source: str,
    results: list[tuple[str | None, Estimate]],
    pvalues: dict[str | None, float | None],
    group: str | None,
) -> str:
    first = results[0][1]
    norm = "" if first.norm is None else f" (l{first.norm:g})"
    lines = [f"Calibration error{norm} of {first.target} in {source}, {first.n:,.10g} rows", ""]
    level = next((found.interval.confidence_level for _, found in results if found.interval), None)
    head = ["estimator", "error", "bins"]
    body = [[found.estimator, f"{found.value:.4f}", str(found.n_bins or "-")] for _, found in results]
    if group:
        head = [group, *head[:2], "bins", "rows"]
        body = [
            ["(all)" if name is None else name, *row, f"{found.n:,.10g}"]
            for (name, found), row in zip(results, body, strict=True)
        ]
    if group and level is not None:
        head.append(f"{100 * level:g}% interval")
        for (_, found), row in zip(results, body, strict=True):
            row.append(f"{found.interval.low:.4f} to {found.interval.high:.4f}" if found.interval else "-")
    if pvalues:
        head.append("adjusted p")
        for (name, _), row in zip(results, body, strict=True):
            pvalue = pvalues.get(name)
            row.append("-" if pvalue is None else "< 0.001" if pvalue < 0.001 else f"{pvalue:.3f}")
    lines.append(as_table(head, body, text_columns=2 if group else 1))
    if first.interval is not None and level is not None and not group:
        between = f"{first.interval.low:.4f} to {first.interval.high:.4f}"
        lines += ["", f"{100 * level:g}% confidence interval of the true error: {between}."]
        if first.value not in first.interval:
            lines.append(f"{first.estimator} lies outside the interval, probably because of its bias.")
    if pvalues:
        lines += [
            "",
            f"p: test of perfect calibration, Holm-adjusted for {len(pvalues)} groups.",
        ]
    notes = dict.fromkeys(f"{found.estimator}: {note}" for _, found in results for note in found.notes)
    return "\n".join([*lines, *(f"Note: {note}" for note in notes)])
