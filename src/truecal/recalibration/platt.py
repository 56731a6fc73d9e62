"""Platt scaling: a logistic curve over the logit of the score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from truecal._lib.checks import check_choice
from truecal._lib.logistic import fit_logistic, logistic_objective
from truecal._lib.types import FloatArray
from truecal.recalibration._base import PerClassRecalibrator, unless_worse
from truecal.recalibration._scores import Column

#: Bounds of slope and intercept, which only keep their products with logits finite.
_FAR = 1e12


@dataclass(frozen=True)
class LogisticMap:
    """The curve sigmoid(slope * logit + intercept)."""

    slope: float
    intercept: float

    def __call__(self, column: Column) -> FloatArray:
        """Return the curve at each score."""
        return np.asarray(expit(self.slope * column.logit + self.intercept))


class PlattScaling(PerClassRecalibrator):
    r"""Fit a logistic curve to the logit of the score.

    .. math:: q(s) = \sigma(a z + b) , \qquad z = \log\frac{s}{1 - s}\ \text{or the logit itself}

    by maximum likelihood. Slope 1 and intercept 0 leave the score as it is. The slope may come out
    negative if labels fall as scores rise.

    Several classes are fitted each against the rest, and rows are divided by their sum.

    Parameters
    ----------
    targets : {"smoothed", "labels"}
        ``"smoothed"``, as Platt has it: labels are taken as (n1 + 1)/(n1 + 2) and 1/(n0 + 2) instead of 1
        and 0, for n1 and n0 rows (or total weights) of each. It keeps the curve finite where scores tell
        the labels apart without error, or where there is one class only. ``"labels"`` is logistic
        regression.
    input : {"probabilities", "logits"}
        What the scores are. Probabilities of exactly 0 and 1 count as no more than the rows can show (see
        `floor_`). Margins of a support vector machine count as logits.

    Attributes
    ----------
    maps_ : tuple of LogisticMap
        Slope and intercept; one for two classes, K for K > 2.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines and comparisons to regularized
    likelihood methods, Advances in Large Margin Classifiers.

    Examples
    --------
    >>> from truecal.recalibration import PlattScaling
    >>> curve = PlattScaling().fit([0.1, 0.2, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1])
    >>> curve.transform([0.5, 0.99]).round(3)
    array([0.41 , 0.887])
    """

    maps_: tuple[LogisticMap, ...]

    def __init__(self, targets: str = "smoothed", input: str = "probabilities") -> None:
        self.targets = targets
        self.input = input

    def _check_parameters(self) -> None:
        check_choice("targets", self.targets, ("smoothed", "labels"))

    def _fit_map(self, column: Column, label: NDArray[np.bool_], weight: FloatArray | None) -> LogisticMap:
        target = label.astype(np.float64)
        if self.targets == "smoothed":
            total = float(len(label)) if weight is None else float(weight.sum())
            positive = float(label.sum()) if weight is None else float(weight @ label)
            target = np.where(label, (positive + 1) / (positive + 2), 1 / (total - positive + 2))
        features = np.stack([column.logit, np.ones(len(label))]).T
        data = (features, 0.0, *((1.0, target) if weight is None else (weight, weight * target)))
        identity = np.array([1.0, 0.0])
        fit = fit_logistic(*data, start=identity, lower=-_FAR, upper=_FAR)
        slope, intercept = unless_worse(fit.x, fit.value, identity, logistic_objective(*data)(identity)[0])
        return LogisticMap(float(slope), float(intercept))
