"""``truecal recalibrate``: choose a recalibrator, and apply it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from truecal.cli._files import open_table
from truecal.cli._options import input_options, load
from truecal.cli._output import as_json, emit, output_options


@click.command("recalibrate")
@input_options
@click.option(
    "--apply",
    "other",
    help="File whose scores to recalibrate; by default FILE itself, whose labels the fit has seen.",
)
@click.option("--criterion", default="em_sweep", show_default=True, help="An estimator, brier or log_loss.")
@click.option(
    "--write",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    help="CSV for the recalibrated scores.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@output_options
def command(
    file: str,
    other: str | None,
    criterion: str,
    target: Path | None,
    seed: int,
    style: str,
    output: Path | None,
    **what: Any,
) -> None:
    """Choose a recalibrator for the scores in FILE by cross-validation, and apply it.

    A calibrated model is left alone. The exit code is 1 if there is nothing to mend.
    """
    from truecal.selection import select_recalibrator

    logits = bool(what.get("logits"))
    predictions = load(file, **{**what, "logits": False})
    arguments = predictions.arguments()
    selection = select_recalibrator(
        arguments.pop("y_true"),
        arguments.pop("y_proba"),
        **arguments,
        criterion=criterion,
        input="logits" if logits else "probabilities",
        rng=seed,
    )
    if target is not None:
        _write(selection, other or file, predictions.score_columns, what.get("input_format"), target)
    if style == "json":
        emit(as_json({"command": "recalibrate", "source": predictions.source, **selection.to_dict()}), output)
    else:
        emit(str(selection), output)
    raise SystemExit(1 if selection.leave_alone else 0)


def _write(selection: Any, file: str, columns: list[str], format: str | None, target: Path) -> None:
    """Write the recalibrated scores of a file, one column for each of its own."""
    import numpy as np

    from truecal.cli._output import write_text

    arrays = open_table(file, format).take(columns, columns)
    scores = arrays[columns[0]] if len(columns) == 1 else np.column_stack([arrays[name] for name in columns])
    mended = np.asarray(selection.transform(scores))
    table = mended.reshape(len(mended), -1)
    names = (
        columns if len(columns) == table.shape[1] else [f"{columns[0]}_{k}" for k in range(table.shape[1])]
    )
    lines = [",".join(f"{name}_recalibrated" for name in names)]
    lines += [",".join(repr(float(value)) for value in row) for row in table]
    write_text(target, "\n".join(lines) + "\n")
    click.echo(f"truecal: wrote {target}.", err=True)
