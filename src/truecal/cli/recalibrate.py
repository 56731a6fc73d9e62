"""``truecal recalibrate``: choose a recalibrator and apply it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecal._lib.text import as_table
from truecal.cli._options import OUTPUT, Command, input_options, output_options, seed_option
from truecal.cli._output import check_target, finish, show_written, stage, wrapped
from truecal.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from truecal.cli.input.files import Table
    from truecal.recalibration.selection import Selection


@click.command("recalibrate", cls=Command)
@input_options
@click.option("--apply", "other", help="File whose scores are recalibrated.  [default: FILE itself]")
@click.option("--criterion", help="log_loss, brier or an estimator.  [default: log_loss]")
@click.option("--write", "target", type=OUTPUT, help="CSV file for the rows with their recalibrated scores.")
@seed_option
@output_options
def command(
    file: str,
    other: str | None,
    criterion: str | None,
    target: Path | None,
    seed: int,
    style: str,
    output: Path | None,
    quiet: bool,
    **reading: Any,
) -> None:
    """Choose a recalibrator for the scores in FILE by cross-validation and apply it.

    A model that is calibrated already is left as it is; that is no error.
    """
    from truecal.cli.input.files import open_table
    from truecal.cli.input.predictions import load, scores_of
    from truecal.recalibration.selection import select_recalibrator

    for path in (output, target):
        check_target(path, file, *([other] if other else []))
    if other is not None and target is None:
        raise InputError("--apply needs --write, the file for the recalibrated scores")
    kind = "logits" if reading["logits"] else "probabilities"
    reading["logits"] = False  # the recalibrators take them as they are
    with stage("reading"):
        predictions = load(file, **reading)
        predictions.require_rows("recalibrate")
    with stage("trying recalibrators"), predictions.naming():
        arguments = {"y_true": predictions.y_true, **predictions.options}
        arguments.pop("weights", None)  # a fit is the same for both kinds of weights
        arguments |= {"input": kind, "rng": seed, **({"criterion": criterion} if criterion else {})}
        selection = select_recalibrator(arguments.pop("y_true"), predictions.y_proba, **arguments)
    if target is not None:
        table, scores, kept = predictions.table, predictions.y_proba, predictions.kept
        if other is not None:
            asked = {name: reading[name] for name in ("percent", "clip", "normalize")}
            table = open_table(other, reading["input_format"], reading["encoding"])
            scores, kept = scores_of(table, predictions.columns.score, **asked), None
        with predictions.naming():
            _write(target, table, selection.transform(scores), predictions.columns.score, kept)
        show_written(target)
    content, text = selection.to_dict(), _text(selection)
    finish("recalibrate", content, text, style=style, output=output, predictions=predictions, quiet=quiet)


def _text(selection: Selection) -> str:
    from truecal._lib.text import level

    interval = f"{level(selection.candidates[0].interval.level)} interval"
    head = ["", "recalibrator", "criterion", "change", "(se)", "error", interval]
    body = [
        [
            "*" if one.name == selection.chosen else "",
            one.name,
            f"{one.criterion:.4f}",
            f"{one.difference:+.4f}",
            f"({one.difference_se:.4f})",
            f"{one.error:.4f}",
            f"{one.interval.low:.4f} to {one.interval.high:.4f}",
        ]
        for one in selection.candidates
    ]
    title = f"{selection.criterion}, {selection.design}, n = {selection.n:,.10g}"
    return "\n".join([title, "", as_table(head, body, text_columns=2), "", wrapped(selection.verdict)])


def _write(
    target: Path, table: Table, scores: NDArray[Any], names: tuple[str, ...], kept: NDArray[Any] | None
) -> None:
    """Write the rows of a table as CSV, with the recalibrated scores as further columns."""
    from collections.abc import Mapping

    import polars as pl

    from truecal._lib.files import whole_file

    matrix = scores.reshape(len(scores), -1)
    if len(names) != matrix.shape[1]:
        names = tuple(f"{names[0]}_{k}" for k in range(matrix.shape[1]))
    new = {f"{name}_recalibrated": matrix[:, k] for k, name in enumerate(names)}
    if isinstance(table.frame, Mapping):  # arrays of any shape
        rows = pl.DataFrame({k: v for k, v in table.frame.items() if v.ndim == 1 and len(v) == len(matrix)})
    else:
        rows = table.collect(table.frame)
        rows.columns = [f"c{k}" for k in range(rows.width)]
        rows = rows if kept is None else rows[kept]
        flat = [(k, name) for k, name in enumerate(table.columns) if not rows.dtypes[k].is_nested()]
        rows = pl.DataFrame({name: rows[f"c{k}"] for k, name in flat})
    # A spreadsheet takes text such as "=1+1" for a formula.
    rows = rows.with_columns(pl.selectors.string().str.replace(r"^([=@\t\r]|[+-][^0-9.])", "'${1}"))
    with whole_file(target, "wb") as file:
        pl.concat(
            [rows, pl.DataFrame(new)] if rows.width else [pl.DataFrame(new)], how="horizontal"
        ).write_csv(file)
