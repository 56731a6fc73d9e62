"""Is the model calibrated? A test with any estimator as its statistic, and Spiegelhalter's beside it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal._lib.checks import as_generator, check_choice, check_count
from truecal._lib.text import format_pvalue, p_equals
from truecal._lib.types import FloatArray, RNGLike
from truecal.data import as_samples
from truecal.data.sample import Sample
from truecal.estimators._registry import get_estimator
from truecal.exceptions import CalibrationWarning
from truecal.inference.resample import redraw_classes, redraws, require_whole_counts
from truecal.inference.spiegelhalter import SpiegelhalterResult, rows_of_classes, z_of, z_of_classes
from truecal.results import SCHEMA_VERSION, Estimate, mean_over_classes

#: The quantiles of the null distribution that `to_dict` gives.
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class TestResult:
    """A test of perfect calibration.

    Attributes
    ----------
    statistic : float
        The estimate on the data.
    pvalue : float
        How often labels that are drawn from the scores give as large a statistic.
    pvalue_range : tuple of float
        The p-value if all that tie with the statistic were smaller, and if all were larger. The two are equal
        unless the data are few and discrete.
    null : ndarray of shape (n_resamples,)
        The statistic on labels drawn from the scores, read-only.
    n_resamples : int
        How many times labels were drawn.
    spiegelhalter : SpiegelhalterResult
        A second test of the same hypothesis, which needs no resampling.
    estimator, norm, n, target
        As on an `Estimate`.
    adjusted_pvalue : float or None
        For one class of a classwise test: the p-value corrected by Holm for the number of classes.
    notes : tuple of str
        What a reader of the numbers must know.
    classes : tuple of TestResult
        For a classwise test, that of each class.
    """

    __test__: ClassVar[bool] = False  # pytest would take the class for one of tests

    statistic: float
    pvalue: float
    pvalue_range: tuple[float, float]
    null: FloatArray
    n_resamples: int
    spiegelhalter: SpiegelhalterResult
    estimator: str
    norm: float | None
    n: float
    target: str
    adjusted_pvalue: float | None = None
    notes: tuple[str, ...] = ()
    classes: tuple[TestResult, ...] = ()

    def __post_init__(self) -> None:
        null = self.null.view()
        null.flags.writeable = False
        object.__setattr__(self, "null", null)

    def __str__(self) -> str:
        norm = "" if self.norm is None else f" (l{self.norm:g})"
        low, high = self.pvalue_range
        tied = (
            "" if high - low < 0.01 else f", whose ties leave {format_pvalue(low)} to {format_pvalue(high)}"
        )
        middle, critical = np.quantile(self.null, [0.5, 0.95])
        lines = [
            f"{self.estimator}{norm} of {self.target}: {self.statistic:.4f}, n = {self.n:.10g}",
            f"Under perfect calibration about {middle:.4f}, and in 5 % of cases above {critical:.4f}",
            f"{p_equals(self.pvalue)} ({self.n_resamples} draws of labels{tied})",
            str(self.spiegelhalter),
        ]
        if self.classes:
            low_classes = sum((part.adjusted_pvalue or 0.0) <= 0.05 for part in self.classes)
            lines.append(
                f"{low_classes} of {len(self.classes)} classes have p <= 0.05 after Holm's correction"
            )
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        shown = f"{self.estimator} {self.statistic:.4f}, n = {self.n:.10g}"
        return f"<TestResult {shown}, {p_equals(self.pvalue)}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain Python objects; of the null distribution its quantiles."""
        return {
            "schema_version": SCHEMA_VERSION,
            "statistic": self.statistic,
            "pvalue": self.pvalue,
            "pvalue_range": list(self.pvalue_range),
            "adjusted_pvalue": self.adjusted_pvalue,
            "n_resamples": self.n_resamples,
            "null_quantiles": {
                f"{level:g}": float(value)
                for level, value in zip(_LEVELS, np.quantile(self.null, _LEVELS), strict=True)
            },
            "spiegelhalter": self.spiegelhalter.to_dict(),
            "estimator": self.estimator,
            "norm": self.norm,
            "n": self.n,
            "target": self.target,
            "notes": list(self.notes),
            "classes": [part.to_dict() for part in self.classes],
        }


def calibration_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    estimator: str = "em_sweep",
    norm: float = 2,
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
    ties: str = "random",
    rng: RNGLike = None,
    **options: Any,
) -> TestResult:
    r"""Test the hypothesis that every score is the probability that it claims to be.

    The estimate T on the data is compared with those on labels drawn from the scores (consistency
    resampling). With R such draws and T*_r the estimate on draw r,

    .. math:: p = \frac{1 + \#\{r : T^*_r \ge T\}}{1 + R} .

    If the model is calibrated, the data are one more draw of the same kind and every rank of T is equally
    likely: the test holds its level exactly, whatever n and the scores are. What resampling cannot show is
    perfect calibration: a large p-value says that n rows do not contradict it. How much error could
    still be there is answered by `truecal.simulation.detectable_error`.

    *Ties.* With few rows, or scores near 0 and 1, many draws give the very same labels and so the same T.
    To count them all, as the formula says, would be safe but too severe: the level would be 3 % where 5 % is
    asked, on 100 rows with scores from Beta(2.8, 0.05). With ``ties="random"`` T takes a random place among
    its ties, and the level is exact again. `pvalue_range` shows what this leaves open. If more than half
    of the draws tie, the data can say nothing, and all ties are counted in any case. Differences within
    rounding are ties. The debiased estimators are compared before they are clipped at 0 (by
    `Estimate.signed_square`), which would tie half of their draws.

    *Classwise.* One class is drawn for each row from its K probabilities, which gives the joint distribution
    of all classes. The statistic is the mean over the classes, its p-value is exact as well. Each class has
    its own p-value, and one corrected by Holm's method, which holds for all classes at once.

    Parameters
    ----------
    y_true : array-like of shape (n,), (n, 1) or one-hot (n, K), or Sample
        Labels; see `truecal.data.read`. A `Sample` stands for both labels and scores.
    y_proba : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities, as for `truecal.estimate`.
    estimator : str
        The statistic, one of `truecal.list_estimators`. Large values speak against calibration.
    norm : float
        The p of the norm of the estimator.
    n_resamples : int
        Number of draws. The least p-value is 1 / (n_resamples + 1).
    sample_weight : array-like of shape (n,), optional
        Whole numbers: weight 2 equals the row twice.
    pos_label, labels, multiclass
        As for `truecal.estimate`.
    ties : {"random", "count"}
        Where T stands among draws that tie with it: at random, or below all of them.
    rng : seed or numpy.random.Generator, optional
        The same seed gives the same result.
    **options
        Options of the estimator, such as ``n_bins``.

    Returns
    -------
    TestResult

    Warns
    -----
    CalibrationWarning
        If the estimate cannot be taken at face value: a sweep over labels that fall as scores rise finds
        nothing, and the test neither. Spiegelhalter's test, which is always in the result, sees it.

    References
    ----------
    Bröcker, Smith (2007), Increasing the reliability of reliability diagrams, Weather and Forecasting.
    Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS.
    Davison, Hinkley (1997), Bootstrap methods and their application, section 4.2.
    Holm (1979), Scandinavian Journal of Statistics 6, 65-70.

    Examples
    --------
    >>> import truecal
    >>> population = truecal.Population(truecal.simulation.BetaScores(1, 1), truecal.simulation.PowerCurve(1.2))
    >>> y, p = population.sample(1000, rng=0)
    >>> print(calibration_test(y, p, rng=0))
    em_sweep (l2) of P(y = 1): 0.0621, n = 1000
    Under perfect calibration about 0.0356, and in 5 % of cases above 0.0503
    p = 0.005 (999 draws of labels)
    Spiegelhalter's Z = -0.48, p = 0.63
    """
    spec = get_estimator(estimator)
    spec.check_options(options)
    n_resamples = check_count("n_resamples", n_resamples)
    check_choice("ties", ties, ("random", "count"))
    generator = as_generator(rng)
    if spec.random:
        options = {"rng": generator, **options}
    reading = {
        "sample_weight": sample_weight,
        "pos_label": pos_label,
        "labels": labels,
        "multiclass": multiclass,
    }
    samples = as_samples(y_true, y_proba, **reading)
    for sample in samples:
        require_whole_counts(sample, "The test")
    draws: Iterable[tuple[Sample, ...]]
    if len(samples) == 1:
        draws = ((draw,) for draw in redraws(samples[0], n_resamples, rng=generator))
        beside = z_of(samples[0])
    else:
        rows = rows_of_classes(y_true, y_proba, reading)
        draws = _joint_redraws(samples, rows, n_resamples, generator)
        beside = z_of_classes(samples, rows)

    def measure(each: tuple[Sample, ...]) -> list[Estimate]:
        return [spec(sample, norm=norm, **options) for sample in each]

    observed = measure(samples)
    # The axes are draws, classes, and (value, ranking value).
    null = np.array([[(one.value, rank_value(one)) for one in measure(draw)] for draw in draws])
    tests = [
        _compare(one, rank_value(one), null[:, k], ties, generator, z_of(sample), _impossible(sample))
        for k, (one, sample) in enumerate(zip(observed, samples, strict=True))
    ]
    if len(tests) == 1:
        outcome, notes = tests[0], observed[0].notes
    else:
        mean = mean_over_classes(observed)
        rank, mean_null = float(np.mean([rank_value(one) for one in observed])), null.mean(axis=1)
        mean_null[:, 0] = np.mean(null[:, :, 0] ** (mean.norm or 1), axis=1) ** (1 / (mean.norm or 1))
        whole = _compare(mean, rank, mean_null, ties, generator, beside, _impossible(*samples))
        outcome, notes = replace(whole, classes=corrected_by_holm(tests)), mean.notes
    for note in notes:
        warnings.warn(f"{spec.name} of {outcome.target}: {note}", CalibrationWarning, stacklevel=2)
    return outcome


def rank_value(estimate: Estimate) -> float:
    """Return by what a test compares estimates: the value, or its square before it was clipped at 0."""
    return estimate.value if estimate.signed_square is None else estimate.signed_square


def _compare(
    estimate: Estimate,
    rank: float,
    null: FloatArray,
    ties: str,
    rng: np.random.Generator,
    beside: SpiegelhalterResult,
    notes: tuple[str, ...],
) -> TestResult:
    """Return the test of one estimate from the (value, ranking value) of each draw."""
    values, ranks = null.T
    # Sums in another order differ in their last digits, and that is no difference.
    rounding = 1e-9 * float(np.ptp(ranks)) + 1e-12 * abs(rank)
    above = int(np.count_nonzero(ranks > rank + rounding))
    tied = int(np.count_nonzero(np.abs(ranks - rank) <= rounding))
    counted = tied
    if ties == "random" and 2 * tied <= len(ranks):
        counted = int(rng.integers(tied, endpoint=True))
    total = 1 + len(ranks)
    return TestResult(
        statistic=estimate.value,
        pvalue=(1 + above + counted) / total,
        pvalue_range=((1 + above) / total, (1 + above + tied) / total),
        null=values,
        n_resamples=len(ranks),
        spiegelhalter=beside,
        estimator=estimate.estimator,
        norm=estimate.norm,
        n=estimate.n,
        target=estimate.target,
        notes=(*estimate.notes, *notes),
    )


def _impossible(*samples: Sample) -> tuple[str, ...]:
    """Say how many rows have a label that their score had ruled out."""
    wrong = sum(float(sample.positives[sample.score == 0].sum()) for sample in samples)
    if len(samples) == 1:
        sure = samples[0].score == 1
        wrong += float((samples[0].count[sure] - samples[0].positives[sure]).sum())
    if not wrong:
        return ()
    rows = "row has" if wrong == 1 else "rows have"
    return (f"{wrong:.10g} {rows} a label that a score of exactly 0 or 1 had ruled out.",)


# --- Several classes -------------------------------------------------------------------------------


def _joint_redraws(
    samples: tuple[Sample, ...], proba: FloatArray, n_resamples: int, rng: np.random.Generator
) -> Iterator[tuple[Sample, ...]]:
    """Yield the samples of all classes, one class being drawn for each row."""
    group = [sample.score.searchsorted(proba[:, k]) for k, sample in enumerate(samples)]
    for drawn in redraw_classes(proba, n_resamples, rng=rng):
        yield tuple(
            sample.with_positives(_count(group[k][drawn == k], len(sample)))
            for k, sample in enumerate(samples)
        )


def _count(group: NDArray[np.intp], n_groups: int) -> FloatArray:
    return np.bincount(group, minlength=n_groups).astype(np.float64)


def corrected_by_holm(tests: Sequence[TestResult]) -> tuple[TestResult, ...]:
    """Return the tests with p-values that hold for all of them at once (Holm 1979)."""
    pvalue = np.array([test.pvalue for test in tests])
    order = np.argsort(pvalue)
    adjusted = np.empty_like(pvalue)
    adjusted[order] = np.maximum.accumulate(pvalue[order] * np.arange(len(pvalue), 0, -1)).clip(max=1.0)
    return tuple(
        replace(test, adjusted_pvalue=float(value)) for test, value in zip(tests, adjusted, strict=True)
    )
