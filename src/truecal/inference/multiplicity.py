"""P-values for many hypotheses at once."""

from __future__ import annotations

import numpy as np

from truecal._lib.types import FloatArray


def adjusted_pvalues(statistic: FloatArray, null: FloatArray) -> FloatArray:
    r"""Return p-values that control the family-wise error rate, by the step-down max-T method.

    The statistics are sorted, largest first. With :math:`T_{(k)}` the k-th and :math:`T^*_{(k)r}` its value in
    draw r of the joint null distribution,

    .. math:: p_{(k)} = \max_{i \le k} \frac{1 + \#\{r : \max_{j \ge i} T^*_{(j)r} \ge T_{(i)}\}}{1 + R} .

    The smallest possible value is 1 / (R + 1) for any number of hypotheses; with Bonferroni's or Holm's method
    it is that times their number. Statistics are compared in units of their own interquartile range under the
    null hypothesis, so that each hypothesis has about the same chance to give the maximum.

    Parameters
    ----------
    statistic : ndarray of shape (K,)
        One for each hypothesis; large values are evidence against it.
    null : ndarray of shape (K, R)
        The same statistics on R joint draws under the null hypotheses.

    Returns
    -------
    ndarray of shape (K,)

    References
    ----------
    Westfall, Young (1993), Resampling-based multiple testing, Wiley, section 2.6.

    Examples
    --------
    >>> null = np.random.default_rng(0).chisquare(1, (60, 999))
    >>> adjusted_pvalues(np.array([40.0] * 50 + [1.0] * 10), null)[[0, 49, 50]].round(3)
    array([0.001, 0.001, 0.963])
    """
    # The data take part in the scale as one more draw, which keeps the test exact.
    pooled = np.concatenate([statistic[:, np.newaxis], null], axis=1)
    low, middle, high = np.quantile(np.where(np.isinf(pooled), 1e300, pooled), [0.25, 0.5, 0.75], axis=1)
    scale = np.where(high > low, high - low, 1.0)[:, np.newaxis]
    # Sums in another order differ in their last digits; such differences are ties.
    pooled = np.round((pooled - middle[:, np.newaxis]) / scale, 9)
    order = np.argsort(-pooled[:, 0], kind="stable")
    ranked = pooled[order]
    largest = np.maximum.accumulate(ranked[::-1, 1:], axis=0)[::-1]
    raw = (1 + np.count_nonzero(largest >= ranked[:, :1], axis=1)) / pooled.shape[1]
    adjusted = np.empty(len(statistic))
    adjusted[order] = np.maximum.accumulate(raw)
    return adjusted
