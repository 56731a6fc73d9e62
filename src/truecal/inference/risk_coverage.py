r"""Selective prediction: answer only where confidence is high, and see how the accuracy rises.

At threshold t the coverage is the share of rows with a score of at least t, and the selective accuracy is the share of
correct ones among them. Risk is one minus accuracy. The area under the risk-coverage curve (AURC) is the mean risk over
all coverages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from truecal._lib.checks import check_fraction
from truecal._lib.text import level, percent
from truecal._lib.types import FloatArray
from truecal.data.question import as_sample
from truecal.data.reading import Reading, takes_predictions
from truecal.data.sample import Clusters, Sample
from truecal.exceptions import InputError
from truecal.results import Result


@dataclass(frozen=True, eq=False)
class RiskCoverage(Result):
    """Accuracy of the most confident rows, for every threshold of the score.

    Attributes
    ----------
    threshold : ndarray of shape (k,)
        Distinct scores in descending order; rows with at least this score are answered.
    coverage : ndarray of shape (k,)
        Share of the rows that are answered.
    accuracy : ndarray of shape (k,)
        Share of correct ones among them: the selective accuracy.
    mean_score : ndarray of shape (k,)
        Their mean score, which is the accuracy that a calibrated model would have.
    lower, upper : ndarray of shape (k,)
        Pointwise confidence interval of the accuracy (Wilson's, with the effective number of rows of clusters or
        sampling weights).
    aurc : float
        Area under the risk-coverage curve; smaller is better.
    confidence_level : float
        Level of the intervals.
    n : int or float
        Number of rows, or total weight.
    target : str
        What the scores are probabilities of.
    """

    threshold: FloatArray
    coverage: FloatArray
    accuracy: FloatArray
    mean_score: FloatArray
    lower: FloatArray
    upper: FloatArray
    aurc: float
    confidence_level: float
    n: float
    target: str

    @property
    def risk(self) -> FloatArray:
        """One minus the accuracy."""
        return np.asarray(1 - self.accuracy)

    def at(self, coverage: float) -> dict[str, float]:
        """Return threshold, coverage, accuracy, mean score and interval at the largest coverage up to the given one.

        Equal scores are answered together, so the exact coverage may not be possible.

        Parameters
        ----------
        coverage : float
            Share of rows to answer, above 0 and at most 1.
        """
        if not 0 < coverage <= 1:
            raise InputError(f"must be above 0 and at most 1. Got {coverage} instead", argument="coverage")
        place = max(int(np.searchsorted(self.coverage, coverage + 1e-12, side="right")) - 1, 0)
        names = ("threshold", "coverage", "accuracy", "mean_score", "lower", "upper")
        return {name: float(getattr(self, name)[place]) for name in names}

    def __str__(self) -> str:
        lines = [f"Selective accuracy of {self.target}, n = {self.n:.10g}, AURC {self.aurc:.4f}"]
        for share in (1.0, 0.8, 0.5):
            at = self.at(share)
            interval = f"{percent(at['lower'])} to {percent(at['upper'])} ({level(self.confidence_level)})"
            lines.append(
                f"  score >= {at['threshold']:.3g}: coverage {percent(at['coverage'])}, "
                f"accuracy {percent(at['accuracy'])}, {interval}"
            )
        return "\n".join(dict.fromkeys(lines))


@takes_predictions
def risk_coverage(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    **reading: Unpack[Reading],
) -> RiskCoverage:
    """Return the accuracy of the most confident rows as a function of how many are answered.

    For a language model the labels say whether each answer is correct, and the scores are its confidences.

    Parameters
    ----------
    {predictions}
    confidence_level : float
        Level of the intervals.
    {reading}

    Returns
    -------
    RiskCoverage

    References
    ----------
    Geifman, El-Yaniv (2017), Selective classification for deep neural networks, NeurIPS; Wilson (1927), JASA.

    Examples
    --------
    >>> from truecal.inference.risk_coverage import risk_coverage
    >>> curve = risk_coverage([1, 1, 1, 0, 1, 0], [0.9, 0.9, 0.8, 0.8, 0.6, 0.5])
    >>> curve.coverage.round(2), curve.accuracy.round(2)
    (array([0.33, 0.67, 0.83, 1.  ]), array([1.  , 0.75, 0.8 , 0.67]))
    >>> round(curve.at(0.7)["accuracy"], 2)
    0.75
    """
    z = float(ndtri(0.5 + check_fraction("confidence_level", confidence_level) / 2))
    sample = as_sample(y_true, y_proba, **reading)
    score, count, positives = sample.score[::-1], sample.count[::-1], sample.positives[::-1]
    kept = np.cumsum(count)
    accuracy = np.minimum(np.cumsum(positives) / kept, 1.0)
    effective = kept**2 / np.cumsum(sample.weight2[::-1])
    if sample.clusters is not None:
        effective = _effective_sizes(sample.clusters, kept, accuracy, effective)
    center = (accuracy + z**2 / (2 * effective)) / (1 + z**2 / effective)
    half = (
        z
        * np.sqrt(accuracy * (1 - accuracy) / effective + z**2 / (4 * effective**2))
        / (1 + z**2 / effective)
    )
    return RiskCoverage(
        threshold=score.astype(np.float64),
        coverage=kept / sample.n,
        accuracy=accuracy,
        mean_score=np.cumsum(score * count) / kept,
        lower=np.maximum(center - half, 0.0),
        upper=np.minimum(center + half, 1.0),
        aurc=float(count @ (1 - accuracy) / sample.n),
        confidence_level=confidence_level,
        n=sample.n,
        target=sample.target,
    )


def _effective_sizes(table: Clusters, kept: FloatArray, accuracy: FloatArray, most: FloatArray) -> FloatArray:
    """Return how many independent rows have the variance of each accuracy; never more than the rows or clusters say.

    The variance is sum r_c^2 C / (C - 1) / kept^2 with r_c = hits_c - accuracy rows_c, whose three sums of squares
    grow entry by entry as the threshold falls.
    """
    # By cluster, and within it from the highest score down: what a cluster has before and after each entry.
    order = np.lexsort((-table.group, table.cluster))
    cluster, place = table.cluster[order], len(kept) - 1 - table.group[order]
    is_first = np.append(True, cluster[1:] != cluster[:-1])
    run = np.cumsum(is_first) - 1
    after, before = [], []
    for column in (table.weight[order], table.positives[order]):
        total = np.cumsum(column)
        start = (total - column)[is_first]
        after.append(total - start[run])
        before.append(after[-1] - column)

    def grown(entries: FloatArray) -> FloatArray:
        return np.cumsum(np.bincount(place, entries, len(kept)))

    rows, both, hits = (
        grown(after[i] * after[j] - before[i] * before[j]) for i, j in ((0, 0), (0, 1), (1, 1))
    )
    n_clusters = grown(is_first.astype(np.float64))
    squares = np.maximum(hits - 2 * accuracy * both + accuracy**2 * rows, 0.0)
    variance = squares * n_clusters / np.maximum(n_clusters - 1, 1) / kept**2
    spread = accuracy * (1 - accuracy)
    # With accuracy 0 or 1 there is no variance to see, so clusters count as rows.
    seen = variance > 1e-12 * np.maximum(spread, 1e-12)
    return np.where(
        seen, np.minimum(spread / np.where(seen, variance, 1.0), most), np.minimum(n_clusters, most)
    )
