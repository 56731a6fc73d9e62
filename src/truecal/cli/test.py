"""``truecal test``: whether the miscalibration of a file could be chance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecal.cli._options import group_option, input_options, output_options, seed_option
from truecal.cli._output import as_json, as_table, check_folder, emit, stage

if TYPE_CHECKING:
    from truecal.inference.calibration_test import TestResult


@click.command("test")
@input_options
@group_option
@click.option(
    "--estimator", default="em_sweep", show_default=True, help="The statistic, of 'truecal estimators'."
)
@click.option("--norm", type=float, default=2, show_default=True, help="The p of the lp norm.")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Level of the test.")
@click.option(
    "--resamples", type=int, default=999, show_default=True, help="How often labels are drawn anew."
)
@seed_option
@output_options
def command(
    file: str,
    group: str | None,
    estimator: str,
    norm: float,
    alpha: float,
    resamples: int,
    seed: int,
    style: str,
    output: Path | None,
    **what: Any,
) -> None:
    """Test whether every probability in FILE could be right.

    The exit code is 0 if the predictions pass and 1 if perfect calibration is rejected: for all rows or, with
    --group, for any group after Holm's correction.
    """
    from truecal._lib.checks import check_fraction
    from truecal.cli._groups import test_groups, test_rows
    from truecal.cli.input.predictions import load

    check_fraction("--alpha", alpha)
    check_folder(output)
    with stage("reading"):
        predictions = load(file, group=group, **what)
    options: dict[str, Any] = {"estimator": estimator, "norm": norm, "n_resamples": resamples, "rng": seed}
    with stage("drawing labels"):
        result = None if group else test_rows(predictions.arguments(), **options)
        groups = test_groups(predictions, **options) if group else {}
    pvalues = [test.adjusted_pvalue or 0.0 for test in groups.values()] if result is None else [result.pvalue]
    rejected = min(pvalues) <= alpha
    if style == "json":
        content = {"command": "test", "source": predictions.source, "alpha": alpha, "rejected": rejected}
        if result is not None:
            content["result"] = result.to_dict()
        else:
            content["results"] = [{"group": name, **test.to_dict()} for name, test in groups.items()]
        emit(as_json(content), output)
    else:
        said = "is rejected" if rejected else "is not rejected"
        told = str(result) if result is not None else _table(groups, group or "", alpha)
        emit(f"{told}\n\nPerfect calibration {said} at the level {alpha:g}.", output)
    raise SystemExit(1 if rejected else 0)


def _table(groups: dict[str, TestResult], group: str, alpha: float) -> str:
    from truecal._lib.text import format_pvalue

    body = [
        [
            name,
            f"{test.n:,.10g}",
            f"{test.statistic:.4f}",
            format_pvalue(test.pvalue),
            format_pvalue(test.adjusted_pvalue or 0.0),
            "yes" if (test.adjusted_pvalue or 0.0) <= alpha else "no",
        ]
        for name, test in groups.items()
    ]
    return as_table([group, "rows", "statistic", "p", "p, corrected (Holm)", "rejected"], body)
