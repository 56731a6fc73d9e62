"""Populations with a known error for the gate, and the rule which of them the printed sentence covers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import expit, logit

from truecal.multiscale import cut_scores

Array = NDArray[Any]
#: Number of scores that stand for a continuous distribution; its truth is exact for these.
POINTS = 200_000
#: What the printed sentence says about a curve, by a rule on n, scores and curve; see `Population.coverage`.
COVERED, NARROW, SPARSE, FINER = (
    "covered",
    "less than an interval",
    "in too few rows",
    "finer than the resolution",
)


# --- Scores ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scores:
    """A distribution of scores: ascending values and their probabilities.

    Attributes
    ----------
    value, mass : ndarray
        The scores, and the probability of each.
    discrete : bool
        Whether the values are all there are, and not points of a continuous distribution.
    """

    value: Array
    mass: Array
    discrete: bool

    @property
    def rank(self) -> Array:
        """Probability of a smaller score, and half of an equal one."""
        return np.cumsum(self.mass) - self.mass / 2

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return the indices of `n` scores."""
        if not self.discrete:
            return rng.integers(len(self.value), size=n)
        edges = np.cumsum(self.mass)
        return np.searchsorted(edges / edges[-1], rng.random(n), side="right")

    def typical(self, n: int) -> Array:
        """Return the indices of the scores at the quantiles of `n` rows."""
        edges = np.cumsum(self.mass)
        place = np.searchsorted(edges / edges[-1], (np.arange(n) + 0.5) / n)
        return np.minimum(place, len(self.value) - 1)


def atoms(value: Any, mass: Any = None) -> Scores:
    """Return a distribution of few scores; all have the same probability without `mass`."""
    value = np.asarray(value, dtype=np.float64)
    weight = np.ones(len(value)) if mass is None else np.asarray(mass, dtype=np.float64)
    kept, place = np.unique(value, return_inverse=True)
    weight = np.bincount(place, weight)
    return Scores(kept, weight / weight.sum(), discrete=True)


def mixed(*parts: tuple[float, Callable[[Array], Array]]) -> Scores:
    """Return a continuous mixture of quantile functions, given with their shares."""
    pieces = []
    for share, quantile in parts:
        n = round(share * POINTS)
        pieces.append(quantile((np.arange(n) + 0.5) / n))
    value = np.sort(np.concatenate(pieces))
    return Scores(value, np.full(len(value), 1 / len(value)), discrete=False)


def beta(a: float, b: float) -> Callable[[Array], Array]:
    """Return the quantile function of a beta distribution."""
    return lambda u: np.asarray(scipy.special.betaincinv(a, b, u))


def logit_normal(mean: float, sd: float) -> Callable[[Array], Array]:
    """Return the quantile function of expit(N(mean, sd^2))."""
    return lambda u: np.asarray(expit(mean + sd * scipy.special.ndtri(u)))


def rounded(scores: Scores, decimals: int) -> Scores:
    """Return rounded scores, which are discrete."""
    return atoms(np.round(scores.value, decimals), scores.mass)


def _random_atoms(n: int, a: float, b: float, *, uneven: bool = False) -> Scores:
    rng = np.random.default_rng([99, n])
    value = np.sort(np.round(rng.beta(a, b, n), 4))
    return atoms(value, rng.dirichlet(np.ones(n)) if uneven else None)


_GRADES = [0.002, 0.005, 0.012, 0.025, 0.05, 0.11, 0.3]
SCORES: dict[str, Callable[[], Scores]] = {
    # tuning
    "u": lambda: mixed((1, lambda u: u)),
    "skew": lambda: mixed((1, beta(0.1, 2))),
    "net": lambda: mixed((1, lambda u: (1 - beta(0.3, 3)(u)).astype(np.float32).astype(np.float64))),
    "rare1": lambda: mixed((1, beta(0.5, 49.5))),
    "tail10": lambda: mixed((0.95, beta(1, 30)), (0.05, lambda u: u)),
    "mixsub": lambda: mixed((0.9, beta(1, 20)), (0.1, beta(5, 2))),
    "tree5": lambda: atoms([0.03, 0.12, 0.31, 0.58, 0.86], [0.4, 0.25, 0.15, 0.12, 0.08]),
    "verbal": lambda: atoms([0.5, 0.7, 0.8, 0.9, 0.95, 1.0], [0.05, 0.1, 0.2, 0.3, 0.25, 0.1]),
    "rare4": lambda: atoms([0.001, 0.005, 0.01, 0.05], [0.4, 0.3, 0.2, 0.1]),
    "iso10": lambda: _random_atoms(10, 0.7, 1.2),
    "iso20": lambda: _random_atoms(20, 0.7, 1.2),
    "iso100": lambda: _random_atoms(100, 0.7, 1.2),
    "isorare30": lambda: _random_atoms(30, 0.5, 10, uneven=True),
    "votes20": lambda: atoms(np.round(mixed((1, beta(0.6, 1.5))).value * 20) / 20),
    "votes100": lambda: rounded(mixed((1, beta(0.6, 1.5))), 2),
    # weak spots
    "credit": lambda: mixed((1, logit_normal(-3, 1.2))),
    "digits2": lambda: atoms(np.arange(101) / 100),
    "ten_rows30": lambda: atoms((np.arange(30) + 0.5) / 30),
    # set aside
    "permille": lambda: mixed((1, logit_normal(-7.6, 1.2))),
    "percent": lambda: mixed((1, logit_normal(-5.2, 1.1))),
    "grades7": lambda: atoms(_GRADES, [0.2, 0.25, 0.2, 0.15, 0.1, 0.07, 0.03]),
    "central": lambda: mixed((1, beta(2, 2))),
    "ushape": lambda: mixed((1, beta(0.4, 0.4))),
    "ends": lambda: _with_ends(),
    "deciles12": lambda: atoms((np.arange(12) + 0.5) / 12),
    "top4": lambda: mixed((1, lambda u: 0.25 + 0.75 * beta(2, 1)(u))),
    "votes50": lambda: atoms(np.round(mixed((1, beta(1, 3))).value * 50) / 50),
    "digits3": lambda: rounded(mixed((1, beta(0.5, 1.5))), 3),
    "saturated": lambda: rounded(mixed((1, logit_normal(4, 3))), 4),
    "two_groups": lambda: mixed((0.85, beta(1, 40)), (0.15, beta(6, 3))),
    "uneven30": lambda: _random_atoms(30, 1, 2, uneven=True),
    "stated4": lambda: atoms([0, 0.6, 0.9, 1], [0.3, 0.2, 0.2, 0.3]),
    "rare2": lambda: atoms([0.001, 0.02], [0.8, 0.2]),
    "sharp2": lambda: atoms([0.02, 0.98]),
}


def _with_ends() -> Scores:
    n = round(0.7 * POINTS)
    value = np.concatenate([np.zeros(n * 2 // 7), (np.arange(n) + 0.5) / n, np.ones(n // 7)])
    return Scores(value, np.full(len(value), 1 / len(value)), discrete=False)


@cache
def scores_of(name: str) -> Scores:
    """Return a distribution of scores by its name."""
    return SCORES[name]()


# --- Curves ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """A family of curves with one parameter, which the size of the error fixes.

    Attributes
    ----------
    rate : function of (score, rank, a)
        Observed frequency.
    most : float
        Largest parameter.
    jumps : tuple of float
        Ranks at which the error jumps.
    each : bool
        Whether the error of each score has nothing to do with that of its neighbours.
    waves : float
        Number of waves, or of steps of stairs, over the ranks.
    """

    rate: Callable[[Array, Array, float], Array]
    most: float = 1.0
    jumps: tuple[float, ...] = ()
    each: bool = False
    waves: float = 0.0


def _logit(score: Array) -> Array:
    return np.asarray(logit(np.clip(score, 1e-12, 1 - 1e-12)))


def _above(rank: float, sign: float = -1.0) -> Shape:
    """Return an error of scores above a rank only."""
    return Shape(lambda f, u, a: np.where(u >= rank, f + sign * a, f), jumps=(rank,))


def _random(score: Array, rank: Array, a: float) -> Array:
    direction = np.random.default_rng(7).normal(size=len(score))
    return score + a * direction * np.sqrt(score * (1 - score) + 1e-4)


def _only(which: Callable[[Array], Any]) -> Callable[[Array, Array, float], Array]:
    """Return an error, towards 1/2, of some of the scores."""

    def rate(score: Array, rank: Array, a: float) -> Array:
        size = np.zeros(len(score))
        size[which(score)] = a
        return score + np.where(score < 0.5, size, -size)

    return rate


def _stairs(score: Array, steps: int) -> Array:
    return (np.minimum(np.floor(score * steps), steps - 1) + 0.5) / steps


SHAPES: dict[str, Shape] = {
    "shift": Shape(lambda f, u, a: expit(_logit(f) + a), 6),
    "down": Shape(lambda f, u, a: expit(_logit(f) - a), 6),
    "slope": Shape(lambda f, u, a: expit((1 - a) * _logit(f))),
    "temp": Shape(lambda f, u, a: expit(_logit(f) / (1 + a)), 6),
    "sharp": Shape(lambda f, u, a: expit(_logit(f) * (1 + a)), 20),
    "add": Shape(lambda f, u, a: f + a),
    "sub": Shape(lambda f, u, a: f - a),
    "power": Shape(lambda f, u, a: f ** (1 + a), 20),
    "bent": Shape(lambda f, u, a: f * (1 - a * f)),
    "cap": Shape(lambda f, u, a: np.minimum(f, 1 - a)),
    "low": Shape(lambda f, u, a: np.where(u <= 0.5, f + a, f), jumps=(0.5,)),
    "high10": _above(0.9),
    "high5": _above(0.95),
    "high3": _above(0.97),
    "jump": Shape(lambda f, u, a: f + np.where(u < 0.37, a, -a / 2), jumps=(0.37,)),
    "one_wave": Shape(lambda f, u, a: f + a * np.sin(2 * np.pi * u), waves=1),
    "two_waves": Shape(lambda f, u, a: f + a * np.sin(4 * np.pi * u), waves=2),
    "ends": Shape(lambda f, u, a: np.where(f <= 0, a, np.where(f >= 1, 1 - a, f))),
    "rnd": Shape(_random, 20, each=True),
    "alternating": Shape(lambda f, u, a: f + a * (1 - 2 * (np.arange(len(f)) % 2)), each=True),
    "lightest": Shape(lambda f, u, a: f, each=True),  # `Population` knows the masses
    "first": Shape(_only(lambda f: 0), each=True),
    "last": Shape(_only(lambda f: -1), each=True),
    "middle": Shape(_only(lambda f: len(f) // 2), each=True),
    # four steps of suite C1, and 8 stairs of D1, with the error scaled
    "four_steps": Shape(
        lambda f, u, a: f + 8 * a * (np.array([0.1, 0.4, 0.55, 0.9])[np.minimum((4 * f).astype(int), 3)] - f),
        jumps=(0.25, 0.5, 0.75),
        waves=4,
    ),
    "stairs8": Shape(
        lambda f, u, a: f + 8 * a * (_stairs(f, 8) - f), jumps=tuple(np.arange(1, 8) / 8), waves=8
    ),
}


@dataclass(frozen=True, eq=False)
class Population:
    """Scores and the observed frequency at each of them, with an exact error.

    Attributes
    ----------
    scores : Scores
        Distribution of the scores.
    shape : Shape
        Family of the curve.
    rate : ndarray
        Observed frequency at each score.
    """

    scores: Scores
    shape: Shape
    rate: Array

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        """Return labels and scores of `n` rows."""
        place = self.scores.draw(rng, n)
        return (rng.random(n) < self.rate[place]).astype(np.int64), self.scores.value[place]

    def coverage(self, n: int) -> str:
        """Return what the printed sentence says about this curve with `n` rows.

        Any error is allowed at each of at most min(n/10, 7 n^0.4) scores, with 10 expected rows each. Otherwise an
        interval may hold one jump, and the curve must be smooth; a wave, or a step of stairs, must span four intervals.
        Two kinds of curves that the sentence covers if it is read literally are listed apart: where a piece between two
        jumps, or between a jump and the end, holds no whole interval; and where nine tenths of the squared error lie in
        fewer rows than the interval with most of it has, or in fewer than 10.
        """
        scores, shape = self.scores, self.shape
        if scores.discrete and len(scores.value) <= min(n / 10, 7 * n**0.4) and n * scores.mass.min() >= 10:
            return COVERED
        if shape.each:
            return FINER
        rows = scores.typical(n)
        value, count = np.unique(scores.value[rows], return_counts=True)
        place = np.repeat(cut_scores(value, count.astype(np.float64), len(value)), count)
        n_intervals = int(place[-1]) + 1
        if shape.waves and n_intervals < 4 * shape.waves:
            return FINER
        starts = np.searchsorted(place, np.arange(n_intervals)) / n
        ends = np.append(starts[1:], 1.0)
        holder = np.searchsorted(starts, shape.jumps, side="right") - 1
        inside = [k for k, jump in zip(holder, shape.jumps, strict=True) if starts[k] + 0.5 / n < jump]
        if len(set(inside)) < len(inside):
            return FINER
        pieces = zip([0.0, *shape.jumps], [*shape.jumps, 1.0], strict=True)
        whole = [np.any((starts >= low - 0.5 / n) & (ends <= high + 0.5 / n)) for low, high in pieces]
        if not all(whole):
            return NARROW
        energy = (scores.value - self.rate)[rows] ** 2
        holding = 1 + int(np.searchsorted(np.cumsum(np.sort(energy)[::-1]), 0.9 * energy.sum()))
        most = int(np.bincount(place, energy).argmax())
        return COVERED if holding >= max(np.count_nonzero(place == most), 10) else SPARSE


def population(scores: str | Scores, shape: str | Shape, error: float) -> Population | None:
    """Return the population whose l2 error is `error`; None if the family has none.

    Parameters
    ----------
    scores : str or Scores
        Distribution of the scores.
    shape : str or Shape
        Family of the curve.
    error : float
        The l2 error.
    """
    law = scores_of(scores) if isinstance(scores, str) else scores
    family = SHAPES[shape] if isinstance(shape, str) else shape
    rank = law.rank
    if shape == "lightest":
        family = Shape(_only(lambda _: int(law.mass.argmin())), each=True)

    def rate(a: float) -> Array:
        return np.clip(family.rate(law.value, rank, a), 0.0, 1.0)

    def excess(a: float) -> float:
        return math.sqrt(float(law.mass @ (rate(a) - law.value) ** 2)) - error

    if error <= 0:
        return Population(law, family, law.value)
    if excess(family.most) < 0:
        return None
    return Population(law, family, rate(scipy.optimize.brentq(excess, 0.0, family.most, xtol=1e-12)))
