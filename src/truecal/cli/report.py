"""``truecal report``: everything that can be said of a file of predictions, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecal.cli._options import Predictions, input_options, load

if TYPE_CHECKING:
    from numpy.random import Generator

#: Sizes of error for which the report says how many rows find them.
_ERRORS = (0.01, 0.02, 0.05, 0.1)


@click.command("report")
@input_options
@click.option("--group", help="Column of groups: one line of a table for each.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The page; FILE's name + .html."
)
@click.option("--title", default="Calibration report", show_default=True)
@click.option(
    "--norm", type=click.Choice(["1", "2"]), default="2", show_default=True, help="The p of the lp norm."
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--quick", is_flag=True, help="Leave out what is simulated: bias, rows needed, recalibration.")
def command(
    file: str,
    group: str | None,
    output: Path | None,
    title: str,
    norm: str,
    seed: int,
    quick: bool,
    **what: Any,
) -> None:
    """Write a report on the probabilities in FILE: one HTML page that needs nothing else."""
    import numpy as np

    from truecal.assessment import assess

    predictions = load(file, group=group, **what)
    if predictions.multiclass == "classwise":
        raise ValueError(
            "a report takes one class at a time: name it with --pos-label, or use --multiclass top."
        )
    rng = np.random.default_rng(seed)
    target = output or Path(Path(predictions.source).name.partition(".")[0] or "report").with_suffix(".html")
    assessment = assess(**predictions.arguments(), norm=int(norm), simulate=not quick, rng=rng)
    assessment.to_html(
        target,
        title=title,
        source=Path(predictions.source).name,
        groups=_groups(predictions, int(norm), rng) if group else (),
        group_name=group or "",
        recalibration=None if quick else _recalibration(predictions, seed),
        plan=() if quick else _plan(assessment, seed),
    )
    click.echo(assessment.verdict)
    click.echo(f"truecal: wrote {target}.", err=True)


def _groups(predictions: Predictions, norm: int, rng: Generator) -> list[dict[str, Any]]:
    """Measure each group, and correct the p-values for looking at all of them (Holm)."""
    import numpy as np

    from truecal.hypotheses import calibration_test
    from truecal.measure import estimate

    assert predictions.group is not None
    rows: list[dict[str, Any]] = []
    for name in np.unique(predictions.group).tolist():
        arguments = predictions.arguments(predictions.group == name)
        found = estimate(**arguments, estimator="averaged", norm=norm, confidence_level=0.95)
        test = calibration_test(**arguments, norm=norm, rng=rng)
        assert found.interval is not None
        ends = {"low": found.interval.low, "high": found.interval.high}
        rows.append({"name": str(name), "n": found.n, "value": found.value, **ends, "pvalue": test.pvalue})
    worst = 0.0
    for place, row in enumerate(sorted(rows, key=lambda row: row["pvalue"])):
        worst = max(worst, min(1.0, row["pvalue"] * (len(rows) - place)))
        row["adjusted_pvalue"] = worst
    return rows


def _recalibration(predictions: Predictions, seed: int) -> dict[str, Any] | None:
    """Say which recalibrator to use; nothing where that cannot be told, as with a handful of rows."""
    from truecal.selection import select_recalibrator

    arguments = predictions.arguments()
    try:
        selection = select_recalibrator(
            arguments.pop("y_true"), arguments.pop("y_proba"), **arguments, criterion="brier", rng=seed
        )
    except ValueError as error:
        return {"advice": f"No advice on recalibration: {error}", "rows": []}
    rows = [
        {
            "name": "leave it alone" if one.name == "identity" else one.name,
            "criterion": one.criterion,
            "brier_gain": one.brier_gain,
            "log_loss_gain": one.log_loss_gain,
            "chosen": one.name == selection.chosen,
        }
        for one in selection.candidates
    ]
    return {"advice": selection.verdict, "criterion": selection.criterion, "rows": rows}


def _plan(assessment: Any, seed: int) -> list[dict[str, Any]]:
    """Say how many rows with scores like these would find errors of several sizes."""
    from truecal.detection import greatest_error
    from truecal.planning import required_sample_size

    if assessment.advice is None:
        return []
    scores = assessment.advice.fit.scores
    reachable = [error for error in _ERRORS if error < 0.9 * greatest_error(scores, 2)]
    return [
        {"true_error": error, "n": int(required_sample_size(error, scores=scores, repeats=300, rng=seed))}
        for error in reachable
    ]
