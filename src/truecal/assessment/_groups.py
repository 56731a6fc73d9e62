"""The calibration of groups of rows and of classes, and whether groups differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import chdtrc, expit, fdtrc, logit

from truecal._lib.numeric import fit_logistic
from truecal._lib.text import as_table, format_pvalue, level, p_equals
from truecal._lib.types import FloatArray
from truecal.assessment._verdict import contradicts
from truecal.data.groups import Split
from truecal.data.question import Question, Rows
from truecal.data.sample import Sample
from truecal.estimators._registry import DEFAULT_ESTIMATOR, get_estimator
from truecal.inference._test_result import NOT_TESTED, TestResult, adjusted_together
from truecal.inference.calibration_test import calibration_test
from truecal.inference.interval import confidence_interval
from truecal.inference.reliability import Reliability, reliability_curve
from truecal.multiscale import MIN_CLUSTERS
from truecal.results import Estimate, Interval, Result

#: Groups with fewer rows are marked: their numbers are uncertain.
SMALL_GROUP = 100
#: Bins of the small diagrams of groups.
_GROUP_BINS = 8


@dataclass(frozen=True, eq=False)
class Group(Result):
    """The calibration of one group of rows, or of one class against the rest.

    Attributes
    ----------
    name : str
        Name of the group.
    key : tuple
        Its values, one for each column; a missing value is None.
    n : float
        Number of rows, or the total weight.
    estimate : Estimate
        Its calibration error.
    interval : Interval
        Simultaneous confidence interval: those of all groups hold at once at the level of the assessment.
    pvalue, adjusted_pvalue : float or None
        P-value of perfect calibration, for this group alone and adjusted for all groups; None without a test.
    tested : bool
        Whether its clusters hold enough information for a test; if not, the p-values are 1.
    miscalibrated : bool
        Whether perfect calibration of this group is rejected after adjustment.
    small : bool
        Whether it has so few rows or clusters that its numbers are uncertain.
    n_clusters : int or None
        Number of clusters with rows in this group, if rows depend on each other.
    reliability : Reliability
        Its calibration curve, without a band.
    """

    _omitted: ClassVar[tuple[str, ...]] = ("key", "reliability")

    name: str
    key: tuple[Any, ...]
    n: float
    estimate: Estimate
    interval: Interval
    pvalue: float | None
    adjusted_pvalue: float | None
    tested: bool
    miscalibrated: bool
    small: bool
    n_clusters: int | None
    reliability: Reliability


@dataclass(frozen=True, eq=False)
class Groups(Result):
    """The calibration of all groups, or of all classes or labels.

    Attributes
    ----------
    columns : tuple of str
        The columns that define the groups.
    rows : tuple of Group
        One for each group.
    n_hypotheses : int
        Number of hypotheses tested, for which p-values and intervals are adjusted.
    n_resamples : int
        Number of Monte Carlo resamples; the smallest p-value is 1 / (n_resamples + 1).
    difference : Difference or None
        Test of whether groups differ; None for classes, and where it cannot be made.
    confidence_level : float
        Level at which all intervals hold at once.
    joint_pvalue : float or None
        P-value of perfect calibration of all classes or labels together; None for groups.
    """

    columns: tuple[str, ...]
    rows: tuple[Group, ...]
    n_hypotheses: int
    n_resamples: int
    difference: Difference | None
    confidence_level: float
    joint_pvalue: float | None = None

    @property
    def miscalibrated(self) -> tuple[str, ...]:
        """Names of the groups whose calibration is rejected."""
        return tuple(row.name for row in self.rows if row.miscalibrated)

    def __str__(self) -> str:
        head = [
            ", ".join(self.columns),
            "rows",
            "error",
            f"{level(self.confidence_level)} interval",
            "adjusted p",
        ]
        body = [
            [
                row.name,
                f"{row.n:,.10g}",
                f"{row.estimate.value:.4f}",
                f"{row.interval.low:.4f} to {row.interval.high:.4f}",
                self.shown_pvalue(row),
            ]
            for row in self.rows
        ]
        lines = [as_table(head, body), "", f"Miscalibrated: {', '.join(self.miscalibrated) or 'none shown'}"]
        if self.joint_pvalue is not None:
            lines.append(
                f"Joint test of perfect calibration: {p_equals(self.joint_pvalue, self.n_resamples)}"
            )
        if self.difference is not None:
            lines.append(f"Test of no difference between groups: {p_equals(self.difference.pvalue)}")
        return "\n".join(lines)

    def shown_pvalue(self, row: Group) -> str:
        """Return the adjusted p-value of a group as text, for tables.

        Parameters
        ----------
        row : Group
            One of `rows`.
        """
        if not row.tested:
            return NOT_TESTED
        return "-" if row.adjusted_pvalue is None else format_pvalue(row.adjusted_pvalue, self.n_resamples)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Group:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)


def breakdowns(groups: Groups | None, classes: Groups | None) -> list[tuple[Groups, str]]:
    """Return the tables of an assessment, with what their rows are called."""
    called = "labels" if classes is not None and classes.columns == ("label",) else "classes"
    return [(parts, name) for parts, name in ((groups, "groups"), (classes, called)) if parts is not None]


@dataclass(frozen=True, eq=False)
class Settings:
    """Levels and resamples that all parts of an assessment share."""

    confidence_level: float
    resolution: int | None
    n_resamples: int
    rng: np.random.Generator

    def test(self, *predictions: Any, **reading: Any) -> TestResult:
        """Return the test of perfect calibration."""
        return calibration_test(*predictions, n_resamples=self.n_resamples, rng=self.rng, **reading)


#: Name, values of the columns, and sample of a group.
Part = tuple[str, tuple[Any, ...], Sample]


def has_fractions(sample: Sample) -> bool:
    """Return whether weights were given as counts and are not whole numbers, so that labels cannot be drawn."""
    return sample.counted and not sample.whole


def assess_groups(
    columns: tuple[str, ...],
    parts: Sequence[Part],
    settings: Settings,
    source: tuple[Rows, Split] | None = None,
) -> Groups:
    """Return the calibration of each group, with intervals and p-values that hold for all at once."""
    samples = [sample for _, _, sample in parts]
    dependent = any(sample.dependence.unit == "clusters" for sample in samples)
    tests: Sequence[TestResult | None] = [None] * len(samples)
    if not any(map(has_fractions, samples)):
        tests = adjusted_together([settings.test(sample) for sample in samples], dependent=dependent)
    difference = None
    if not dependent:
        difference = group_difference(samples)
    elif source is not None:
        difference = clustered_difference(source[0], source[1].group, len(source[1].keys))
    return _table(columns, parts, tests, settings, difference)


def assess_classes(classes: Question, test: TestResult | None, settings: Settings) -> Groups:
    """Return the calibration of each class against the rest, or of each label."""
    column = "label" if classes.multilabel else "predicted class" if classes.apart else "class"
    names = [str(rows.part) for rows in classes.rows or ()]
    parts = [(name, (name,), sample) for name, sample in zip(names, classes.samples, strict=True)]
    tests = [None] * len(parts) if test is None else test.classes
    table = _table((column,), parts, tests, settings)
    return replace(table, joint_pvalue=None if test is None else test.pvalue)


def _table(
    columns: tuple[str, ...],
    parts: Sequence[Part],
    tests: Sequence[TestResult | None],
    settings: Settings,
    difference: Difference | None = None,
) -> Groups:
    level = settings.confidence_level
    each = 1 - (1 - level) / len(parts)
    rows = []
    for (name, key, sample), test in zip(parts, tests, strict=True):
        interval = confidence_interval(sample, confidence_level=each, resolution=settings.resolution)
        n_clusters = sample.dependence.n_named
        adjusted = None if test is None else test.adjusted_pvalue
        rows.append(
            Group(
                name=name,
                key=key,
                n=sample.n,
                estimate=replace(get_estimator(DEFAULT_ESTIMATOR)(sample), interval=interval),
                interval=interval,
                pvalue=None if test is None else test.pvalue,
                adjusted_pvalue=adjusted,
                tested=test is None or test.tested,
                miscalibrated=contradicts(interval, adjusted, 1 - level),
                small=sample.n < SMALL_GROUP or (n_clusters or MIN_CLUSTERS) < MIN_CLUSTERS,
                n_clusters=n_clusters,
                reliability=reliability_curve(sample, n_bins=_GROUP_BINS, band=False, confidence_level=level),
            )
        )
    return Groups(columns, tuple(rows), len(rows), settings.n_resamples, difference, level)


@dataclass(frozen=True)
class Difference(Result):
    """A test of whether groups differ, after one recalibration that all of them share.

    A logistic recalibration is fitted to all rows. If the groups do not differ, the level and the slope of what
    is left do not depend on the group. The statistic is the score test of that.

    Attributes
    ----------
    statistic : float
        Chi-square statistic; with clusters, Hotelling's T squared.
    degrees : int
        Degrees of freedom: two for each group, less two for the shared fit.
    pvalue : float
        P-value of no difference.
    left_out : int
        Number of groups that are too small to take part.
    """

    statistic: float
    degrees: int
    pvalue: float
    left_out: int


def group_difference(samples: Sequence[Sample]) -> Difference | None:
    r"""Test whether groups differ in level or slope after a logistic recalibration that they share.

    With p the recalibrated score, x = (1, logit f), :math:`u_g = \sum (y - p) x` and
    :math:`V_g = \sum p (1 - p) x x'` over the rows of group g, the statistic :math:`\sum_g u_g' V_g^{-1} u_g` is
    chi-square with two degrees of freedom for each group less two. Groups with an expected number of
    positives or negatives below 5 are left out.
    """
    if not all(sample.whole and sample.counted for sample in samples):
        return None
    score, count, positives = (
        np.concatenate([getattr(sample, name) for sample in samples])
        for name in ("score", "count", "positives")
    )
    group = np.repeat(np.arange(len(samples)), [len(sample) for sample in samples])
    fit = _SharedFit.of(score, count, positives, group, len(samples))
    if fit is None:
        return None
    excess, information = fit.by_group(fit.excess), fit.information
    inverse = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
    statistic = float(np.einsum("gi,gij,gj->", excess, inverse, excess))
    degrees = int(np.sum(rank_of(information))) - 2
    if degrees < 1:
        return None
    return Difference(statistic, degrees, float(chdtrc(degrees, statistic)), fit.left_out)


def clustered_difference(rows: Rows, group: NDArray[np.intp], n_groups: int) -> Difference | None:
    r"""Test whether groups differ if rows depend on each other, within groups and between them.

    The score vectors :math:`u_{gc} = \sum (y - p) x` of each group and cluster, less the part that the shared fit takes
    out, have the covariance :math:`\frac{G}{G-1} \sum_c u_c u_c'`. Their total is compared by Hotelling's T squared,
    for at least 15 clusters and twice as many as degrees of freedom.
    """
    if rows.cluster is None or rows.weight is not None:
        return None
    score, label = rows.score.astype(np.float64), rows.label.astype(np.float64)
    fit = _SharedFit.of(score, np.ones_like(score), label, group, n_groups)
    if fit is None:
        return None
    clusters, cluster = np.unique(rows.cluster[fit.rows], return_inverse=True)
    if len(clusters) < MIN_CLUSTERS:
        return None
    # One row for each cluster, and two columns for each group: its sums of (y - p) and of (y - p) logit f.
    place = np.concatenate([2 * fit.group, 2 * fit.group + 1])
    shape = (len(clusters), 2 * fit.n_groups)
    each = sparse.coo_array((fit.excess.T.ravel(), (np.tile(cluster, 2), place)), shape=shape).toarray()
    shared = each.reshape(len(clusters), fit.n_groups, 2).sum(axis=1)
    total = np.linalg.pinv(fit.information.sum(axis=0), rcond=1e-9, hermitian=True)
    own = each - shared @ total @ fit.information.reshape(-1, 2).T
    covariance = len(clusters) / (len(clusters) - 1) * own.T @ own
    degrees = int(rank_of(covariance))
    rest = len(clusters) - degrees
    if degrees < 1 or rest < degrees:
        return None
    excess = own.sum(axis=0)
    statistic = float(excess @ np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) @ excess)
    scaled = statistic * rest / (degrees * (len(clusters) - 1))
    return Difference(statistic, degrees, float(fdtrc(degrees, rest, scaled)), fit.left_out)


@dataclass(frozen=True, eq=False)
class _SharedFit:
    """Rows of the groups that are large enough, recalibrated by one logistic curve.

    Attributes
    ----------
    rows : ndarray of int
        Numbers of the rows that take part.
    group : ndarray of int
        Number of the group of each, from 0.
    design : ndarray of shape (len(rows), 2)
        1 and logit f.
    excess : ndarray of shape (len(rows), 2)
        (y - p) times the design.
    variance : ndarray
        p (1 - p), times the count of each.
    n_groups, left_out : int
        Number of groups that take part, and of others.
    """

    rows: NDArray[np.intp]
    group: NDArray[np.intp]
    design: FloatArray
    excess: FloatArray
    variance: FloatArray
    n_groups: int
    left_out: int

    @classmethod
    def of(
        cls,
        score: FloatArray,
        count: FloatArray,
        positives: FloatArray,
        group: NDArray[np.intp],
        n_groups: int,
    ) -> Self | None:
        """Fit the curve to the groups that expect at least 5 labels of either kind; None if it cannot be fitted."""
        rows = np.flatnonzero(has_logit(score))
        line = _fit_shared(score[rows], count[rows], positives[rows])
        if line is None:
            return None
        rate = expit(line[0] + line[1] * logit(score[rows]))
        expected = [np.bincount(group[rows], count[rows] * one, n_groups) for one in (rate, 1 - rate)]
        large = np.minimum(*expected) >= 5
        rows = rows[large[group[rows]]]
        number = (np.cumsum(large) - 1)[group[rows]]
        line = _fit_shared(score[rows], count[rows], positives[rows]) if large.sum() > 1 else None
        if line is None:
            return None
        design = np.column_stack([np.ones(len(rows)), logit(score[rows])])
        rate, count = expit(design @ line), count[rows]
        excess = (positives[rows] - count * rate)[:, np.newaxis] * design
        used = int(large.sum())
        return cls(rows, number, design, excess, count * rate * (1 - rate), used, n_groups - used)

    def by_group(self, values: FloatArray) -> FloatArray:
        """Return the sums of columns over the rows of each group."""
        return np.stack([np.bincount(self.group, column, self.n_groups) for column in values.T], axis=1)

    @cached_property
    def information(self) -> FloatArray:
        """Information about level and slope in each group, of shape (n_groups, 2, 2)."""
        x = self.design[:, 1]
        sums = self.by_group(self.variance[:, np.newaxis] * np.column_stack([np.ones_like(x), x, x**2]))
        return sums[:, [[0, 1], [1, 2]]]


def rank_of(matrix: FloatArray) -> NDArray[np.intp]:
    """Return the rank of covariance matrices, up to rounding."""
    tolerance = 1e-9 * np.trace(matrix, axis1=-2, axis2=-1)
    return np.asarray(np.linalg.matrix_rank(matrix, tol=tolerance, hermitian=True))


def has_logit(score: FloatArray) -> NDArray[np.bool_]:
    """Return which scores are far enough from 0 and 1 to have a logit."""
    return np.asarray((score > 1e-9) & (score < 1 - 1e-9))


def _fit_shared(score: FloatArray, count: FloatArray, positives: FloatArray) -> FloatArray | None:
    if not 0 < positives.sum() < count.sum():
        return None
    offset = logit(score)
    if np.ptp(score) < 1e-9:
        return np.array([logit(positives.sum() / count.sum()) - offset[0], 1.0])
    fit = fit_logistic(np.column_stack([np.ones_like(offset), offset]), 0 * offset, count, positives)
    return None if fit.at_bound.any() else fit.x
