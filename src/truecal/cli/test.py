"""``truecal test``: whether the miscalibration of a file could be chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from truecal.cli._options import input_options, load
from truecal.cli._output import as_json, emit, output_options


@click.command("test")
@input_options
@click.option(
    "--estimator", default="em_sweep", show_default=True, help="The statistic, of 'truecal estimators'."
)
@click.option("--norm", type=float, default=2, show_default=True, help="The p of the lp norm.")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Level of the test.")
@click.option(
    "--resamples", type=int, default=999, show_default=True, help="How often labels are drawn anew."
)
@click.option("--seed", type=int, default=0, show_default=True)
@output_options
def command(
    file: str,
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

    The exit code is 0 if the predictions pass and 1 if perfect calibration is rejected.
    """
    from truecal._checks import check_fraction
    from truecal.hypotheses import calibration_test

    check_fraction("--alpha", alpha)
    predictions = load(file, **what)
    result = calibration_test(
        **predictions.arguments(), estimator=estimator, norm=norm, n_resamples=resamples, rng=seed
    )
    rejected = result.pvalue <= alpha
    if style == "json":
        content = {"command": "test", "source": predictions.source, "alpha": alpha, "rejected": rejected}
        emit(as_json({**content, "result": result.to_dict()}), output)
    else:
        said = "is rejected" if rejected else "is not rejected"
        emit(f"{result}\n\nPerfect calibration {said} at the level {alpha:g}.", output)
    raise SystemExit(1 if rejected else 0)
