"""``truecal test``: test the calibration of a file of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecal.cli._options import (
    Command,
    group_option,
    input_options,
    norm_option,
    output_options,
    seed_option,
)
from truecal.cli._output import as_table, check_target, finish, stage

if TYPE_CHECKING:
    from truecal.inference.calibration_test import TestResult


@click.command("test", cls=Command)
@input_options
@group_option
@click.option(
    "--method",
    default="multiscale",
    show_default=True,
    help="Test, or an estimator as its statistic; see 'truecal estimators'.",
)
@norm_option
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Significance level of the test.")
@click.option(
    "--resamples", type=int, default=999, show_default=True, help="Number of Monte Carlo resamples."
)
@seed_option
@output_options
def command(
    file: str,
    group: tuple[str, ...],
    method: str,
    norm: float,
    alpha: float,
    resamples: int,
    seed: int,
    style: str,
    output: Path | None,
    **reading: Any,
) -> None:
    """Test the null hypothesis that the probabilities in FILE are perfectly calibrated.

    The exit code is 1 if the hypothesis is rejected, else 0. With --group it is rejected if it is for any
    group, with adjusted p-values.
    """
    from truecal._lib.checks import check_fraction
    from truecal.cli._groups import coarsened, test_groups
    from truecal.cli.input.predictions import load
    from truecal.inference.calibration_test import calibration_test

    check_fraction("alpha", alpha)
    check_target(output, file)
    with stage("reading"):
        predictions = load(file, group=group, **reading)
        arguments = predictions.arguments()
    options: dict[str, Any] = {"method": method, "norm": norm, "n_resamples": resamples, "rng": seed}
    with stage("testing"), predictions.naming():
        if group:
            groups = test_groups(predictions.groups, **options)
            rejected = min(test.adjusted_pvalue or 0.0 for test in groups.values()) <= alpha
            content: dict[str, Any] = {
                "results": [{"group": k, **test.to_dict()} for k, test in groups.items()]
            }
            text = _table(groups, ", ".join(group), alpha)
        else:
            if len(arguments) == 1:
                arguments = {"y_true": coarsened(predictions.sample)}
            result = calibration_test(**arguments, **options)
            rejected = result.pvalue <= alpha
            content, text = {"result": result.to_dict()}, str(result)
    outcome = "is rejected" if rejected else "is not rejected"
    text += f"\n\nPerfect calibration {outcome} at level {alpha:g}."
    content = {"alpha": alpha, "rejected": rejected, **content}
    finish("test", content, text, style=style, output=output, predictions=predictions)
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
    return as_table([group, "rows", "statistic", "p", "adjusted p", "rejected"], body)
