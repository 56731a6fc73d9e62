"""Spiegelhalter's test: whether squared errors are as large as the scores imply."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
import scipy
from numpy.typing import ArrayLike

from truecal._lib.text import p_equals
from truecal.data.arrays import Reading, check_multiclass, takes_predictions
from truecal.data.clusters import variance_factor
from truecal.data.question import Question, ask
from truecal.data.sample import Sample
from truecal.inference.resample import cluster_rows, require_whole_counts
from truecal.multiscale import flip_scale
from truecal.results import Result, classes_target

#: Groups that are added up at a time: their terms stay in the cache, and no array is as long as the sample.
_BLOCK = 1 << 15


@dataclass(frozen=True)
class SpiegelhalterResult(Result):
    """Spiegelhalter's test of calibration.

    Attributes
    ----------
    statistic : float
        Z, standard normal for a calibrated model and large n. Positive where the squared errors
        are larger than the scores imply: the model is overconfident. Negative where they are smaller.
        Infinite where a score of 0 or 1 was wrong and no other score has any variance.
    pvalue : float
        Two-sided p-value.
    n : float
        Number of rows, or the total weight.
    target : str
        What the scores are probabilities of.
    n_clusters : int or None
        Number of clusters, if rows depend on each other; Z is then compared with Student's t.
    """

    statistic: float
    pvalue: float
    n: float
    target: str
    n_clusters: int | None = None

    def __str__(self) -> str:
        return f"Spiegelhalter's Z = {self.statistic:.2f}, {p_equals(self.pvalue)}"


@takes_predictions
def spiegelhalter_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    **reading: Unpack[Reading],
) -> SpiegelhalterResult:
    r"""Test whether the squared errors are as large as the scores imply.

    Under perfect calibration the Brier score has a known mean and variance, and

    .. math:: Z = \frac{\sum_i w_i (y_i - f_i)(1 - 2 f_i)}{\sqrt{\sum_i w_i^2 (1 - 2 f_i)^2 f_i (1 - f_i)}}

    is standard normal for large n and independent rows. Where scores are close to 0 and 1, so that few labels vary, n
    must be larger. The test needs one pass over the data and no resampling. It does not see errors that balance in the
    Brier score, such as a model that is overconfident for low scores and underconfident for high ones. Scores of 0, 1/2
    and 1 add nothing to the variance: if there are no others, Z is infinite if a score of 0 or 1 was wrong, and
    otherwise 0 with a p-value of 1.

    For K classes (``multiclass="classwise"``) it is the Brier score over all of them, with

    .. math:: Z = \frac{\sum_i w_i \sum_k (y_{ik} - f_{ik})(1 - 2 f_{ik})}
              {2 \sqrt{\sum_i w_i^2 \big[\sum_k f_{ik}^3 - (\sum_k f_{ik}^2)^2\big]}} .

    Parameters
    ----------
    {predictions}
    {weights}
    clusters : array-like of shape (n,) or (n, k), or data frame, optional
        Rows that depend on each other have the same value. The variance is then that of the sums over clusters,
        :math:`\frac{G}{G-1} \sum_c (E_c - \bar E)^2`, or more where events are too rare to show it, and Z is compared
        with Student's t on G - 1 degrees of freedom.
    {classes}

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
    check_multiclass(reading.get("multiclass"))  # not class by class
    question = ask(y_true, y_proba, **reading)
    for sample in question.samples:
        if sample.counted and sample.dependence.unit == "rows":
            require_whole_counts(sample, "Spiegelhalter's test")
    return z_of(question)


def z_of(question: Question) -> SpiegelhalterResult:
    """Return the test of one sample, or of all classes together."""
    samples = question.samples
    if samples[0].clusters:
        return _z_of_clusters(samples)
    # The excess of a row of several classes is -2 (f_Y - sum f^2), with f_Y the probability of its class.
    excess, variance = np.sum([_sums(sample) for sample in samples], axis=0).tolist()
    if question.rows is not None and not question.single:
        proba, weight = question.proba, question.weight
        square = (proba**2).sum(axis=1)
        spread = (proba**3).sum(axis=1) - square**2
        weight2 = np.ones(len(proba)) if weight is None else weight if samples[0].counted else weight**2
        # Rows with a certain class, or with equal probabilities, have no spread except for rounding.
        varies = spread > 1e-14
        variance = 4 * float(weight2[varies] @ spread[varies])
    return _z_test(excess, variance, samples)


def _z_of_clusters(samples: Sequence[Sample]) -> SpiegelhalterResult:
    """Return the test of rows in clusters, which all classes share, from the excess of each over all classes."""
    each, factor = [], 1.0
    for sample in samples:
        table = sample.clusters
        assert table is not None
        factor = max(factor, flip_scale(*cluster_rows(sample)).factor)
        lean = -table.residual(sample.score) * (1 - 2 * sample.score[table.group])
        each.append(np.bincount(table.cluster, lean, table.n_clusters))
    excess = np.sum(each, axis=0)
    n_clusters = len(excess)
    if n_clusters < 2:
        return replace(_z_test(0.0, 0.0, samples), n_clusters=n_clusters)
    variance = variance_factor(n_clusters) * float(np.square(excess - excess.mean()).sum())
    variance += (factor**2 - 1) * float(excess @ excess)  # rare events: see truecal.multiscale._null
    result = _z_test(float(excess.sum()), variance, samples)
    pvalue = 2 * float(scipy.special.stdtr(n_clusters - 1, -abs(result.statistic)))
    return replace(result, pvalue=pvalue, n_clusters=n_clusters)


def _sums(sample: Sample) -> tuple[float, float]:
    """Return by how much the sum of squared errors exceeds its mean under calibration, and its variance."""
    excess = variance = 0.0
    for start in range(0, len(sample), _BLOCK):
        block = slice(start, start + _BLOCK)
        score, lean = sample.score[block], 1 - 2 * sample.score[block]
        excess += float(np.einsum("i,i->", sample.positives[block] - sample.score_sum[block], lean))
        variance += float(np.einsum("i,i->", sample.weight2[block] * score * (1 - score), lean**2))
    if sample.noise is not None:
        variance = float(sample.noise @ (1 - 2 * sample.score) ** 2)
    return excess, variance


def _z_test(excess: float, variance: float, samples: Sequence[Sample]) -> SpiegelhalterResult:
    n = samples[0].n
    target = samples[0].target if len(samples) == 1 else classes_target(len(samples))
    if variance > 0:
        z = excess / math.sqrt(variance)
    else:
        # Without variance any excess beyond rounding is an outcome that the scores rule out.
        z = math.copysign(math.inf, excess) if abs(excess) > 1e-9 * n else 0.0
    return SpiegelhalterResult(statistic=z, pvalue=2 * float(scipy.special.ndtr(-abs(z))), n=n, target=target)
