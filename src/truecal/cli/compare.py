"""``truecal compare``: which of several models is better calibrated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from truecal.cli._options import label_and_columns, table_options
from truecal.cli._output import as_json, emit, output_options


@click.command("compare")
@table_options
@click.option(
    "--score", multiple=True, required=True, help="Column of a model's scores; give it twice or more."
)
@click.option("--logits", is_flag=True, help="The scores are logits: apply the sigmoid.")
@click.option("--norm", type=float, default=2, show_default=True, help="The p of the lp norm, 1 or 2.")
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

    The first model is compared with each of the others.
    """
    from truecal.comparison import compare
    from truecal.readers import probabilities_from_logits

    if len(score) < 2:
        raise ValueError("compare needs two models. Name their columns: --score one --score two.")
    labels, columns = label_and_columns(file, score, **what)
    scores = {name: probabilities_from_logits(columns[name]) if logits else columns[name] for name in score}
    first, *others = score
    found = [
        compare(
            labels.y_true,
            scores[first],
            scores[other],
            norm=norm,
            confidence_level=confidence_level,
            names=(first, other),
            pos_label=labels.pos_label,
            sample_weight=labels.sample_weight,
        )
        for other in others
    ]
    if style == "json":
        content = [one.to_dict() for one in found]
        emit(as_json({"command": "compare", "source": labels.source, "results": content}), output)
    else:
        emit("\n".join(one.verdict for one in found), output)
