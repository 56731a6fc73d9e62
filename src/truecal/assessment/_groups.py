"""The calibration of groups of rows and of classes, and whether groups differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import chdtrc, expit, fdtrc, logit

from truecal._lib.numeric import rejects
from truecal._lib.optimize import fit_logistic
from truecal._lib.text import as_table, format_pvalue, level, p_equals
from truecal._lib.types import FloatArray
from truecal.data.groups import Split
from truecal.data.question import EQUAL_CLUSTERS, Rows
from truecal.data.sample import Sample
from truecal.estimators._registry import get_estimator
from truecal.inference._test_result import NOT_TESTED, TestResult
from truecal.inference.calibration_test import calibration_test
from truecal.inference.interval import confidence_interval
from truecal.inference.multiplicity import adjusted_together
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
    """The calibration of all groups, or of all classes.

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
    """

    columns: tuple[str, ...]
    rows: tuple[Group, ...]
    n_hypotheses: int
    n_resamples: int
    difference: Difference | None
    confidence_level: float

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


def counts_are_fractional(sample: Sample) -> bool:
    """Return whether weights were given as counts and are not whole numbers, so that labels cannot be drawn."""
    return sample.squares is None and not sample.whole


def assess_groups(
    samples: Sequence[Sample],
    names: Sequence[str],
    keys: Sequence[tuple[Any, ...]],
    columns: tuple[str, ...],
    *,
    estimator: str,
    confidence_level: float,
    resolution: int | None = None,
    n_resamples: int,
    rng: np.random.Generator,
    source: tuple[Rows, Split] | None = None,
) -> Groups:
    """Return the calibration of each group, with intervals and p-values that hold for all at once."""
    dependent = any(sample.clusters is not None for sample in samples)
    tests: Sequence[TestResult] | None = None
    if not any(map(counts_are_fractional, samples)):
        tests = [calibration_test(sample, n_resamples=n_resamples, rng=rng) for sample in samples]
        tests = adjusted_together(tests, dependent=dependent)
    difference = None
    if not dependent:
        difference = group_difference(samples)
    elif source is not None:
        difference = clustered_difference(source[0], source[1].group, len(source[1].keys))
    rows = _rows(samples, names, keys, tests, estimator, confidence_level, resolution)
    return Groups(
        columns=columns,
        rows=rows,
        n_hypotheses=len(rows),
        n_resamples=n_resamples,
        difference=difference,
        confidence_level=confidence_level,
    )


def assess_classes(
    samples: Sequence[Sample],
    test: TestResult | None,
    *,
    estimator: str,
    confidence_level: float,
    resolution: int | None = None,
    n_resamples: int,
    rng: np.random.Generator,
) -> Groups:
    """Return the calibration of each class against the rest."""
    targets = [
        sample.target.removesuffix(EQUAL_CLUSTERS).removesuffix(" against the rest") for sample in samples
    ]
    names = [target.removeprefix("P(y = ").removesuffix(")").strip("'\"") for target in targets]
    tests = None if test is None else list(test.classes)
    rows = _rows(samples, names, [(name,) for name in names], tests, estimator, confidence_level, resolution)
    return Groups(("class",), rows, len(rows), n_resamples, None, confidence_level)


def _rows(
    samples: Sequence[Sample],
    names: Sequence[str],
    keys: Sequence[tuple[Any, ...]],
    tests: Sequence[TestResult] | None,
    estimator: str,
    confidence_level: float,
    resolution: int | None,
) -> tuple[Group, ...]:
    alpha = 1 - confidence_level
    rows = []
    for k, sample in enumerate(samples):
        estimate = get_estimator(estimator)(sample)
        interval = confidence_interval(
            sample, confidence_level=1 - alpha / len(samples), resolution=resolution
        )
        n_clusters = None if sample.clusters is None else sample.clusters.n_named
        adjusted = None if tests is None else tests[k].adjusted_pvalue
        rejected = interval.low > 0 if adjusted is None else rejects(adjusted, alpha)
        rows.append(
            Group(
                name=names[k],
                key=keys[k],
                n=sample.n,
                estimate=replace(estimate, interval=interval),
                interval=interval,
                pvalue=None if tests is None else tests[k].pvalue,
                adjusted_pvalue=adjusted,
                tested=tests is None or tests[k].tested,
                miscalibrated=rejected and (adjusted is not None or interval.low > 0),
                small=sample.n < SMALL_GROUP or (n_clusters is not None and n_clusters < MIN_CLUSTERS),
                n_clusters=n_clusters,
                reliability=reliability_curve(
                    sample, n_bins=_GROUP_BINS, band=False, confidence_level=confidence_level
                ),
            )
        )
    return tuple(rows)


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
    parts = [inner_scores(sample) for sample in samples]
    kept = [part for part in parts if len(part[0])]
    if not kept or not all(sample.whole and sample.squares is None for sample in samples):
        return None
    score, count, positives = (np.concatenate(column) for column in zip(*kept, strict=True))
    used = _fit_shared(score, count, positives)
    if used is None:
        return None
    kept = [part for part in kept if min(_expected(part, used)) >= 5]
    if len(kept) < 2:
        return None
    score, count, positives = (np.concatenate(column) for column in zip(*kept, strict=True))
    used = _fit_shared(score, count, positives)
    if used is None:
        return None
    statistic, degrees = 0.0, -2
    for score, count, positives in kept:
        design = np.column_stack([np.ones_like(score), logit(score)])
        rate = expit(design @ used)
        excess = design.T @ (positives - count * rate)
        variance = (design.T * (count * rate * (1 - rate))) @ design
        statistic += float(excess @ np.linalg.pinv(variance, rcond=1e-9, hermitian=True) @ excess)
        degrees += int(np.linalg.matrix_rank(variance, tol=1e-9 * float(np.trace(variance)), hermitian=True))
    if degrees < 1:
        return None
    return Difference(statistic, degrees, float(chdtrc(degrees, statistic)), len(samples) - len(kept))


def clustered_difference(rows: Rows, group: NDArray[np.intp], n_groups: int) -> Difference | None:
    r"""Test whether groups differ if rows depend on each other, within groups and between them.

    The score vectors :math:`u_{gc} = \sum (y - p) x` of each group and cluster, less the part that the shared fit takes
    out, have the covariance :math:`\frac{G}{G-1} \sum_c u_c u_c'`. Their total is compared by Hotelling's T squared,
    for at least 15 clusters and twice as many as degrees of freedom.
    """
    score, cluster = rows.score.astype(np.float64), rows.cluster
    if cluster is None or rows.weight is not None:
        return None
    inside = (score > 1e-9) & (score < 1 - 1e-9)
    score, label = score[inside], rows.label[inside].astype(np.float64)
    cluster, group = cluster[inside], group[inside]
    used = _fit_shared(score, np.ones_like(score), label) if len(score) else None
    if used is None:
        return None
    rate = expit(used[0] + used[1] * logit(score))
    expected = np.stack([np.bincount(group, each, n_groups) for each in (rate, 1 - rate)])
    kept = np.flatnonzero(expected.min(axis=0) >= 5)
    number = np.full(n_groups, -1)
    number[kept] = np.arange(len(kept))
    chosen = number[group] >= 0
    score, label, group = score[chosen], label[chosen], number[group[chosen]]
    clusters, cluster = np.unique(cluster[chosen], return_inverse=True)
    used = _fit_shared(score, np.ones_like(score), label) if len(kept) > 1 else None
    if used is None or len(clusters) < MIN_CLUSTERS:
        return None
    design = np.column_stack([np.ones_like(score), logit(score)])
    rate = expit(design @ used)
    # One row for each cluster, and two columns for each group: its sums of (y - p) and of (y - p) logit f.
    place = np.concatenate([2 * group, 2 * group + 1])
    terms = ((label - rate)[:, np.newaxis] * design).T.ravel()
    shape = (len(clusters), 2 * len(kept))
    each = sparse.coo_array((terms, (np.tile(cluster, 2), place)), shape=shape).toarray()
    information = np.zeros((len(kept), 2, 2))
    np.add.at(
        information, group, (rate * (1 - rate))[:, None, None] * design[:, :, None] * design[:, None, :]
    )
    shared = each.reshape(len(clusters), len(kept), 2).sum(axis=1)
    total = np.linalg.pinv(information.sum(axis=0), rcond=1e-9, hermitian=True)
    own = each - shared @ total @ information.reshape(-1, 2).T
    covariance = len(clusters) / (len(clusters) - 1) * own.T @ own
    degrees = int(np.linalg.matrix_rank(covariance, tol=1e-9 * float(np.trace(covariance)), hermitian=True))
    rest = len(clusters) - degrees
    if degrees < 1 or rest < degrees:
        return None
    excess = own.sum(axis=0)
    statistic = float(excess @ np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) @ excess)
    scaled = statistic * rest / (degrees * (len(clusters) - 1))
    return Difference(statistic, degrees, float(fdtrc(degrees, rest, scaled)), n_groups - len(kept))


def inner_scores(sample: Sample) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return score, count and positives of the groups whose score has a logit."""
    inside = (sample.score > 1e-9) & (sample.score < 1 - 1e-9)
    return sample.score[inside], sample.count[inside], sample.positives[inside]


def _expected(part: tuple[FloatArray, FloatArray, FloatArray], line: FloatArray) -> tuple[float, float]:
    score, count, _ = part
    rate = expit(line[0] + line[1] * logit(score))
    return float(count @ rate), float(count @ (1 - rate))


def _fit_shared(score: FloatArray, count: FloatArray, positives: FloatArray) -> FloatArray | None:
    if not 0 < positives.sum() < count.sum():
        return None
    offset = logit(score)
    if np.ptp(score) < 1e-9:
        return np.array([logit(positives.sum() / count.sum()) - offset[0], 1.0])
    fit = fit_logistic(np.column_stack([np.ones_like(offset), offset]), 0 * offset, count, positives)
    return None if fit.at_bound.any() else fit.x
