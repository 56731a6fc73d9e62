"""Cumulative differences between scores and labels: their largest, their range, and the mean of their squares."""

from __future__ import annotations

import math

import numpy as np
import scipy

from truecal.data.sample import Sample
from truecal.estimators._registry import register_estimator
from truecal.results import Estimate


def largest_value_exceeds(x: float) -> float:
    r"""Return the probability that the largest absolute value of a Brownian motion on [0, 1] exceeds x.

    .. math:: P(M \le x) = \frac 4\pi \sum_{k \ge 0} \frac{(-1)^k}{2k + 1}
              \exp\Big(-\frac{(2k + 1)^2 \pi^2}{8 x^2}\Big)

    Examples
    --------
    >>> round(largest_value_exceeds(2.2414), 4)
    0.05
    """
    if x <= 0:
        return 1.0
    if x > 4:  # the reflection principle; paths that meet both levels add less than 1e-30
        return 2 * math.erfc(x / math.sqrt(2))
    odd = 2 * np.arange(20) + 1
    terms = np.exp(-((odd * math.pi / x) ** 2) / 8) / odd
    return min(max(1 - 4 / math.pi * float(np.sum(terms * (-1.0) ** np.arange(20))), 0.0), 1.0)


@register_estimator(
    "ks",
    summary="Largest cumulative difference between scores and labels.",
    reference="Gupta et al. (2021), ICLR; Arrieta-Ibarra et al. (2022), JMLR",
    estimand="largest cumulative difference between score and conditional probability",
    norms="none",
    aliases=("ecce_mad",),
    truth="plug-in",
    limit=largest_value_exceeds,
)
def ks(sample: Sample) -> Estimate:
    r"""Return the Kolmogorov-Smirnov calibration error, which does not need bins.

    .. math:: \max_c \Big|\frac 1n \sum_{i : f_i \le c} (f_i - y_i)\Big|

    Estimand: the largest cumulative difference between score and conditional probability. The maximum is over the
    ends of groups of equal scores, so that the order of tied rows does not matter.

    References
    ----------
    K. Gupta, A. Rahimi, T. Ajanthan, T. Mensink, C. Sminchisescu, R. Hartley (2021), Calibration of neural networks
    using splines, ICLR.

    I. Arrieta-Ibarra, P. Gujral, J. Tannen, M. Tygert, C. Xu (2022), Metrics of calibration for probabilistic
    predictions, JMLR 23.

    Examples
    --------
    >>> import truecal
    >>> round(truecal.calibration_error([0, 1, 1, 1], [0.1, 0.4, 0.8, 0.9], estimator="ks"), 12)
    0.2
    """
    difference = np.cumsum(sample.score_sum - sample.positives)
    return Estimate(min(float(np.abs(difference).max()) / sample.n, 1.0))


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


@register_estimator(
    "atb",
    summary="Averaged two-bin error: squared differences in two bins, over all edges.",
    reference="Hartline, Hu, Wu (2026), COLT",
    estimand="averaged two-bin calibration error (a square)",
    norms="none",
    range=(0.0, 1.0),
    truth="plug-in",
)
def atb(sample: Sample) -> Estimate:
    r"""Return the averaged two-bin calibration error, the first that is truthful on a finite sample.

    .. math:: \int_0^1 \Big(\frac 1n \sum_{i : f_i < q} (f_i - y_i)\Big)^2
              + \Big(\frac 1n \sum_{i : f_i \ge q} (f_i - y_i)\Big)^2 \,dq

    Truthful means that its expectation is smallest for the true probabilities. It is a square: compare its root with
    other errors. Estimand: the same number for the population. A calibrated model has the expectation
    :math:`\frac 1{n^2} \sum_i f_i (1 - f_i)`, because each row is in exactly one of the bins.

    References
    ----------
    J. Hartline, L. Hu, Y. Wu (2026), A perfectly truthful calibration measure, COLT.

    Examples
    --------
    >>> import truecal
    >>> round(truecal.calibration_error([0, 1, 1, 1], [0.1, 0.4, 0.8, 0.9], estimator="atb"), 5)
    0.035
    """
    below = np.zeros(len(sample) + 1)
    np.cumsum(sample.score_sum - sample.positives, out=below[1:])
    below /= sample.n
    width, total = np.diff(sample.score, prepend=0.0, append=1.0), below[-1]
    # The squares of two parts are that of their sum, less twice their product; the widths add up to 1.
    return Estimate(min(float(total**2 - 2 * width @ (below * (total - below))), 1.0))
