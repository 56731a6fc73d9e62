"""``truecal test``: test the calibration of a file of predictions."""

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
    "--estimator", default="em_sweep", show_default=True, help="Test statistic, see 'truecal estimators'."
)
@click.option("--norm", type=float, default=2, show_default=True, help="Order of the norm.")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Significance level of the test.")
@click.option(
    "--resamples", type=int, default=999, show_default=True, help="Number of Monte Carlo resamples."
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
    """Test the null hypothesis that the probabilities in FILE are perfectly calibrated.

    The exit code is 1 if the hypothesis is rejected, else 0. With --group it is rejected if it is for any
    group, with Holm-adjusted p-values.
    """
    from truecal._lib.checks import check_fraction
    from truecal.cli._groups import test_groups, test_rows
    from truecal.cli.input.predictions import load

    check_fraction("--alpha", alpha)
    check_folder(output)
    with stage("reading"):
        predictions = load(file, group=group, **what)
    options: dict[str, Any] = {"estimator": estimator, "norm": norm, "n_resamples": resamples, "rng": seed}
    with stage("testing"):
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
        outcome = "is rejected" if rejected else "is not rejected"
        shown = str(result) if result is not None else _table(groups, group or "", alpha)
        emit(f"{shown}\n\nPerfect calibration {outcome} at level {alpha:g}.", output)
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
    return as_table([group, "rows", "statistic", "p", "adjusted p (Holm)", "rejected"], body)
