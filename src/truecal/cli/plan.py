"""``truecal plan``: how many rows it takes to find an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from truecal.cli._output import as_json, as_table, emit, output_options

_PLOTTED_SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)


@click.command("plan")
@click.option("--error", "errors", type=float, multiple=True, help="Calibration error to find, such as 0.02.")
@click.option("--rows", "sizes", type=int, multiple=True, help="Number of rows: what error would they find?")
@click.option("--power", type=float, default=0.95, show_default=True, help="How often it is to be found.")
@click.option(
    "--alpha", type=float, default=0.05, show_default=True, help="How often nothing may be taken for it."
)
@click.option("--beta", nargs=2, type=float, default=(1, 1), show_default=True, help="Scores: a Beta(a, b).")
@click.option("--estimator", default="em_sweep", show_default=True, help="The statistic of the test.")
@click.option("--repeats", type=int, default=1000, show_default=True, help="Simulated data sets.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw miss rates against rows (PNG, SVG, PDF).",
)
@output_options
def command(
    errors: tuple[float, ...],
    sizes: tuple[int, ...],
    power: float,
    alpha: float,
    beta: tuple[float, float],
    estimator: str,
    repeats: int,
    seed: int,
    plot: Path | None,
    style: str,
    output: Path | None,
) -> None:
    """Plan how many labels to buy.

    With --error: the rows that find an error of that size. With --rows: the least error that so many find.
    """
    from truecal.models.scores import BetaScores
    from truecal.planning import detectable_error, required_sample_size

    if not errors and not sizes:
        raise ValueError(
            "say what to plan: --error 0.02 for the rows it takes, or --rows 5000 for the error found."
        )
    scores = BetaScores(*beta)
    settings: dict[str, Any] = {"power": power, "alpha": alpha, "scores": scores, "estimator": estimator}
    rows = [
        {"true_error": error, "n": int(required_sample_size(error, **settings, repeats=repeats, rng=seed))}
        for error in errors
    ]
    rows += [
        {"true_error": detectable_error(n, **settings, repeats=repeats, rng=seed), "n": n} for n in sizes
    ]
    if plot is not None:
        from truecal.detection import miss_rates
        from truecal.display import MissRateDisplay

        rates = miss_rates(
            sorted({row["true_error"] for row in rows}),
            _PLOTTED_SIZES,
            estimators=list(dict.fromkeys(["ew_bin", estimator])),
            scores=scores,
            alpha=alpha,
            repeats=min(repeats, 400),
            rng=seed,
        )
        MissRateDisplay(rates.to_rows()).plot().figure_.savefig(plot)
        click.echo(f"truecal: wrote {plot}.", err=True)
    if style == "json":
        told = {"power": power, "alpha": alpha, "beta": list(beta), "estimator": estimator}
        emit(as_json({"command": "plan", **told, "results": rows}), output)
        return
    body = [[f"{row['true_error']:.4f}", f"{row['n']:,}"] for row in rows]
    said = f"Rows at which {estimator} finds an error {100 * power:g} times in 100 (level {alpha:g}):"
    emit(f"{said}\n\n{as_table(['error', 'rows'], body, text_columns=0)}", output)
