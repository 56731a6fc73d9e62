"""``truecal study``: a bias-by-construction study from a small TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from truecal import paper, simulation
from truecal._lib.checks import check_choice
from truecal.cli._options import OUTPUT, Command, shared
from truecal.cli._output import Output, say
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
        estimators = [
            "em_sweep", { estimator = "em_bin", n_bins = 30 },
        ]
        repeats = 1000
        seed = 1
        paper = ["resnet110_c10"]  # or "all"
        paper_calibrated = "all"   # the same, calibrated
        [populations.mine]
        scores = { kind = "beta", a = 2.8, b = 0.05 }
        curve = { kind = "power", d = 2 }
    """  # noqa: D301 - click reads the control character as "keep these lines"
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
        say(f"interrupted.{kept}")
        raise SystemExit(130) from None
    Output(style).finish("study", lambda: {"rows": study.rows}, lambda: str(study))


# --- The file -------------------------------------------------------------------------------------

#: Kinds of curves and of scores, in a file and in `truecal.simulation`.
_CURVES = {
    "glm": "GLMCurve",
    "identity": "IdentityCurve",
    "logistic": "LogisticCurve",
    "power": "PowerCurve",
    "steps": "StepCurve",
}
_SCORES = {
    "atoms": "AtomScores",
    "beta": "BetaScores",
    "mixture": "MixtureScores",
    "rounded": "RoundedScores",
    "uniform": "UniformScores",
}

_KEYS = ("sizes", "estimators", "repeats", "norm", "seed", "paper", "paper_calibrated", "populations")


def load_study(path: str | Path) -> dict[str, Any]:
    """Return the arguments of `truecal.bias_study` that a file describes.

    Parameters
    ----------
    path : str or Path
        A TOML file, as shown at the top of this module.

    Returns
    -------
    dict
        Keyword arguments: populations, estimators, sizes and, where given, repeats, norm and rng.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
        return _arguments(content)
    except RecursionError as error:
        raise InputError(f"{path}: too many nested brackets") from error
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error


def _arguments(content: Mapping[str, Any]) -> dict[str, Any]:
    for key in content:
        check_choice("a key of a study", key, _KEYS)
    _check_kind("sizes", content.get("sizes"), list, "a list such as [200, 800]")
    _check_kind("estimators", content.get("estimators"), list, 'a list such as ["em_sweep", "em_debias"]')
    for estimator in content["estimators"]:
        _check_kind("estimators", estimator, (str, Mapping), "names or tables")
    own = content.get("populations", {})
    _check_kind("populations", own, Mapping, "tables [populations.NAME]")
    populations = {
        **{name: paper.population(name) for name in _paper_names(content.get("paper", []))},
        **{
            f"{name} calibrated": paper.population(name, calibrated=True)
            for name in _paper_names(content.get("paper_calibrated", []))
        },
        **{name: _population(name, table) for name, table in own.items()},
    }
    if not populations:
        raise InputError(
            'are missing. Write paper = "all", or a table [populations.NAME]', argument="populations"
        )
    arguments = {"populations": populations, "sizes": content["sizes"], "estimators": content["estimators"]}
    renamed = {"repeats": "repeats", "norm": "norm", "seed": "rng"}
    return {**arguments, **{renamed[key]: content[key] for key in renamed if key in content}}


def _check_kind(argument: str, value: object, kind: Any, needed: str) -> None:
    """Refuse a value of another type."""
    if not isinstance(value, kind):
        instead = "" if value is None else f". Got {value!r} instead"
        raise InputError(f"must be {needed}{instead}", argument=argument)


def _paper_names(chosen: Any) -> list[str]:
    if chosen == "all":
        return list(paper.NAMES)
    if isinstance(chosen, str):
        chosen = [chosen]
    _check_kind("paper", chosen, list, '"all" or a list of names')
    return [check_choice("paper", name, paper.NAMES) for name in chosen]


def _population(name: str, table: Any) -> simulation.Population:
    _check_kind(f"population {name!r}", table, Mapping, "a table with scores and curve")
    try:
        curve = _build("curve", _CURVES, table["curve"])
        return simulation.Population(_build("scores", _SCORES, table["scores"]), curve)
    except KeyError as error:
        raise InputError(
            f"has no {error.args[0]!r}; it needs scores and curve", argument=f"population {name!r}"
        ) from error
    except ValueError as error:
        raise InputError(f"population {name!r}: {error}") from error


def _build(what: str, kinds: Mapping[str, str], table: Any) -> Any:
    """Return the curve or the distribution of scores that a table describes."""
    _check_kind(what, table, Mapping, f'a table such as {{ kind = "{next(iter(kinds))}", ... }}')
    options = dict(table)
    kind = check_choice(f"kind of {what}", options.pop("kind", None), kinds)
    try:
        if "base" in options:  # scores made from others
            options["base"] = _build(what, kinds, options["base"])
        if "components" in options:
            options["components"] = [_build(what, kinds, part) for part in options["components"]]
        return getattr(simulation, kinds[kind])(**options)
    except TypeError as error:
        raise InputError(
            f"of kind {kind!r} cannot be made from {options!r}: {error}", argument=what
        ) from error
