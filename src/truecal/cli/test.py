"""``truecal test``: test the calibration of a file of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecal.cli._options import (
    Command,
    complete_estimators,
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
    shell_complete=complete_estimators,
    help="Test, or an estimator as its statistic; see 'truecal estimators'.  [default: multiscale]",
)
@click.option("--at-most", type=float, help="Test whether the error is below this, such as 0.02.")
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
    method: str | None,
    at_most: float | None,
    norm: float,
    alpha: float,
    resamples: int,
    seed: int,
    style: str,
    output: Path | None,
    quiet: bool,
    **reading: Any,
) -> None:
    """Test the null hypothesis that the probabilities in FILE are perfectly calibrated.

    The exit code is 1 if the hypothesis is rejected, else 0. With --group it is rejected if it is for any
    group, with adjusted p-values.

    With --at-most the null hypothesis is that the calibration error is at least that large. The exit code is 0
    if the error is shown to be smaller, in every group, and else 1.
    """
    from truecal._lib.checks import check_fraction
    from truecal.cli._groups import test_groups
    from truecal.cli.input.predictions import load
    from truecal.estimators._registry import DEFAULT_TEST
    from truecal.inference.calibration_test import calibration_test

    check_fraction("alpha", alpha)
    check_target(output, file)
    with stage("reading"):
        predictions = load(file, group=group, **reading)
        arguments = predictions.arguments()
    options: dict[str, Any] = {"norm": norm, "n_resamples": resamples, "rng": seed, "at_most": at_most}
    options["method"] = method or DEFAULT_TEST
    with stage("testing"), predictions.naming():
        if group:
            tests = test_groups(predictions.groups, **options)
            pvalues = [_pvalue(test) for test in tests.values()]
            content: dict[str, Any] = {
                "results": [{"group": k, **test.to_dict()} for k, test in tests.items()]
            }
            text = _table(tests, ", ".join(group), alpha)
        else:
            result = calibration_test(**arguments, **options)
            pvalues = [result.pvalue]
            content, text = {"result": result.to_dict()}, str(result)
    if at_most is None:
        rejected = min(pvalues) <= alpha
        outcome = f"Perfect calibration is {'' if rejected else 'not '}rejected at level {alpha:g}."
    else:
        rejected = max(pvalues) <= alpha
        shown = "shown to be" if rejected else "not shown to be"
        outcome = f"The calibration error is {shown} below {at_most:g} at level {alpha:g}."
    content = {"alpha": alpha, "at_most": at_most, "rejected": rejected, **content}
    text = f"{text}\n\n{outcome}"
    finish("test", content, text, style=style, output=output, predictions=predictions, quiet=quiet)
    raise SystemExit(0 if rejected == (at_most is not None) else 1)


def _pvalue(test: TestResult) -> float:
    return test.pvalue if test.adjusted_pvalue is None else test.adjusted_pvalue


def _table(tests: dict[str, TestResult], group: str, alpha: float) -> str:
    from truecal._lib.text import format_pvalue

    body = [
        [
            name,
            f"{test.n:,.10g}",
            f"{test.statistic:.4f}",
            format_pvalue(test.pvalue),
            format_pvalue(_pvalue(test)),
            "yes" if _pvalue(test) <= alpha else "no",
        ]
        for name, test in tests.items()
    ]
    return as_table([group, "rows", "statistic", "p", "adjusted p", "rejected"], body)
