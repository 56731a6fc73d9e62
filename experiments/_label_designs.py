"""Populations whose labels are not the truth: scores, curves, judges, annotators, censoring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

from truecal import labels

Array = NDArray[Any]
Rng = np.random.Generator

#: Rows of the grid of scores on which true errors are computed.
_GRID = 200_000


def _two_humps(rng: Rng, n: int) -> Array:
    return np.where(rng.random(n) < 0.5, rng.beta(1.5, 6, n), rng.beta(7, 2, n))


def _logit_normal(rng: Rng, n: int) -> Array:
    return expit(rng.normal(0.4, 1.2, n))


def _confident(rng: Rng, n: int) -> Array:
    return 0.3 + 0.69 * rng.beta(2.5, 0.9, n)


def _low(rng: Rng, n: int) -> Array:
    return 0.02 + 0.9 * rng.beta(0.9, 4, n)


SCORES: dict[str, Callable[[Rng, int], Array]] = {
    "two humps": _two_humps,
    "logit-normal": _logit_normal,
    "confident": _confident,
    "low": _low,
}
#: P(y = 1) at a score, with a size a; a = 0 is calibrated.
CURVES: dict[str, Callable[[Array, float], Array]] = {
    "shift": lambda p, a: expit(logit(p) + a),
    "flat": lambda p, a: expit((1 - a) * logit(p)),
    "bend": lambda p, a: np.clip(p - a * np.maximum(p - 0.45, 0), 0.001, 0.999),
    "hump": lambda p, a: np.clip(p + a * np.exp(-0.5 * ((p - 0.6) / 0.12) ** 2), 0.001, 0.999),
}


@lru_cache
def _grid(scores: str) -> Array:
    return SCORES[scores](np.random.default_rng(0), _GRID)


@dataclass(frozen=True)
class Truth:
    """Scores with the chance of a positive label at each, at a given l2 error."""

    scores: str
    curve: str
    error: float

    @cached_property
    def size(self) -> float:
        """The size of the curve that has this error."""
        if self.error == 0:
            return 0.0
        return float(
            brentq(lambda a: self._norm(a, 2) - self.error, 0.0, 0.95 if self.curve == "flat" else 3.0)
        )

    def _norm(self, size: float, order: int) -> float:
        p = _grid(self.scores)
        return float(np.mean(np.abs(p - CURVES[self.curve](p, size)) ** order) ** (1 / order))

    @cached_property
    def l1(self) -> float:
        """The l1 error."""
        return self._norm(self.size, 1)

    def draw(self, rng: Rng, n: int) -> tuple[Array, Array]:
        """Return scores and the chance of a positive label."""
        p = SCORES[self.scores](rng, n)
        return p, CURVES[self.curve](p, self.size)


@dataclass(frozen=True)
class Drawn:
    """One data set: scores, labels that are not the truth, and what else a user might pass instead."""

    score: Array
    seen: Any
    plain: Array
    alone: tuple[Array, Array] | None = None
    clusters: Array | None = None


@dataclass(frozen=True)
class Judge:
    """A judge in all rows with gold labels in some.

    Attributes
    ----------
    sensitivity, specificity : function of scores
        Probability of being right.
    gold : float
        Share of rows with a gold label.
    probability : bool
        Whether the judge gives a probability instead of a label.
    uneven : bool
        Whether rows on which judge and score disagree are chosen more often, with known probabilities.
    second : bool
        Whether there is a second judge, right in 80%.
    per_question : int
        Answers to each question, which have most of their truth in common; gold labels are given by question.
    """

    sensitivity: Callable[[Array], Any]
    specificity: Callable[[Array], Any]
    gold: float
    probability: bool = False
    uneven: bool = False
    second: bool = False
    per_question: int = 1

    def draw(self, truth: Truth, rng: Rng, n: int) -> Drawn:
        """Return judged labels, with gold labels only as the alternative."""
        size = self.per_question
        p, chance = truth.draw(rng, n // size)
        p, chance = np.repeat(p, size), np.repeat(chance, size)
        n = len(p)
        if size > 1:  # answers to a question agree more often than chance
            chance = np.repeat(rng.beta(2 * chance[::size], 2 * (1 - chance[::size])), size)
        y = rng.random(n) < chance
        judge: Array = (
            np.where(y, rng.random(n) < self.sensitivity(p), rng.random(n) >= self.specificity(p)) * 1.0
        )
        if self.probability:
            judge = expit(np.where(y, 1.6, -1.2) + 1.3 * rng.standard_normal(n))
        pi = np.full(n, self.gold)
        if self.uneven:
            pi = np.clip(self.gold * (0.4 + 2.0 * np.abs(judge - p)), 0.01, 1.0)
        chosen = np.repeat(rng.random(n // size), size) < pi
        gold = np.where(chosen, y, np.nan)
        said = judge
        if self.second:
            said = np.column_stack([judge, np.where(rng.random(n) < 0.8, y, ~y)])
        seen = labels.judged(said, gold, pi if self.uneven else None)
        clusters = np.arange(n) // size if size > 1 else None
        alone = None if self.uneven or size > 1 else (y[chosen].astype(int), p[chosen])
        return Drawn(p, seen, (judge > 0.5).astype(int), alone, clusters)


@dataclass(frozen=True)
class Annotators:
    """Fractions of a few annotators; rows of the same score differ in how many of them say 1."""

    number: int
    concentration: float

    def draw(self, truth: Truth, rng: Rng, n: int) -> Drawn:
        """Return soft labels, with the majority as the alternative."""
        p, chance = truth.draw(rng, n)
        row = rng.beta(self.concentration * chance, self.concentration * (1 - chance))
        votes = rng.binomial(self.number, row)
        return Drawn(p, labels.soft(votes / self.number, self.number), (votes > self.number / 2).astype(int))


@dataclass(frozen=True)
class Errors:
    """Labels with errors of known rates, or of rates estimated on other rows."""

    sensitivity: float
    specificity: float
    validated: int = 0

    def draw(self, truth: Truth, rng: Rng, n: int) -> Drawn:
        """Return misclassified labels; as if they were the truth is the alternative."""
        p, chance = truth.draw(rng, n)
        a, b, each = self.sensitivity, self.specificity, self.validated // 2
        y = rng.random(n) < chance
        seen = np.where(y, rng.random(n) < a, rng.random(n) >= b).astype(int)
        counts = None
        if each:
            a, b = rng.binomial(each, a) / each, rng.binomial(each, b) / each
            counts = (each, each)
        return Drawn(p, labels.misclassified(seen, sensitivity=a, specificity=b, validated=counts), seen)


@dataclass(frozen=True)
class Censoring:
    """Times to an event with a Weibull hazard, of which some are censored before the horizon of 1.

    Attributes
    ----------
    rate : function of scores
        Hazard of censoring.
    shape : float
        Shape of the Weibull distribution of times.
    competing : float
        Hazard of a competing event.
    late : float
        Share of rows that entered late: they leave at a uniform time before the horizon.
    """

    rate: Callable[[Array], Any]
    shape: float = 1.0
    competing: float = 0.0
    late: float = 0.0

    def draw(self, truth: Truth, rng: Rng, n: int) -> Drawn:
        """Return outcomes at the horizon; counting censored rows as event-free is the alternative."""
        p, chance = truth.draw(rng, n)
        y = rng.random(n) < chance
        # The time of the event, given that there is one by the horizon; else it comes later.
        early = rng.random(n) ** (1 / self.shape)
        time = np.where(y, early, 1 + rng.exponential(1.0, n))
        event = np.ones(n)
        if self.competing:  # what would come later may be ruled out before by another cause
            other = rng.exponential(1 / self.competing, n)
            event = np.where(~y & (other < time), 2, 1)
            time = np.where(event == 2, other, time)
        stop = rng.exponential(1.0, n) / np.maximum(self.rate(p), 1e-9)
        stop = np.where(rng.random(n) < self.late, rng.uniform(0.2, 1.2, n), stop)
        event = np.where(stop < time, 0, event)
        time = np.minimum(time, stop)
        naive = ((event == 1) & (time <= 1)).astype(int)
        return Drawn(p, labels.censored(time, event, horizon=1.0), naive)


def _constant(value: float) -> Callable[[Array], Any]:
    return lambda p: value


def _judge(a: float, b: float, gold: float, **more: Any) -> Judge:
    return Judge(_constant(a), _constant(b), gold, **more)


def _by_score(gold: float, **more: Any) -> Judge:
    return Judge(lambda p: 0.65 + 0.33 * p, lambda p: 0.97 - 0.3 * p**2, gold, **more)


@dataclass(frozen=True)
class Design:
    """A kind of labels, rows, scores and the curve of miscalibration."""

    kind: str
    labels: Any
    n: int
    scores: str
    curve: str


DESIGNS: dict[str, Design] = {
    "99/98, 5% gold": Design("judge", _judge(0.99, 0.98, 0.05), 3000, "two humps", "shift"),
    "99/98, 30% gold": Design("judge", _judge(0.99, 0.98, 0.3), 1000, "confident", "bend"),
    "95/90, 5% gold, n = 1,000": Design("judge", _judge(0.95, 0.9, 0.06), 1000, "logit-normal", "flat"),
    "95/90, 10% gold, n = 1,000": Design("judge", _judge(0.95, 0.9, 0.1), 1000, "two humps", "shift"),
    "95/90, 10% gold": Design("judge", _judge(0.95, 0.9, 0.1), 3000, "two humps", "flat"),
    "95/90, 10% gold, confident": Design("judge", _judge(0.95, 0.9, 0.1), 3000, "confident", "bend"),
    "95/90, 10% gold, low": Design("judge", _judge(0.95, 0.9, 0.1), 3000, "low", "shift"),
    "95/90, 5% gold, n = 20,000": Design("judge", _judge(0.95, 0.9, 0.05), 20_000, "logit-normal", "hump"),
    "90/80, 5% gold": Design("judge", _judge(0.9, 0.8, 0.05), 3000, "logit-normal", "shift"),
    "90/80, 10% gold": Design("judge", _judge(0.9, 0.8, 0.1), 3000, "two humps", "bend"),
    "90/80, 30% gold, n = 1,000": Design("judge", _judge(0.9, 0.8, 0.3), 1000, "logit-normal", "hump"),
    "90/80, 5% gold, n = 20,000": Design("judge", _judge(0.9, 0.8, 0.05), 20_000, "two humps", "flat"),
    "70/70, 10% gold": Design("judge", _judge(0.7, 0.7, 0.1), 3000, "two humps", "shift"),
    "70/70, 30% gold, n = 1,000": Design("judge", _judge(0.7, 0.7, 0.3), 1000, "logit-normal", "flat"),
    "errors by score, 10% gold": Design("judge", _by_score(0.1), 3000, "logit-normal", "bend"),
    "errors by score, 30% gold, n = 1,000": Design("judge", _by_score(0.3), 1000, "two humps", "shift"),
    "errors by score, 5% gold, n = 20,000": Design("judge", _by_score(0.05), 20_000, "confident", "flat"),
    "a probability, 10% gold": Design(
        "judge", _judge(0.9, 0.8, 0.1, probability=True), 3000, "two humps", "hump"
    ),
    "a probability, 10% gold, n = 1,000": Design(
        "judge", _judge(0.9, 0.8, 0.1, probability=True), 1000, "logit-normal", "shift"
    ),
    "two judges, 10% gold": Design("judge", _judge(0.9, 0.8, 0.1, second=True), 3000, "two humps", "flat"),
    "95/90, unequal probabilities": Design(
        "judge", _judge(0.95, 0.9, 0.15, uneven=True), 3000, "logit-normal", "flat"
    ),
    "errors by score, unequal probabilities": Design(
        "judge", _by_score(0.2, uneven=True), 3000, "two humps", "bend"
    ),
    "95/90, 4 answers to each question": Design(
        "judge, clusters", _judge(0.95, 0.9, 0.15, per_question=4), 3000, "logit-normal", "flat"
    ),
    "90/80, 3 answers to each question": Design(
        "judge, clusters", _judge(0.9, 0.8, 0.25, per_question=3), 3000, "two humps", "shift"
    ),
    "3 annotators, n = 1,000": Design("annotators", Annotators(3, 4.0), 1000, "two humps", "flat"),
    "3 annotators": Design("annotators", Annotators(3, 1.5), 3000, "logit-normal", "hump"),
    "5 annotators, n = 1,000": Design("annotators", Annotators(5, 6.0), 1000, "confident", "bend"),
    "5 annotators": Design("annotators", Annotators(5, 2.0), 3000, "low", "shift"),
    "95/90 known": Design("misclassified", Errors(0.95, 0.9), 3000, "two humps", "shift"),
    "85/90 known, n = 1,000": Design("misclassified", Errors(0.85, 0.9), 1000, "logit-normal", "flat"),
    "95/90 from 100 rows": Design("misclassified", Errors(0.95, 0.9, 100), 3000, "logit-normal", "bend"),
    "90/80 from 200 rows, n = 1,000": Design(
        "misclassified", Errors(0.9, 0.8, 200), 1000, "two humps", "flat"
    ),
    "90/80 from 400 rows, n = 20,000": Design(
        "misclassified", Errors(0.9, 0.8, 400), 20_000, "two humps", "shift"
    ),
    "independent": Design("censored", Censoring(_constant(0.75)), 3000, "logit-normal", "flat"),
    "independent, n = 1,000": Design("censored", Censoring(_constant(0.6), 0.6), 1000, "two humps", "shift"),
    "more at low scores": Design(
        "censored", Censoring(lambda p: 1.2 * (1 - p) ** 2 + 0.15, 1.5), 3000, "logit-normal", "bend"
    ),
    "more at high scores": Design(
        "censored", Censoring(lambda p: 2.5 * p**1.5, 1.2), 3000, "two humps", "flat"
    ),
    "late entry, n = 1,000": Design(
        "censored", Censoring(_constant(0.1), late=0.45), 1000, "confident", "shift"
    ),
    "competing events": Design("censored", Censoring(_constant(0.6), competing=0.5), 3000, "low", "flat"),
}
