"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from truecal.cli.input.sniffing import FORMATS

Command = TypeVar("Command", bound=Callable[..., Any])


def table_options(command: Command) -> Command:
    """Add the argument FILE and the options that describe its columns, except the scores."""
    return _add(
        command,
        click.argument("file", type=click.Path(allow_dash=True)),
        click.option("--label", help="Column of the true labels; detected if one has a conventional name."),
        click.option("--weight", help="Column of the weights."),
        click.option("--pos-label", help="The positive label, if labels are not 0 and 1."),
        click.option(
            "--input-format",
            type=click.Choice(FORMATS),
            help="Override the format inferred from the file name.",
        ),
    )


def input_options(command: Command) -> Command:
    """Add the argument FILE and all options that describe its columns."""
    return _add(
        table_options(command),
        click.option(
            "--score", multiple=True, help="Column of the scores; repeat it for one column per class."
        ),
        click.option(
            "--predicted", help="Column of the predicted class, if the score is the confidence in it."
        ),
        click.option("--logits", is_flag=True, help="The scores are logits: apply the sigmoid or softmax."),
        click.option("--clip", is_flag=True, help="Clip scores that rounding left just outside [0, 1]."),
        click.option(
            "--multiclass",
            type=click.Choice(["top", "classwise"]),
            help="What to measure for several classes.  [default: top]",
        ),
        click.option(
            "--classes", help="The class of each score column, such as a,b,c, if the names do not tell."
        ),
    )


def group_option(command: Command) -> Command:
    """Add the option that splits the rows into groups."""
    return _add(
        command,
        click.option("--group", help="Column of groups; p-values are adjusted for their number."),
    )


def seed_option(command: Command) -> Command:
    """Add the option that fixes everything random."""
    return _add(
        command,
        click.option(
            "--seed",
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="Random seed.",
        ),
    )


def output_options(command: Command) -> Command:
    """Add the options for the format and the output file."""
    return _add(
        command,
        click.option(
            "--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True
        ),
        click.option(
            "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write to."
        ),
    )


def _add(command: Command, *options: Callable[[Command], Command]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
