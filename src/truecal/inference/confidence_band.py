r"""Confidence bands of a calibration curve: where the true curve may lie, given the data.

A *consistency* band (`truecal.reliability_curve`) shows where the estimated curve would lie if the model were
calibrated. A *confidence* band shows where the true curve lies. For bins both kinds of confidence band are
Clopper-Pearson intervals of the mean label. For the isotonic curve they rest on one idea (Dimitriadis et al. 2023): if
the curve rises, its mean over the rows below a score is not above its value there, and its mean over the rows above is
not below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import check_choice, check_fraction
from truecal._lib.types import FloatArray
from truecal.data.question import as_sample, refuse_clusters, refuse_imperfect
from truecal.data.reading import Reading, takes_predictions
from truecal.data.sample import Sample
from truecal.exceptions import InputError
from truecal.inference.reliability import Reliability, clopper_pearson
from truecal.multiscale import band as rising_band
from truecal.results import Result

KINDS = ("pointwise", "simultaneous")


@dataclass(frozen=True, eq=False)
class ConfidenceBand(Result):
    """Lower and upper limits of the true calibration curve.

    Attributes
    ----------
    score : ndarray of shape (k,)
        Scores in ascending order.
    lower, upper : ndarray of shape (k,)
        Limits of the observed frequency in the long run at each score, or of its mean over each bin.
    kind : {"pointwise", "simultaneous"}
        Whether the confidence level holds at each score, or at all of them together.
    confidence_level : float
        The confidence level.
    assumption : str
        What is assumed about the curve.
    """

    score: FloatArray
    lower: FloatArray
    upper: FloatArray
    kind: str
    confidence_level: float
    assumption: str


@takes_predictions
def confidence_band(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    kind: str = "simultaneous",
    confidence_level: float = 0.95,
    **reading: Unpack[Reading],
) -> ConfidenceBand:
    r"""Return a confidence band for a rising calibration curve.

    ``"pointwise"``: at each score, the lower Clopper-Pearson limit of the mean label of the :math:`n^{2/3}` rows at
    and below that score, and the upper limit of as many at and above it. ``"simultaneous"``: the best of the limits
    from all intervals of a grid, with the error probability divided among them, so that the whole curve lies inside
    with the stated probability. Both are guaranteed in samples of any size if the curve rises.

    Parameters
    ----------
    {predictions}
    kind : {"pointwise", "simultaneous"}
        What the level refers to.
    confidence_level : float
        The confidence level.
    {weights}
        Weights must be counts.
    clusters : array-like, optional
        Not supported: the limits are for independent rows.
    {classes}

    Returns
    -------
    ConfidenceBand

    References
    ----------
    Dimitriadis et al. (2023), Biometrika; see `truecal.confidence_interval`.

    Examples
    --------
    >>> import truecal
    >>> from truecal.inference.confidence_band import confidence_band
    >>> population = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    >>> band = confidence_band(*population.sample(2000, rng=0))
    >>> bool(((band.lower <= band.score**2) & (band.score**2 <= band.upper)).all())
    True
    """
    check_choice("kind", kind, KINDS)
    tail = 1 - check_fraction("confidence_level", confidence_level)
    sample = as_sample(y_true, y_proba, **reading)
    _check_independent(sample)
    lower, upper = rising_band(sample, tail) if kind == "simultaneous" else _windows(sample, tail)
    # A limit beyond the estimate would be of no use to a reader, and moving it away keeps the guarantee.
    lower, upper = np.minimum(lower, sample.isotonic), np.maximum(upper, sample.isotonic)
    kept = _corners(lower, upper)
    return ConfidenceBand(
        sample.score[kept], lower[kept], upper[kept], kind, confidence_level, "the curve rises"
    )


def bin_confidence_band(curve: Reliability, kind: str) -> ConfidenceBand:
    """Return Clopper-Pearson intervals of the bins of a curve, for each or for all of them together.

    Parameters
    ----------
    curve : Reliability
        The curve.
    kind : {"pointwise", "simultaneous"}
        What the level refers to; ``"simultaneous"`` divides the error probability among the bins (Bonferroni).
    """
    check_choice("kind", kind, KINDS)
    share = 1 if kind == "pointwise" else len(curve.bins)
    count = curve.bins.count
    lower, upper = clopper_pearson(
        count * curve.bins.mean_label, count, 1 - (1 - curve.confidence_level) / share
    )
    return ConfidenceBand(
        curve.bins.mean_score,
        lower,
        upper,
        kind,
        curve.confidence_level,
        "none; limits are of the mean of each bin",
    )


def _check_independent(sample: Sample) -> None:
    refuse_clusters(sample, "a confidence band")
    refuse_imperfect(sample, "a confidence band")
    if sample.squares is not None or not sample.whole:
        raise InputError(
            "must be counts for a confidence band, which needs independent rows",
            argument="sample_weight",
            remedy="Leave it out, or pass whole numbers with weighting='counts'.",
        )


def _windows(sample: Sample, tail: float) -> tuple[FloatArray, FloatArray]:
    """Return limits from the rows at and below each score, and at and above it."""
    rows = np.concatenate([[0.0], np.cumsum(sample.count)])
    ones = np.concatenate([[0.0], np.cumsum(sample.positives)])
    width = sample.n ** (2 / 3)
    # Windows depend on the scores alone. Each ends with a whole group, so it holds at least `width` rows if it can.
    here = np.arange(len(sample))
    first = np.clip(np.searchsorted(rows, rows[1:] - width, side="right") - 1, 0, here)
    last = np.clip(np.searchsorted(rows, rows[:-1] + width, side="left"), here + 1, len(sample))
    level = 1 - tail
    lower, _ = clopper_pearson(ones[here + 1] - ones[first], rows[here + 1] - rows[first], level)
    _, upper = clopper_pearson(ones[last] - ones[here], rows[last] - rows[here], level)
    return lower, upper


def _corners(lower: FloatArray, upper: FloatArray) -> Any:
    """Return which points are needed to draw the band: those where it changes, at most about a thousand."""
    change = (np.diff(lower) != 0) | (np.diff(upper) != 0)
    kept = np.flatnonzero(np.append(change, True) | np.append(True, change))
    return kept[np.unique(np.linspace(0, len(kept) - 1, min(len(kept), 1000)).astype(int))]
