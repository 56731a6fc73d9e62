"""``truecal audit``: segments of the data in which predictions are miscalibrated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecal._lib.text import as_table, counted, format_pvalue
from truecal.cli._options import OUTPUT, Command, column_option, option, output_options, shared
from truecal.cli._output import Output, as_notes, check_picture, save_picture, stage, wrapped
from truecal.exceptions import InputError

if TYPE_CHECKING:
    from truecal.inference.audit import Audit


@click.command("audit", cls=Command)
@shared("scores", "table")
@column_option(
    "--feature", multiple=True, help="Column of a feature, or a pattern; repeatable.  [default: all others]"
)
@option("--max-depth", 2, int, "Features that define a segment.")
@option("--min-rows", 50, int, "Smallest number of rows of a segment.")
@option("--alpha", 0.05, float, "Family-wise significance level.")
@shared("resamples")
@click.option("--picture", type=OUTPUT, help="Picture of the segments to write: .png, .svg or .pdf.")
@shared("seed")
@output_options
def command(
    file: str,
    out: Output,
    feature: tuple[str, ...],
    max_depth: int,
    min_rows: int,
    alpha: float,
    resamples: int,
    picture: Path | None,
    seed: int,
    **reading: Any,
) -> None:
    """Search all segments of FILE, by one or two features, for miscalibration.

    The p-values are adjusted for the number of segments. The exit code is 1 if any segment is found, or if the
    model is off as a whole, else 0. It is 2 if nothing was tested, because clusters hold too little information.
    """
    from truecal.cli._input.plan import refuse_outcomes
    from truecal.cli._input.predictions import load
    from truecal.inference.audit import audit, check_combinations

    check_picture(picture, file)
    if reading["weight"]:
        raise InputError("audit takes no weights", remedy="Leave out --weight.")
    if reading["equal_clusters"]:
        raise InputError("audit counts every row the same", remedy="Leave out --equal-clusters.")
    with stage("reading"):
        predictions = load(file, feature=feature or ("*",), **reading)
        predictions.require_rows("audit")
    if not predictions.features:
        raise InputError(f"{predictions.source} has no columns of features besides labels and scores")
    with predictions.naming():
        check_combinations(len(predictions.features), max_depth)
        refuse_outcomes(
            predictions.features, predictions.rows["y_true"], remedy="Name the other features with --feature."
        )
    with stage("searching"), predictions.naming():
        options: dict[str, Any] = {"max_depth": max_depth, "min_rows": min_rows, "alpha": alpha}
        options |= {"features": predictions.features, "n_resamples": resamples, "rng": seed}
        result = audit(predictions.y_true, predictions.y_proba, **predictions.options, **options)
    if picture is not None:
        _draw(result, picture)
    warnings = predictions.reversals()
    content = {**result.to_dict(), "warnings": warnings}
    out.finish("audit", lambda: content, lambda: _text(result, warnings), predictions)
    off = result.found or result.off
    tested = result.whole.tested or result.n_untested < result.n_searched
    raise SystemExit(1 if off else 0 if tested else 2)


def _draw(audit: Audit, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 1.8 + 0.26 * min(20, audit.n_searched)), layout="constrained")
    FigureCanvasAgg(figure)
    audit.plot(ax=figure.subplots())
    save_picture(figure, path, dpi=150)


def _text(audit: Audit, warnings: list[str]) -> str:
    """Return the segments found, most significant first, at most 20 of them."""
    searched = f"{counted(audit.n_searched, 'segment')} of {audit.target} searched, {len(audit.found)} found"
    first, rest = audit.remarks[: audit.off], audit.remarks[audit.off :]
    lines = [f"{wrapped(text)}\n" for text in first]
    lines += [f"{searched} (family-wise level {audit.alpha:g}).", *map(wrapped, rest)]
    shown = audit.found[:20]
    body = [
        [
            one.name,
            f"{one.n:,}",
            f"{one.mean_score:.3f}",
            f"{one.mean_label:.3f}",
            f"{one.level_z:+.1f}",
            f"{one.slope_z:+.1f}",
            format_pvalue(one.adjusted_pvalue, audit.n_resamples),
        ]
        for one in shown
    ]
    if body:
        lines += [
            "",
            as_table(["segment", "rows", "predicted", "observed", "level", "slope", "p"], body),
            "",
            wrapped(
                "level, slope: by how many standard errors of independent rows the observed rate is above the "
                "predicted one, and the slope of the calibration curve above 1. The sum of their squares is tested; p "
                "is adjusted for all segments."
            ),
        ]
    if len(audit.found) > len(shown):
        lines.append(f"and {len(audit.found) - len(shown)} more; all are in --format json.")
    return "\n".join([*lines, *as_notes(warnings)])
