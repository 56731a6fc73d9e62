"""``truecal report``: a calibration report as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from truecal._lib.checks import check_fraction, require
from truecal._lib.text import printable
from truecal.cli._options import OUTPUT, Command, column_option, option, shared
from truecal.cli._output import check_target, say, show, show_notes, stage, wrapped
from truecal.exceptions import InputError


@click.command("report", cls=Command)
@shared("scores", "table", "labels", "group")
@column_option(
    "--time",
    "moment",
    help="Column of times: adds a section on changes over time; with --event and --horizon, times to the event.",
)
@shared("cells")
@click.option("-o", "--output", type=OUTPUT, help="The page.  [default: FILE's name, .html]")
@option("--title", "Calibration report", str, "Heading of the page.")
@shared("seed", "resolution")
@click.option("--quick", is_flag=True, help="Skip the comparison of recalibrators.")
@click.option(
    "--clinical",
    is_flag=True,
    help="Add clinical validation: O:E, intercept, slope, ICI, C statistic, decision curve.",
)
@click.option(
    "--threshold",
    type=float,
    multiple=True,
    help="With --clinical: a risk above which one would act, such as 0.1; repeatable.",
)
def command(
    file: str,
    moment: str | None,
    output: Path | None,
    title: str,
    seed: int,
    resolution: int | None,
    quick: bool,
    clinical: bool,
    threshold: tuple[float, ...],
    quiet: bool,
    **reading: Any,
) -> None:
    """Write a calibration report on the predictions in FILE: one self-contained HTML page."""
    from truecal.assessment import assess
    from truecal.cli._input.predictions import load

    if reading["event"] or reading["horizon"] is not None:
        moment, reading["time"] = None, moment
    if threshold and not clinical:
        raise InputError("--threshold needs --clinical")
    for one in threshold:
        check_fraction("thresholds", one)
    require("jinja2", extra="app", purpose="The report")
    name = "standard input" if file == "-" else Path(file).name
    target = _target(file, name, output)
    with stage("reading"):
        predictions = load(file, feature=(moment,) if moment else (), **reading)
        if moment:
            predictions.require_rows("report with --time")
    with stage("assessing"), predictions.naming():
        arguments = predictions.rows or {"y_true": predictions.sample}
        assessment = assess(
            **arguments,
            by=_printable(predictions.by),
            clinical=clinical,
            thresholds=threshold or None,
            time=next(iter(predictions.features.values())) if moment else None,
            recalibration=not quick,
            resolution=resolution,
            rng=seed,
        )
    assessment.to_html(target, title=title, source=printable(name))
    show_notes(predictions, quiet=quiet)
    for result in (assessment, assessment.clinical, assessment.over_time):
        if result is not None:
            show(wrapped(result.verdict))
    say(f"wrote {target}")


def _target(file: str, name: str, output: Path | None) -> Path:
    """Return the path of the page, or refuse it."""
    target = output or Path(f"{name.partition('.')[0] or 'report'}.html")
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{target}: the report is an HTML page. Choose a name that ends in .html")
    check_target(target, file)
    return target


def _printable(by: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return groups whose names have no control characters, which a browser or an editor might interpret."""
    if by is None:
        return None
    shown: dict[str, Any] = {}
    for name, values in by.items():
        if isinstance(values, dict):
            shown[printable(name)] = {printable(key): sample for key, sample in values.items()}
        else:
            seen = values.unique()
            names = [printable(one) if isinstance(one, str) else one for one in seen]
            shown[printable(name)] = values.replace_strict(seen, names, return_dtype=values.dtype)
    return shown
