"""Beta calibration: the calibration curves of scores that are Beta distributed in each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from truecal._lib.logistic import fit_logistic, logistic_objective
from truecal._lib.types import FloatArray
from truecal.recalibration._base import PerClassRecalibrator, unless_worse
from truecal.recalibration._scores import Column

#: Bound of the parameters, which only keeps their products with logarithms finite.
_FAR = 1e12


@dataclass(frozen=True)
class BetaMap:
    """The curve sigmoid(a ln s - b ln(1 - s) + c)."""

    a: float
    b: float
    c: float

    def __call__(self, column: Column) -> FloatArray:
        """Return the curve at each score."""
        log_score, log_complement = column.logs
        return np.asarray(expit(self.a * log_score - self.b * log_complement + self.c))


class BetaCalibration(PerClassRecalibrator):
    r"""Fit the three-parameter beta curve.

    .. math:: q(s) = \Big(1 + e^{-c} \frac{(1 - s)^b}{s^a}\Big)^{-1} , \qquad a, b \ge 0

    that is logit q = a ln s - b ln(1 - s) + c, by maximum likelihood. a = b = 1, c = 0 leave the score as
    it is, so a calibrated model can stay calibrated; Platt's curve over raw scores cannot do that.
    The bounds keep the curve rising, and an optimum on a bound is found exactly.

    Several classes are fitted each against the rest, and rows are divided by their sum.

    Parameters
    ----------
    input : {"probabilities", "logits"}
        What the scores are. Probabilities of exactly 0 and 1 count as no more than the rows can show (see
        `floor_`); logits keep what was lost there.

    Attributes
    ----------
    maps_ : tuple of BetaMap
        a, b and c; one for two classes, K for K > 2.

    References
    ----------
    Kull, Silva Filho, Flach (2017), Beta calibration: a well-founded and easily implemented improvement on
    logistic calibration for binary classifiers, AISTATS.

    Examples
    --------
    >>> from truecal.recalibration import BetaCalibration
    >>> curve = BetaCalibration().fit([0.1, 0.2, 0.6, 0.7, 0.9], [0, 1, 1, 0, 1])
    >>> curve.transform([0.2, 0.5, 0.99]).round(3)
    array([0.468, 0.652, 0.839])
    """

    maps_: tuple[BetaMap, ...]

    def __init__(self, input: str = "probabilities") -> None:
        self.input = input

    def _fit_map(self, column: Column, label: NDArray[np.bool_], weight: FloatArray | None) -> BetaMap:
        log_score, log_complement = column.logs
        features = np.stack([log_score, -log_complement, np.ones(len(label))]).T
        data = (features, 0.0, *((1.0, 1.0 * label) if weight is None else (weight, weight * label)))
        identity = np.array([1.0, 1.0, 0.0])
        fit = fit_logistic(*data, start=identity, lower=np.array([0.0, 0.0, -_FAR]), upper=_FAR)
        a, b, c = unless_worse(fit.x, fit.value, identity, logistic_objective(*data)(identity)[0])
        return BetaMap(float(a), float(b), float(c))
