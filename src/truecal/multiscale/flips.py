r"""How far random signs of clusters can be trusted where events are rare.

If rows of a cluster depend on each other, a test compares the data with residual sums of clusters :math:`s_c` whose
signs are random (see `truecal.multiscale.null`). That needs sums that are about as often positive as negative. Rare
events make them skewed: most clusters have none and a small negative sum, a few have many. If those few happen to be
missing, the total is far below 0 *and* the sums that should show how large a total can be are small. Without any event
every sum is negative, and the data are the most extreme pattern of signs there is, whatever the model.

So the sums with random signs are scaled up to the variance that the scores imply, if their own is smaller. With
:math:`V_c = \sum f (1 - f)` the variance of independent labels, :math:`e_c = s_c - V_c \sum s / \sum V` the sums less
what they have in common, and r the variance of a label at the observed rate of events, divided by that at the expected
rate but at most 1, the factor is the root of

.. math:: \lambda^2 = \frac{1}{\sum s_c^2}
    \max\Big(\sum_c s_c^2,\ \sum_c V_c,\ r^{-a} \frac{G}{G-1} \sum_c e_c^2\Big) .

The second term says that what independent rows show by chance is no evidence. The third is the variance between
clusters that the data show, carried over from the rate that was observed to the rate that the scores expect: fewer
events show less of it. The power a is 1 for 20 clusters and 3/4 for 40 or more. No dependence at all can give more than
:math:`\sum_c m_c V_c` with m the rows of a cluster, which limits the factor.

The third term is an estimate from :math:`G_e = (\sum e_c^2)^2 / \sum e_c^4` clusters, as if these were equal. If they
are fewer than 3 or 4, or all labels are the same, it says nothing. The limit is then used for the variance: a model
that is far off is still found, and otherwise the data hold *too little information for a test*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

from truecal._lib.text import counted
from truecal._lib.types import FloatArray

#: Effective number of clusters, out of G, that is needed to show how much clusters differ: the sum of the first and of
#: the second divided by G, which is 4 for 15 clusters and 3 for 45. Of fewer than 15 clusters it is that share, because
#: about a third of the number counts in effect even if all are alike.
_FEWEST, _USUAL = (2.5, 22.5), 15
#: How the variance between clusters follows the variance of a label: the power of r is the first and the second divided
#: by G, up to 40 clusters. With a power of 1 and 40 clusters the test hardly finds risks of twice the rate of events;
#: with 0 it finds them, at a level of up to 0.09. These and `_FEWEST` were chosen on 20 calibrated designs with 300
#: draws each, changed once after a look at 23 others, and then checked on 12 that had played no part.
_POWER, _MOST = (0.5, 10.0), 40
#: With random signs for fewer clusters than this no p-value is 0.05 or less.
_FEWEST_SIGNS = 6
#: A p-value up to this counts although the clusters hold little information, as it allows for any dependence.
_CLEAR = 0.05


@dataclass(frozen=True)
class FlipScale:
    """What random signs of clusters must be multiplied by, and whether they say enough.

    Attributes
    ----------
    factor : float
        At least 1.
    deviation : float
        Standard deviation of the total of the sums with random signs, scaled.
    too_little : str
        Why the clusters hold too little information for a test; empty if they hold enough.
    doubt : float
        Relative variance of the variance between clusters beyond that of normal sums, :math:`1 / G_e - 3 / (G + 2)`,
        and at least 1 / G: far out in the tail skewed sums make random signs too certain even if no few stand out.
    """

    factor: float
    deviation: float
    too_little: str = ""
    doubt: float = 0.0

    def reason(self, pvalue: float) -> str:
        """Return why a p-value from scaled signs is no test; empty if it is one.

        Parameters
        ----------
        pvalue : float
            With too little information it allows for any dependence, and counts if it is small.
        """
        return "" if pvalue <= _CLEAR else self.too_little


def flip_scale(
    score: FloatArray, residual: FloatArray, weight: FloatArray, cluster: NDArray[np.intp], known: str = ""
) -> FlipScale:
    """Return how residual sums with random signs must be scaled.

    Parameters
    ----------
    score, residual, weight : ndarray of shape (m,)
        Score, and w (f - y) and w, of rows or of sums over rows of the same cluster and score.
    cluster : ndarray of int, of shape (m,)
        Number of the cluster, from 0.
    known : str
        Why all rows, of which these are a part, hold too little information; empty if they hold enough.

    Examples
    --------
    >>> score, cluster = np.full(100, 0.01), np.repeat(np.arange(20), 5)
    >>> scale = flip_scale(score, score, np.ones(100), cluster)  # no event
    >>> round(scale.factor, 1), scale.too_little
    (9.9, 'all labels are the same, which does not show how much clusters differ')
    """
    columns = [np.bincount(cluster, values) for values in (weight, residual, weight * score * (1 - score))]
    size, sums, information = (column[columns[0] > 0] for column in columns)
    count, own, noise = len(sums), float(sums @ sums), float(information.sum())
    reason = known or _few(count)
    if not own > 0 or not noise > 0:  # nothing to scale: no residual, or none that the scores allow
        return FlipScale(1.0, math.sqrt(own), reason)
    total, expected, common = float(size.sum()), float(weight @ score), float(sums.sum())
    spread = expected * (total - expected)
    ratio = (expected - common) * (total - expected + common) / spread if spread > 0 else 0.0
    rest = sums - information * (common / noise)
    squares = float(rest @ rest)
    effective = squares**2 / float(np.sum(rest**4)) if squares > 1e-12 * own else float(count)
    most = float(size @ information)
    if ratio <= 1e-9:
        reason = reason or "all labels are the same, which does not show how much clusters differ"
    elif effective < _needed(count):
        about = counted(max(round(effective), 1), "cluster")
        reason = reason or f"about {about} of {count:,} have nearly all that shows how much clusters differ"
    power = _POWER[0] + _POWER[1] / min(count, _MOST)
    between = squares / min(max(ratio, 1e-9), 1.0) ** power * count / max(count - 1, 1)
    variance = max(most if reason else min(max(noise, between), most), own)
    doubt = max(1 / effective - 3 / (count + 2), 1 / count)
    return FlipScale(math.sqrt(variance / own), math.sqrt(variance), reason, doubt)


def far_tail(pvalue: float, doubt: float) -> float:
    """Return a p-value that is used for many tests at once, with Student's t in place of the normal distribution.

    Parameters
    ----------
    pvalue : float
        From scaled signs, whose variance is taken as known.
    doubt : float
        Relative variance of that variance, of which the reciprocal is the number of degrees of freedom.
    """
    if doubt <= 0 or not 0 < pvalue < 1:
        return pvalue
    return 2 * float(stdtr(1 / doubt, float(ndtri(pvalue / 2))))


def _needed(count: int) -> float:
    return (_FEWEST[0] + _FEWEST[1] / max(count, _USUAL)) * min(1.0, count / _USUAL)


def _few(count: int) -> str:
    if count >= _FEWEST_SIGNS:
        return ""
    return f"with {counted(count, 'cluster')} no p-value can be below 1/{2 ** max(count - 1, 0)}"
