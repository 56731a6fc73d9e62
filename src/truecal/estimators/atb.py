"""ATB: the squared differences of scores and labels in two bins, averaged over the edge between them."""

from __future__ import annotations

import numpy as np

from truecal.data.sample import Sample
from truecal.estimators._registry import register_estimator
from truecal.results import Estimate


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
    # In place, because with millions of rows there may be memory for only two arrays.
    below = np.zeros(len(sample) + 1)
    np.subtract(sample.score_sum, sample.positives, out=below[1:])
    np.cumsum(below[1:], out=below[1:])
    below /= sample.n
    above = below[-1] - below
    below *= below
    above *= above
    below += above
    width = above
    np.subtract(sample.score[1:], sample.score[:-1], out=width[1:-1])
    width[0], width[-1] = sample.score[0], 1 - sample.score[-1]
    below *= width
    return Estimate(min(float(below.sum()), 1.0))
