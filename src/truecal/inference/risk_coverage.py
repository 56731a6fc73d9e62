r"""Selective prediction: answer only where confidence is high, and see how the accuracy rises.

At threshold t the coverage is the share of rows with a score of at least t, and the selective accuracy is the share of
correct ones among them. Risk is one minus accuracy. The area under the risk-coverage curve (AURC) is the mean risk over
all coverages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from truecal._lib.checks import check_fraction
from truecal._lib.text import level, percent
from truecal._lib.types import FloatArray
from truecal.data import read_rows
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
    lower, upper : ndarray of shape (k,)
        Pointwise confidence interval of the accuracy (Wilson's, with the effective number of rows of clusters).
    aurc : float
        Area under the risk-coverage curve; smaller is better.
    confidence_level : float
        Level of the intervals.
    n : int
        Number of rows.
    target : str
        What the scores are probabilities of.
    """

    threshold: FloatArray
    coverage: FloatArray
    accuracy: FloatArray
    lower: FloatArray
    upper: FloatArray
    aurc: float
    confidence_level: float
    n: int
    target: str

    @property
    def risk(self) -> FloatArray:
        """One minus the accuracy."""
        return np.asarray(1 - self.accuracy)

    def at(self, coverage: float) -> dict[str, float]:
        """Return threshold, coverage, accuracy and its interval at the largest coverage up to the given one.

        Equal scores are answered together, so the exact coverage may not be possible.

        Parameters
        ----------
        coverage : float
            Share of rows to answer, above 0 and at most 1.
        """
        if not 0 < coverage <= 1:
            raise InputError(f"must be above 0 and at most 1. Got {coverage} instead", argument="coverage")
        place = max(int(np.searchsorted(self.coverage, coverage + 1e-12, side="right")) - 1, 0)
        names = ("threshold", "coverage", "accuracy", "lower", "upper")
        return {name: float(getattr(self, name)[place]) for name in names}

    def __str__(self) -> str:
        lines = [f"Selective accuracy of {self.target}, n = {self.n}, AURC {self.aurc:.4f}"]
        for share in (1.0, 0.8, 0.5):
            at = self.at(share)
            interval = f"{percent(at['lower'])} to {percent(at['upper'])} ({level(self.confidence_level)})"
            lines.append(
                f"  score >= {at['threshold']:.3g}: coverage {percent(at['coverage'])}, "
                f"accuracy {percent(at['accuracy'])}, {interval}"
            )
        return "\n".join(dict.fromkeys(lines))


def risk_coverage(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    confidence_level: float = 0.95,
    labels: Sequence[Any] | None = None,
    clusters: Any = None,
) -> RiskCoverage:
    """Return the accuracy of the most confident rows as a function of how many are answered.

    Parameters
    ----------
    y_true : array-like
        Whether each answer is correct (0 and 1); or classes, with (n, K > 2) probabilities.
    y_proba : array-like of shape (n,) or (n, K > 2)
        Confidence in the answer; or probabilities of K classes, whose largest one is the confidence.
    confidence_level : float
        Level of the intervals.
    labels : sequence, optional
        The class of each column of `y_proba`.
    clusters : array-like of shape (n,), optional
        Rows with the same value depend on each other.

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
    reading = {"labels": labels, "clusters": clusters}
    (rows,) = read_rows(
        y_true, y_proba, **{name: value for name, value in reading.items() if value is not None}
    )
    order = np.argsort(-rows.score.astype(np.float64), kind="stable")
    score, label = rows.score[order].astype(np.float64), rows.label[order].astype(np.float64)
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True))
    kept, hits = last + 1.0, np.cumsum(label)[last]
    accuracy = hits / kept
    effective = kept
    if rows.cluster is not None:
        effective = _effective_sizes(label, rows.cluster[order], last, accuracy)
    center = (accuracy + z**2 / (2 * effective)) / (1 + z**2 / effective)
    half = (
        z
        * np.sqrt(accuracy * (1 - accuracy) / effective + z**2 / (4 * effective**2))
        / (1 + z**2 / effective)
    )
    return RiskCoverage(
        threshold=score[last],
        coverage=kept / len(score),
        accuracy=accuracy,
        lower=np.maximum(center - half, 0.0),
        upper=np.minimum(center + half, 1.0),
        aurc=float(np.diff(kept, prepend=0) @ (1 - accuracy) / len(score)),
        confidence_level=confidence_level,
        n=len(score),
        target=rows.target,
    )


def _effective_sizes(label: FloatArray, cluster: Any, last: Any, accuracy: FloatArray) -> FloatArray:
    """Return how many independent rows have the variance of each accuracy; never more than the rows or clusters say."""
    code = np.unique(cluster, return_inverse=True)[1].reshape(-1)
    effective = np.empty(len(last))
    rows, hits = np.zeros(code.max() + 1), np.zeros(code.max() + 1)
    start = 0
    for place, (end, mean) in enumerate(zip(last + 1, accuracy, strict=True)):
        np.add.at(rows, code[start:end], 1)
        np.add.at(hits, code[start:end], label[start:end])
        start = end
        n_clusters = int((rows > 0).sum())
        residual = hits - mean * rows
        # sum r_c^2 C / (C - 1) / m^2; with accuracy 0 or 1 there is no variance to see, so clusters count as rows.
        variance = float(residual @ residual) * n_clusters / max(n_clusters - 1, 1) / end**2
        effective[place] = n_clusters if variance == 0 else min(mean * (1 - mean) / variance, end)
    return effective
