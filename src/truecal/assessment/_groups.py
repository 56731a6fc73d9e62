"""The calibration of groups of rows, and of classes against the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from truecal._lib.text import as_table, format_pvalue, level, p_equals
from truecal.assessment.difference import Difference, clustered_difference, group_difference
from truecal.data.groups import Split
from truecal.data.question import EQUAL_CLUSTERS, Rows
from truecal.data.sample import Sample
from truecal.estimators._registry import get_estimator
from truecal.inference._test_result import NOT_TESTED, TestResult
from truecal.inference.calibration_test import calibration_test
from truecal.inference.interval import confidence_interval
from truecal.inference.multiplicity import adjusted_together
from truecal.multiscale.clusters import MIN_CLUSTERS
from truecal.plotdata.reliability import Reliability, reliability_curve
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
    """Return whether weights were given as counts and are not whole numbers, so that labels cannot be drawn.

    Parameters
    ----------
    sample : Sample
        The predictions.
    """
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
    """Return the calibration of each group, with intervals and p-values that hold for all at once.

    Parameters
    ----------
    samples, names, keys
        The predictions, the name and the values of each group.
    columns : tuple of str
        The columns that define the groups.
    estimator : str
        The estimator of the assessment.
    confidence_level, resolution, n_resamples, rng
        As in `assess`.
    source : tuple of Rows and Split, optional
        The rows of all groups; with clusters, a test of whether groups differ needs them.
    """
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
    """Return the calibration of each class against the rest.

    Parameters
    ----------
    samples : sequence of Sample
        One for each class.
    test : TestResult or None
        The classwise test, which has the joint null distribution of all classes.
    estimator, confidence_level, resolution, n_resamples, rng
        As in `assess`.
    """
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
        rejected = interval.low > 0 if adjusted is None else adjusted <= alpha + 1e-12
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
