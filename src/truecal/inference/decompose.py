"""Decomposition of a proper score into miscalibration, discrimination and uncertainty (CORP)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from truecal._lib.checks import check_choice
from truecal.data.predictions import as_sample, no_use_for_clusters
from truecal.data.reading import Reading, takes_predictions
from truecal.data.sample import Sample
from truecal.results import Result

SCORES = ("brier", "log_loss")


@dataclass(frozen=True)
class Decomposition(Result):
    r"""A mean score, smaller is better, split as ``score = miscalibration - discrimination + uncertainty``.

    Attributes
    ----------
    name : str
        ``"brier"`` or ``"log_loss"``.
    score : float
        Mean score of the predictions; infinite for the log loss if an event with probability 0 occurred.
    miscalibration : float
        What recalibration by isotonic regression would gain on these rows.
    discrimination : float
        What the recalibrated scores gain over always predicting the base rate.
    uncertainty : float
        Mean score of always predicting the base rate.
    """

    name: str
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float

    def __str__(self) -> str:
        return (
            f"{self.name} {self.score:.4f} = miscalibration {self.miscalibration:.4f} "
            f"- discrimination {self.discrimination:.4f} + uncertainty {self.uncertainty:.4f}"
        )


@takes_predictions
def decompose(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    name: str = "brier",
    **reading: Unpack[Reading],
) -> Decomposition:
    r"""Decompose the Brier score or the log loss of predictions.

    .. math:: \bar S(f) = \underbrace{\bar S(f) - \bar S(g)}_{\text{miscalibration}}
              - \underbrace{(\bar S(\bar y) - \bar S(g))}_{\text{discrimination}}
              + \underbrace{\bar S(\bar y)}_{\text{uncertainty}}

    with g the isotonic regression of the labels on the scores. All three parts are never negative.

    Parameters
    ----------
    {predictions}
    name : {"brier", "log_loss"}
        Which score to decompose.
    {reading}
    clusters : None
        Refused: no uncertainty is reported, so clusters would have no effect.

    Returns
    -------
    Decomposition

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers, PNAS.

    Examples
    --------
    >>> print(decompose([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9]))
    brier 0.1850 = miscalibration 0.0600 - discrimination 0.1250 + uncertainty 0.2500
    """
    check_choice("name", name, SCORES)
    no_use_for_clusters(reading.pop("clusters", None), "decompose")
    sample = as_sample(y_true, y_proba, **reading)
    loss = _brier if name == "brier" else _log_loss
    rate = np.full(len(sample), sample.positives.sum() / sample.n)
    given, constant = loss(sample, sample.score), loss(sample, rate)
    recalibrated = loss(sample, sample.isotonic)
    return Decomposition(name, given, given - recalibrated, constant - recalibrated, constant)


def _brier(sample: Sample, score: NDArray[np.float64]) -> float:
    total = sample.positives * (1 - score) ** 2 + (sample.count - sample.positives) * score**2
    return float(total.sum() / sample.n)


def _log_loss(sample: Sample, score: NDArray[np.float64]) -> float:
    with np.errstate(divide="ignore"):
        total = xlogy(sample.positives, score) + xlogy(sample.count - sample.positives, 1 - score)
    return float(-total.sum() / sample.n)
