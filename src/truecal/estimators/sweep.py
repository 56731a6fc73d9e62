"""ECE_sweep: the largest number of bins for which the mean labels increase."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.docs import fill_docstring
from truecal._lib.runs import lp_norm
from truecal.data.counting import MOST_COUNTED_ROWS, Counting
from truecal.data.row_cells import RowCells
from truecal.data.sample import Sample
from truecal.data.score_groups import ScoreGroups
from truecal.data.width_bins import width_edges
from truecal.estimators._binning import (
    BinningRule,
    EqualMass,
    EqualWidth,
    edges_between,
    monotone_sweep,
    partition,
    summarize_bins,
)
from truecal.estimators._registry import estimator
from truecal.results import Estimates

#: The largest number of bins, and the largest share of rows in cells with an edge, for which counting is quicker.
_MOST_BINS, _MOST_SORTED = 256, 0.4

_REFERENCE = "Roelofs et al. (2022), AISTATS, eq. 8 and Algorithm 1"
_NOT_MONOTONE = (
    "the mean labels are not monotone: even with two bins they decrease as the scores increase. The estimate uses "
    "one bin and may be far below the true error; compare estimator='em_debias'."
)

_FORMULA = r""".. math:: \Big(\sum_{k=1}^{b^*} \frac{|B_k|}{n} |\bar f_k - \bar y_k|^p\Big)^{1/p},\quad
          b^* = \max\{b : \forall b' \le b,\ \bar y_1 \le \dots \le \bar y_{b'}\}"""

_REFERENCES = """\
References
----------
R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022), Mitigating bias in calibration error estimation, AISTATS,
equation 8 and Algorithm 1."""


class SweepCounting(Counting):
    """Count rows between the edges of all bins that a sweep tries.

    A sweep over narrow cells, whose ends are not quite the edges, tells how many bins to expect. Whether the sweep over
    the counted rows ends with about as many is then checked.
    """

    rule: type[BinningRule]
    #: Number of cells, narrow enough for many edges; and number of rows below which sorting is quicker.
    n_cells: int
    fewest_rows: int

    def count(self, label: NDArray[Any], score: NDArray[Any], target: str) -> Sample | None:
        """Return a sample whose groups lie within the bins that the sweep tries; None if sorting is quicker."""
        if not self.fewest_rows <= len(score) <= MOST_COUNTED_ROWS:
            return None
        cells = RowCells.count(label, score, self.n_cells)
        expected = int(monotone_sweep(self.rule(cells.closed()))[0])
        if expected > _MOST_BINS:
            return None
        for fewest, most in ((expected - 2, expected + 3), (expected // 2, 2 * expected + 8)):
            sample = self.group(cells, max(fewest, 1), most, target)
            if sample is None or _ends_between(self.rule(sample), fewest, most):
                return sample
        return None

    @abstractmethod
    def group(self, cells: RowCells, fewest: int, most: int, target: str) -> Sample | None:
        """Return a sample for sweeps that end with `fewest` bins or more, but not with `most`; None to sort all rows.

        Parameters
        ----------
        cells : RowCells
            The rows.
        fewest, most : int
            Numbers of bins. No number up to `most` has a bin that ends within a group.
        target : str
            What the score is the probability of, in words.
        """


class WidthSweepCounting(SweepCounting):
    """Count rows between the edges of all equal-width bins that a sweep tries."""

    rule, n_cells, fewest_rows = EqualWidth, 1 << 15, 1 << 17

    def group(self, cells: RowCells, fewest: int, most: int, target: str) -> Sample:
        """Return the sample of rows between neighbouring edges."""
        edges = width_edges(*edges_between(1, most), cells.score.dtype)
        return cells.between(np.unique(edges[edges < 1]), target)


class MassSweepCounting(SweepCounting):
    """Count rows in cells, and sort those of the cells in which an edge of the equal-mass bins of a sweep falls."""

    rule, n_cells, fewest_rows = EqualMass, 1 << 16, 1 << 21

    def group(self, cells: RowCells, fewest: int, most: int, target: str) -> Sample | None:
        """Return the sample of cells and, at the edges, of scores; those next to an edge limit the final bins."""
        opened = np.zeros(len(cells.rows), dtype=np.bool_)
        for first, beside in ((1, 0), (fewest, 1)):
            k, b = edges_between(first, most)
            opened |= cells.near_ranks(k * float(len(cells.score)) / b, beside)
        return None if cells.share(opened) > _MOST_SORTED else cells.sample(opened, target)


@estimator(
    "ew_sweep",
    summary="Binned error with the most equal-width bins for which labels increase.",
    reference=_REFERENCE,
    takes_blocks=True,
    counting=WidthSweepCounting,
)
@fill_docstring(formula=_FORMULA, references=_REFERENCES)
def ew_sweep(sample: ScoreGroups, *, norm: float) -> Estimates:
    r"""Return the monotonic sweep calibration error over equal-width bins.

    {formula}

    Estimand: the true calibration error of a model whose calibration curve increases; see `em_sweep`.

    {references}

    Examples
    --------
    >>> import truecal
    >>> truecal.estimate([0, 1, 0, 1, 1], [0.1, 0.3, 0.4, 0.8, 0.9], estimator="ew_sweep").n_bins
    2
    """
    return _swept(EqualWidth(sample), norm)


@estimator(
    "em_sweep",
    summary="Binned error with the most equal-mass bins for which labels increase.",
    reference=_REFERENCE,
    takes_blocks=True,
    counting=MassSweepCounting,
)
@fill_docstring(formula=_FORMULA, references=_REFERENCES)
def em_sweep(sample: ScoreGroups, *, norm: float) -> Estimates:
    r"""Return the monotonic sweep calibration error over equal-mass bins.

    {formula}

    Estimand: the true calibration error of a model whose calibration curve increases. If the mean label decreases
    already from the lower to the upper of two bins, one bin remains, the value is the difference of mean score and
    mean label, and the result has a note.

    {references}

    Examples
    --------
    >>> import truecal
    >>> truecal.estimate([0, 1, 0, 1, 1], [0.1, 0.3, 0.4, 0.8, 0.9], estimator="em_sweep").n_bins
    3
    """
    return _swept(EqualMass(sample), norm)


def _swept(rule: BinningRule, norm: float) -> Estimates:
    n_bins = monotone_sweep(rule)
    division = partition(rule, n_bins)
    bins = summarize_bins(rule.groups, division)
    failed = (n_bins == 1) & (rule.groups.sizes > 1)
    value = lp_norm(bins.gap, bins.count, norm, division.bounds)
    return Estimates(value, bins, division.bounds, n_bins, notes={_NOT_MONOTONE: failed})


def _ends_between(rule: BinningRule, fewest: int, most: int) -> bool:
    """Return whether the sweep of one sample ends with `fewest` bins or more, but not `most`, as mean labels fall."""
    n_bins = int(monotone_sweep(rule)[0])
    mean = summarize_bins(rule.groups, partition(rule, n_bins + 1)).mean_label
    return fewest <= n_bins < most and bool((mean[1:] < mean[:-1]).any())
