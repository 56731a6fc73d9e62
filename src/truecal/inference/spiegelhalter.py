"""Spiegelhalter's test: whether squared errors are as large as the probabilities imply."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from truecal._lib.text import p_equals
from truecal._lib.types import FloatArray
from truecal.data.predictions import as_samples, read_rows, refuse_clusters
from truecal.data.sample import Sample
from truecal.inference.resample import require_whole_counts
from truecal.results import Result


@dataclass(frozen=True)
class SpiegelhalterResult(Result):
    """Spiegelhalter's test of calibration.

    Attributes
    ----------
    statistic : float
        Z, standard normal for a calibrated model and large n. Positive where the squared errors are larger than
        the probabilities imply: the model is overconfident. Negative where they are smaller. Infinite where a
        score of 0 or 1 was wrong and no other score has any variance.
    pvalue : float
        Two-sided.
    n : int
        Number of rows.
    target : str
        What the scores are probabilities of.
    """

    statistic: float
    pvalue: float
    n: float
    target: str

    def __str__(self) -> str:
        return f"Spiegelhalter's Z = {self.statistic:.2f}, {p_equals(self.pvalue)}"


def spiegelhalter_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
    clusters: Any = None,
) -> SpiegelhalterResult:
    r"""Test whether the squared errors are as large as the probabilities imply.

    Under perfect calibration the Brier score has a known mean and variance, and

    .. math:: Z = \frac{\sum_i (y_i - f_i)(1 - 2 f_i)}{\sqrt{\sum_i (1 - 2 f_i)^2 f_i (1 - f_i)}}

    is standard normal for large n (n must be larger where scores are near 0 and 1, so that few labels
    vary). The test costs one pass, and it cannot detect errors that balance out in the Brier score, as when
    a model is overconfident on one side and underconfident on the other. Scores of 0, 1/2 and 1 add nothing to
    the variance: where there are no others, Z is infinite if a score of 0 or 1 was wrong, and else 0 with a
    p-value of 1.

    For K classes (``multiclass="classwise"``) it is the Brier score over all of them, with

    .. math:: Z = \frac{\sum_i \sum_k (y_{ik} - f_{ik})(1 - 2 f_{ik})}
              {2 \sqrt{\sum_i \big[\sum_k f_{ik}^3 - (\sum_k f_{ik}^2)^2\big]}} .

    Parameters
    ----------
    y_true : array-like of shape (n,), (n, 1) or one-hot (n, K), or Sample
        Labels; or a `Sample` in place of labels and probabilities.
    y_proba : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities.
    sample_weight, pos_label, labels, multiclass
        As for `truecal.calibration_test`.
    clusters : array-like, optional
        Not supported: the variance is that of independent rows.

    Returns
    -------
    SpiegelhalterResult

    References
    ----------
    Spiegelhalter (1986), Probabilistic prediction in patient management and clinical trials, Statistics in
    Medicine 5, 421-433, section 4.

    Examples
    --------
    >>> print(spiegelhalter_test([0, 1, 0, 0], [0.1, 0.6, 0.8, 0.9]))
    Spiegelhalter's Z = 2.44, p = 0.015
    """
    reading = {
        "sample_weight": sample_weight,
        "pos_label": pos_label,
        "labels": labels,
        "multiclass": multiclass,
        "clusters": clusters,
    }
    samples = as_samples(y_true, y_proba, **reading)
    for sample in samples:
        refuse_clusters(sample, "Spiegelhalter's test")
        require_whole_counts(sample, "Spiegelhalter's test")
    if len(samples) == 1:
        return z_of(samples[0])
    return z_of_classes(samples, rows_of_classes(y_true, y_proba, reading))


def z_of(sample: Sample) -> SpiegelhalterResult:
    """Return the test of one sample."""
    slope = 1 - 2 * sample.score
    excess = _excess(sample)
    variance = float(np.sum(sample.count * slope**2 * sample.score * (1 - sample.score)))
    return _z_test(excess, variance, sample.n, sample.target)


def z_of_classes(samples: tuple[Sample, ...], proba: FloatArray) -> SpiegelhalterResult:
    """Return the test of all classes together, whose rows of probabilities are `proba`."""
    # The excess of a row is -2 (f_Y - sum f^2), with f_Y the probability of the class that it has.
    excess = sum(_excess(sample) for sample in samples)
    square = (proba**2).sum(axis=1)
    spread = (proba**3).sum(axis=1) - square**2
    # Rows that are sure of a class, or equal in all they name, have no spread but for rounding.
    variance = 4 * float(spread[spread > 1e-14].sum())
    target = f"mean over {len(samples)} classes, each against the rest"
    return _z_test(excess, variance, samples[0].n, target)


def _excess(sample: Sample) -> float:
    """Return by how much the sum of squared errors exceeds its mean under calibration."""
    return float(np.sum((sample.positives - sample.count * sample.score) * (1 - 2 * sample.score)))


def _z_test(excess: float, variance: float, n: float, target: str) -> SpiegelhalterResult:
    if variance > 0:
        z = excess / math.sqrt(variance)
    else:
        # Without variance any excess beyond rounding is an outcome that the scores had ruled out.
        z = math.copysign(math.inf, excess) if abs(excess) > 1e-9 * n else 0.0
    return SpiegelhalterResult(statistic=z, pvalue=2 * float(ndtr(-abs(z))), n=n, target=target)


def rows_of_classes(y_true: Any, y_proba: Any, reading: Mapping[str, Any]) -> FloatArray:
    """Return the probabilities of all classes, row by row; a row of weight 2 comes twice."""
    classes = read_rows(y_true, y_proba, **reading)
    proba = np.column_stack([rows.score for rows in classes]).astype(np.float64)
    weight = classes[0].weight
    return proba if weight is None else np.repeat(proba, weight.astype(np.intp), axis=0)
