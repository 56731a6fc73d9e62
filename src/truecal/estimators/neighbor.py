"""ECE_N: the gap between every score and the mean label of its nearest neighbours."""

from __future__ import annotations

import math

import numpy as np

from truecal._lib.checks import check_count
from truecal._lib.numeric import IntArray, lp_norm
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.estimators._registry import register_estimator
from truecal.results import Estimate

#: Groups whose neighbourhoods are found at once.
_STEP = 1 << 16


@register_estimator(
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
    label_near, gap = _Neighborhoods(sample, min(k, sample.n)), sample.score.copy()
    for first in range(0, len(sample), _STEP):
        gap[first : first + _STEP] -= label_near(np.arange(first, min(first + _STEP, len(sample))))
    return Estimate(float(lp_norm(gap, sample.count, norm, sample.bounds, out=gap)[0]))


class _Neighborhoods:
    """The mean label of the rows nearest to a score.

    A neighbourhood that extends down to group `first` must extend up to some group `last` to contain weight `k`. As
    `first` decreases, the distance downwards grows and the distance upwards shrinks. The best `first` is where
    they are equal, which bisection finds for many groups at once.
    """

    def __init__(self, sample: Sample, k: float) -> None:
        self.sample, self.k = sample, k
        self.last: IntArray | None = None  # the smallest one for each `first`
        if not sample.one_row_each:
            total = sample.cumulative_count
            self.last = total.searchsorted(total[:-1] + k - sample.rounding) - 1

    def __call__(self, group: IntArray) -> FloatArray:
        """Return the mean label of the neighbourhood of each group."""
        sample, score = self.sample, self.sample.score[group]
        radius = self._radius(group)
        # 0.3 - 0.2 and 0.4 - 0.3 count as equal, also in float32: scores are only as exact as their type.
        radius += np.minimum(2 * np.spacing((score + radius).astype(sample.dtype)), radius / 8)
        first = sample.score.searchsorted(score - radius)
        end = sample.score.searchsorted(score + radius, side="right")
        positives = sample.cumulative_positives[end] - sample.cumulative_positives[first]
        return np.minimum(positives / sample.rows_between(first, end), 1.0)

    def _radius(self, group: IntArray) -> FloatArray:
        """Return the smallest distance within which there are rows of weight `k`."""
        low, high = np.zeros_like(group), group.copy()  # `high` is the smallest `first` with down <= up
        while (low < high).any():
            middle = (low + high) // 2
            down, up = self._reach(group, middle)
            low, high = np.where(down > up, middle + 1, low), np.where(down > up, high, middle)
        beside = np.maximum(high - 1, 0)
        return np.minimum(np.maximum(*self._reach(group, high)), np.maximum(*self._reach(group, beside)))

    def _reach(self, group: IntArray, first: IntArray) -> tuple[FloatArray, FloatArray]:
        score = self.sample.score
        last = first + (math.ceil(self.k) - 1) if self.last is None else self.last[first]
        last = np.maximum(last, group)
        up = score.take(last, mode="clip") - score[group]
        return score[group] - score[first], np.where(
            last < len(score), up, np.inf
        )  # no group is above the last
