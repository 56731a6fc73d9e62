r"""The distances between predicted and observed risk that clinical papers report: ICI, E50, E90 and Emax.

With the calibration curve :math:`\mu(f) = P(y = 1 \mid f)`, these describe the distribution of
:math:`|f - \mu(f)|` over the rows: its mean is the *integrated calibration index* (ICI, also called Eavg), its median
E50, its 90th percentile E90 and its largest value Emax (Austin and Steyerberg 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import check_fraction
from truecal._lib.types import FloatArray
from truecal.data.question import Question, as_sample
from truecal.data.reading import Reading, takes_predictions
from truecal.data.sample import Sample
from truecal.inference.dependence import warn_of_dependence
from truecal.inference.interval import interval_of
from truecal.multiscale import analyse
from truecal.results import Interval, Result


@dataclass(frozen=True)
class CalibrationIndex(Result):
    """Distances between predicted and observed risk.

    Attributes
    ----------
    ici : float
        Integrated calibration index: the l1 calibration error.
    interval : Interval
        Confidence interval of `ici`.
    e50, e90, emax : float
        Median, 90th percentile and largest value of the distance between score and estimated curve, over the rows.
        They have no interval: a quantile of an estimated curve depends on how smooth the curve is taken to be.
    n : int or float
        Number of rows, or total weight.
    target : str
        What the scores are probabilities of.
    """

    ici: float
    interval: Interval
    e50: float
    e90: float
    emax: float
    n: float
    target: str

    def __float__(self) -> float:
        return self.ici

    def __str__(self) -> str:
        return (
            f"ICI {self.ici:.4f}, {self.interval}\n"
            f"E50 {self.e50:.4f}, E90 {self.e90:.4f}, Emax {self.emax:.4f}"
        )


@takes_predictions
def calibration_index(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    **reading: Unpack[Reading],
) -> CalibrationIndex:
    r"""Estimate ICI, E50, E90 and Emax of predicted risks.

    R packages compute these numbers from a loess curve, and so report the noise of the curve as distance: a
    calibrated model has an ICI above 0. Here the ICI is the debiased l1 error of the `multiscale` estimator, with its
    confidence interval. The quantiles are those of the estimated curve, scaled so that its mean distance is the ICI; if
    there is no evidence against calibration, all four are close to 0.

    Parameters
    ----------
    {predictions}
    confidence_level : float
        Confidence level of the interval.
    {reading}

    Returns
    -------
    CalibrationIndex

    References
    ----------
    Austin, Steyerberg (2019), The integrated calibration index (ICI) and related metrics for quantifying the
    calibration of logistic regression models, Statistics in Medicine 38.

    Examples
    --------
    >>> import truecal
    >>> population = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    >>> index = truecal.calibration_index(*population.sample(5000, rng=0))
    >>> population.true_error(norm=1) in index.interval
    True
    >>> [round(value, 2) for value in (index.ici, index.e50, index.emax)]
    [0.16, 0.18, 0.24]
    """
    check_fraction("confidence_level", confidence_level)
    sample = as_sample(y_true, y_proba, **reading)
    warn_of_dependence(sample)
    core = analyse(sample)
    ici = core.error(1)
    distance, weight = np.abs(core.gap), core.weight
    mean = float(weight @ distance) / float(weight.sum())
    if mean > 0:
        distance = distance * (ici / mean)
    most = np.maximum(core.score, 1 - core.score)  # no curve is farther from the score
    e50, e90, emax = _quantiles(np.minimum(distance, most), weight, (0.5, 0.9, 1.0))
    return CalibrationIndex(
        ici, interval_of(Question((sample,)), 1, confidence_level), e50, e90, emax, sample.n, sample.target
    )


def _quantiles(values: FloatArray, weight: FloatArray, levels: Sequence[float]) -> list[float]:
    """Return weighted quantiles: the smallest value with at least that share of the weight at or below it."""
    order = np.argsort(values)
    share = np.cumsum(weight[order])
    place = np.searchsorted(share, np.asarray(levels) * share[-1] * (1 - 1e-12))
    return [float(value) for value in values[order][np.minimum(place, len(values) - 1)]]
