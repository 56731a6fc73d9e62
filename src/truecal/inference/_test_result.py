"""Result of a test, what a test of "at most this error" decides, and p-values for many hypotheses at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from truecal._lib.checks import check_fraction
from truecal._lib.numeric import rejects
from truecal._lib.text import counted, format_pvalue, level, p_equals, sample_size, statistic
from truecal._lib.types import FloatArray
from truecal.estimators._registry import MULTISCALE
from truecal.exceptions import InputError
from truecal.inference.spiegelhalter import SpiegelhalterResult
from truecal.multiscale import Component, Limits
from truecal.results import Result

#: What the data say about "the error is below the limit".
SHOWN, CONTRADICTED, NOT_SHOWN = "shown", "contradicted", "not shown"
#: Probability, by the distribution behind the limits, with which the reported number of rows settles the question. In
#: simulations with 600 rows it was 0.7 to 0.99: the estimate that the limits start from is rounded up near 0.
POWER = 0.9


@dataclass(frozen=True)
class Decision(Result):
    """Whether the data show that the calibration error is below a limit.

    Attributes
    ----------
    state : {"shown", "contradicted", "not shown"}
        ``"shown"`` if the error is shown to be below the limit, ``"contradicted"`` if it is shown to be above.
    at_most : float
        The limit.
    alpha : float
        Level of each of the two one-sided tests.
    error : float
        The estimated error.
    lower, upper : float
        One-sided confidence limits of the error, each at the level 1 - alpha.
    pvalue : float
        p-value of the hypothesis that the error is at least `at_most`.
    n : float
        Number of rows, or their total weight.
    n_needed : int or None
        Where nothing is shown: about how many rows in all are likely to settle the question, if the true error is
        the estimate and further rows are like these. None if that is more than 10,000 times the rows at hand.
    """

    _derived: ClassVar[tuple[str, ...]] = ("verdict",)

    state: str
    at_most: float
    alpha: float
    error: float
    lower: float
    upper: float
    pvalue: float
    n: float
    n_needed: int | None

    @property
    def verdict(self) -> str:
        """What the data show, in one sentence, and how many rows would settle it in another."""
        side = f"one-sided {level(1 - self.alpha)} limit"
        below = f"the calibration error is below {self.at_most:g}"
        if self.state == SHOWN:
            return f"The data show that {below} (upper {side} {self.upper:.4f}, {p_equals(self.pvalue)})."
        if self.state == CONTRADICTED:
            above = f"the calibration error is above {self.at_most:g}"
            return (
                f"The data show that {above}: it is about {self.error:.4f} (lower {side} {self.lower:.4f})."
            )
        numbers = f"the estimate is {self.error:.4f}, the upper {side} {self.upper:.4f}"
        return f"The data do not show that {below}: {numbers}. {self._rows()}"

    def _rows(self) -> str:
        if self.n_needed is None:
            return "No feasible number of rows like these is likely to settle it."
        direction = "below" if self.error < self.at_most else "above"
        more = self.n_needed - self.n
        rows = f"With about {counted(more, 'more row')} like these ({self.n_needed:,} in all)"
        return f"{rows} you could probably show that it is {direction}, if the true error is the estimate."


def decide(limits: Limits, at_most: float, alpha: float, n: float) -> Decision:
    """Return what the confidence limits say about an error below `at_most`."""
    pvalue, needed = limits.at_most(at_most), None
    if rejects(pvalue, alpha):
        state = SHOWN
    elif rejects(limits.at_least(at_most), alpha):
        state = CONTRADICTED
    else:
        state = NOT_SHOWN
        factor = limits.rows_factor(at_most, alpha, POWER)
        if factor is not None:
            needed = _rounded(max(factor, 1.0) * n)
            needed = needed if needed > n else math.ceil(n) + 1
    lower, upper = limits.lower(alpha), limits.upper(alpha)
    return Decision(state, at_most, alpha, limits.error, lower, upper, pvalue, n, needed)


def _rounded(rows: float) -> int:
    """Return a number of rows rounded up to two significant digits."""
    unit: int = 10 ** max(math.floor(math.log10(rows)) - 1, 0)
    return math.ceil(rows / unit) * unit


#: What is shown instead of a p-value where the data hold too little information for a test.
NOT_TESTED = "not tested"
_NO_TEST = "Not tested: "
#: Quantiles of the null distribution in `TestResult.null_quantiles`.
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class TestResult(Result):
    """Result of a test of calibration.

    Attributes
    ----------
    statistic : float
        Value of the test statistic on the data; with `at_most`, the estimated error.
    pvalue : float
        p-value.
    pvalue_range : tuple of float
        The p-value if all draws that tie with the data were below it, and if all were above. The two are equal unless
        the data are few and discrete.
    null : ndarray of shape (n_resamples,)
        Statistic on the resamples, read-only.
    n_resamples : int
        Number of Monte Carlo resamples.
    method : str
        The test: ``"multiscale"``, or the name of the estimator that is the statistic.
    n : float
        Number of rows, or the total weight.
    target : str
        What the scores are probabilities of.
    norm : float or None
        Order of the norm, where the method has one.
    component : str or None
        Part of the calibration curve that contributes most to the multiscale statistic, such as "the slope".
    components : tuple of Component
        All components of the multiscale statistic, each with a p-value of its own.
    at_most : float or None
        If given, the null hypothesis is that the error is at least this large; else that it is 0.
    spiegelhalter : SpiegelhalterResult or None
        Spiegelhalter's test of the same hypothesis, which needs no resampling.
    tail_pvalue : float
        The p-value, extrapolated beyond the draws if fewer than ten of them reach the statistic, and larger if the
        variance between clusters is uncertain. It is used to correct for many groups, where 1 / (n_resamples + 1) would
        be too large a smallest p-value.
    asymptotic_pvalue : float or None
        Closed-form p-value for large samples, where the method has one (`ks`, `kuiper`).
    adjusted_pvalue : float or None
        For one of several classes or groups: the p-value corrected for their number.
    notes : tuple of str
        Restrictions that a reader of the numbers must know.
    classes : tuple of TestResult
        For a classwise test, that of each class.
    limits : Limits or None
        With `at_most`: the confidence limits behind `decide`.
    resolution : int or None
        With `at_most`: number of intervals of scores in each of which the limit allows any error.
    n_clusters : int or None
        Number of clusters, if rows depend on each other.
    effective_size : float or None
        With sampling weights, Kish's effective number of rows.
    tested : bool
        False if the clusters hold too little information for a test, as those of a few rare events do. The p-value is
        then 1, and a note says why: the data say neither that the model is calibrated nor that it is not.
    label_kind : str or None
        The kind of labels, if they are not the truth; see `truecal.labels`.
    """

    __test__: ClassVar[bool] = False  # not a test class for pytest
    _omitted: ClassVar[tuple[str, ...]] = ("null", "limits")
    _derived: ClassVar[tuple[str, ...]] = ("null_quantiles",)

    statistic: float
    pvalue: float
    pvalue_range: tuple[float, float]
    null: FloatArray
    n_resamples: int
    method: str
    n: float
    target: str
    norm: float | None = None
    component: str | None = None
    components: tuple[Component, ...] = ()
    at_most: float | None = None
    spiegelhalter: SpiegelhalterResult | None = None
    tail_pvalue: float = math.nan
    asymptotic_pvalue: float | None = None
    adjusted_pvalue: float | None = None
    notes: tuple[str, ...] = ()
    classes: tuple[TestResult, ...] = ()
    limits: Limits | None = None
    resolution: int | None = None
    n_clusters: int | None = None
    effective_size: float | None = None
    tested: bool = True
    label_kind: str | None = None

    def decide(self, alpha: float = 0.05) -> Decision:
        """Return what a test with `at_most` shows, and how many rows would settle it.

        Parameters
        ----------
        alpha : float
            Significance level.

        Returns
        -------
        Decision

        Examples
        --------
        >>> import truecal
        >>> data = truecal.datasets.load("flights")
        >>> test = truecal.calibration_test(data.y_true, data.y_proba, at_most=0.05)
        >>> test.decide().verdict
        'The data show that the calibration error is below 0.05 (upper one-sided 95% limit 0.0349, p < 0.001).'
        """
        if self.limits is None or self.at_most is None:
            raise InputError("was not passed to this test; pass it to get a decision", argument="at_most")
        return decide(self.limits, self.at_most, check_fraction("alpha", alpha), self.n)

    def __post_init__(self) -> None:
        null = self.null.view()
        null.flags.writeable = False
        object.__setattr__(self, "null", null)

    def not_tested(self, reason: str) -> TestResult:
        """Return the result marked as not tested, with a note on why; unchanged without a reason."""
        if not reason:
            return self
        note = f"{_NO_TEST}{reason}."
        return replace(
            self,
            pvalue=1.0,
            pvalue_range=(1.0, 1.0),
            tail_pvalue=1.0,
            tested=False,
            notes=(*self.notes, note),
        )

    @property
    def evidence(self) -> str:
        """The p-value as text, such as "p = 0.012", or "not tested"."""
        return p_equals(self.pvalue, self.n_resamples) if self.tested else NOT_TESTED

    @property
    def why_not_tested(self) -> str:
        """The note that says why the data hold too little information for a test; empty if they were tested."""
        return "" if self.tested else next(note for note in self.notes if note.startswith(_NO_TEST))

    @property
    def shown_pvalue(self) -> str:
        """The p-value for a table; adjusted, if it is for one of several groups or classes."""
        pvalue = self.pvalue if self.adjusted_pvalue is None else self.adjusted_pvalue
        return format_pvalue(pvalue, self.n_resamples) if self.tested else NOT_TESTED

    @property
    def null_quantiles(self) -> dict[str, float]:
        """Quantiles of the statistic on the resamples."""
        if not len(self.null):
            return {}
        values = np.quantile(self.null, _LEVELS).tolist()
        return {f"{level:g}": value for level, value in zip(_LEVELS, values, strict=True)}

    def __str__(self) -> str:
        lines = self._headline()
        if self.spiegelhalter is not None and self.tested:
            balanced = self.at_most is None and self.pvalue <= 0.05 < self.spiegelhalter.pvalue
            where = ", where these errors balance" if balanced else ""
            lines.append(f"{self.spiegelhalter} (tests the mean squared error only{where})")
        if self.classes:
            low = sum((part.adjusted_pvalue or 0.0) <= 0.05 for part in self.classes)
            lines.append(f"{low} of {len(self.classes)} classes have an adjusted p-value of at most 0.05")
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def _notebook(self) -> tuple[str, list[list[str]]]:
        rows = [
            [
                one.target,
                one.evidence.removeprefix("p ").removeprefix("= "),
                format_pvalue(one.pvalue if one.adjusted_pvalue is None else one.adjusted_pvalue),
            ]
            for one in self.classes
        ]
        return str(self), [["class", "p", "adjusted p"], *rows] if rows else []

    def _headline(self) -> list[str]:
        norm = "" if self.norm is None else f" (l{self.norm:g})"
        size = sample_size(self.n, self.effective_size, self.n_clusters, self.label_kind)
        size += "" if self.label_kind is None else f"; {self.label_kind}"
        if self.at_most is not None:
            return [
                f"error{norm} of {self.target}: {self.statistic:.4f}, {size}",
                f"H0: the error is at least {self.at_most:g}; {p_equals(self.pvalue)}",
            ]
        if not self.tested:
            return [f"{self.method}{norm} test of {self.target}, {size}: {NOT_TESTED}"]
        low, high = self.pvalue_range
        ties = (
            "" if high - low < 0.01 else f", between {format_pvalue(low)} and {format_pvalue(high)} with ties"
        )
        evidence = f"{self.evidence} ({self.n_resamples} resamples{ties})"
        if self.method == MULTISCALE:
            lines = [f"multiscale test of {self.target}, {size}", evidence]
        else:
            lines = [*self._values(f"{self.method}{norm} test of {self.target}", size), evidence]
        if self.asymptotic_pvalue is not None:
            lines.append(f"Asymptotic {p_equals(self.asymptotic_pvalue)}")
        if self.component is not None:
            lines.append(f"Largest contribution: {self.component}")
        return lines

    def _values(self, name: str, size: str) -> list[str]:
        """Return the value of an estimator, and the values that it has if the model is calibrated."""
        middle, critical = np.quantile(self.null, [0.5, 0.95])
        small = max(abs(self.statistic), abs(critical)) < 0.01  # as squares are
        shown = [f"{value:.2e}" if small else f"{value:.4f}" for value in (middle, critical)]
        value = f"{self.statistic:.2e}" if small else statistic(self.statistic)
        return [
            f"{name}: statistic {value}, {size}",
            f"Null distribution: median {shown[0]}, 95th percentile {shown[1]}",
        ]

    def __repr__(self) -> str:
        value = "" if self.method == MULTISCALE and self.at_most is None else f" {statistic(self.statistic)}"
        return f"<TestResult {self.method}{value}, n = {self.n:.10g}, {self.evidence}>"


# --- Several hypotheses at once --------------------------------------------------------------------------


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
    # Ties are counted differently for one test and for several; an adjusted p-value is never the smaller one.
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
