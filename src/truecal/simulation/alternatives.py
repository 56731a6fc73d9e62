"""Populations with a given calibration error: the alternatives against which a test has power."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from truecal._lib.checks import check_choice, check_norm, check_real
from truecal._lib.roots import find_root
from truecal._lib.types import FloatArray
from truecal.exceptions import InputError
from truecal.simulation._scores import ScoreDistribution, UniformScores
from truecal.simulation.curves import Curve, FunctionCurve, GLMCurve, IdentityCurve, PowerCurve
from truecal.simulation.population import Population

_STEPS = 4
_WAVES = 3


@dataclass(frozen=True)
class _Family:
    """Curves by a strength from 0, which is calibrated, to `strongest`; the error grows with it."""

    description: str
    curve: Callable[[float], Curve]
    strongest: float


def _stepped(score: FloatArray, strength: float) -> FloatArray:
    step = (np.floor(_STEPS * score).clip(max=_STEPS - 1) + 0.5) / _STEPS
    return score + strength * (step - score)


def _wavy(score: FloatArray, strength: float) -> FloatArray:
    return score + strength * score * (1 - score) * np.sin(2 * np.pi * _WAVES * score)


#: Families of alternatives by name.
ALTERNATIVES = {
    "power": _Family(
        "the curve c^d, d > 1: scores too high", lambda s: PowerCurve(math.exp(s)), math.log(1e6)
    ),
    "level": _Family(
        "scores too high by a constant on the logit scale",
        lambda s: GLMCurve("logit", "logit", -s, 1.0),
        30.0,
    ),
    "slope": _Family(
        "a slope below 1 on the logit scale: overconfident scores",
        lambda s: GLMCurve("logit", "logit", 0.0, math.exp(-s)),
        15.0,
    ),
    "steps": _Family(
        f"a curve that rises in {_STEPS} steps instead of steadily",
        lambda s: FunctionCurve(
            partial(_stepped, strength=s), breakpoints=[k / _STEPS for k in range(1, _STEPS)]
        ),
        1.0,
    ),
    "waves": _Family(
        f"{_WAVES} waves around the diagonal", lambda s: FunctionCurve(partial(_wavy, strength=s)), 1.0
    ),
}


def population_with_error(
    true_error: float,
    scores: ScoreDistribution | None = None,
    norm: float = 2,
    *,
    alternative: str = "power",
) -> Population:
    r"""Return the population of a family of curves that has this true error.

    Parameters
    ----------
    true_error : float
        The error, a fraction.
    scores : ScoreDistribution, optional
        Distribution of the scores; by default uniform, which is Beta(1, 1).
    norm : float
        Order of the norm.
    alternative : {"power", "level", "slope", "steps", "waves"}
        Family of curves: ``"power"`` is c^d as in the paper, ``"level"`` shifts all scores by a constant on the logit
        scale, ``"slope"`` is overconfidence, ``"steps"`` a curve that rises in four steps, ``"waves"`` has three waves.

    Returns
    -------
    Population

    Raises
    ------
    InputError
        If no curve of the family has that error on these scores.

    Examples
    --------
    >>> population = population_with_error(0.1)
    >>> round(population.curve.d, 4), round(population.true_error(), 6)
    (1.4491, 0.1)
    >>> round(population_with_error(0.05, alternative="slope").true_error(), 6)
    0.05
    """
    family = _family(alternative)
    scores = UniformScores() if scores is None else scores
    largest = largest_error(scores, norm, alternative=alternative)
    wanted = check_real("true_error", true_error, at_least=0)
    if wanted > largest:
        raise InputError(
            f"must lie between 0 and {largest:.4g}, the largest error that these scores can have here. "
            f"Got {true_error:g} instead",
            argument="true_error",
            value=true_error,
            remedy=f"For {wanted:g}% write {wanted / 100:g}." if 1 <= wanted <= 100 * largest else None,
        )

    def excess(strength: float) -> float:
        return Population(scores, family.curve(strength)).true_error(norm) - wanted

    if wanted == 0:
        return Population(scores, PowerCurve(1.0) if alternative == "power" else IdentityCurve())
    strength = find_root(excess, 0.0, family.strongest, xtol=1e-12, rtol=1e-12)
    return Population(scores, family.curve(strength))


def largest_error(scores: ScoreDistribution, norm: float, *, alternative: str = "power") -> float:
    """Return the largest true error that `population_with_error` can give."""
    family = _family(alternative)
    return Population(scores, family.curve(family.strongest)).true_error(check_norm(norm))


def describe(alternative: str) -> str:
    """Return in words what the curves of a family look like."""
    return _family(alternative).description


def _family(alternative: str) -> _Family:
    return ALTERNATIVES[check_choice("alternative", alternative, ALTERNATIVES)]
