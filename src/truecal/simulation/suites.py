"""Named collections of populations on which estimators are evaluated.

- **A**: the ten populations of the paper, as fitted.
- **B**: the same scores, perfectly calibrated.
- **C**: curves and scores outside those families: powers, steps, plateaus, kinks, slight waves, models that are
  under-confident or barely miscalibrated; uniform, U-shaped, bimodal, central, rounded and heavily tied scores.

- **D**: structure that is fine, discrete, local or stepped: many waves, bumps on 1% of the scores, stairs, errors that
  alternate between the hundredths, wrong scores of 0 and 1, falling curves, rare events.

Suites C and D have two halves each. The constants of the core (`truecal.multiscale`) were chosen on A, B and the first
halves, ``C1`` and ``D1``; the second halves, ``C2`` and ``D2``, were set aside to evaluate the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, logit

from truecal import paper
from truecal._lib.checks import check_choice
from truecal._lib.types import FloatArray
from truecal.estimators._registry import TRUE_ERROR, list_estimators
from truecal.simulation._curves import Curve, FunctionCurve, GLMCurve, LogisticCurve, PowerCurve, StepCurve
from truecal.simulation._population import Population
from truecal.simulation._scores import (
    AtomScores,
    BetaScores,
    MixtureScores,
    RoundedScores,
    ScoreDistribution,
    UniformScores,
)

NAMES = ("A", "B", "C", "C1", "C2", "D", "D1", "D2")
#: Sample sizes at which estimators are evaluated.
SIZES = (200, 800, 3200, 12800)


def suite(name: str) -> dict[str, Population]:
    """Return the populations of a suite, by name.

    Parameters
    ----------
    name : {"A", "B", "C", "C1", "C2", "D", "D1", "D2"}
        The suite; ``"C"`` and ``"D"`` are both of their halves.

    Returns
    -------
    dict of str to Population

    Examples
    --------
    >>> len(suite("A")), len(suite("B")), len(suite("C")), len(suite("D"))
    (10, 10, 41, 44)
    >>> round(suite("C")["uniform, power 1.5"].true_error(), 4)
    0.1091
    """
    check_choice("suite", name, NAMES)
    if name == "A":
        return {key: paper.population(key) for key in paper.NAMES}
    if name == "B":
        return {f"{key} calibrated": paper.population(key, calibrated=True) for key in paper.NAMES}
    halves = {"C1": _first_half, "C2": _second_half, "D1": _hard_first_half, "D2": _hard_second_half}
    return {
        key: Population(scores, curve)
        for half, members in halves.items()
        if half.startswith(name)
        for key, (scores, curve) in members().items()
    }


def suite_study(names: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of `truecal.bias_study` for suites, with all estimators of the true error.

    Parameters
    ----------
    names : iterable of {"A", "B", "C", "C1", "C2", "D", "D1", "D2"}
        The suites; their names precede those of their populations.

    Returns
    -------
    dict
        ``populations``, ``estimators``, ``sizes`` and ``rng``.
    """
    populations = {f"{name}: {key}": item for name in names for key, item in suite(name).items()}
    estimators = [spec.name for spec in list_estimators() if spec.estimand == TRUE_ERROR]
    return {"populations": populations, "estimators": estimators, "sizes": list(SIZES), "rng": 0}


# --- Curves ----------------------------------------------------------------------------------------


def _tempered(slope: float, intercept: float) -> Curve:
    """Logistic in the logit of the score: over-confident for a slope below 1."""
    return GLMCurve("logit", "logit", intercept, slope)


def _flipped(power: float) -> Curve:
    """1 - (1 - c)^power."""
    return GLMCurve("logflip", "logflip", None, power)


def _lines(x: list[float], y: list[float]) -> Curve:
    """Straight lines between points: kinks and plateaus."""
    return FunctionCurve(partial(np.interp, xp=x, fp=y), breakpoints=x[1:-1])


#: Errors that are added to the score, by name. The last two are at the multiples of a step: alternately too high and
#: too low, or in a fixed pseudo-random order.
_OFFSETS: dict[str, Callable[..., Any]] = {
    "shift": lambda score, by: by,
    "waves": lambda score, height, waves: height * np.sin(2 * np.pi * waves * score),
    "chirp": lambda score, height, waves: height * np.sin(2 * np.pi * waves * score**2),
    "bump": lambda score, low, high, by: by * ((score >= low) & (score < high)),
    "jump": lambda score, at, by: by * np.sign(score - at),
    "times": lambda score, factor: (factor - 1) * score,
    "tempered waves": lambda score, slope, height, waves: (
        expit(slope * logit(np.clip(score, 1e-12, 1 - 1e-12))) - score + height * np.sin(2 * np.pi * waves * score)
    ),
    "alternating": lambda score, step, by: by * (1 - 2 * (np.rint(score / step) % 2)),
    "random": lambda score, step, by: by * np.sign(
        (43758.5453 * np.sin(12.9898 * np.rint(score / step))) % 1 - 0.5
    ),
}  # fmt: skip
#: Where they jump or turn; the integral of the error finds a few waves by itself.
_BREAKS: dict[str, Callable[..., list[float]]] = {
    "shift": lambda by: [1 - by if by > 0 else -by],
    "waves": lambda height, waves: _grid(waves) if waves >= 5 else [],
    "chirp": lambda height, waves: _grid(100),
    "bump": lambda low, high, by: [low, high],
    "jump": lambda at, by: [at],
    "times": lambda factor: [min(1 / factor, 1 - 1e-9)],
    "tempered waves": lambda slope, height, waves: _grid(2 * waves),
}


@dataclass(frozen=True)
class _Offset:
    """The score plus an error of `_OFFSETS`; unlike a nested function it can be pickled."""

    name: str
    parameters: tuple[float, ...]

    def __call__(self, score: FloatArray) -> FloatArray:
        return np.asarray(np.clip(score + _OFFSETS[self.name](score, *self.parameters), 0.0, 1.0))


def _off(name: str, *parameters: float) -> Curve:
    breaks = _BREAKS[name](*parameters) if name in _BREAKS else ()
    return FunctionCurve(_Offset(name, parameters), breakpoints=breaks)


def _stairs(steps: int) -> Curve:
    """Return stairs: the middle of the bin in which the score lies."""
    middle = (np.arange(steps) + 0.5) / steps
    return StepCurve(_grid(steps), middle.tolist())


def _grid(n: int) -> list[float]:
    return [k / n for k in range(1, n)]


# --- Scores ----------------------------------------------------------------------------------------

_UNIFORM = UniformScores()
_U_SHAPED, _VERY_U_SHAPED = BetaScores(0.5, 0.5), BetaScores(0.3, 0.3)
_CENTRAL, _VERY_CENTRAL = BetaScores(6, 6), BetaScores(20, 20)
_HIGH, _VERY_HIGH = BetaScores(5, 1), BetaScores(8, 0.6)
_LOW, _VERY_LOW = BetaScores(1, 6), BetaScores(0.5, 8)
_TENTHS, _HUNDREDTHS = RoundedScores(_UNIFORM, decimals=1), RoundedScores(_UNIFORM, decimals=2)
_BIMODAL = MixtureScores([BetaScores(2, 8), BetaScores(12, 3)], [0.5, 0.5])
_RARE_CLASS = MixtureScores([BetaScores(1, 15), BetaScores(10, 2)], [0.7, 0.3])
_FLOAT32 = RoundedScores(BetaScores(3, 0.1), dtype="float32")


def _twentieths() -> ScoreDistribution:
    """U-shaped scores rounded to multiples of 0.05."""
    edges = (np.arange(22) - 0.5) / 20
    masses = np.diff(BetaScores(0.6, 0.6).cdf(np.clip(edges, 0, 1)))
    return AtomScores((np.arange(21) / 20).tolist(), masses.tolist())


def _with_atom(at: float, share: float, rest: ScoreDistribution) -> ScoreDistribution:
    return MixtureScores([AtomScores([at]), rest], [share, 1 - share])


# --- The two halves --------------------------------------------------------------------------------


def _first_half() -> dict[str, tuple[ScoreDistribution, Curve]]:
    return {
        "uniform, power 1.5": (_UNIFORM, PowerCurve(1.5)),
        "uniform, two waves": (_UNIFORM, _off("waves", 0.05, 2)),
        "uniform, four steps": (_UNIFORM, StepCurve([0.25, 0.5, 0.75], [0.1, 0.4, 0.55, 0.9])),
        "uniform, barely off": (_UNIFORM, _tempered(0.9, 0)),
        "u-shaped, over-confident": (_U_SHAPED, _tempered(0.6, 0)),
        "u-shaped, under-confident": (_U_SHAPED, _tempered(1.7, 0)),
        "very u-shaped, plateau": (_VERY_U_SHAPED, _lines([0, 0.3, 0.7, 1], [0.05, 0.35, 0.35, 0.95])),
        "bimodal, kink": (_BIMODAL, _lines([0, 0.5, 1], [0.0, 0.35, 1.0])),
        "bimodal, logistic": (_BIMODAL, LogisticCurve(6, -3)),
        "central, under-confident": (_CENTRAL, _tempered(2, 0)),
        "central, shifted": (_CENTRAL, _off("shift", 0.04)),
        "high, power 2": (_HIGH, PowerCurve(2)),
        "very high, shrunk": (_VERY_HIGH, _lines([0, 1], [0.18, 0.88])),
        "low, flipped power": (_LOW, _flipped(1.6)),
        "very low, tempered": (_VERY_LOW, _tempered(0.7, -0.3)),
        "tenths, two steps": (_TENTHS, StepCurve([0.5], [0.25, 0.75])),
        "hundredths, power 1.2": (_HUNDREDTHS, PowerCurve(1.2)),
        "many at 1, flat top": (
            _with_atom(1.0, 0.4, BetaScores(2, 1)),
            _lines([0, 0.9, 1], [0.05, 0.9, 0.93]),
        ),
        "float32, over-confident": (_FLOAT32, _tempered(0.5, 0.2)),
        "five spoken scores": (
            AtomScores([0.1, 0.3, 0.5, 0.7, 0.9], [0.15, 0.2, 0.3, 0.2, 0.15]),
            _tempered(0.6, 0.2),
        ),
    }


def _second_half() -> dict[str, tuple[ScoreDistribution, Curve]]:
    return {
        "uniform, steep logistic": (_UNIFORM, LogisticCurve(10, -5)),
        "uniform, three waves": (_UNIFORM, _off("waves", 0.03, 3)),
        "uniform, plateaus": (_UNIFORM, _lines([0, 0.2, 0.4, 0.6, 0.8, 1], [0.0, 0.3, 0.3, 0.6, 0.6, 1.0])),
        "uniform, power 1.1": (_UNIFORM, PowerCurve(1.1)),
        "u-shaped, kink": (_U_SHAPED, _lines([0, 0.7, 1], [0.1, 0.6, 1.0])),
        "very u-shaped, wave": (_VERY_U_SHAPED, _off("waves", 0.06, 1)),
        "very u-shaped, tempered": (_VERY_U_SHAPED, _tempered(0.5, 0.3)),
        "bimodal, steps": (_BIMODAL, StepCurve([0.15, 0.4, 0.8], [0.1, 0.3, 0.7, 0.85])),
        "rare class, under-confident": (_RARE_CLASS, _tempered(1.6, 0.2)),
        "central, power 1.3": (_CENTRAL, PowerCurve(1.3)),
        "very central, logistic": (_VERY_CENTRAL, LogisticCurve(8, -4)),
        "very central, barely off": (_VERY_CENTRAL, _off("shift", 0.015)),
        "high, flat": (_HIGH, _lines([0, 0.6, 1], [0.45, 0.5, 0.92])),
        "very high, barely off": (_VERY_HIGH, _tempered(0.85, 0)),
        "low, power 0.8": (_LOW, PowerCurve(0.8)),
        "very low, flipped power": (_VERY_LOW, _flipped(2)),
        "twentieths, wave": (_twentieths(), _off("waves", 0.04, 1.5)),
        "tenths, tempered": (_TENTHS, _tempered(0.8, -0.2)),
        "half at 0.9, dip": (
            _with_atom(0.9, 0.5, _UNIFORM),
            _lines([0, 0.85, 0.9, 1], [0.05, 0.8, 0.8, 1.0]),
        ),
        "four spoken scores, shifted": (
            AtomScores([0.02, 0.2, 0.6, 0.95], [0.1, 0.3, 0.3, 0.3]),
            _off("shift", -0.05),
        ),
        "float32, flat": (_FLOAT32, _lines([0, 0.5, 1], [0.3, 0.6, 0.98])),
    }


def _hard_first_half() -> dict[str, tuple[ScoreDistribution, Curve]]:
    return {
        "ten waves": (_UNIFORM, _off("waves", 0.08, 10)),
        "40 waves": (_UNIFORM, _off("waves", 0.10, 40)),
        "200 waves": (_UNIFORM, _off("waves", 0.10, 200)),
        "chirp": (_UNIFORM, _off("chirp", 0.10, 25)),
        "bump on 5%": (_UNIFORM, _off("bump", 0.60, 0.65, -0.30)),
        "bump on 1%": (_UNIFORM, _off("bump", 0.80, 0.81, -0.60)),
        "8 stairs": (_UNIFORM, _stairs(8)),
        "two levels": (_UNIFORM, StepCurve([0.5], [0.2, 0.8])),
        "falling": (_UNIFORM, _lines([0, 1], [1, 0])),
        "skewed, middle off": (BetaScores(2.8, 0.1), _off("bump", 0.50, 0.95, -0.25)),
        "skewed, barely off": (BetaScores(20, 1), _off("shift", -0.01)),
        "rare, twice as many": (BetaScores(0.5, 50), _off("times", 2)),
        "low, saturating": (BetaScores(1, 9), _lines([0, 0.25, 1], [0, 0.25, 0.25])),
        "very central, jump": (BetaScores(50, 50), _off("jump", 0.5, 0.10)),
        "hundredths, alternating": (_HUNDREDTHS, _off("alternating", 0.01, 0.08)),
        "thousandths, random": (RoundedScores(_UNIFORM, decimals=3), _off("random", 0.001, 0.10)),
        "certain, 3% wrong": (AtomScores([0, 0.5, 1], [0.45, 0.1, 0.45]), _lines([0, 1], [0.03, 0.97])),
        "over-fitted": (_U_SHAPED, _off("tempered waves", 0.7, 0.08, 15)),
        "calibrated uniform": (_UNIFORM, _lines([0, 1], [0, 1])),
        "calibrated skewed": (BetaScores(2.8, 0.1), _lines([0, 1], [0, 1])),
        "calibrated rare": (BetaScores(0.5, 50), _lines([0, 1], [0, 1])),
        "calibrated tenths": (_TENTHS, _lines([0, 1], [0, 1])),
    }


def _hard_second_half() -> dict[str, tuple[ScoreDistribution, Curve]]:
    return {
        "seven waves": (_UNIFORM, _off("waves", 0.09, 7)),
        "30 waves": (_UNIFORM, _off("waves", 0.09, 30)),
        "120 waves": (_UNIFORM, _off("waves", 0.12, 120)),
        "u-shaped, chirp": (_U_SHAPED, _off("chirp", 0.08, 18)),
        "bump on 3%": (_UNIFORM, _off("bump", 0.30, 0.33, 0.40)),
        "central, bump": (_CENTRAL, _off("bump", 0.55, 0.58, -0.30)),
        "12 stairs": (_UNIFORM, _stairs(12)),
        "three levels": (_UNIFORM, StepCurve([0.3, 0.6], [0.1, 0.5, 0.75])),
        "u-shaped, falling": (_U_SHAPED, _lines([0, 1], [0.8, 0.2])),
        "skewed, low end off": (BetaScores(4, 0.3), _off("bump", 0.20, 0.80, -0.20)),
        "low, barely off": (BetaScores(1, 20), _off("shift", 0.01)),
        "rare, half as many": (BetaScores(0.5, 30), _off("times", 0.5)),
        "high, saturating": (BetaScores(9, 1), _lines([0, 0.75, 1], [0.75, 0.75, 1])),
        "central, jump": (BetaScores(20, 20), _off("jump", 0.55, 0.08)),
        "fiftieths, alternating": (
            AtomScores((np.arange(51) / 50).tolist(), np.full(51, 1 / 51).tolist()),
            _off("alternating", 0.02, 0.10),
        ),
        "hundredths, random": (_HUNDREDTHS, _off("random", 0.01, 0.07)),
        "certain, 2% wrong": (AtomScores([0, 1], [0.6, 0.4]), _lines([0, 1], [0.02, 0.98])),
        "under-confident waves": (_UNIFORM, _off("tempered waves", 1.3, 0.07, 12)),
        "calibrated u-shaped": (_U_SHAPED, _lines([0, 1], [0, 1])),
        "calibrated low": (BetaScores(1, 30), _lines([0, 1], [0, 1])),
        "calibrated central": (_VERY_CENTRAL, _lines([0, 1], [0, 1])),
        "calibrated hundredths": (_HUNDREDTHS, _lines([0, 1], [0, 1])),
    }
