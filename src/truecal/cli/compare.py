"""``truecal compare``: which of several models is better calibrated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from truecal.cli._options import Command, column_option, norm_option, output_options, table_options
from truecal.cli._output import as_table, check_target, finish, stage, wrapped
from truecal.exceptions import InputError


@click.command("compare", cls=Command)
@table_options
@column_option("--score", multiple=True, required=True, help="Column of a model's scores; give two or more.")
@norm_option
@click.option(
    "--confidence-level", type=float, default=0.95, show_default=True, help="Level of the intervals."
)
@output_options
def command(
    file: str,
    score: tuple[str, ...],
    norm: float,
    confidence_level: float,
    style: str,
    output: Path | None,
    quiet: bool,
    **reading: Any,
) -> None:
    """Compare models whose scores are columns of FILE, on the same labels.

    The first model is compared with each of the others. With three or more models the confidence level of each
    comparison is raised (Bonferroni), so that all of them hold together at the given level.
    """
    from truecal._lib.checks import check_fraction
    from truecal._lib.text import level as percent_of
    from truecal.cli.input.predictions import load
    from truecal.inference.compare import compare

    check_fraction("confidence_level", confidence_level)
    check_target(output, file)
    with stage("reading"):
        models = load(file, score=score, as_models=True, **reading)
    first, *others = models.models
    if not others:
        raise InputError("compare needs two models. Name their columns: --score one --score two")
    level = 1 - (1 - confidence_level) / len(others)
    with stage("comparing"), models.naming():
        options = {name: value for name, value in models.options.items() if value is not None}
        found = [
            compare(
                models.y_true,
                models.models[first],
                models.models[other],
                norm=norm,
                confidence_level=level,
                names=(first, other),
                **options,
            )
            for other in others
        ]
    intervals = [found[0].intervals[0], *(one.intervals[1] for one in found)]
    errors = [found[0].errors[0], *(one.errors[1] for one in found)]
    body = [
        [name, f"{error:.4f}", f"{interval.low:.4f} to {interval.high:.4f}"]
        for name, error, interval in zip([first, *others], errors, intervals, strict=True)
    ]
    table = as_table(["model", "error", f"{percent_of(level)} interval"], body)
    text = "\n".join([table, "", *(wrapped(one.verdict) for one in found)])
    content = {"results": [one.to_dict() for one in found]}
    finish("compare", content, text, style=style, output=output, predictions=models, quiet=quiet)
