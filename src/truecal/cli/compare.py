"""``truecal compare``: which of several models is better calibrated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from truecal.cli._options import output_options, table_options
from truecal.cli._output import as_json, as_table, check_folder, emit, stage


@click.command("compare")
@table_options
@click.option("--score", multiple=True, required=True, help="Column of a model's scores; give two or more.")
@click.option("--logits", is_flag=True, help="The scores are logits: apply the sigmoid.")
@click.option("--norm", type=float, default=2, show_default=True, help="Order of the norm, 1 or 2.")
@click.option("--confidence-level", type=float, default=0.95, show_default=True)
@output_options
def command(
    file: str,
    score: tuple[str, ...],
    logits: bool,
    norm: float,
    confidence_level: float,
    style: str,
    output: Path | None,
    **what: Any,
) -> None:
    """Compare models whose scores are columns of FILE, on the same labels.

    The first model is compared with each of the others. With three or more models the confidence level of each
    comparison is raised (Bonferroni), so that all of them hold together at the given level.
    """
    from truecal._lib.checks import check_fraction
    from truecal.cli.input.predictions import load_rows
    from truecal.data import probabilities_from_logits
    from truecal.inference.compare import compare

    if len(set(score)) < 2:
        raise ValueError("compare needs two models. Name their columns: --score one --score two.")
    check_folder(output)
    with stage("reading"):
        models = load_rows(file, score=score, **what)
    scores = dict(zip(score, models.y_proba.T, strict=True))
    if logits:
        scores = {name: probabilities_from_logits(column) for name, column in scores.items()}
    first, *others = dict.fromkeys(score)
    level = 1 - (1 - check_fraction("--confidence-level", confidence_level)) / len(others)
    with stage("comparing"):
        found = [
            compare(
                models.y_true,
                scores[first],
                scores[other],
                norm=norm,
                confidence_level=level,
                names=(first, other),
                pos_label=models.pos_label,
                sample_weight=models.sample_weight,
            )
            for other in others
        ]
    if style == "json":
        content = [one.to_dict() for one in found]
        emit(as_json({"command": "compare", "source": models.source, "results": content}), output)
        return
    intervals = [found[0].intervals[0], *(one.intervals[1] for one in found)]
    errors = [found[0].errors[0], *(one.errors[1] for one in found)]
    body = [
        [name, f"{error:.4f}", f"{interval.low:.4f} to {interval.high:.4f}"]
        for name, error, interval in zip([first, *others], errors, intervals, strict=True)
    ]
    table = as_table(["model", "error", f"{100 * level:.4g}% interval"], body)
    emit("\n".join([table, "", *(one.verdict for one in found)]), output)
