"""What a proper score is made of: miscalibration, discrimination and uncertainty (CORP)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from truecal._lib.checks import check_choice
from truecal._lib.isotonic import isotonic_rate
from truecal.data.sample import Sample
from truecal.results import SCHEMA_VERSION

SCORES = ("brier", "log_loss")


@dataclass(frozen=True)
class Decomposition:
    r"""A mean score, less is better, split as ``score = miscalibration - discrimination + uncertainty``.

    Attributes
    ----------
    name : str
        ``"brier"`` or ``"log_loss"``.
    score : float
        Mean score of the predictions; infinite for the log loss if a score of 0 came true.
    miscalibration : float
        What recalibration by isotonic regression would gain on these rows.
    discrimination : float
        What the recalibrated scores gain over always saying the base rate.
    uncertainty : float
        Mean score of always saying the base rate.
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

    def to_dict(self) -> dict[str, float | str]:
        """Return the parts as plain numbers."""
        parts = ("name", "score", "miscalibration", "discrimination", "uncertainty")
        return {"schema_version": SCHEMA_VERSION, **{part: getattr(self, part) for part in parts}}


def decompose(sample: Sample, name: str = "brier") -> Decomposition:
    r"""Decompose the Brier score or the log loss of a sample.

    .. math:: \bar S(f) = \underbrace{\bar S(f) - \bar S(g)}_{\text{miscalibration}}
              - \underbrace{(\bar S(\bar y) - \bar S(g))}_{\text{discrimination}}
              + \underbrace{\bar S(\bar y)}_{\text{uncertainty}}

    with g the isotonic regression of the labels on the scores. All three parts are never negative.

    Parameters
    ----------
    sample : Sample
        The predictions.
    name : {"brier", "log_loss"}
        Which score to decompose.

    Returns
    -------
    Decomposition

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers, PNAS.

    Examples
    --------
    >>> from truecal.data import read
    >>> (sample,) = read([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])
    >>> print(decompose(sample))
    brier 0.1850 = miscalibration 0.0600 - discrimination 0.1250 + uncertainty 0.2500
    """
    check_choice("name", name, SCORES)
    loss = _brier if name == "brier" else _log_loss
    rate = np.full(len(sample), sample.positives.sum() / sample.n)
    given, constant = loss(sample, sample.score), loss(sample, rate)
    recalibrated = loss(sample, isotonic_rate(sample.count, sample.positives))
    return Decomposition(name, given, given - recalibrated, constant - recalibrated, constant)


def _brier(sample: Sample, score: NDArray[np.float64]) -> float:
    total = sample.positives * (1 - score) ** 2 + (sample.count - sample.positives) * score**2
    return float(total.sum() / sample.n)


def _log_loss(sample: Sample, score: NDArray[np.float64]) -> float:
    with np.errstate(divide="ignore"):
        total = xlogy(sample.positives, score) + xlogy(sample.count - sample.positives, 1 - score)
    return float(-total.sum() / sample.n)
