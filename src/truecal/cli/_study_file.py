"""A study written down in a small TOML file.

.. code-block:: toml

    sizes = [200, 800]
    estimators = ["em_sweep", "em_debias", { estimator = "em_bin", n_bins = 30 }]
    repeats = 1000                       # optional, as are norm and seed
    paper = ["resnet110_c10"]            # populations of the paper, or "all"
    paper_calibrated = "all"             # the same with perfect calibration

    [populations.mine]                   # and of your own
    scores = { kind = "beta", a = 2.8, b = 0.05 }
    curve = { kind = "power", d = 2 }
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from truecal import paper
from truecal._lib.checks import check_choice
from truecal.exceptions import InputError
from truecal.simulation import (
    AtomScores,
    BetaScores,
    Curve,
    GLMCurve,
    IdentityCurve,
    LogisticCurve,
    MixtureScores,
    Population,
    PowerCurve,
    RoundedScores,
    ScoreDistribution,
    StepCurve,
    UniformScores,
)

CURVES: dict[str, Callable[..., Curve]] = {
    "glm": GLMCurve,
    "identity": IdentityCurve,
    "logistic": LogisticCurve,
    "power": PowerCurve,
    "steps": StepCurve,
}
SCORES: dict[str, Callable[..., ScoreDistribution]] = {
    "atoms": AtomScores,
    "beta": BetaScores,
    "mixture": lambda components, weights: MixtureScores([_scores(part) for part in components], weights),
    "rounded": lambda base, **options: RoundedScores(_scores(base), **options),
    "uniform": UniformScores,
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
    for key in ("sizes", "estimators"):
        if not isinstance(content.get(key), list):
            raise InputError(f"must be a list, such as {key} = {_EXAMPLES[key]}", argument=key)
    for estimator in content["estimators"]:
        if not isinstance(estimator, str | Mapping):
            raise InputError(f"must be names or tables. Got {estimator!r} instead", argument="estimators")
    own = content.get("populations", {})
    if not isinstance(own, Mapping):
        raise InputError(f"must be tables [populations.NAME]. Got {own!r} instead", argument="populations")
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


_EXAMPLES = {"sizes": "[200, 800]", "estimators": '["em_sweep", "em_debias"]'}


def _paper_names(chosen: object) -> list[str]:
    if chosen == "all":
        return list(paper.NAMES)
    if isinstance(chosen, str):
        chosen = [chosen]
    if not isinstance(chosen, list):
        raise InputError(f'must be "all" or a list of names. Got {chosen!r} instead.', argument="paper")
    return [check_choice("paper", name, paper.NAMES) for name in chosen]


def _population(name: str, table: Any) -> Population:
    if not isinstance(table, Mapping):
        raise InputError(
            f"must be a table with scores and curve. Got {table!r} instead", argument=f"population {name!r}"
        )
    try:
        return Population(_scores(table["scores"]), _build("curve", CURVES, table["curve"]))
    except KeyError as error:
        raise InputError(
            f"has no {error.args[0]!r}; it needs scores and curve", argument=f"population {name!r}"
        ) from error
    except ValueError as error:
        raise InputError(f"population {name!r}: {error}") from error


def _scores(table: Any) -> ScoreDistribution:
    built: ScoreDistribution = _build("scores", SCORES, table)
    return built


def _build(what: str, kinds: Mapping[str, Callable[..., Any]], table: Any) -> Any:
    if not isinstance(table, Mapping) or "kind" not in table:
        raise InputError(
            f'must be a table such as {{ kind = "{next(iter(kinds))}", ... }}. Got {table!r}', argument=what
        )
    options = {key: value for key, value in table.items() if key != "kind"}
    kind = check_choice(f"kind of {what}", table["kind"], kinds)
    try:
        return kinds[kind](**options)
    except TypeError as error:
        raise InputError(
            f"of kind {kind!r} cannot be made from {options!r}: {error}", argument=what
        ) from error
