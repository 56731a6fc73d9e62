"""``truecal study``: a bias-by-construction study from a TOML file."""

from __future__ import annotations

from pathlib import Path

import click

from truecal.cli._options import OUTPUT, Command, shared
from truecal.cli._output import json_head
from truecal.exceptions import InputError


@click.command("study", cls=Command)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--suite",
    type=click.Choice(["A", "B", "C", "C1", "C2"]),
    multiple=True,
    help="A named suite of populations instead of FILE; repeatable.",
)
@click.option(
    "-o", "--output", type=OUTPUT, help="CSV file for the results. An interrupted run resumes from it."
)
@click.option("--repeats", type=int, help="Number of repeats; overrides the one in FILE.")
@click.option("--seed", type=int, help="Random seed; overrides the one in FILE.")
@shared("n-jobs", "format")
def command(
    file: Path | None,
    suite: tuple[str, ...],
    output: Path | None,
    repeats: int | None,
    seed: int | None,
    n_jobs: int,
    style: str,
) -> None:
    """Measure the bias, spread and error of estimators where the truth is known.

    With --suite, the populations on which truecal judges its own estimators (A: those of the paper, B: the
    same calibrated, C: others) at n = 200, 800, 3200, 12800. Otherwise FILE is a TOML file:

    \b
        sizes = [200, 800]
        estimators = ["em_sweep", { estimator = "em_bin", n_bins = 30 }]
        repeats = 1000
        seed = 1
        paper = ["resnet110_c10"]      # or "all"; paper_calibrated likewise
        [populations.mine]
        scores = { kind = "beta", a = 2.8, b = 0.05 }
        curve = { kind = "power", d = 2 }
    """  # noqa: D301 - click reads the control character as "keep these lines"
    import json

    from truecal.cli._study_file import load_study
    from truecal.simulation import bias_study
    from truecal.simulation.suites import suite_study

    if bool(file) == bool(suite):
        raise InputError("Give either FILE or --suite.")
    arguments = load_study(file) if file else suite_study(suite)
    if repeats is not None:
        arguments["repeats"] = repeats
    if seed is not None:
        arguments["rng"] = seed
    try:
        study = bias_study(**arguments, n_jobs=n_jobs, path=output)
    except KeyboardInterrupt:
        kept = f" Finished results are in {output}; run the same command to continue." if output else ""
        click.echo(f"truecal: interrupted.{kept}", err=True)
        raise SystemExit(130) from None
    content = {**json_head("study"), "rows": study.rows}
    click.echo(json.dumps(content, indent=2) if style == "json" else str(study))
