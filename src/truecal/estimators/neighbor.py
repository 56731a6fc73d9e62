"""ECE_N: the gap between every score and the mean label of its nearest neighbours."""

from __future__ import annotations

import math

import numpy as np

from truecal._lib.checks import check_count
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.estimators._binning import IntArray, lp_norm
from truecal.estimators._registry import estimator
from truecal.results import Estimate


@estimator(
    "neighbor",
    summary="Gap between each score and the mean label of its nearest scores.",
    reference="Roelofs et al. (2022), AISTATS, eq. 2",
)
def neighbor(sample: Sample, *, norm: float, n_neighbors: int | None = None) -> Estimate:
    r"""Return the calibration error over neighbourhoods of each score, which binning approximates.

    .. math:: \Big(\frac 1n \sum_i \Big|f_i - \frac{1}{|N_i|} \sum_{j \in N_i} y_j\Big|^p\Big)^{1/p}

    N_i are the `n_neighbors` rows with the nearest scores, including row i itself and all rows at the same
    distance as the last of them, so that ties are never split. By default `n_neighbors` is a fifteenth of the rows,
    the size of one of fifteen equal-mass bins.

    Estimand: the true calibration error.

    References
    ----------
    R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022), Mitigating bias in calibration error estimation, AISTATS,
    equation 2.

    Examples
    --------
    >>> import truecal
    >>> y, p = [0, 1, 1, 1], [0.1, 0.4, 0.8, 0.9]
    >>> truecal.calibration_error(y, p, estimator="neighbor", norm=1, n_neighbors=1)
    0.25
    """
    if n_neighbors is None:
        sample = sample.on_the_scale_of_rows()
        k = math.ceil(sample.n / 15)
    else:
        k = check_count("n_neighbors", n_neighbors)
    radius = _radius_of(sample, min(k, sample.n))
    # 0.3 - 0.2 and 0.4 - 0.3 count as equal, also in float32: scores are only as exact as their type.
    radius += np.minimum(2 * np.spacing((sample.score + radius).astype(sample.dtype)), radius / 8)
    first = sample.score.searchsorted(sample.score - radius)
    end = sample.score.searchsorted(sample.score + radius, side="right")
    positives, count = sample.cumulative_positives, sample.cumulative_count
    label = np.minimum((positives[end] - positives[first]) / (count[end] - count[first]), 1.0)
    return Estimate(lp_norm(sample.score - label, sample.count, norm))


def _radius_of(sample: Sample, k: float) -> FloatArray:
    """Return for each group the smallest distance within which there are rows of weight `k`.

    A neighbourhood that extends down to group `first` must extend up to some group `last` to contain `k`. As
    `first` decreases, the distance downwards grows and the distance upwards shrinks. The best `first` is where
    they are equal, which bisection finds for all groups at once.
    """
    group, total = np.arange(len(sample)), sample.cumulative_count
    last_of = total.searchsorted(total[:-1] + k - sample.rounding) - 1  # the smallest one, for each `first`
    score = np.append(sample.score, np.inf)  # no group is above the last

    def reach(first: IntArray) -> tuple[FloatArray, FloatArray]:
        return score[group] - score[first], score[np.maximum(last_of[first], group)] - score[group]

    low, high = np.zeros_like(group), group.copy()  # `high` is the smallest `first` with down <= up
    while (low < high).any():
        middle = (low + high) // 2
        down, up = reach(middle)
        low, high = np.where(down > up, middle + 1, low), np.where(down > up, high, middle)
    beside = np.maximum(high - 1, 0)
    return np.minimum(np.maximum(*reach(high)), np.maximum(*reach(beside)))
