"""KS: the largest cumulative difference between scores and labels."""

from __future__ import annotations

import numpy as np

from truecal.data.sample import Sample
from truecal.estimators._registry import estimator
from truecal.results import Estimate


@estimator(
    "ks",
    summary="Largest cumulative difference between scores and labels.",
    reference="Gupta et al. (2021), ICLR; Tygert (2022), cumulative differences",
    estimand="largest cumulative gap between score and accuracy",
    norms="none",
)
def ks(sample: Sample) -> Estimate:
    r"""Return the Kolmogorov-Smirnov calibration error, which needs no bins.

    .. math:: \max_c \Big|\frac 1n \sum_{i : f_i \le c} (f_i - y_i)\Big|

    The maximum is over the ends of groups of equal scores, so the order of tied rows cannot matter.

    Examples
    --------
    >>> import truecal
    >>> round(truecal.calibration_error([0, 1, 1, 1], [0.1, 0.4, 0.8, 0.9], estimator="ks"), 12)
    0.2
    """
    difference = np.cumsum(sample.score * sample.count - sample.positives)
    return Estimate(min(float(np.abs(difference).max()) / sample.n, 1.0))
