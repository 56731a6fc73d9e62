"""``truecal compare``: which of several models is better calibrated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from truecal._lib.checks import check_fraction
from truecal._lib.text import as_table, level
from truecal.cli._options import Command, column_option, option, output_options, shared
from truecal.cli._output import Output, as_notes, ends, stage, wrapped
from truecal.exceptions import InputError, Remedy

if TYPE_CHECKING:
    from truecal.inference.compare import Comparison, Ranking

#: What to do about labels of several classes, where each column of scores is a model.
_SEVERAL_CLASSES = (
    "Each --score is a model of its own, with probabilities of one class; for several classes give columns of lists "
    "(Parquet, JSON lines, NPZ), or matrices to truecal.compare in Python."
)
_TOO_FEW = "compare needs two models. Name their columns: --score one --score two"


@click.command("compare", cls=Command)
@shared("table", "labels")
@column_option("--score", multiple=True, help="Column of a model's scores; give two or more.")
@shared("norm")
@option("--confidence-level", 0.95, float, "Level of the intervals.")
@shared("resolution")
@output_options
def command(
    file: str,
    out: Output,
    score: tuple[str, ...],
    norm: float,
    confidence_level: float,
    resolution: int | None,
    **reading: Any,
) -> None:
    """Compare models whose scores are columns of FILE, on the same labels.

    Three or more models are ranked and compared pair by pair, with intervals that hold together at the given level
    (Bonferroni) and adjusted p-values (Holm). Each --score is a model: a column of probabilities of one class, or of
    lists with one probability for each class.
    """
    from truecal.cli._input.predictions import load
    from truecal.inference.compare import compare

    if not score:
        raise InputError(_TOO_FEW)
    check_fraction("confidence_level", confidence_level)
    with stage("reading"):
        models = load(file, score=score, as_models=True, **reading)
    if len(models.models) < 2:
        raise InputError(_TOO_FEW)
    with stage("comparing"), models.naming():
        given = models.options | {
            "norm": norm,
            "confidence_level": confidence_level,
            "resolution": resolution,
        }
        try:
            comparison = compare(models.y_true, dict(models.models), **given)
        except InputError as error:
            if error.remedy not in (Remedy.COLUMN_PER_CLASS, Remedy.ONE_VERSUS_REST):
                raise
            raise InputError(error.problem, argument=error.argument, remedy=_SEVERAL_CLASSES) from error
    notes = [*comparison.notes, *models.reversals()]
    head = f"{level(confidence_level)} interval"
    content = _content(comparison, notes)
    out.finish("compare", lambda: content, lambda: _text(comparison, notes, head), models)


def _content(comparison: Comparison | Ranking, notes: list[str]) -> dict[str, Any]:
    from truecal.inference.compare import Comparison

    if isinstance(comparison, Comparison):
        return {"results": [comparison.to_dict()], "notes": notes}
    pairs = [pair.to_dict() for pair in comparison.pairs]
    return {"results": pairs, "notes": notes, "ranking": [model.to_dict() for model in comparison.models]}


def _text(comparison: Comparison | Ranking, notes: list[str], interval_head: str) -> str:
    from truecal.inference.compare import Comparison

    if isinstance(comparison, Comparison):
        columns = (comparison.names, comparison.errors, comparison.intervals, comparison.c_statistics)
        rows = list(zip(*columns, strict=True))
        sentences = [comparison.verdict]
    else:
        rows = [(model.name, model.error, model.interval, model.c_statistic) for model in comparison.models]
        sentences = [comparison.verdict, "", *(pair.verdict for pair in comparison.pairs)]
    body = [
        [name, f"{error:.4f}", ends(interval), f"{concordance:.3f}"]
        for name, error, interval, concordance in rows
    ]
    table = as_table(["model", "error", interval_head, "C statistic"], body)
    return "\n".join([table, "", *map(wrapped, sentences), *as_notes(notes)])
