"""Options that several commands share, and the way from them to predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click
import numpy as np
from numpy.typing import NDArray

from truecal.cli._files import FORMATS, LABEL_NAMES, SCORE_NAMES, Table, open_table

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Predictions:
    """Labels and probabilities of a file, with what is needed to read them."""

    source: str
    y_true: NDArray[Any]
    y_proba: NDArray[Any]
    score_columns: list[str]
    sample_weight: NDArray[Any] | None
    pos_label: Any
    group: NDArray[Any] | None
    labels: list[Any] | None = None
    multiclass: str | None = None

    def arguments(self, rows: NDArray[np.bool_] | None = None) -> dict[str, Any]:
        """Return keyword arguments for `truecal.estimate` and its like, for all rows or some."""
        weight = self.sample_weight

        def chosen(array: NDArray[Any]) -> NDArray[Any]:
            return array if rows is None else array[rows]

        return {
            "y_true": chosen(self.y_true),
            "y_proba": chosen(self.y_proba),
            "sample_weight": None if weight is None else chosen(weight),
            "pos_label": self.pos_label,
            "labels": self.labels,
            "multiclass": self.multiclass,
        }


def table_options(command: Command) -> Command:
    """Add the argument FILE and the options that say what is in it, but for the scores."""
    return _add(
        command,
        click.argument("file"),
        click.option("--label", help="Column of the true labels; guessed if only one has a usual name."),
        click.option("--weight", help="Column of the weights, which are frequencies."),
        click.option("--pos-label", help="The label that counts as positive."),
        click.option(
            "--input-format", type=click.Choice(FORMATS), help="If the name of FILE does not tell it."
        ),
    )


def input_options(command: Command) -> Command:
    """Add the argument FILE and all options that say what is in it."""
    return _add(
        table_options(command),
        click.option(
            "--score", multiple=True, help="Column of the scores; several times for one column per class."
        ),
        click.option(
            "--logits", is_flag=True, help="The scores are logits: apply the sigmoid or the softmax."
        ),
        click.option(
            "--multiclass",
            type=click.Choice(["top", "classwise"]),
            help="What to measure of several classes.",
        ),
    )


def _add(command: Command, *options: Callable[[Command], Command]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def load(
    file: str,
    *,
    label: str | None,
    score: tuple[str, ...],
    logits: bool,
    weight: str | None,
    pos_label: str | None,
    multiclass: str | None,
    input_format: str | None,
    group: str | None = None,
) -> Predictions:
    """Read the predictions that the options describe; a guessed column is said on standard error."""
    table = open_table(file, input_format)
    names = list(score) or [_guessed(table, "score", SCORE_NAMES)]
    predictions, columns = _read(table, names, label, weight, pos_label, group)
    scores = [columns[name] for name in names]
    y_proba = scores[0] if len(scores) == 1 else np.column_stack(scores)
    if logits:
        from truecal.readers import probabilities_from_logits

        y_proba = probabilities_from_logits(y_proba)
    # The columns of several scores are named after the classes, if the labels are text.
    labels = names if predictions.y_true.dtype.kind in "OUST" and len(names) > 2 else None
    return replace(predictions, y_proba=y_proba, multiclass=multiclass, labels=labels)


def label_and_columns(
    file: str,
    names: Sequence[str],
    *,
    label: str | None,
    weight: str | None,
    pos_label: str | None,
    input_format: str | None,
) -> tuple[Predictions, dict[str, NDArray[Any]]]:
    """Read the labels of a file, and columns that each are the scores of a model."""
    return _read(open_table(file, input_format), list(names), label, weight, pos_label, None)


def _read(
    table: Table,
    names: list[str],
    label: str | None,
    weight: str | None,
    pos_label: str | None,
    group: str | None,
) -> tuple[Predictions, dict[str, NDArray[Any]]]:
    label_name = label or _guessed(table, "label", LABEL_NAMES)
    extra = [name for name in (weight, group) if name]
    columns = table.take([label_name, *names, *extra], [*names, *([weight] if weight else [])])
    y_true = columns[label_name]
    predictions = Predictions(
        source=table.source,
        y_true=y_true,
        y_proba=columns[names[0]],
        score_columns=names,
        sample_weight=columns[weight] if weight else None,
        pos_label=_as_label(pos_label, y_true),
        group=columns[group] if group else None,
    )
    return predictions, columns


def _guessed(table: Table, what: str, usual: tuple[str, ...]) -> str:
    name = table.guess(what, usual)
    click.echo(f"truecal: taking column {name!r} for the {what}.", err=True)
    return name


def _as_label(text: str | None, y_true: NDArray[Any]) -> Any:
    """Return the positive label in the type of the labels, as the command line has only text."""
    if text is None or y_true.dtype.kind in "OUST":
        return text
    try:
        return int(text) if float(text).is_integer() else float(text)
    except ValueError:
        if y_true.dtype.kind == "b":
            return text.lower() in ("true", "yes")
        raise ValueError(f"--pos-label {text!r} is no number, and the labels are.") from None
