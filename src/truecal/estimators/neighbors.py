"""ECE_N: compare every score with the mean label of its nearest neighbours."""

from __future__ import annotations

import math

import numpy as np

from truecal._checks import check_count
from truecal._registry import estimator
from truecal.results import Estimate
from truecal.sample import FloatArray, Sample


@estimator(
    "neighbor",
    summary="Gap between each score and the mean label of its nearest scores.",
    reference="Roelofs et al. (2022), AISTATS, eq. 2",
)
def neighbor(sample: Sample, *, norm: float, n_neighbors: int | None = None) -> Estimate:
    r"""Return the error over neighbourhoods, the general form that binning approximates.

    .. math:: \Big(\frac 1n \sum_i \Big|f_i - \frac{1}{|N_i|} \sum_{j \in N_i} y_j\Big|^p\Big)^{1/p}

    N_i are the rows whose score is within the least distance of f_i that takes in `n_neighbors` rows, the
    row itself among them. All rows at that distance belong to it, so ties are never cut. By default
    `n_neighbors` is a fifteenth of the rows, the size of one of fifteen equal-mass bins.

    Examples
    --------
    >>> import truecal
    >>> y, p = [0, 1, 1, 1], [0.1, 0.4, 0.8, 0.9]
    >>> truecal.calibration_error(y, p, estimator="neighbor", norm=1, n_neighbors=1)
    0.25
    """
    k = math.ceil(sample.n / 15) if n_neighbors is None else check_count("n_neighbors", n_neighbors)
    radius = _radius_of(sample, min(k, sample.n))
    first = sample.score.searchsorted(sample.score - radius * (1 + 1e-12))
    end = sample.score.searchsorted(sample.score + radius * (1 + 1e-12), side="right")
    positives, count = sample.cumulative_positives, sample.cumulative_count
    label = (positives[end] - positives[first]) / (count[end] - count[first])
    power = np.average(np.abs(sample.score - label) ** norm, weights=sample.count)
    return Estimate(float(power) ** (1 / norm))


def _radius_of(sample: Sample, k: float) -> FloatArray:
    """Return for each group the least distance within which there are rows of weight `k`.

    Let the neighbourhood reach down to group `first`; then it must reach up to some group `last` to hold
    `k`. Going down, the way down grows and the way up shrinks, so the best `first` is where they cross,
    which bisection finds for all groups at once.
    """
    score, total = sample.score, sample.cumulative_count
    group = np.arange(len(score))

    def reach(first: np.ndarray) -> tuple[FloatArray, FloatArray]:
        last = np.maximum(total.searchsorted(total[first] + k * (1 - 1e-12)) - 1, group)
        up = np.where(last < len(score), score[np.minimum(last, len(score) - 1)] - score, np.inf)
        return score - score[first], up

    low, high = np.zeros_like(group), group.copy()  # `high` is the least `first` with the way down <= up
    while (low < high).any():
        middle = (low + high) // 2
        down, up = reach(middle)
        low, high = np.where(down > up, middle + 1, low), np.where(down > up, high, middle)
    beside = np.maximum(high - 1, 0)
    return np.minimum(np.maximum(*reach(high)), np.maximum(*reach(beside)))
