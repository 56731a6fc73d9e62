"""``truecal plan``: the sample size needed to detect an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from truecal._lib.text import as_table
from truecal.cli._options import OUTPUT, Command, Fraction, option, output_options, shared
from truecal.cli._output import Output, check_picture, save_picture, stage, wrapped
from truecal.exceptions import InputError

_PLOTTED_SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)


@click.command("plan", cls=Command)
@click.option(
    "--error",
    "errors",
    type=Fraction(),
    multiple=True,
    help="Calibration error to detect, such as 0.02 or 2%.",
)
@click.option(
    "--at-most",
    type=Fraction(),
    help="Plan a gate: rows with which 'truecal test --at-most' passes. --error is then the true error, 0 by default.",
)
@click.option(
    "--rows", "sizes", type=int, multiple=True, help="Sample size; the detectable error is computed."
)
@click.option(
    "--length",
    type=Fraction(),
    help="Plan gold labels beside a judge: mean length of the interval. Needs --rows, --sensitivity and --specificity.",
)
@click.option(
    "--sensitivity", type=float, help="With --length: probability that the judge is right about positives."
)
@click.option(
    "--specificity", type=float, help="With --length: probability that the judge is right about negatives."
)
@option("--power", 0.95, float, "Required power.")
@option("--alpha", 0.05, float, "Significance level of the test.")
@click.option(
    "--beta", nargs=2, type=float, default=(1, 1), show_default=True, help="Score distribution Beta(a, b)."
)
@option("--method", "multiscale", str, "Test, or an estimator as its statistic.")
@option("--cluster-size", 1, float, "Rows of each cluster of dependent rows.")
@option("--icc", 0, float, "Intraclass correlation of rows in a cluster.")
@shared("norm")
@option("--repeats", 1000, int, "Simulated data sets.")
@shared("seed")
@click.option("--plot", type=OUTPUT, help="Plot miss rates against sample size (PNG, SVG, PDF).")
@output_options
def command(
    out: Output,
    errors: tuple[float, ...],
    at_most: float | None,
    sizes: tuple[int, ...],
    length: float | None,
    sensitivity: float | None,
    specificity: float | None,
    beta: tuple[float, float],
    repeats: int,
    seed: int,
    plot: Path | None,
    **test: Any,
) -> None:
    """Plan how many labels to collect.

    With --error: the sample size needed to detect an error of that size. With --rows: the smallest detectable
    error. With --at-most: the sample size needed to show that the error is below a limit. With --length, --rows,
    --sensitivity and --specificity: the gold labels needed beside those of a judge (see 'truecal measure --judge').
    """
    from truecal.simulation import BetaScores
    from truecal.simulation._planning import design_effect

    judge = {"--length": length, "--sensitivity": sensitivity, "--specificity": specificity}
    if set(judge.values()) != {None}:
        others = errors or plot or at_most is not None
        _plan_gold(judge, sizes, BetaScores(*beta), out, alone=not others)
        return
    if at_most is not None:
        errors = errors or (0.0,)
        if sizes or plot:
            raise InputError("--at-most cannot be combined with --rows or --plot")
    if not (errors or sizes):
        raise InputError(
            "Give --error (such as 0.02) for the sample size, or --rows (such as 5000) for the detectable error."
        )
    check_picture(plot)
    asked: dict[str, Any] = {**test, "scores": BetaScores(*beta), "repeats": repeats, "rng": seed}
    rows = _answers(errors, sizes, at_most, asked)
    if plot is not None:
        _draw(plot, sorted({row["true_error"] for row in rows}), asked)
    first = ("power", "alpha", "beta", "method", "norm", "at_most", "cluster_size", "icc")
    settings = {name: {**test, "beta": list(beta), "at_most": at_most}[name] for name in first}
    settings["design_effect"] = design_effect(test["cluster_size"], test["icc"])
    title = _title(settings, bool(errors), bool(sizes))
    out.finish("plan", lambda: {**settings, "results": rows}, lambda: _text(title, rows, settings))


def _answers(
    errors: tuple[float, ...], sizes: tuple[int, ...], at_most: float | None, asked: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the sample size for each error, and the detectable error for each size."""
    from truecal.simulation import detectable_error, plan_sample_size

    rows: list[dict[str, Any]] = []
    for error in errors:
        with stage(f"finding the sample size for {error:g}"):
            planned = plan_sample_size(error, at_most=at_most, **asked)
        rows.append({"true_error": error, "n": planned.n, "n_se": planned.standard_error})
    for n in sizes:
        with stage(f"finding the error that {n} rows detect"):
            rows.append({"true_error": detectable_error(n, **asked), "n": n, "n_se": None})
    return rows


def _plan_gold(
    judge: dict[str, Any], sizes: tuple[int, ...], scores: Any, out: Output, *, alone: bool
) -> None:
    """Report the gold labels that the interval of judged labels needs; `alone`: without the options of other plans."""
    from truecal.simulation import plan_gold_labels

    needed = {**judge, "--rows": sizes or None}
    first = next(name for name, value in judge.items() if value is not None)
    if not alone:
        raise InputError("cannot be combined with --error, --at-most or --plot", argument=first)
    if lacking := [name for name, value in needed.items() if value is None]:
        raise InputError(f"needs {' and '.join(lacking)}", argument=first)
    wanted = {name.removeprefix("--"): value for name, value in judge.items()}
    with stage("finding the number of gold labels"):
        plans = [plan_gold_labels(n=n, scores=scores, **wanted) for n in sizes]
    content = {"results": [plan.to_dict() for plan in plans]}
    out.finish("plan", lambda: content, lambda: "\n".join(wrapped(str(plan)) for plan in plans))


def _title(settings: dict[str, Any], has_errors: bool, has_sizes: bool) -> str:
    """Return what the table answers."""
    how = f"(power {100 * settings['power']:g}%, level {settings['alpha']:g}):"
    if settings["at_most"] is not None:
        return f"Rows needed to show an error below {settings['at_most']:g} {how}"
    asks = ["rows needed to detect an error"] if has_errors else []
    asks += ["smallest error that the rows detect"] if has_sizes else []
    asked = ", and ".join(asks)
    return f"{asked[0].upper()}{asked[1:]} with the {settings['method']} test {how}"


def _text(title: str, rows: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    body = [
        [f"{row['true_error']:.4f}", f"{row['n']:,}", f"± {2 * row['n_se']:,.0f}" if row["n_se"] else "-"]
        for row in rows
    ]
    text = f"{title}\n\n{as_table(['error', 'rows', '± 2 se'], body, text_columns=0)}"
    if settings["cluster_size"] == 1:
        return text
    return (
        f"{text}\n\nRows come in clusters of {settings['cluster_size']:g} with an intraclass correlation of "
        f"{settings['icc']:g}: a design effect of {settings['design_effect']:.3g}."
    )


def _draw(path: Path, errors: list[float], asked: dict[str, Any]) -> None:
    """Draw how often each error is missed against the number of rows, beside the usual ECE."""
    from truecal.display import MissRateDisplay
    from truecal.simulation import miss_rates

    methods = list(dict.fromkeys(["ew_bin", asked["method"]]))
    options = {name: asked[name] for name in ("scores", "alpha", "norm", "rng")}
    repeats = min(asked["repeats"], 400)
    with stage("drawing"):
        rates = miss_rates(errors, _PLOTTED_SIZES, methods=methods, repeats=repeats, **options)
        figure = MissRateDisplay.from_miss_rates(rates).figure_
    save_picture(figure, path)
