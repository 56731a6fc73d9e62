r"""How many gold labels an interval of a given length needs, beside the labels of a judge.

A judge that explains the share :math:`R^2` of the noise of labels given the score makes g gold labels among n rows
worth :math:`N = g / (1 - (1 - g / n) R^2)` true labels. So g gold labels are needed for N with

.. math:: g = \frac{N (1 - R^2)}{1 - N R^2 / n}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from truecal._lib.checks import check_count, check_fraction, check_real
from truecal._lib.types import FloatArray
from truecal.exceptions import InputError
from truecal.inference.interval import confidence_interval
from truecal.results import Result
from truecal.simulation._curves import IdentityCurve
from truecal.simulation._population import Population
from truecal.simulation._scores import ScoreDistribution, UniformScores

#: Fewer gold labels describe a judge too roughly for the formula.
_FEWEST_GOLD = 100
#: Numbers of true labels between which the one with the wanted length is looked for, and its relative precision.
_FEWEST, _MOST, _PRECISION = 20, 1_000_000, 0.02


@dataclass(frozen=True)
class GoldPlan(Result):
    """Number of gold labels, and what they are worth.

    Attributes
    ----------
    gold : int
        Gold labels, of a random sample of the rows.
    n : int
        Rows that the judge labels.
    worth : float
        True labels that would give the same interval.
    r_squared : float
        Share of the noise of labels given the score that the judge explains.
    length : float
        Mean length of the interval of a calibrated model.
    confidence_level : float
        Its level.
    """

    gold: int
    n: int
    worth: float
    r_squared: float
    length: float
    confidence_level: float

    def __int__(self) -> int:
        return self.gold

    def __str__(self) -> str:
        return (
            f"{self.gold:,} gold labels in {self.n:,} judged rows are worth {self.worth:,.0f} true labels "
            f"(R^2 {self.r_squared:.2f}): the {self.confidence_level:.0%} interval of a calibrated model is "
            f"{self.length:g} long on average."
        )


def plan_gold_labels(
    length: float,
    n: int,
    *,
    sensitivity: float,
    specificity: float,
    scores: ScoreDistribution | None = None,
    confidence_level: float = 0.95,
    repeats: int = 60,
) -> GoldPlan:
    r"""Return the number of gold labels with which the interval of `truecal.labels.judged` has a given mean length.

    The length is that of a calibrated model, found by simulation with true labels; :math:`R^2` follows from the
    sensitivity and specificity of the judge and the scores.

    Parameters
    ----------
    length : float
        Wanted mean length of the interval of the l2 error.
    n : int
        Number of rows that the judge labels.
    sensitivity, specificity : float
        Expected probability that the judge is right about positives and about negatives.
    scores : ScoreDistribution, optional
        Expected distribution of the scores; uniform by default.
    confidence_level : float
        Level of the interval.
    repeats : int
        Simulated data sets for each number of labels.

    Returns
    -------
    GoldPlan

    Examples
    --------
    >>> from truecal.simulation import plan_gold_labels
    >>> plan = plan_gold_labels(0.08, 3000, sensitivity=0.95, specificity=0.9, repeats=10)
    >>> plan.gold < plan.worth
    True
    """
    check_real("length", length, above=0, at_most=1)
    n = check_count("n", n, at_least=_FEWEST_GOLD)
    check_fraction("confidence_level", confidence_level)
    check_count("repeats", repeats)
    scores = UniformScores() if scores is None else scores
    explained = explained_by_judge(
        scores,
        check_real("sensitivity", sensitivity, at_least=0, at_most=1),
        check_real("specificity", specificity, at_least=0, at_most=1),
    )
    needed = labels_for_length(length, scores, confidence_level, repeats)
    if needed > n:
        raise InputError(
            f"is too short for {n:,} rows: about {needed:,.0f} would need true labels",
            argument="length",
            value=length,
            remedy="Judge more rows, or accept a longer interval.",
        )
    gold = max(_FEWEST_GOLD, math.ceil(needed * (1 - explained) / (1 - needed * explained / n)))
    gold = min(gold, n)
    return GoldPlan(gold, n, gold / (1 - (1 - gold / n) * explained), explained, length, confidence_level)


def explained_by_judge(scores: ScoreDistribution, sensitivity: float, specificity: float) -> float:
    r"""Return :math:`R^2 = 1 - E[\mathrm{Var}(y \mid j, f)] / E[f (1 - f)]` for calibrated scores f."""
    a, b = sensitivity, specificity

    def left(score: FloatArray, complement: FloatArray) -> FloatArray:
        yes, no = a * score + (1 - b) * complement, (1 - a) * score + b * complement
        noise = np.zeros_like(score)
        for said, right, wrong in (
            (yes, a * score, (1 - b) * complement),
            (no, (1 - a) * score, b * complement),
        ):
            noise += np.divide(right * wrong, said, out=np.zeros_like(score), where=said > 0)
        return noise

    return 1 - scores.expect(left) / scores.expect(lambda score, complement: score * complement)


@lru_cache(maxsize=64)
def labels_for_length(
    length: float, scores: ScoreDistribution, confidence_level: float, repeats: int
) -> float:
    """Return the number of true labels with which the interval of a calibrated model has this mean length."""
    population = Population(scores, IdentityCurve())

    def mean_length(n: int) -> float:
        draws = (population.sample(n, rng=seed) for seed in range(repeats))
        intervals = (confidence_interval(y, p, confidence_level=confidence_level) for y, p in draws)
        return float(np.mean([interval.high - interval.low for interval in intervals]))

    low, high = float(_FEWEST), 4.0 * _FEWEST
    while mean_length(round(high)) > length:
        low, high = high, 4 * high
        if high > _MOST:
            raise InputError(f"would need more than {_MOST:,} true labels", argument="length", value=length)
    while high / low > 1 + _PRECISION:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if mean_length(round(middle)) > length else (low, middle)
    return math.sqrt(low * high)
