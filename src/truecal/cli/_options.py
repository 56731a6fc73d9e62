"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from truecal.cli.input.sniffing import FORMATS

Command = TypeVar("Command", bound=Callable[..., Any])


def table_options(command: Command) -> Command:
    """Add the argument FILE and the options that say what is in it, but for the scores."""
    return _add(
        command,
        click.argument("file", type=click.Path(allow_dash=True)),
        click.option("--label", help="Column of the true labels; guessed if only one has a usual name."),
        click.option("--weight", help="Column of the weights, which are frequencies."),
        click.option("--pos-label", help="The label that counts as positive, if they are not 0 and 1."),
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
            "--predicted", help="Column of the predicted class, if the score is the confidence in it."
        ),
        click.option(
            "--logits", is_flag=True, help="The scores are logits: apply the sigmoid or the softmax."
        ),
        click.option(
            "--clip", is_flag=True, help="Take scores that rounding left outside [0, 1] as 0 and 1."
        ),
        click.option(
            "--multiclass",
            type=click.Choice(["top", "classwise"]),
            help="What to measure of several classes.  [default: top]",
        ),
        click.option(
            "--classes", help="The class of each column of scores: a,b,c. Usually their names tell."
        ),
    )


def group_option(command: Command) -> Command:
    """Add the option that splits the rows."""
    return _add(
        command,
        click.option(
            "--group", help="Column of groups: each is looked at, and p-values are corrected for that."
        ),
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
            help="Seed of all that is random.",
        ),
    )


def output_options(command: Command) -> Command:
    """Add the options that say how and where to write."""
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
