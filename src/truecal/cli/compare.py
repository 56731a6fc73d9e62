"""``truecal compare``: which of several models is better calibrated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from truecal._lib.text import as_table
from truecal.cli._options import (
    Command,
    column_option,
    norm_option,
    output_options,
    resolution_option,
    table_options,
)
from truecal.cli._output import check_target, finish, stage, wrapped
from truecal.exceptions import InputError, Remedy

#: What to do about labels of several classes, where each column of scores is a model.
_SEVERAL_CLASSES = (
    "Each --score is a model of its own, with probabilities of one class; for several classes give columns of lists "
    "(Parquet, JSON lines, NPZ), or matrices to truecal.compare in Python."
)


@click.command("compare", cls=Command)
@table_options
@column_option("--score", multiple=True, required=True, help="Column of a model's scores; give two or more.")
@norm_option
@click.option(
    "--confidence-level", type=float, default=0.95, show_default=True, help="Level of the intervals."
)
@resolution_option
@output_options
def command(
    file: str,
    score: tuple[str, ...],
    norm: float,
    confidence_level: float,
    resolution: int | None,
    style: str,
    output: Path | None,
    quiet: bool,
    **reading: Any,
) -> None:
    """Compare models whose scores are columns of FILE, on the same labels.

    Three or more models are ranked and compared pair by pair, with intervals that hold together at the given level
    (Bonferroni) and adjusted p-values (Holm). Each --score is a model: a column of probabilities of one class, or of
    lists with one probability for each class.
    """
    from truecal._lib.checks import check_fraction
    from truecal._lib.text import level as percent_of
    from truecal.cli.input.predictions import load
    from truecal.inference.compare import Ranking, compare

    check_fraction("confidence_level", confidence_level)
    check_target(output, file)
    with stage("reading"):
        models = load(file, score=score, as_models=True, **reading)
    if len(models.models) < 2:
        raise InputError("compare needs two models. Name their columns: --score one --score two")
    with stage("comparing"), models.naming():
        options = {name: value for name, value in models.options.items() if value is not None}
        try:
            comparison = compare(
                models.y_true,
                dict(models.models),
                norm=norm,
                confidence_level=confidence_level,
                resolution=resolution,
                **options,
            )
        except InputError as error:
            if error.remedy not in (Remedy.COLUMN_PER_CLASS, Remedy.ONE_VERSUS_REST):
                raise
            raise InputError(error.problem, argument=error.argument, remedy=_SEVERAL_CLASSES) from error
    if isinstance(comparison, Ranking):
        pairs, shown = comparison.pairs, comparison.models
        rows = [(one.name, one.error, one.interval, one.c_statistic) for one in shown]
        sentences = [comparison.verdict, "", *(one.verdict for one in comparison.pairs)]
    else:
        pairs = (comparison,)
        rows = list(
            zip(
                comparison.names,
                comparison.errors,
                comparison.intervals,
                comparison.c_statistics,
                strict=True,
            )
        )
        sentences = [comparison.verdict]
    notes = [*comparison.notes, *models.reversals()]
    sentences += [f"Note: {note}" for note in notes]
    body = [
        [name, f"{error:.4f}", f"{interval.low:.4f} to {interval.high:.4f}", f"{concordance:.3f}"]
        for name, error, interval, concordance in rows
    ]
    heading = f"{percent_of(confidence_level)} interval"
    text = "\n".join(
        [as_table(["model", "error", heading, "C statistic"], body), "", *map(wrapped, sentences)]
    )
    content = {"results": [one.to_dict() for one in pairs], "notes": notes}
    if isinstance(comparison, Ranking):
        content["ranking"] = [one.to_dict() for one in comparison.models]
    finish("compare", content, text, style=style, output=output, predictions=models, quiet=quiet)
