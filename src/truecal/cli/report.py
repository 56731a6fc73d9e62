"""``truecal report``: a calibration report as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecal.cli._options import group_option, input_options, seed_option
from truecal.cli._output import check_folder, say_remarks, say_written, stage

if TYPE_CHECKING:
    from truecal.assessment.assess import Assessment
    from truecal.cli.input.predictions import Predictions, Summary

#: Sizes of error for which the report says how many rows find them.
_ERRORS = (0.02, 0.05, 0.1)
#: Rows beyond which advice on recalibration is not worth its time.
_MOST_ROWS = 1_000_000


@click.command("report")
@input_options
@group_option
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page.  [default: FILE's name, .html]",
)
@click.option("--title", default="Calibration report", show_default=True)
@click.option(
    "--norm", type=click.Choice(["1", "2"]), default="2", show_default=True, help="Order of the norm."
)
@seed_option
@click.option("--quick", is_flag=True, help="Skip everything simulated: bias, sample sizes, recalibration.")
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
    """Write a calibration report on the predictions in FILE: one self-contained HTML page."""
    from truecal._lib.checks import require
    from truecal.assessment.assess import assess
    from truecal.cli.input.predictions import Predictions, load

    require("jinja2", extra="app", purpose="The report")
    name = "standard input" if file == "-" else Path(file).name
    target = output or Path(f"{name.partition('.')[0] or 'report'}.html")
    check_folder(target)
    with stage("reading"):
        predictions = load(file, group=group, **what)
    classes: list[dict[str, Any]] = []
    arguments = predictions.arguments()
    if predictions.multiclass == "classwise":
        with stage("measuring each class"):
            classes = _classes(arguments, int(norm), seed)
        arguments = {**arguments, "multiclass": "top"}
    with stage("assessing"):
        assessment = assess(**arguments, norm=int(norm), simulate=not quick, rng=seed)
    with stage("measuring each group"):
        groups = _groups(predictions, int(norm), seed) if group else []
    recalibration = None
    if not quick and isinstance(predictions, Predictions) and len(predictions.y_true) <= _MOST_ROWS:
        with stage("trying recalibrators"):
            recalibration = _recalibration(arguments, seed)
    with stage("planning"):
        plan = [] if quick else _plan(assessment, int(norm), seed)
    assessment.to_html(
        target,
        title=title,
        source=name,
        groups=groups,
        group_name=group or "",
        classes=classes,
        recalibration=recalibration,
        plan=plan,
    )
    say_remarks()
    click.echo(assessment.verdict)
    say_written(target)


def _row(name: str, found: Any, pvalue: float | None) -> dict[str, Any]:
    ends = {"low": found.interval.low, "high": found.interval.high}
    return {"name": name, "n": found.n, "value": found.value, **ends, "adjusted_pvalue": pvalue}


def _groups(predictions: Predictions | Summary, norm: int, seed: int) -> list[dict[str, Any]]:
    """Measure each group, with p-values that are corrected for looking at all of them."""
    from truecal.cli._groups import test_groups
    from truecal.inference.estimate import estimate

    tests = test_groups(predictions, norm=norm, rng=seed)
    return [
        _row(
            name,
            estimate(**arguments, estimator="averaged", norm=norm, confidence_level=0.95),
            tests[name].adjusted_pvalue,
        )
        for name, arguments in predictions.groups()
    ]


def _classes(arguments: dict[str, Any], norm: int, seed: int) -> list[dict[str, Any]]:
    """Measure each class against the rest, with p-values that are corrected for looking at all of them."""
    from truecal.inference.calibration_test import calibration_test
    from truecal.inference.estimate import estimate

    found = estimate(**arguments, estimator="averaged", norm=norm, confidence_level=0.95)
    test = calibration_test(**arguments, norm=norm, rng=seed)
    return [
        _row(one.target.removesuffix(" against the rest"), one, tested.adjusted_pvalue)
        for one, tested in zip(found.classes, test.classes, strict=True)
    ]


def _recalibration(arguments: dict[str, Any], seed: int) -> dict[str, Any]:
    """Say which recalibrator to use; or why that cannot be told, as with a handful of rows."""
    from truecal.recalibration.selection import select_recalibrator

    rest = {key: value for key, value in arguments.items() if key not in ("y_true", "y_proba")}
    try:
        selection = select_recalibrator(
            arguments["y_true"], arguments["y_proba"], **rest, criterion="brier", rng=seed
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


def _plan(assessment: Assessment, norm: int, seed: int) -> list[dict[str, Any]]:
    """Say how many rows with scores like these would find errors of several sizes."""
    from truecal.simulation.planning import required_sample_size
    from truecal.simulation.power import greatest_error

    if assessment.advice is None:
        return []
    scores = assessment.advice.fit.scores
    reachable = [error for error in _ERRORS if error < 0.9 * greatest_error(scores, norm)]
    return [
        {
            "true_error": error,
            "n": required_sample_size(error, scores=scores, norm=norm, repeats=200, rng=seed),
        }
        for error in reachable
    ]
