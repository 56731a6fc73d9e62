"""``truecal report``: a calibration report as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from truecal.cli._options import group_option, input_options, seed_option
from truecal.cli._output import check_folder, say_remarks, say_written, stage


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
@seed_option
@click.option("--quick", is_flag=True, help="Skip the comparison of recalibrators.")
def command(
    file: str, group: str | None, output: Path | None, title: str, seed: int, quick: bool, **what: Any
) -> None:
    """Write a calibration report on the predictions in FILE: one self-contained HTML page."""
    from truecal._lib.checks import require
    from truecal.assessment.assess import assess
    from truecal.cli.input.files import MISSING
    from truecal.cli.input.predictions import Predictions, load

    require("jinja2", extra="app", purpose="The report")
    name = "standard input" if file == "-" else Path(file).name
    target = output or Path(f"{name.partition('.')[0] or 'report'}.html")
    check_folder(target)
    with stage("reading"):
        predictions = load(file, group=group, **what)
    by: Any = None
    if isinstance(predictions, Predictions) and predictions.group is not None:
        by = {group: [None if value == MISSING else value for value in predictions.group.tolist()]}
    elif group:
        by = {group: {part: arguments["y_true"] for part, arguments in predictions.groups()}}
    with stage("assessing"):
        assessment = assess(**predictions.arguments(), by=by, recalibration=not quick, rng=seed)
    assessment.to_html(target, title=title, source=name)
    say_remarks()
    click.echo(assessment.verdict)
    say_written(target)
