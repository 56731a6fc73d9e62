"""ECE_sweep: the largest number of bins for which the mean labels increase."""

from __future__ import annotations

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
    monotone_sweep,
    partition,
    summarize_bins,
)
from truecal.estimators._registry import estimator
from truecal.results import Estimates

#: Fewer rows than this are sorted sooner, and so are all if there are more bins, with edges in too many cells.
_FEWEST_ROWS, _MOST_BINS, _CELLS = 1 << 17, 256, 1 << 15

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
    """Count rows between the edges of all equal-width bins that a sweep tries.

    A sweep over narrow cells, whose ends are not quite the edges, tells how many bins to expect. Whether the sweep over
    the counted rows ends before their edges do is then checked.
    """

    def count(self, label: NDArray[Any], score: NDArray[Any], target: str) -> Sample | None:
        """Return a sample of groups between edges; None if sorting all rows is quicker."""
        if not _FEWEST_ROWS <= len(score) <= MOST_COUNTED_ROWS:
            return None
        cells = RowCells.count(label, score, _CELLS)
        expected = int(monotone_sweep(EqualWidth(cells.closed()))[0])
        if expected > _MOST_BINS:
            return None
        for most in (expected + 4, 2 * expected + 8):
            edges = width_edges(np.arange(most)[:, np.newaxis], np.arange(1, most + 1), score.dtype)
            sample = cells.between(np.unique(edges[edges < 1]), target)
            if _ends_before(sample, most):
                return sample
        return None


@estimator(
    "ew_sweep",
    summary="Binned error with the most equal-width bins for which labels increase.",
    reference=_REFERENCE,
    takes_blocks=True,
    counting=SweepCounting,
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


def _ends_before(sample: Sample, most: int) -> bool:
    """Return whether a sweep over equal-width bins ends before `most` of them, because the mean labels fall."""
    rule = EqualWidth(sample)
    n_bins = int(monotone_sweep(rule)[0]) + 1
    mean = summarize_bins(sample, partition(rule, n_bins)).mean_label
    return n_bins <= most and bool((mean[1:] < mean[:-1]).any())
