"""Isotonic calibration: the best rising function of the score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
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

    def __init__(self, input: str = "probabilities") -> None:
        self.input = input

    def _fit_map(self, column: Column, label: NDArray[np.bool_], weight: FloatArray | None) -> RisingMap:
        sample = Sample.from_rows(label, column.probability, weight)
        fit = isotonic_regression(sample.label, weights=sample.count)
        first, last = fit.blocks[:-1], fit.blocks[1:] - 1
        knots = np.unique(np.concatenate([first, last]))
        return RisingMap(sample.score[knots], np.clip(fit.x[knots], 0, 1))
