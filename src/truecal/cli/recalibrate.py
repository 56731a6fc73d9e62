"""``truecal recalibrate``: choose a recalibrator and apply it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecal._lib.files import whole_file
from truecal._lib.text import as_table, level
from truecal.cli._options import OUTPUT, Command, output_options, shared
from truecal.cli._output import Output, check_target, ends, say, stage, wrapped
from truecal.exceptions import InputError

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from truecal.cli._input.predictions import Predictions
    from truecal.cli._input.table import Table
    from truecal.inference.compare import Comparison
    from truecal.recalibration.selection import Selection

#: Formats of the file with recalibrated scores, and the usual ends of their names.
_WRITTEN = {"csv": ".csv", "tsv": ".tsv", "jsonl": ".jsonl", "parquet": ".parquet", "arrow": ".arrow"}

#: The start of text that a spreadsheet takes for a formula, such as "=1+1".
_FORMULA = r"^([=@\t\r]|[+-][^0-9.])"


@click.command("recalibrate", cls=Command)
@shared("scores", "table")
@click.option("--apply", "other", help="File whose scores are recalibrated.  [default: FILE itself]")
@click.option("--test", "fresh", help="File with other rows, on which the gain is measured.")
@click.option("--criterion", help="log_loss, brier or an estimator.  [default: log_loss]")
@click.option("--write", "target", type=OUTPUT, help="File for the rows with their recalibrated scores.")
@shared("seed")
@output_options
def command(
    file: str,
    out: Output,
    other: str | None,
    fresh: str | None,
    criterion: str | None,
    target: Path | None,
    seed: int,
    **reading: Any,
) -> None:
    """Choose a recalibrator for the scores in FILE by cross-validation and apply it.

    A model that is calibrated already is left as it is; that is no error. The table gives the errors of held-out rows.
    With --test the errors before and after are compared on the rows of another file, with the same columns.

    --write keeps all columns and adds the new ones, in the format that the name implies: .csv, .tsv, .jsonl, .parquet,
    .arrow. Text that a spreadsheet would run as a formula ("=1+1"), also in the names of columns, gets an apostrophe in
    front of it in .csv and .tsv. On the rows of FILE, which the recalibrator was fitted to, their
    error is too small: to show the gain with 'truecal compare', give other rows with --apply.
    """
    from truecal.cli._input.predictions import load
    from truecal.recalibration.selection import select_recalibrator

    if target is not None:
        _check_format(target)
    check_target(target, file, *filter(None, (other, fresh)))
    if other is not None and target is None:
        raise InputError("needs --write, the file for the recalibrated scores", argument="--apply")
    kind = "logits" if reading["logits"] else "probabilities"
    reading["keep_logits"] = True  # the recalibrators take them as they are
    with stage("reading"):
        predictions = load(file, **reading)
        predictions.require_rows("recalibrate")
        predictions.check_labels()
    with stage("trying recalibrators"), predictions.naming():
        options = {**predictions.options, "input": kind, "rng": seed}
        options |= {"criterion": criterion} if criterion else {}
        selection = select_recalibrator(predictions.y_true, predictions.y_proba, **options)
    if target is not None:
        _apply(selection, predictions, target, other, reading)
    reversals = predictions.reversals()
    content = selection.to_dict() | ({"warnings": reversals} if reversals else {})
    sentences = [wrapped(sentence) for sentence in (selection.verdict, *reversals)]
    if fresh is not None:
        columns = predictions.columns
        same = {"label": columns.label, "score": columns.score}
        with stage("testing"):
            gain = _gain(selection, load(fresh, **{**reading, **same}))
        content["test"] = {"source": fresh, **gain.to_dict()}
        sentences.append(f"On the rows of {fresh}:\n{wrapped(gain.verdict)}")
    text = "\n\n".join([*_table(selection, predictions), *sentences])
    out.finish("recalibrate", lambda: content, lambda: text, predictions)


def _apply(
    selection: Selection, predictions: Predictions, target: Path, other: str | None, reading: dict[str, Any]
) -> None:
    """Write the recalibrated scores of the same rows, or of another file."""
    from truecal.cli._input.files import open_table
    from truecal.cli._input.predictions import names_of, scores_of
    from truecal.cli._output import naming

    columns = predictions.columns
    table, scores, kept = predictions.table, predictions.y_proba, predictions.kept
    if other is not None:
        table = open_table(other, reading["input_format"], reading["encoding"])
        scores = scores_of(table, columns.score, reading)
        kept = None
    with naming(table.source, names_of(columns), kept):
        _write(target, table, selection.transform(scores), columns.score, kept)
    say(f"wrote {target}")
    files = {Path(name).resolve() for name in (predictions.source, other or predictions.source)}
    if len(files) == 1 and not selection.leave_alone:
        say(
            f"{selection.chosen} was fitted to these rows, so its error on them is too small: measure it on other "
            f"rows (--test, or --apply), or take the error of held-out rows in the table"
        )


def _gain(selection: Selection, fresh: Predictions) -> Comparison:
    """Return the comparison of the scores of other rows before and after."""
    from truecal.inference.compare import Comparison, compare

    fresh.require_rows("recalibrate --test")
    with fresh.naming():
        (before,) = fresh.probabilities().values()
        models = {"before": before, "after": selection.transform(fresh.y_proba)}
        comparison = compare(fresh.y_true, models, **fresh.options)
    assert isinstance(comparison, Comparison)
    return comparison


def _table(selection: Selection, predictions: Predictions) -> list[str]:
    """Return what was compared, and the table of recalibrators."""
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
            ends(one.interval),
        ]
        for one in selection.candidates
    ]
    # The sum of sampling weights is not the number of rows.
    n = len(predictions.y_proba) if predictions.has_sampling_weights else selection.n
    title = f"{selection.criterion}, {selection.design}, n = {n:,.10g}"
    return [title, as_table(head, body, text_columns=2)]


def _write(
    target: Path, table: Table, scores: NDArray[Any], names: tuple[str, ...], kept: NDArray[Any] | None
) -> None:
    """Write the rows of a table, with the recalibrated scores as further columns."""
    import polars as pl

    matrix = scores.reshape(len(scores), -1)
    if len(names) != matrix.shape[1]:
        names = tuple(f"{names[0]}_{k}" for k in range(matrix.shape[1]))
    rows = _flat_rows(table, kept, len(matrix))
    new = pl.DataFrame(dict(zip(_free_names(names, rows.columns), matrix.T, strict=True)))
    whole = pl.concat([rows, new], how="horizontal") if rows.width else new
    format = _check_format(target)
    with whole_file(target, "wb") as file:
        if format == "parquet":
            whole.write_parquet(file)
        elif format == "arrow":
            whole.write_ipc(file)
        elif format == "jsonl":
            whole.write_ndjson(file)
        else:
            whole = whole.with_columns(pl.selectors.string().str.replace(_FORMULA, "'${1}"))
            guarded = [re.sub(_FORMULA, r"'\1", name) for name in whole.columns]
            whole.columns = guarded if len(set(guarded)) == whole.width else whole.columns
            whole.write_csv(file, separator="\t" if format == "tsv" else ",")


def _flat_rows(table: Table, kept: NDArray[Any] | None, n_rows: int) -> pl.DataFrame:
    """Return the columns of a table that are not nested, restricted to the kept rows."""
    from collections.abc import Mapping

    import polars as pl

    if isinstance(table.frame, Mapping):  # arrays of any shape
        return pl.DataFrame({k: v for k, v in table.frame.items() if v.ndim == 1 and len(v) == n_rows})
    rows = table.collect(table.frame)
    rows.columns = [f"c{k}" for k in range(rows.width)]
    rows = rows if kept is None else rows[kept]
    flat = [(k, name) for k, name in enumerate(table.columns) if not rows.dtypes[k].is_nested()]
    return pl.DataFrame({name: rows[f"c{k}"] for k, name in flat})


def _free_names(names: tuple[str, ...], columns: Sequence[str]) -> list[str]:
    """Return a name for each recalibrated column that no other column has."""
    new: list[str] = []
    for name in names:
        free, number = f"{name}_recalibrated", 1
        while free in (*columns, *new):
            number += 1
            free = f"{name}_recalibrated_{number}"
        new.append(free)
    return new


def _check_format(target: Path) -> str:
    """Return the format that the name of a file implies, which must be one that can be written."""
    from truecal.cli._input.files import format_by_name

    suffix = target.suffix.lower()
    format = (
        "csv" if target.exists() and not target.is_file() else format_by_name(target)
    )  # a device takes CSV
    if format not in _WRITTEN or suffix in (".gz", ".zst"):
        raise InputError(
            f"must end in one of {', '.join(_WRITTEN.values())}. Got {target.name!r} instead",
            argument="--write",
        )
    return format
