"""KS: the largest cumulative difference between scores and labels."""

from __future__ import annotations

import math

import numpy as np

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
