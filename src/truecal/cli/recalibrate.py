"""``truecal recalibrate``: choose a recalibrator and apply it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecal.cli._options import input_options, output_options, seed_option
from truecal.cli._output import as_json, check_folder, emit, say_written, stage

if TYPE_CHECKING:
    from numpy.typing import NDArray


@click.command("recalibrate")
@input_options
@click.option(
    "--apply",
    "other",
    help="File whose scores are recalibrated.  [default: FILE itself]",
)
@click.option("--criterion", default="em_sweep", show_default=True, help="An estimator, brier or log_loss.")
@click.option(
    "--write",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    help="CSV for the recalibrated scores.",
)
@seed_option
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
    """Choose a recalibrator for the scores in FILE by cross-validation and apply it.

    A model that is calibrated already is left as it is; that is no error.
    """
    from truecal.cli.input.predictions import forget_arguments, load_rows
    from truecal.recalibration.selection import select_recalibrator

    for path in (output, target):
        check_folder(path)
    if other is not None and target is None:
        raise ValueError("--apply needs --write: the file for the recalibrated scores.")
    logits = bool(what["logits"])
    with stage("reading"):
        predictions = load_rows(file, **{**what, "logits": False})
    arguments = predictions.arguments()
    with stage("trying recalibrators"):
        selection = select_recalibrator(
            arguments.pop("y_true"),
            arguments.pop("y_proba"),
            **arguments,
            criterion=criterion,
            input="logits" if logits else "probabilities",
            rng=seed,
        )
    if target is not None:
        scores = predictions.y_proba
        if other is not None:
            forget_arguments()
            scores = _scores(other, predictions.score_columns, what["input_format"])
        _write(target, selection.transform(scores), predictions.score_columns)
        say_written(target)
    if style == "json":
        emit(as_json({"command": "recalibrate", "source": predictions.source, **selection.to_dict()}), output)
    else:
        emit(str(selection), output)


def _scores(file: str, names: list[str], format: str | None) -> NDArray[Any]:
    """Return the same columns of another file."""
    import numpy as np

    from truecal.cli.input.files import open_table

    columns = open_table(file, format).take(names, numbers=names)
    return columns[names[0]] if len(names) == 1 else np.column_stack([columns[name] for name in names])


def _write(target: Path, scores: NDArray[Any], names: list[str]) -> None:
    """Write the recalibrated scores as CSV, one column for each of the file's own."""
    import csv

    from truecal._lib.files import whole_file

    table = scores.reshape(len(scores), -1)
    if len(names) != table.shape[1]:
        names = [f"{names[0]}_{k}" for k in range(table.shape[1])]
    with whole_file(target, newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([f"{name}_recalibrated" for name in names])
        writer.writerows(table.tolist())
