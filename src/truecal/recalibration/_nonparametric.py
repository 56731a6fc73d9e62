"""Curves that follow the data: isotonic regression, histogram binning, Venn-Abers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from truecal._lib.checks import check_choice, check_count
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.estimators._binning import EqualMass, EqualWidth, cut
from truecal.recalibration._base import PerClassRecalibrator
from truecal.recalibration._scores import Column


@dataclass(frozen=True, eq=False)
class RisingMap:
    """A rising function, straight between its knots and level beyond them.

    Attributes
    ----------
    score, value : ndarray of shape (n_knots,)
        First and last score of each level stretch, and the level.
    """

    score: FloatArray
    value: FloatArray

    def __call__(self, column: Column) -> FloatArray:
        """Return the value at each score."""
        return np.asarray(np.interp(column.probability, self.score, self.value), dtype=np.float64)


class IsotonicCalibration(PerClassRecalibrator):
    r"""Replace a score by the least-squares rising fit to the labels.

    .. math:: q = \arg\min_{g\ \text{rising}} \sum_i w_i (y_i - g(s_i))^2

    Equal scores are one point, so the order of rows does not matter. Between level stretches the fit
    runs straight, and beyond the scores seen in `fit` it keeps its last level, as scikit-learn's
    ``IsotonicRegression(out_of_bounds="clip")`` does. At either end it often is exactly 0 or 1.

    Several classes are fitted each against the rest, and rows are divided by their sum.

    Parameters
    ----------
    input : {"probabilities", "logits"}
        What the scores are. Logits go through the sigmoid or softmax first.

    Attributes
    ----------
    maps_ : tuple of RisingMap
        Knots; one map for two classes, K for K > 2.

    References
    ----------
    Zadrozny, Elkan (2002), Transforming classifier scores into accurate multiclass probability
    estimates, KDD.

    Examples
    --------
    >>> from truecal.recalibration import IsotonicCalibration
    >>> rising = IsotonicCalibration()
    >>> rising.fit([0.1, 0.3, 0.5, 0.7, 0.9], [0, 1, 0, 1, 1]).transform([0.0, 0.4, 0.6, 1.0])
    array([0.  , 0.5 , 0.75, 1.  ])
    """

    maps_: tuple[RisingMap, ...]

    def _fit_map(self, column: Column, label: NDArray[np.bool_], weight: FloatArray | None) -> RisingMap:
        sample = Sample.from_rows(label, column.probability, weight)
        fit = isotonic_regression(sample.label, weights=sample.count)
        first, last = fit.blocks[:-1], fit.blocks[1:] - 1
        knots = np.unique(np.concatenate([first, last]))
        return RisingMap(sample.score[knots], np.clip(fit.x[knots], 0, 1))


@dataclass(frozen=True, eq=False)
class BinMap:
    """Bins ``[edge[k - 1], edge[k])`` with the value of each; NaN is a bin in which nothing was seen.

    Attributes
    ----------
    edges : ndarray of shape (n_bins - 1,)
        Edges between bins; the outer two reach without end.
    values : ndarray of shape (n_bins,)
        Frequency of the class in each bin.
    round_edges : bool
        Whether edges are rounded to the type of the scores, as k/b are.
    """

    edges: FloatArray
    values: FloatArray
    round_edges: bool

    def __call__(self, column: Column) -> FloatArray:
        """Return the value of each score's bin, or the score itself where nothing was seen."""
        score = column.probability
        edges = self.edges.astype(score.dtype) if self.round_edges else self.edges
        value = self.values[edges.searchsorted(score, side="right")]
        return np.where(np.isnan(value), score, value)


class HistogramBinning(PerClassRecalibrator):
    r"""Replace a score by the mean label of its bin.

    .. math:: q(s) = \bar y_k = \frac{1}{|B_k|} \sum_{i \in B_k} y_i , \qquad s \in B_k

    With ``strategy="mass"`` the bins hold about equally many rows (equal scores stay together), and edges
    lie midway between the scores on either side. With ``"width"`` they are [k/b, (k+1)/b), compared in
    the type of the scores. Beyond the scores seen in `fit` the outermost bins go on.

    An equal-width bin that was empty in `fit` returns the score itself, because nothing was learned there.
    Equal-mass bins are never empty; where there are fewer different scores than bins, there are fewer bins.

    Several classes are binned each against the rest, and rows are divided by their sum.

    Parameters
    ----------
    n_bins : int
        Number of bins.
    strategy : {"mass", "width"}
        What the bins have in common.
    input : {"probabilities", "logits"}
        What the scores are. Logits go through the sigmoid or softmax first.

    Attributes
    ----------
    maps_ : tuple of BinMap
        Edges and values; one for two classes, K for K > 2.

    References
    ----------
    Zadrozny, Elkan (2001), Obtaining calibrated probability estimates from decision trees and naive
    Bayesian classifiers, ICML.

    Examples
    --------
    >>> from truecal.recalibration import HistogramBinning
    >>> bins = HistogramBinning(n_bins=2)
    >>> bins.fit([0.1, 0.2, 0.8, 0.9], [0, 1, 1, 1]).transform([0.0, 0.3, 0.7])
    array([0.5, 0.5, 1. ])
    """

    maps_: tuple[BinMap, ...]

    def __init__(self, n_bins: int = 15, strategy: str = "mass", input: str = "probabilities") -> None:
        self.n_bins = n_bins
        self.strategy = strategy
        self.input = input

    def _check_parameters(self) -> None:
        check_count("n_bins", self.n_bins)
        check_choice("strategy", self.strategy, ("mass", "width"))

    def _fit_map(self, column: Column, label: NDArray[np.bool_], weight: FloatArray | None) -> BinMap:
        sample = Sample.from_rows(label, column.probability, weight)
        if self.strategy == "width":
            rule = EqualWidth(sample)
            division, bins = cut(rule, self.n_bins)
            values = np.full(self.n_bins, np.nan)
            values[rule.index(division.start, self.n_bins)] = bins.mean_label
            return BinMap(np.arange(1, self.n_bins) / self.n_bins, values, round_edges=True)
        _, bins = cut(EqualMass(sample), self.n_bins)
        below, above = bins.upper[:-1], bins.lower[1:]
        middle = (below + above) / 2
        # Between neighbouring floats there is no middle; a rounded one may fall on the lower score.
        edges = np.where(middle > below, middle, above)
        return BinMap(edges, bins.mean_label, round_edges=False)


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
        """Return p1 / (1 - p0 + p1), the probability with minimax regret under log loss."""
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

    def _fit_map(self, column: Column, label: NDArray[np.bool_], weight: FloatArray | None) -> VennAbersMap:
        sample = Sample.from_rows(label, column.probability, weight)
        count, positives = sample.count, sample.positives
        one = np.append(with_a_positive(count, positives), 1.0)
        # Label 0 in one order is label 1 in the other.
        zero = np.append(1 - with_a_positive(count[::-1], (count - positives)[::-1]), 0.0)[::-1]
        return VennAbersMap(sample.score, zero, one)


def with_a_positive(count: FloatArray, positives: FloatArray) -> FloatArray:
    """Return the isotonic regression at each group after a row labelled 1 was added to that group.

    The fitted value is the slope of the greatest convex minorant of the points (rows, positives), both cumulative, with
    all points before the group moved by (-1, -1). From one group to the next only one point moves, so that a stack of
    corners does all groups in linear time (Vovk, Petej, Fedorova 2015, algorithms 1 and 2).
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
