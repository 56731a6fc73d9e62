"""``truecal measure``: the calibration error of a file of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from truecal.cli._options import input_options, load
from truecal.cli._output import as_json, as_table, emit, output_options


@click.command("measure")
@input_options
@click.option("--group", help="Column of groups: measure each of them, too.")
@click.option("--estimator", multiple=True, help="One of 'truecal estimators'; may be given several times.")
@click.option("--norm", type=float, default=2, show_default=True, help="The p of the lp norm.")
@click.option("--n-bins", type=int, help="Number of bins, for estimators that take it.")
@output_options
def command(
    file: str,
    group: str | None,
    estimator: tuple[str, ...],
    norm: float,
    n_bins: int | None,
    style: str,
    output: Path | None,
    **what: Any,
) -> None:
    """Measure how far the probabilities in FILE are from the truth.

    FILE is a CSV, TSV, Parquet, JSON lines, Arrow, NPZ or NPY file, a folder or glob of Parquet files, or -
    for standard input. Errors are fractions: 0.05 is five percentage points.
    """
    import warnings

    import numpy as np

    from truecal.measure import estimate

    predictions = load(file, group=group, **what)
    parts: list[tuple[Any, np.ndarray[Any, Any] | None]] = [(None, None)]
    if predictions.group is not None:
        parts += [(name, predictions.group == name) for name in np.unique(predictions.group).tolist()]
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes are part of each result, and are printed below it
        for name, rows in parts:
            for one in estimator or ("em_sweep",):
                found = estimate(**predictions.arguments(rows), estimator=one, norm=norm, n_bins=n_bins)
                results.append((name, found))
    if style == "json":
        content = [{"group": name, **found.to_dict()} for name, found in results]
        emit(as_json({"command": "measure", "source": predictions.source, "results": content}), output)
        return
    head = ["estimator", "error", "norm", "rows", "bins"]
    body = [
        [
            found.estimator,
            f"{found.value:.4f}",
            "-" if found.norm is None else f"l{found.norm:g}",
            f"{found.n:.10g}",
            "-" if found.n_bins is None else str(found.n_bins),
        ]
        for _, found in results
    ]
    if group:
        head = [group, *head]
        body = [
            ["(all)" if name is None else str(name), *row]
            for (name, _), row in zip(results, body, strict=True)
        ]
    lines = [f"Calibration error of {results[0][1].target} in {predictions.source}", ""]
    lines += [as_table(head, body, text_columns=2 if group else 1)]
    lines += [f"Note: {note}" for note in dict.fromkeys(note for _, found in results for note in found.notes)]
    emit("\n".join(lines), output)
