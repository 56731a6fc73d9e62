"""The C statistic: how well scores separate the two outcomes.

It is the probability that a row with the event has a higher score than a row without it, ties counting one half; the
area under the ROC curve. Calibration says nothing about it, and reports on clinical models give both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, stdtrit

from truecal._lib.checks import check_fraction
from truecal._lib.types import FloatArray
from truecal.data.arrays import Reading, is_top, takes_predictions
from truecal.data.question import as_sample
from truecal.data.sample import Sample
from truecal.inference.weak_calibration import Parameter
from truecal.results import Interval

#: How far sums of squared weights may be from a whole number of rows.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Placements:
    """Where rows of one outcome stand among those of the other; the C statistic is the mean of either.

    Attributes
    ----------
    lower : ndarray of shape (n_groups,)
        Share of the rows without the event below each score, ties counting one half.
    higher : ndarray of shape (n_groups,)
        Share of the events above each score.
    events, others : float
        Rows, or weight, with and without the event.
    value : float
        The C statistic.
    """

    lower: FloatArray
    higher: FloatArray
    events: float
    others: float
    value: float

    def influence(self, centre: float) -> tuple[FloatArray, FloatArray]:
        """Return the influence of a row with the event, and of another, at each score, if C is `centre`."""
        return (self.lower - centre) / self.events, (self.higher - centre) / self.others


def placements(sample: Sample) -> Placements | None:
    """Return the placements of a sample; None if only one outcome occurs, or corrected labels sum to less than 0.

    Examples
    --------
    >>> placements(Sample.from_predictions([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])).value
    0.875
    """
    hits, misses = sample.positives, sample.count - sample.positives
    events, others = float(hits.sum()), float(misses.sum())
    if events <= 0 or others <= 0:
        return None
    lower = (np.cumsum(misses) - misses / 2) / others
    higher = 1 - (np.cumsum(hits) - hits / 2) / events
    return Placements(lower, higher, events, others, float(hits @ lower) / events)


@takes_predictions
def c_statistic(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    **reading: Unpack[Reading],
) -> Parameter:
    r"""Estimate the C statistic, with an interval.

    The variance is that of DeLong et al. (1988): each row with the event contributes the share of the others that it
    exceeds, and the other way round; contributions are summed by cluster if there are clusters. The interval is made
    on the logit scale with Student's t, whose degrees of freedom are those of Welch and Satterthwaite. It is 0 to 1 if
    the scores separate the outcomes, or if one outcome occurs in fewer than two rows, or two clusters: how much others
    would differ is then not known.

    Parameters
    ----------
    {predictions}
    confidence_level : float
        Confidence level of the interval.
    {reading}

    Returns
    -------
    Parameter

    References
    ----------
    DeLong, DeLong, Clarke-Pearson (1988), Comparing the areas under two or more correlated receiver operating
    characteristic curves, Biometrics 44.

    Examples
    --------
    >>> from truecal.inference.c_statistic import c_statistic
    >>> print(c_statistic([0, 0, 1, 0, 1, 1], [0.1, 0.3, 0.3, 0.4, 0.6, 0.9]))
    0.8333 (0.06609 to 0.9972)
    """
    check_fraction("confidence_level", confidence_level)
    sample = as_sample(y_true, y_proba, **reading)
    unknown, found = Interval(0.0, 1.0, confidence_level), placements(sample)
    if found is None:
        return Parameter(math.nan, math.nan, unknown)
    events, others, value = found.events, found.others, found.value
    hit, miss = found.influence(value)
    tail, rarer = (1 - confidence_level) / 2, math.inf
    if sample.clusters or sample.pseudo is not None:
        variance = float(sample.sum_covariance(miss[np.newaxis], hit[np.newaxis])[0, 0])
        quantile = sample.quantile(tail)
        if table := sample.clusters:
            outcomes = (table.positives, table.weight - table.positives)
            rarer = min(len(np.unique(table.cluster[holds > 0])) for holds in outcomes)
    else:
        hits2, misses2 = sample.positives2, sample.weight2 - sample.positives2
        # Rows of equal weight that each outcome is worth.
        n_hits, n_misses = events**2 / float(hits2.sum()), others**2 / float(misses2.sum())
        parts = np.array([float(hits2 @ hit**2), float(misses2 @ miss**2)])
        freedom = np.maximum([n_hits - 1, n_misses - 1], 1)
        parts *= (freedom + 1) / freedom
        variance, rarer = float(parts.sum()), min(n_hits, n_misses)
        # Welch and Satterthwaite: few events tell little about their own variance.
        degrees = variance**2 / max(float((parts**2 / freedom).sum()), 1e-300)
        quantile = float(stdtrit(degrees, 1 - tail))
    error = math.sqrt(variance)
    if not 0 < value < 1 or rarer < 2 - _ROUNDING:
        return Parameter(value, error, unknown)
    half = quantile * error / (value * (1 - value))
    low, high = expit(logit(value) - half), expit(logit(value) + half)
    return Parameter(value, error, Interval(float(low), float(high), confidence_level, "DeLong, logit scale"))


#: Standard errors by which the C statistic must be below 1/2, so that chance does not suffice.
_CLEAR = 4.0


def reversed_scores(sample: Sample) -> str | None:
    """Return a sentence that names scores which fall as events become more frequent; None unless that is clear.

    Rows contribute their placements, as in `c_statistic`. Their variance is that of C if it were 1/2: the sum of
    squared distances from 1/2, of clusters if there are any. Few events or clusters are therefore never clear, however
    their rows are ordered.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.linspace(0.01, 0.99, 100)
    >>> reversed_scores(Sample.from_predictions(p < 0.4, p))
    'Higher scores go with fewer events (C statistic 0.00): are they probabilities of another class?'
    >>> reversed_scores(Sample.from_predictions(p > 0.4, p))
    """
    found = placements(sample)
    if found is None or found.value >= 0.5:
        return None
    c, (hit, miss) = found.value, found.influence(0.5)
    table = sample.clusters
    if table is not None:
        each = table.positives * hit[table.group] + (table.weight - table.positives) * miss[table.group]
        # The shares of both outcomes sum to 2 (C - 1/2); half of that is the deviation itself.
        sums = np.bincount(table.cluster, each, table.n_clusters) - (c - 0.5) / table.n_clusters
        variance = float(sums @ sums)
    else:
        variance = float(sample.sum_covariance(miss[np.newaxis], hit[np.newaxis])[0, 0])
    if 0.5 - c < _CLEAR * math.sqrt(variance):
        return None
    value = f"(C statistic {c:.2f})"
    if is_top(sample.target):
        return f"Higher scores go with fewer correct predictions {value}: are columns and labels in the same order?"
    return f"Higher scores go with fewer events {value}: are they probabilities of another class?"
