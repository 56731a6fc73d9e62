"""Histogram binning: the score becomes the frequency seen in its bin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecal._lib.checks import check_choice, check_count
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.estimators._binning import EqualMass, EqualWidth, partition, summarize_bins
from truecal.recalibration._base import PerClassRecalibrator
from truecal.recalibration._scores import Column


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

    An equal-width bin that was empty in `fit` returns the score itself: nothing was learned there, and the
    model's own word stands. Equal-mass bins are never empty; where there are fewer different scores than
    bins, there are fewer bins.

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
            bins = partition(rule, self.n_bins)
            values = np.full(self.n_bins, np.nan)
            values[rule.index(bins.start, self.n_bins)] = summarize_bins(sample, bins).mean_label
            return BinMap(np.arange(1, self.n_bins) / self.n_bins, values, round_edges=True)
        bins = partition(EqualMass(sample), self.n_bins)
        below, above = bins.upper[:-1], bins.lower[1:]
        middle = (below + above) / 2
        # Between neighbouring floats there is no middle; a rounded one may fall on the lower score.
        edges = np.where(middle > below, middle, above)
        return BinMap(edges, summarize_bins(sample, bins).mean_label, round_edges=False)
