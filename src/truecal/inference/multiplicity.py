"""P-values for many hypotheses at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.estimators._registry import MULTISCALE
from truecal.inference._test_result import TestResult


def adjusted_pvalues(statistic: FloatArray, null: FloatArray) -> FloatArray:
    r"""Return p-values that control the family-wise error rate, by the step-down max-T method.

    The statistics are sorted, largest first. With :math:`T_{(k)}` the k-th and :math:`T^*_{(k)r}` its value in
    draw r of the joint null distribution,

    .. math:: p_{(k)} = \max_{i \le k} \frac{1 + \#\{r : \max_{j \ge i} T^*_{(j)r} \ge T_{(i)}\}}{1 + R} .

    The smallest possible value is 1 / (R + 1) for any number of hypotheses; with Bonferroni's or Holm's method
    it is that times their number. Statistics are compared in units of their own interquartile range under the
    null hypothesis, so that each hypothesis has about the same chance to give the maximum.

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


def holm(pvalues: Sequence[float]) -> FloatArray:
    """Return p-values that hold for all of them at once, under any dependence (Holm 1979).

    Examples
    --------
    >>> holm([0.02, 0.5, 0.01]).tolist()
    [0.04, 0.5, 0.03]
    """
    pvalue = np.asarray(pvalues)
    order = np.argsort(pvalue, kind="stable")
    adjusted = np.empty_like(pvalue)
    adjusted[order] = np.maximum.accumulate(pvalue[order] * np.arange(len(pvalue), 0, -1)).clip(max=1.0)
    return adjusted


def adjusted_together(tests: Sequence[TestResult], *, dependent: bool = False) -> tuple[TestResult, ...]:
    """Return tests with equal numbers of draws, with p-values adjusted for all of them by `adjusted_pvalues`.

    Tests of "at most this error" have no draws and are returned as they are.
    """
    if not tests or tests[0].at_most is not None:
        return tuple(tests)
    if dependent:
        return corrected_by_holm(tests)
    statistic, null = np.array([test.statistic for test in tests]), np.stack([test.null for test in tests])
    adjusted = adjusted_pvalues(statistic, null).tolist()
    # Ties are counted in other ways for one test and for several; an adjusted p-value is never the smaller one.
    return tuple(
        replace(test, adjusted_pvalue=max(pvalue, test.pvalue))
        for test, pvalue in zip(tests, adjusted, strict=True)
    )


def corrected_by_holm(tests: Sequence[TestResult]) -> tuple[TestResult, ...]:
    """Return the tests with p-values that hold for all of them at once (Holm 1979).

    For the multiscale test the p-values are extrapolated beyond the draws before they are multiplied, so that many
    tests do not need many draws.
    For estimators the smallest adjusted p-value is the number of tests divided by ``n_resamples + 1``; a note says so
    where this is above 0.05.
    """
    adjusted = holm([test.tail_pvalue for test in tests])
    return tuple(
        replace(
            test,
            adjusted_pvalue=max(float(value), test.pvalue),
            notes=(*test.notes, *_floor(test, len(tests))),
        )
        for test, value in zip(tests, adjusted, strict=True)
    )


def _floor(test: TestResult, n_tests: int) -> tuple[str, ...]:
    smallest = n_tests / (test.n_resamples + 1)
    if test.method == MULTISCALE or smallest <= 0.05:
        return ()
    few = f"With {n_tests} tests and {test.n_resamples} resamples no adjusted p-value is below {smallest:.2g}"
    return (f"{few}; use more resamples or method='multiscale'.",)


def e_benjamini_hochberg(log_evalues: FloatArray, alpha: float) -> NDArray[np.bool_]:
    """Return which hypotheses are rejected at a false discovery rate of alpha, from their e-values.

    The k hypotheses with the largest e-values are rejected, with k the largest number such that the k-th largest of
    K e-values is at least K / (k alpha). It is valid under any dependence, and for e-processes at any stopping time.

    References
    ----------
    Wang, Ramdas (2022), False discovery rate control with e-values, JRSS B 84, 822-852.

    Examples
    --------
    >>> e_benjamini_hochberg(np.log([70.0, 25.0, 0.5]), 0.05).tolist()
    [True, False, False]
    >>> e_benjamini_hochberg(np.log([70.0, 35.0, 0.5]), 0.05).tolist()
    [True, True, False]
    """
    count = len(log_evalues)
    rank = np.arange(1, count + 1)
    ordered = np.sort(log_evalues)[::-1]
    passed = np.flatnonzero(ordered >= np.log(count / (rank * alpha)))
    if not passed.size:
        return np.zeros(count, dtype=bool)
    return np.asarray(log_evalues >= ordered[passed[-1]])
