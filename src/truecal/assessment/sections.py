"""The parts of an assessment that answer one question each: groups, classes, recalibration, rows needed."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtri, chndtr, expit, logit

from truecal._lib.text import as_table, counted, format_pvalue, level, p_equals
from truecal._lib.types import FloatArray
from truecal.assessment.difference import Difference, clustered_difference, group_difference, inner_scores
from truecal.assessment.verdict import agree
from truecal.data import read_rows
from truecal.data.groups import Split
from truecal.data.predictions import EQUAL_CLUSTERS, Rows
from truecal.data.sample import Sample
from truecal.estimators._binning import EqualMass, partition
from truecal.estimators._registry import get_estimator
from truecal.inference._test_result import TestResult
from truecal.inference.calibration_test import calibration_test
from truecal.inference.interval import confidence_interval
from truecal.inference.multiplicity import adjusted_together
from truecal.multiscale.analysis import MIN_CLUSTERS
from truecal.plotdata.reliability import Reliability, reliability_curve
from truecal.recalibration import IdentityCalibration
from truecal.recalibration.selection import CandidateScore, Selection, select_recalibrator
from truecal.results import Estimate, Interval, Result

#: Groups with fewer rows are marked: their numbers are uncertain.
SMALL_GROUP = 100
#: Rows on which recalibrators are compared; more take time and do not change the choice.
MOST_ROWS = 10_000
#: Resamples of the standard errors in that comparison.
_RESAMPLES = 40
#: Standard errors by which the gain of a recalibrator must exceed 0.
_SHOWN = 1.645
#: Bins of the small diagrams of groups.
_GROUP_BINS = 8
#: Power, level and errors of the plan.
_FEWEST = 50
_POWER, _ALPHA, _ERRORS = 0.95, 0.05, (0.01, 0.02, 0.05, 0.1)


# --- Groups and classes ------------------------------------------------------------------------------


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
                "-" if row.adjusted_pvalue is None else format_pvalue(row.adjusted_pvalue),
            ]
            for row in self.rows
        ]
        lines = [as_table(head, body), "", f"Miscalibrated: {', '.join(self.miscalibrated) or 'none shown'}"]
        if self.difference is not None:
            lines.append(f"Test of no difference between groups: {p_equals(self.difference.pvalue)}")
        return "\n".join(lines)

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


def split_sample(rows: Rows, split: Split) -> dict[int, Sample]:
    """Return the sample of each group that has any weight.

    Parameters
    ----------
    rows : Rows
        Checked predictions in their order.
    split : Split
        The group of each row.
    """
    order = np.argsort(split.group, kind="stable")
    ends = np.searchsorted(split.group[order], np.arange(len(split.keys) + 1))
    samples = {}
    for k in range(len(split.keys)):
        chosen = order[ends[k] : ends[k + 1]]
        weight = None if rows.weight is None else rows.weight[chosen]
        if weight is None or weight.any():
            cluster = None if rows.cluster is None else rows.cluster[chosen]
            part = replace(
                rows, label=rows.label[chosen], score=rows.score[chosen], weight=weight, cluster=cluster
            )
            samples[k] = part.group()
    return samples


def assess_groups(
    samples: Sequence[Sample],
    names: Sequence[str],
    keys: Sequence[tuple[Any, ...]],
    columns: tuple[str, ...],
    *,
    estimator: str,
    confidence_level: float,
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
    confidence_level, n_resamples, rng
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
    rows = _rows(samples, names, keys, tests, estimator, confidence_level, rng)
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
    estimator, confidence_level, n_resamples, rng
        As in `assess`.
    """
    targets = [
        sample.target.removesuffix(EQUAL_CLUSTERS).removesuffix(" against the rest") for sample in samples
    ]
    names = [target.removeprefix("P(y = ").removesuffix(")").strip("'\"") for target in targets]
    tests = None if test is None else list(test.classes)
    rows = _rows(samples, names, [(name,) for name in names], tests, estimator, confidence_level, rng)
    return Groups(("class",), rows, len(rows), n_resamples, None, confidence_level)


def _rows(
    samples: Sequence[Sample],
    names: Sequence[str],
    keys: Sequence[tuple[Any, ...]],
    tests: Sequence[TestResult] | None,
    estimator: str,
    confidence_level: float,
    rng: np.random.Generator,
) -> tuple[Group, ...]:
    alpha = 1 - confidence_level
    rows = []
    for k, sample in enumerate(samples):
        estimate = get_estimator(estimator)(sample)
        interval = confidence_interval(sample, confidence_level=1 - alpha / len(samples))
        n_clusters = None if sample.clusters is None else sample.clusters.n_clusters
        adjusted = None if tests is None else tests[k].adjusted_pvalue
        rejected = interval.low > 0 if adjusted is None else adjusted <= alpha + 1e-12
        interval = agree(interval, estimate.value, sample, rejected)
        rows.append(
            Group(
                name=names[k],
                key=keys[k],
                n=sample.n,
                estimate=replace(estimate, interval=interval),
                interval=interval,
                pvalue=None if tests is None else tests[k].pvalue,
                adjusted_pvalue=adjusted,
                miscalibrated=rejected and (adjusted is not None or interval.low > 0),
                small=sample.n < SMALL_GROUP or (n_clusters is not None and n_clusters < MIN_CLUSTERS),
                n_clusters=n_clusters,
                reliability=reliability_curve(
                    sample, n_bins=_GROUP_BINS, band=False, confidence_level=confidence_level
                ),
            )
        )
    return tuple(rows)


# --- Recalibration -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Recalibration(Result):
    """Whether and how to recalibrate.

    Attributes
    ----------
    chosen : str
        Name of the recommended recalibrator; ``"identity"`` to leave the model as it is.
    advice : str
        What to do and why, in plain sentences.
    criterion : str
        The proper score by which candidates were compared; empty if none were.
    candidates : tuple of CandidateScore
        The cross-validated score of each candidate; empty if none were compared.
    n_rows : int
        Number of rows on which candidates were compared.
    selection : Selection or None
        The comparison; its `transform` recalibrates new scores.
    reliability : Reliability or None
        Calibration curve of the cross-validated recalibrated scores, for one column of scores.
    code : str
        Three lines of Python that recalibrate; empty if there is nothing to do.
    """

    _omitted: ClassVar[tuple[str, ...]] = ("selection", "reliability")

    chosen: str
    advice: str
    criterion: str = ""
    candidates: tuple[CandidateScore, ...] = ()
    n_rows: int = 0
    selection: Selection | None = None
    reliability: Reliability | None = None
    code: str = ""

    @property
    def leave_alone(self) -> bool:
        """Whether the model is best left as it is."""
        return self.chosen == "identity"


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Labels and probabilities to compare recalibrators on: one column of scores, or one for each class."""

    label: NDArray[Any]
    score: FloatArray
    total: float
    cluster: NDArray[np.intp] | None = None

    def at_most(self, n: int, rng: np.random.Generator) -> TrainingRows:
        """Return about `n` of the rows, drawn at random; of clusters whole ones."""
        if len(self.label) <= n:
            return self
        if self.cluster is None:
            chosen = rng.permutation(len(self.label))[:n]
        else:
            place = rng.permutation(int(self.cluster.max()) + 1)[self.cluster]
            order = np.argsort(place, kind="stable")
            last = place[order[n - 1]]
            # The cluster at the limit takes part whole if it is the first, else not at all.
            chosen = order[place[order] < max(last, 1)]
        return replace(
            self,
            label=self.label[chosen],
            score=self.score[chosen],
            cluster=None if self.cluster is None else self.cluster[chosen],
        )


def training_rows(
    sample: Sample, y_true: Any, y_proba: Any, rng: np.random.Generator, **reading: Any
) -> TrainingRows:
    """Return at most `MOST_ROWS` rows: of the top label all classes, else those of the sample.

    Parameters
    ----------
    sample : Sample
        The predictions.
    y_true, y_proba, **reading
        What the sample was made of.
    rng : Generator
        Draws rows without replacement if there are more.
    """
    if y_proba is not None and sample.target.startswith("top label"):
        reading = {**reading, "multiclass": "classwise"}
        classes = read_rows(y_true, y_proba, **reading)
        score = np.column_stack([rows.score for rows in classes]).astype(np.float64)
        label = np.column_stack([rows.label for rows in classes]).argmax(axis=1)
        weight, cluster = classes[0].weight, classes[0].cluster
        if weight is not None:
            times = weight.astype(np.intp)
            score, label = np.repeat(score, times, axis=0), np.repeat(label, times)
            cluster = None if cluster is None else np.repeat(cluster, times)
        return TrainingRows(label, score, float(len(label)), cluster).at_most(MOST_ROWS, rng)
    if sample.clusters is not None:
        table = sample.clusters
        times = np.concatenate([table.weight - table.positives, table.positives]).astype(np.intp)
        rows = np.repeat(np.arange(len(times)), times)
        pair, label = rows % len(table.group), rows // len(table.group)
        whole = TrainingRows(label, sample.score[table.group[pair]], sample.n, table.cluster[pair])
        return whole.at_most(MOST_ROWS, rng)
    kinds = np.concatenate([sample.count - sample.positives, sample.positives]).astype(np.int64)
    if sample.n > MOST_ROWS:
        drawn = rng.choice(int(sample.n), MOST_ROWS, replace=False)
        kinds = np.bincount(np.searchsorted(np.cumsum(kinds), drawn, side="right"), minlength=len(kinds))
    label = np.repeat([0, 1], [kinds[: len(sample)].sum(), kinds[len(sample) :].sum()])
    return TrainingRows(label, np.repeat(np.tile(sample.score, 2), kinds), sample.n)


def advise_recalibration(
    rows: TrainingRows, *, confidence_level: float, rng: np.random.Generator
) -> Recalibration:
    """Return whether a recalibrator improves the log loss of held-out rows, and by how much.

    Parameters
    ----------
    rows : TrainingRows
        Rows of a model whose calibration was rejected.
    confidence_level : float
        Level of the intervals in the diagram.
    rng : Generator
        Draws folds and resamples.
    """
    n = len(rows.label)
    try:
        selection = select_recalibrator(
            rows.label,
            rows.score,
            criterion="log_loss",
            n_resamples=_RESAMPLES,
            rng=rng,
            clusters=rows.cluster,
        )
    except ValueError as error:  # a handful of rows cannot be cut into folds
        return Recalibration("identity", f"Recalibrators could not be compared: {error}", n_rows=n)
    best = selection[selection.chosen]
    if not selection.leave_alone and best.difference + _SHOWN * best.difference_se >= 0:
        identity = IdentityCalibration().fit(rows.score, rows.label)
        selection = replace(selection, chosen="identity", recalibrator=identity)
    seen = counted(n, "row") if n == rows.total else f"{n:,} of the {rows.total:,.10g} rows"
    common: dict[str, Any] = {
        "chosen": selection.chosen,
        "criterion": "log loss",
        "candidates": selection.candidates,
        "n_rows": n,
        "selection": selection,
    }
    if selection.leave_alone:
        advice = (
            f"Leave the model as it is. The data contradict perfect calibration, but no recalibrator was shown to "
            f"reduce the log loss of held-out rows (5-fold cross-validation, {seen})."
        )
        return Recalibration(advice=advice, **common)
    before, gain = selection["identity"].criterion, -best.difference
    advice = (
        f"Recalibrate with {_LABELS[selection.chosen]}. It reduces the log loss of held-out rows from {before:.4f} to "
        f"{best.criterion:.4f}, by {gain:.4f} (standard error {best.difference_se:.4f}; 5-fold cross-validation, "
        f"{seen})."
    )
    kind = type(selection.recalibrator).__name__
    code = (
        f"from truecal.recalibration import {kind}\n"
        f"recalibrator = {kind}().fit(p_validation, y_validation)\n"
        f"p_recalibrated = recalibrator.transform(p_new)"
    )
    curve = (
        _held_out_curve(selection.recalibrator, rows, confidence_level, rng) if rows.score.ndim == 1 else None
    )
    return Recalibration(advice=advice, reliability=curve, code=code, **common)


_LABELS = {
    "temperature": "temperature scaling",
    "platt": "Platt scaling",
    "beta": "beta calibration",
    "isotonic": "isotonic regression",
    "histogram": "histogram binning",
}


def _held_out_curve(
    recalibrator: Any, rows: TrainingRows, confidence_level: float, rng: np.random.Generator
) -> Reliability:
    """Return the calibration curve of scores that were recalibrated without their own rows."""
    unit = np.arange(len(rows.label)) if rows.cluster is None else rows.cluster
    fold, score = rng.permutation(int(unit.max()) + 1)[unit] % 5, np.empty(len(rows.label))
    for k in range(5):
        train = fold != k
        fitted = copy.deepcopy(recalibrator).fit(rows.score[train], rows.label[train])
        score[~train] = fitted.transform(rows.score[~train])
    return reliability_curve(
        rows.label, score, band=False, confidence_level=confidence_level, clusters=rows.cluster
    )


# --- Rows needed -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlannedRows(Result):
    """How many rows with scores like these detect an error of a given size.

    Attributes
    ----------
    true_error : float
        The l2 calibration error to detect.
    level_shift, slope : int or None
        Rows needed if all logits are shifted (by the direction that needs more), and if all are too extreme by a
        factor; at least 50. None if no such curve has this error.
    power, alpha : float
        Probability of detection, and significance level of the test.
    """

    true_error: float
    level_shift: int | None
    slope: int | None
    power: float = _POWER
    alpha: float = _ALPHA


def thinned(sample: Sample, most: int = 1024) -> Sample:
    """Return the sample with its scores merged into blocks of equal mass, if there are many.

    Smooth fits take the same value on such a sample to several digits, in less time. Samples with sampling
    weights or clusters are returned as they are.

    Parameters
    ----------
    sample : Sample
        The predictions.
    most : int
        Number of blocks.
    """
    if len(sample) <= 2 * most or sample.squares is not None or sample.clusters is not None:
        return sample
    return sample.merge_groups(partition(EqualMass(sample), most).start)


def plan_rows(
    sample: Sample, errors: Sequence[float] = _ERRORS, *, design_effect: float = 1.0
) -> tuple[PlannedRows, ...]:
    r"""Return how many rows detect errors of several sizes, by the noncentral chi-square distribution.

    For a curve g the score test of level and slope has noncentrality :math:`n\,u' I^{-1} u` with
    :math:`u = E[(g - f) x]`, :math:`I = E[f (1 - f) x x']` and x = (1, logit f). The omnibus test, of which it is a
    part, needs about as many rows for such curves.

    Parameters
    ----------
    sample : Sample
        Rows with typical scores.
    errors : sequence of float
        The l2 errors to detect.
    design_effect : float
        How many times more rows are needed than if they were independent.
    """
    sample = thinned(sample)
    score, count, _ = inner_scores(sample)
    if not len(score):
        return ()
    share = count / sample.n
    design = np.column_stack([np.ones_like(score), logit(score)])
    information = (design.T * (share * score * (1 - score))) @ design
    inverse = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
    degrees = int(np.linalg.matrix_rank(information, tol=1e-9 * float(np.trace(information)), hermitian=True))
    critical = float(chdtri(degrees, _ALPHA))
    needed = brentq(lambda shift: chndtr(critical, degrees, shift) - (1 - _POWER), 1e-6, 100)

    def rows(direction: FloatArray, error: float) -> int | None:
        """Return the number of rows for curves that differ from the scores in one direction."""

        def gap(size: float) -> FloatArray:
            return np.asarray(expit(design @ (np.array([0.0, 1.0]) + size * direction)) - score)

        def excess(size: float) -> float:
            return math.sqrt(float(share @ gap(size) ** 2)) - error

        largest = 1.0 if direction[1] else 20.0
        if excess(largest) <= 0:
            return None
        found = gap(brentq(excess, 0.0, largest)) * share @ design
        strength = float(found @ inverse @ found)
        # The approximation needs some rows.
        return max(math.ceil(design_effect * needed / strength), _FEWEST) if strength > 0 else None

    up, flat = np.array([1.0, 0.0]), np.array([0.0, -1.0])
    plans = []
    for error in errors:
        shifts = [n for n in (rows(up, error), rows(-up, error)) if n]
        plans.append(PlannedRows(error, max(shifts, default=None), rows(flat, error)))
    return tuple(plan for plan in plans if plan.level_shift or plan.slope)
