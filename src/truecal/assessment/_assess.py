"""Assessment of a set of predictions in one call."""

from __future__ import annotations

import copy
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import as_generator, check_count, check_fraction
from truecal._lib.text import counted
from truecal._lib.types import FloatArray, RNGLike
from truecal.assessment._groups import (
    Groups,
    Settings,
    assess_classes,
    assess_groups,
    breakdowns,
    has_fractions,
)
from truecal.assessment._next_steps import (
    PlannedRows,
    Recalibration,
    advise_recalibration,
    plan_rows,
    recalibration_rows,
)
from truecal.assessment._plotdata import ScoreHistogram, ScoreSummary, score_histogram, summarize_scores
from truecal.assessment._sections import Clinical, OverTime, assess_clinical, assess_over_time, check_clinical
from truecal.assessment._verdict import (
    CONTRADICTED,
    cost_in_words,
    data_warnings,
    decisions_in_words,
    judge,
    verdict,
)
from truecal.data import as_samples, read_rows
from truecal.data.arrays import MULTILABEL, TOP_BY_CLASS, Reading, takes_predictions, warn_of_other_order
from truecal.data.groups import MISSING, split_rows, split_sample
from truecal.data.question import Question, Rows, ask
from truecal.data.sample import Sample
from truecal.estimators._binning import thinned
from truecal.estimators._registry import DEFAULT_ESTIMATOR, get_estimator
from truecal.exceptions import CalibrationWarning, InputError
from truecal.inference._test_result import TestResult
from truecal.inference.decompose import SCORES, Decomposition, decompose
from truecal.inference.dependence import ClusterSummary, clusters_of
from truecal.inference.estimate import label_notes
from truecal.inference.interval import check_resolution, interval_of
from truecal.inference.reliability import Reliability, reliability_curve
from truecal.inference.weak_calibration import WeakCalibration, weak_calibration
from truecal.multiscale import MIN_CLUSTERS
from truecal.results import Estimate, Interval, Result

#: The estimator of the assessment first, then those that other packages and papers report.
ESTIMATORS = (DEFAULT_ESTIMATOR, "em_sweep", "em_debias", "em_bin", "ew_bin")
_POOLED = (
    "Errors, the test and intervals are those of the labels, together and one by one. The curve, slope, scores and "
    "plan treat the labels of all rows as one list of predictions, of which those of a row are a cluster."
)
_SCORE_NAMES = {"brier": "Brier score", "log_loss": "log loss"}


@dataclass(frozen=True, eq=False)
class Assessment(Result):
    """The calibration of one set of predictions.

    Attributes
    ----------
    verdict : str
        The evidence against calibration, the size of the error and its direction, in plain sentences.
    state : {"contradicted", "not contradicted", "inconclusive"}
        What the data say about perfect calibration; ``"inconclusive"`` if they also allow a large error.
    confidence_level : float
        Level of all intervals; 1 less this level is that of the test.
    estimates : tuple of Estimate
        Calibration errors; the first is the one that the verdict quotes, the others are for comparison.
    interval : Interval
        Confidence interval of the calibration error.
    test : TestResult or None
        Test of perfect calibration; None if the weights are fractional.
    reliability : Reliability
        Isotonic and binned calibration curves with consistency bands.
    histogram : ScoreHistogram
        Histogram of the scores.
    scores : ScoreSummary
        Mean score, observed rate, quantiles and ties.
    weak : WeakCalibration
        Calibration slope, intercept and observed/expected ratio.
    decompositions : tuple of Decomposition
        Brier score and log loss, split into miscalibration, discrimination and uncertainty.
    groups : Groups or None
        The calibration of each group, with ``by``.
    classes : Groups or None
        The calibration of each class against the rest, with ``multiclass="classwise"``; of each predicted class or
        label, with ``"top_by_class"`` or ``"multilabel"``.
    recalibration : Recalibration or None
        Whether and how to recalibrate, unless it was switched off.
    plan : tuple of PlannedRows
        How many rows detect errors of several sizes; of rows in clusters like these.
    clusters : ClusterSummary or None
        Number and sizes of the clusters, intraclass correlation and design effect, if clusters were given.
    clinical : Clinical or None
        ICI, C statistic and decision curve, with ``clinical=True``.
    over_time : OverTime or None
        Whether the predictions were calibrated all the time, with ``time``.
    warnings : tuple of str
        What to know about the data and what was left out.
    sample : Sample
        The predictions.
    """

    _omitted: ClassVar[tuple[str, ...]] = ("sample",)
    _derived: ClassVar[tuple[str, ...]] = ("miscalibrated", "n", "target", "label_kind")

    verdict: str
    state: str
    confidence_level: float
    estimates: tuple[Estimate, ...]
    interval: Interval
    test: TestResult | None
    reliability: Reliability
    histogram: ScoreHistogram
    scores: ScoreSummary
    weak: WeakCalibration
    decompositions: tuple[Decomposition, ...]
    groups: Groups | None
    classes: Groups | None
    recalibration: Recalibration | None
    plan: tuple[PlannedRows, ...]
    clusters: ClusterSummary | None
    clinical: Clinical | None
    over_time: OverTime | None
    warnings: tuple[str, ...]
    sample: Sample

    @property
    def estimate(self) -> Estimate:
        """The estimate that the verdict quotes."""
        return self.estimates[0]

    @property
    def is_it_much(self) -> str:
        """What the error costs in Brier score and in decisions at a threshold, in words.

        The threshold is 50%, or the observed rate where nearly all scores lie on one side of that; with
        ``clinical=True`` the one of `Clinical.decisions` at which it costs most.
        """
        text = cost_in_words(self.interval, self.estimate.value, self.decompositions[0].score)
        if self.multilabel:  # one threshold and one recalibration for all labels would say little
            return text
        given = None if self.clinical is None else self.clinical.decisions
        return f"{text} {decisions_in_words(self.sample, self.confidence_level, given)}".strip()

    @property
    def multilabel(self) -> bool:
        """Whether several labels of the same rows were assessed."""
        return self.classes is not None and self.classes.columns == ("label",)

    @property
    def miscalibrated(self) -> bool:
        """Whether perfect calibration is rejected."""
        return self.state == CONTRADICTED

    @property
    def n(self) -> float:
        """Number of rows, or the total weight."""
        return int(self.estimate.n) if self.sample.whole else self.estimate.n

    @property
    def target(self) -> str:
        """What the scores are probabilities of."""
        return self.estimate.target

    @property
    def label_kind(self) -> str | None:
        """The kind of labels, if they are not the truth; see `truecal.labels`."""
        return self.sample.label_kind

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the reliability diagram; the options are those of `truecal.display.ReliabilityDisplay.plot`."""
        from truecal.display import ReliabilityDisplay

        return ReliabilityDisplay.from_assessment(self, ax=ax, **options)

    def to_html(
        self, path: str | Path | None = None, *, title: str = "Calibration report", source: str | None = None
    ) -> str:
        """Return the report as one HTML page, and write it to `path` if that is given.

        Parameters
        ----------
        path : str or Path, optional
            File to write.
        title : str
            Heading of the page.
        source : str, optional
            Where the predictions come from.
        """
        from truecal.report import render

        return render(self, path, title=title, source=source)

    def _repr_html_(self) -> str | None:
        try:
            from truecal.report import render_notebook

            return render_notebook(self)
        except ImportError:  # without jinja2 a notebook shows the text
            return None

    def __str__(self) -> str:
        width = max(len("estimator"), *(len(estimate.estimator) for estimate in self.estimates))
        lines = [*textwrap.wrap(self.verdict, 88), "", f"{self.target}, n = {self.n:,.10g}", ""]
        if self.clusters:
            lines[-1:] = [*textwrap.wrap(str(self.clusters), 88), ""]
        first = self.estimate
        lines.append(f"{first.estimator:<{width}}  {first.value:.4f}, {self.interval}")
        lines += [f"{other.estimator:<{width}}  {other.value:.4f}" for other in self.estimates[1:]]
        if self.interval.resolution is not None:
            lines += ["", *textwrap.wrap(f"The interval's upper end allows {self.interval.assumption}.", 88)]
        if self.test is not None:
            draws = f" ({self.test.n_resamples} resamples)" if self.test.tested else ""
            lines += ["", f"test of perfect calibration: {self.test.evidence}{draws}"]
        lines += ["", f"{'':<12}   score = miscalibration - discrimination + uncertainty"]
        lines += [
            f"{_SCORE_NAMES[part.name]:<12} {part.score:7.4f} {part.miscalibration:16.4f} "
            f"{part.discrimination:16.4f} {part.uncertainty:13.4f}"
            for part in self.decompositions
        ]
        if self.clinical is not None:
            lines += ["", *textwrap.wrap(self.clinical.verdict, 88), "", str(self.weak), str(self.clinical)]
        if self.over_time is not None:
            lines += ["", *textwrap.wrap(self.over_time.verdict, 88)]
        if self.recalibration is not None:
            lines += ["", *textwrap.wrap(self.recalibration.advice, 88)]
        for warning in self.warnings:
            lines += ["", *textwrap.wrap(f"Note: {warning}", 88)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Assessment: {self.verdict}>"


@takes_predictions
def assess(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    by: Any = None,
    clinical: bool = False,
    thresholds: ArrayLike | None = None,
    time: Any = None,
    recalibration: bool = True,
    confidence_level: float = 0.95,
    resolution: int | None = None,
    n_resamples: int = 999,
    rng: RNGLike = None,
    **reading: Unpack[Reading],
) -> Assessment:
    """Assess whether predictions are calibrated, how large the error is, and what to do about it.

    Parameters
    ----------
    {predictions}
    by : array-like, mapping, data frame or tuple of array-like, optional
        Groups to look at one by one: a column, or several that are crossed. For a `Sample`: a mapping from names
        of groups to their samples, or from the name of the column to such a mapping.
    clinical : bool
        Whether to add what reports on clinical prediction models give: ICI, C statistic and decision curve. The report
        then has a section with the terms of TRIPOD+AI.
    thresholds : array-like, optional
        With `clinical`: risks above which one would act, for the table of net benefit.
    time : array-like of shape (n,), optional
        Time of each row: numbers, dates, or ISO 8601 text. A `CalibrationMonitor` then looks for a change over time.
    recalibration : bool
        Whether to compare recalibrators if the data contradict perfect calibration.
    confidence_level : float
        Level of the intervals; ``1 - confidence_level`` is the level of the test.
    resolution : int, optional
        Largest number of intervals of scores in each of which upper ends allow any error; see
        `truecal.confidence_interval`.
    n_resamples : int
        Number of Monte Carlo resamples of the test.
    sample_weight, weighting, pos_label, labels
        As in `truecal.estimate`.
    clusters : array-like of shape (n,) or (n, k), or data frame, optional
        Rows with the same value depend on each other; several columns are crossed. Every number of the assessment that
        reports uncertainty allows for it. A cluster may have rows in several groups of `by`.
    multiclass : {"top", "classwise", "top_by_class", "multilabel"}, optional
        ``"classwise"`` assesses the top label, and each class against the rest in `Assessment.classes`;
        ``"top_by_class"`` the top label, and its rows in each predicted class; ``"multilabel"`` each label by
        itself, and all labels by a joint test.
    rng : seed or numpy.random.Generator, optional
        Random seed.

    Returns
    -------
    Assessment

    Examples
    --------
    >>> import truecal
    >>> y, p = truecal.paper.population("resnet110_c100").sample(3000, rng=0)
    >>> assessment = truecal.assess(y, p, rng=0)
    >>> assessment.miscalibrated, assessment.recalibration.chosen
    (True, 'beta')
    """
    check_fraction("confidence_level", confidence_level)
    check_count("n_resamples", n_resamples)
    if thresholds is not None and not clinical:
        raise InputError("are those of the decision curve and need clinical=True", argument="thresholds")
    columns = {name: reading.get(name) for name in ("sample_weight", "clusters")}
    warn_of_other_order(y_true=y_true, y_proba=y_proba, **columns, by=by, time=time)
    by_class = reading.get("multiclass")
    question, parts = _questions(y_true, y_proba, reading)
    if not question.single:
        _refuse_for_labels({"by": by, "time": time, "clinical": clinical or None})
    sample = question.samples[0] if question.single else question.pooled().group()
    settings = Settings(confidence_level, check_resolution(resolution), n_resamples, as_generator(rng))
    # A copy, so that `select_recalibrator` with the same seed makes the same choice.
    selecting = copy.deepcopy(settings.rng)
    asked = _Asked(question, sample, y_true, y_proba, reading, settings)
    with warnings.catch_warnings():
        # Their messages are among the notes of the assessment.
        warnings.simplefilter("ignore", CalibrationWarning)
        chosen = check_clinical(sample, thresholds) if clinical else None
        over_time = None if time is None else assess_over_time(asked.rows("time"), time, 1 - confidence_level)
        test = settings.test(sample) if question.single and not has_fractions(sample) else None
        groups = None if by is None else asked.groups(by)
        classes = None
        if parts is not None:
            joint = asked.joint_test(parts, str(by_class))
            classes = assess_classes(parts, joint, settings)
            test = test if question.single else joint
        return _assess(asked, test, groups, classes, chosen, over_time, selecting if recalibration else None)


def _questions(y_true: Any, y_proba: Any, reading: Reading) -> tuple[Question, Question | None]:
    """Return what is assessed, and its classes or labels if each is assessed as well; `reading` is then that of all."""
    if reading.get("multiclass") not in ("classwise", TOP_BY_CLASS, MULTILABEL):
        return Question(as_samples(y_true, y_proba, **reading)), None
    parts = ask(y_true, y_proba, **reading)
    if parts.multilabel:
        reading["multiclass"] = None
        return parts, None if parts.single else parts
    reading["multiclass"] = "top"
    return Question(as_samples(y_true, y_proba, **reading)), parts


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is assessed: the predictions as they were given, and as a sample; labels are pooled there."""

    question: Question
    sample: Sample
    y_true: Any
    y_proba: Any
    reading: Reading
    settings: Settings

    def rows(self, argument: str) -> Rows:
        """Return the rows that `argument` needs, or refuse a `Sample`, which has none."""
        if isinstance(self.y_true, Sample):
            raise InputError(
                "needs individual rows; a Sample keeps only sums",
                argument=argument,
                remedy="Pass labels and probabilities.",
            )
        return read_rows(self.y_true, self.y_proba, **self.reading)[0]

    def groups(self, by: Any) -> Groups:
        """Return the calibration of groups: samples by name, or rows that columns divide."""
        found = _named_samples(by)
        if found is not None:
            column, samples = found
            keys = [key if isinstance(key, tuple) else (key,) for key in samples]
            names = [", ".join(MISSING if value is None else str(value) for value in key) for key in keys]
            named = list(zip(names, keys, samples.values(), strict=True))
            return assess_groups((column,), named, self.settings)
        if isinstance(self.y_true, Sample):
            raise InputError("must map names of groups to Samples if predictions are a Sample", argument="by")
        rows = self.rows("by")
        split = split_rows(by, len(rows.label))
        parts = [(split.names[k], split.keys[k], part) for k, part in split_sample(rows, split).items()]
        return assess_groups(split.columns, parts, self.settings, (rows, split))

    def joint_test(self, parts: Question, multiclass: str) -> TestResult | None:
        """Return the test of all classes or labels; None for fractional weights."""
        if any(map(has_fractions, parts.samples)):
            return None
        joint: Reading = {**self.reading, "multiclass": multiclass}
        return self.settings.test(self.y_true, self.y_proba, **joint)

    def advice(
        self, state: str, groups: Groups | None, classes: Groups | None, rng: np.random.Generator
    ) -> Recalibration:
        """Return whether and how to recalibrate."""
        sample = self.sample
        if classes is not None and classes.columns == ("label",) and classes.miscalibrated:
            names = _list(classes.miscalibrated, "labels")
            return Recalibration("identity", f"Recalibrate these labels, each by itself: {names}.")
        if state != CONTRADICTED:
            return Recalibration("identity", _leave(groups, classes))
        if sample.pseudo is not None:
            return Recalibration("identity", "Recalibrators are compared on true labels only.")
        if sample.label.max() == 0 or sample.label.min() == 1:
            return Recalibration("identity", "Recalibrators need rows of both outcomes.")
        if not sample.counted or not sample.whole:  # also where every cluster counts the same
            return Recalibration("identity", "Recalibrators are not compared on weighted rows.")
        rows = recalibration_rows(sample, self.y_true, self.y_proba, **self.reading)
        level = self.settings.confidence_level
        return advise_recalibration(sample, rows, confidence_level=level, rng=rng)


def _refuse_for_labels(given: Mapping[str, Any]) -> None:
    """Refuse what needs one event for each row."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"cannot be combined with multiclass={MULTILABEL!r}",
                argument=name,
                remedy="Assess one label: its column of y_true and of y_proba.",
            )


def _named_samples(by: Any) -> tuple[str, Mapping[Any, Sample]] | None:
    """Return the name of the column and the samples of the groups, if `by` maps names to them; else None."""
    column, parts = "group", by
    if isinstance(by, Mapping) and len(by) == 1:
        ((column, parts),) = by.items()
    for name, given in ((str(column), parts), ("group", by)):
        if isinstance(given, Mapping) and given and all(isinstance(part, Sample) for part in given.values()):
            return name, given
    return None


def _assess(
    asked: _Asked,
    test: TestResult | None,
    groups: Groups | None,
    classes: Groups | None,
    thresholds: FloatArray | None,
    over_time: OverTime | None,
    selecting: np.random.Generator | None,
) -> Assessment:
    """Put an assessment together; recalibrators are compared if there is a generator for it."""
    sample, level = asked.sample, asked.settings.confidence_level
    clusters = clusters_of(asked.question.samples[0])
    pooled = clusters_of(sample)  # of several labels, the rows
    design_effect = _design_effect(sample, pooled)
    # The variance of the labels must be known.
    has_band = pooled is not None or sample.noise is not None or (sample.whole and sample.counted)
    estimators = ESTIMATORS if sample.pseudo is None else ESTIMATORS[:1]
    samples = asked.question.samples
    estimates = [asked.question.combine([*map(get_estimator(name), samples)]) for name in estimators]
    interval = interval_of(asked.question, 2.0, level, resolution=asked.settings.resolution)
    estimates[0] = replace(estimates[0], interval=interval)
    state = judge(interval, test)
    advice = asked.advice(state, groups, classes, selecting) if selecting else None
    sentences = [verdict(sample, estimates[0], interval, test, design_effect=design_effect)]
    sentences += [_parts(*part) for part in breakdowns(groups, classes)]
    weak = weak_calibration(thinned(sample) if thresholds is None else sample, confidence_level=level)
    return Assessment(
        verdict=" ".join(sentences),
        state=state,
        confidence_level=level,
        estimates=tuple(estimates),
        interval=interval,
        test=test,
        reliability=reliability_curve(sample, band=has_band, confidence_level=level, rng=asked.settings.rng),
        histogram=score_histogram(sample, n_bins=50),
        scores=summarize_scores(sample),
        weak=weak,
        decompositions=tuple(decompose(sample, score=name) for name in SCORES),
        groups=groups,
        classes=classes,
        recalibration=advice,
        plan=plan_rows(sample, design_effect=design_effect),
        clusters=clusters,
        clinical=None if thresholds is None else assess_clinical(sample, weak, thresholds, level),
        over_time=over_time,
        warnings=(
            *data_warnings(sample),
            *([] if asked.question.single else [_POOLED]),
            *_notes(estimates),
            *_limitations(sample, test, clusters),
            *label_notes(sample, 2.0, level),
        ),
        sample=sample,
    )


def _design_effect(sample: Sample, clusters: ClusterSummary | None) -> float:
    """Return how many times more rows are needed than with independent rows and true labels."""
    if clusters:
        return max(1.0, clusters.design_effect)  # NaN, for a single cluster, is not above 1
    return 1.0 if sample.pseudo is None else max(1.0, sample.n / sample.effective_size)


def _limitations(sample: Sample, test: TestResult | None, clusters: ClusterSummary | None) -> list[str]:
    """Return what the counts, clusters or weights of the rows leave out of the assessment."""
    notes = []
    if test is None:
        notes.append("The counts are fractional: there is no test.")
    if clusters and not clusters.enough:
        few = counted(clusters.n_clusters, "cluster")
        few += ", of which few hold most of the rows," if clusters.n_clusters >= MIN_CLUSTERS else ""
        notes.append(
            f"{few} cannot show how much clusters differ: there is no interval of the error, and the test is "
            f"approximate. At least {MIN_CLUSTERS} are needed."
        )
    if sample.pseudo is not None:
        notes.append(f"Labels: {sample.label_kind}.{_worth(sample)} Intervals and the test are approximate.")
    elif not sample.counted and not clusters:
        notes.append(
            f"The weights are sampling weights: intervals and the test are those of "
            f"{sample.effective_size:,.0f} rows of equal weight. The diagram has no band."
        )
    return notes


def _worth(sample: Sample) -> str:
    """Return the number of true labels that would carry as much information, if known."""
    size = sample.size_fields["effective_size"]
    return "" if size is None else f" {sample.n:,.10g} rows are worth {size:,.0f} with true labels."


def _leave(groups: Groups | None, classes: Groups | None) -> str:
    """Return what to do if all rows together do not contradict calibration."""
    for parts, name in breakdowns(groups, classes):
        if parts.miscalibrated:
            return (
                f"Do not recalibrate all rows together: they do not contradict perfect calibration, but some {name} "
                f"do. Look at these first: {_list(parts.miscalibrated, name)}."
            )
    return (
        "Leave the model as it is: without evidence of miscalibration no recalibration can be shown to help."
    )


def _parts(parts: Groups, plural: str) -> str:
    """Return one sentence about groups, classes or labels."""
    bad = parts.miscalibrated
    if not bad:
        return f"None of the {len(parts)} {plural} is shown to be miscalibrated."
    are = "is" if len(bad) == 1 else "are"
    return f"{len(bad)} of {len(parts)} {plural} {are} shown to be miscalibrated: {_list(bad, plural)}."


def _list(names: Sequence[str], plural: str, most: int = 10) -> str:
    """Return up to `most` names, and where to find the others."""
    if len(names) <= most + 1:  # the last one is no longer than the note that would replace it
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more (see the table of {plural})"


def _notes(estimates: Sequence[Estimate]) -> list[str]:
    """Return the notes of the estimates, each with the names of the estimators."""
    names: dict[str, list[str]] = {}
    for estimate in estimates:
        for note in estimate.notes:
            names.setdefault(note, []).append(estimate.estimator)
    return [f"{', '.join(who)}: {note}" for note, who in names.items()]
