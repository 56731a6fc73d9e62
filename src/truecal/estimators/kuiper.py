"""Kuiper: the range of the cumulative differences between scores and labels."""

from __future__ import annotations

import math

import numpy as np
import scipy

from truecal.data.sample import Sample
from truecal.estimators._registry import register_estimator
from truecal.results import Estimate


def range_exceeds(x: float) -> float:
    r"""Return the probability that the range of a Brownian motion on [0, 1] exceeds x (Feller 1951).

    .. math:: P(R > x) = 8 \sum_{k \ge 1} (-1)^{k-1} k\, \Phi(-k x)

    Examples
    --------
    >>> round(range_exceeds(2.4977), 4)
    0.05
    """
    if x < 0.5:
        return 1.0  # to nine digits
    k = np.arange(1, math.ceil(40 / x) + 1)
    return min(max(float(np.sum(8 * k * (-1.0) ** (k - 1) * scipy.special.ndtr(-k * x))), 0.0), 1.0)


@register_estimator(
    "kuiper",
    summary="Range of the cumulative differences between scores and labels (ECCE-R).",
    reference="Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu (2022), JMLR",
    estimand="largest gap between score and event totals over an interval of scores",
    norms="none",
    aliases=("ecce_r",),
    truth="plug-in",
    limit=range_exceeds,
)
def kuiper(sample: Sample) -> Estimate:
    r"""Return the Kuiper calibration error, also known as ECCE-R and as cutoff calibration error.

    .. math:: \max_{a \le b} \Big|\frac 1n \sum_{i : a \le f_i \le b} (f_i - y_i)\Big|
              = \max_c D(c) - \min_c D(c), \qquad D(c) = \frac 1n \sum_{i : f_i \le c} (f_i - y_i)

    where c may also lie below all scores. Estimand: the same number for the population, the largest absolute
    difference between expected scores and events over any interval of scores. It needs no bins, and is between the
    KS error and twice the KS error.

    References
    ----------
    I. Arrieta-Ibarra, P. Gujral, J. Tannen, M. Tygert, C. Xu (2022), Metrics of calibration for probabilistic
    predictions, JMLR 23.

    R. Rossellini, J. A. Soloff, R. F. Barber, Z. Ren, R. Willett (2025), Can a calibration metric be both testable and
    actionable?, COLT.

    W. Feller (1951), The asymptotic distribution of the range of sums of independent random variables, Annals of
    Mathematical Statistics 22, 427-432.

    Examples
    --------
    >>> import truecal
    >>> round(truecal.calibration_error([0, 1, 1, 1], [0.1, 0.4, 0.8, 0.9], estimator="kuiper"), 12)
    0.225
    """
    difference = np.cumsum(sample.score_sum - sample.positives) / sample.n
    return Estimate(min(max(float(difference.max()), 0.0) - min(float(difference.min()), 0.0), 1.0))
