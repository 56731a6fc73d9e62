"""Venn-Abers calibration: isotonic regression with the new row in it, once with either label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.recalibration._base import PerClassRecalibrator
from truecal.recalibration._scores import Column


@dataclass(frozen=True, eq=False)
class VennAbersMap:
    """Two probabilities for each score: isotonic regression with the score labelled 0, and labelled 1.

    Attributes
    ----------
    score : ndarray of shape (m,)
        Distinct scores of the fit, in ascending order.
    zero : ndarray of shape (m + 1,)
        Probability at or above each score, with the new row labelled 0; the first is below all scores.
    one : ndarray of shape (m + 1,)
        Probability at or below each score, with the new row labelled 1; the last is above all scores.
    """

    score: FloatArray
    zero: FloatArray
    one: FloatArray

    def bounds(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both probabilities, the lower one first."""
        return (
            self.zero[np.searchsorted(self.score, score, side="right")],
            self.one[np.searchsorted(self.score, score, side="left")],
        )

    def __call__(self, column: Column) -> FloatArray:
        """Return p1 / (1 - p0 + p1), the probability of the smallest largest regret under log loss."""
        low, high = self.bounds(np.asarray(column.probability, dtype=np.float64))
        return np.asarray(high / (1 - low + high))


class VennAbersCalibration(PerClassRecalibrator):
    r"""Combine two isotonic regressions, which contain the new row with the label 0 and with the label 1.

    Their values :math:`p_0 \le p_1` at the new score are valid bounds: one of them is perfectly calibrated for
    exchangeable rows, whatever the model. The recalibrated probability is :math:`p_1 / (1 - p_0 + p_1)`. Unlike
    isotonic regression it is never exactly 0 or 1, and it changes little where rows are many.

    All pairs are computed in advance by the algorithm of Vovk et al. (2015), in linear time after sorting. Several
    classes are fitted each against the rest, and rows are divided by their sum; the guarantee holds for two classes.

    Parameters
    ----------
    input : {"probabilities", "logits"}
        What the scores are.

    Attributes
    ----------
    maps_ : tuple of VennAbersMap
        The fitted map, with `bounds` for both probabilities; one for two classes, K for K > 2.

    References
    ----------
    Vovk, Petej, Fedorova (2015), Large-scale probabilistic predictors with and without guarantees of validity,
    NeurIPS.

    Examples
    --------
    >>> from truecal.recalibration import VennAbersCalibration
    >>> calibration = VennAbersCalibration().fit([0.1, 0.2, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1])
    >>> calibration.transform([0.15, 0.65]).round(3)
    array([0.333, 0.5  ])
    """

    maps_: tuple[VennAbersMap, ...]

    def __init__(self, input: str = "probabilities") -> None:
        self.input = input

    def _fit_map(self, column: Column, label: NDArray[np.bool_], weight: FloatArray | None) -> VennAbersMap:
        score, group = np.unique(column.probability.astype(np.float64), return_inverse=True)
        w = np.ones(len(label)) if weight is None else weight
        count, positives = (np.bincount(group, one).astype(np.float64) for one in (w, w * label))
        one = np.append(with_a_positive(count, positives), 1.0)
        # Label 0 in one order is label 1 in the other.
        zero = np.append(1 - with_a_positive(count[::-1], (count - positives)[::-1]), 0.0)[::-1]
        return VennAbersMap(score, zero, one)


def with_a_positive(count: FloatArray, positives: FloatArray) -> FloatArray:
    """Return the isotonic regression at each group after a row labelled 1 was added to that group.

    The fitted value is the slope of the greatest convex minorant of the points (rows, positives), both cumulative, with
    all points before the group moved by (-1, -1). From one group to the next only one point moves, so that a stack of
    corners does all groups in linear time (Vovk, Petej, Fedorova 2015, algorithms 1 and 2).

    Parameters
    ----------
    count, positives : ndarray of shape (m,)
        Rows and positive labels of each group, in ascending order of the score.
    """
    x = np.concatenate([[0.0], np.cumsum(count)]).tolist()
    y = np.concatenate([[0.0], np.cumsum(positives)]).tolist()
    points = list(zip(x, y, strict=True))
    corners: list[tuple[float, float]] = [(-1.0, -1.0)]
    for point in points[1:]:
        while len(corners) > 1 and not _turns_left(corners[-2], corners[-1], point):
            corners.pop()
        corners.append(point)
    corners.reverse()  # the last is now the left end of the segment that holds the new row
    slopes = []
    for point in points[1:]:
        left, right = corners[-1], corners[-2]
        slopes.append((right[1] - left[1]) / (right[0] - left[0]))
        moved = (point[0] - 1, point[1] - 1)
        if _turns_left(left, moved, right):  # below the segment: a new corner
            corners.pop()
            while len(corners) > 1 and not _turns_left(moved, corners[-1], corners[-2]):
                corners.pop()
            corners.append(moved)
    return np.clip(slopes, 0.0, 1.0)


def _turns_left(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - b[1]) > (b[1] - a[1]) * (c[0] - b[0])
