"""Graded answers of a language model with their confidences; a question is a cluster."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from truecal import labels
from truecal._lib.checks import as_generator, check_fraction
from truecal._lib.text import counted, level, percent
from truecal._lib.types import FloatArray, NormLike, RNGLike
from truecal.exceptions import InputError, show_value
from truecal.inference.estimate import calibration_error, estimate
from truecal.inference.thresholds import RiskCoverage, risk_coverage
from truecal.inference.weak_calibration import weak_calibration
from truecal.integrations.llm._verbal import parse_confidence
from truecal.results import Estimate, Interval, Result

#: Sensitivity and specificity of the judge whose distortion is reported where answers were graded by a model.
_JUDGE = 0.95, 0.9
#: Groups of questions that the jackknife leaves out in turn.
_GROUPS = 50


@dataclass(frozen=True)
class Answer:
    """One answer, as logged.

    Attributes
    ----------
    question : str
        Id of the question.
    repeat : int
        Number of the attempt at the question.
    correct : bool or None
        Whether it is right; None if it was not graded.
    confidence : str, float or None
        As stated, or as a number.
    refused : bool
        Whether the model did not answer.
    cluster : str, optional
        What it belongs to; by default the question.
    judge : str
        Name of the scorer if it was a model.
    """

    question: str
    repeat: int
    correct: bool | None
    confidence: str | float | None
    refused: bool = False
    cluster: str | None = None
    judge: str = ""

    @property
    def is_graded(self) -> bool:
        """Whether there is an answer with a grade."""
        return not self.refused and self.correct is not None

    @property
    def group(self) -> str:
        """What answers depend on each other by."""
        return self.question if self.cluster is None else self.cluster


def right_or_wrong(value: Any) -> bool | None:
    """Return a grade of 0 or 1 as a bool; None for anything else, such as partial credit.

    Parameters
    ----------
    value : object
        The grade.

    Examples
    --------
    >>> [right_or_wrong(value) for value in (1, 0.0, True, 0.5, "1", None)]
    [True, False, True, None, None, None]
    """
    return bool(value) if isinstance(value, Real | np.bool_) and value in (0, 1) else None


@dataclass(frozen=True, eq=False)
class Answers(Result):
    """Graded answers with confidences. Answers without both are counted and left out.

    Attributes
    ----------
    correct : ndarray of bool of shape (n,)
        Whether each answer is right.
    confidence : ndarray of shape (n,)
        Confidence in each answer, in [0, 1].
    question, cluster : ndarray of str of shape (n,)
        Question of each answer, and what answers depend on each other by; the question unless said otherwise.
    repeat : ndarray of int of shape (n,)
        Number of the attempt.
    model, task : str
        Names.
    n_refused, n_unparsed, n_ungraded : int
        Answers left out because the model refused, because its confidence could not be read, or because they were not
        graded right or wrong.
    clustered_by : str
        What the clusters are: "question", or the key that was given for them.
    incomplete : str
        Why the log is not the whole evaluation, as a sentence; empty if nothing says so.
    judge : str
        Name of the scorer if it was a model; empty if it was not, or if nothing says so.
    gold : ndarray of shape (n,), or None
        Gold labels of answers that a human graded too, NaN elsewhere; see `with_gold`.
    """

    _omitted: ClassVar[tuple[str, ...]] = ("correct", "confidence", "question", "cluster", "repeat", "gold")
    _derived: ClassVar[tuple[str, ...]] = ("n", "n_questions", "accuracy", "mean_confidence")

    correct: NDArray[np.bool_]
    confidence: FloatArray
    question: NDArray[Any]
    cluster: NDArray[Any]
    repeat: NDArray[np.intp]
    model: str
    task: str
    n_refused: int
    n_unparsed: int
    n_ungraded: int
    clustered_by: str = "question"
    incomplete: str = ""
    judge: str = ""
    gold: FloatArray | None = None

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Answer],
        *,
        model: str = "",
        task: str = "",
        scale: str = "fraction",
        clustered_by: str | None = None,
        incomplete: str = "",
        judge: str = "",
    ) -> Self:
        """Read the confidences, and count what cannot be used.

        Parameters
        ----------
        rows : iterable of Answer
            The answers.
        model, task : str
            Names.
        scale : {"fraction", "percent"}
            As in `parse_confidence`.
        clustered_by : str, optional
            What the clusters of the rows are, such as "passage"; rows without a cluster are clustered by question.
        incomplete : str
            Why these are not all answers, as a sentence, if they are not.
        judge : str
            Name of the scorer, if it was a model; by default the judges of the rows.
        """
        read = [(row, parse_confidence(row.confidence, scale=scale)) for row in rows]
        graded = [(row, stated) for row, stated in read if row.is_graded]
        kept = [(row, stated) for row, stated in graded if stated is not None]
        refused, unparsed = sum(row.refused for row, _ in read), len(graded) - len(kept)
        ungraded = len(read) - refused - len(graded)
        if not kept:
            raise InputError(
                f"No answer has both a grade and a confidence: {refused} refused, {unparsed} without a readable "
                f"confidence, {ungraded} not graded"
            )
        columns = ((row.correct, stated, row.question, row.group, row.repeat) for row, stated in kept)
        correct, confidence, question, group, repeat = zip(*columns, strict=True)
        by_question = all(row.cluster is None for row, _ in kept)
        return cls(
            correct=np.array(correct, dtype=bool),
            confidence=np.array(confidence),
            # A passage can be its own name: as objects, long names take no more than their length.
            question=np.array(question, dtype=object),
            cluster=np.array(group, dtype=object),
            repeat=np.array(repeat, dtype=np.intp),
            model=model,
            task=task,
            n_refused=refused,
            n_unparsed=unparsed,
            n_ungraded=ungraded,
            clustered_by=clustered_by or ("question" if by_question else "given cluster"),
            incomplete=incomplete,
            judge=judge or ", ".join(sorted({row.judge for row, _ in read if row.judge})),
        )

    @property
    def n(self) -> int:
        """Number of answers."""
        return len(self.correct)

    @property
    def n_questions(self) -> int:
        """Number of questions."""
        return len(np.unique(self.question))

    @property
    def accuracy(self) -> float:
        """Share of correct answers."""
        return float(self.correct.mean())

    @property
    def mean_confidence(self) -> float:
        """Mean confidence."""
        return float(self.confidence.mean())

    @property
    def clusters(self) -> NDArray[Any] | None:
        """What to pass as `clusters=`: None where each cluster has one answer only."""
        return self.cluster if len(np.unique(self.cluster)) < self.n else None

    @property
    def labels(self) -> Any:
        """What to pass as `y_true`: the grades, or with gold labels `truecal.labels.judged`."""
        return self.correct if self.gold is None else labels.judged(self.correct, self.gold)

    @property
    def doubt(self) -> str:
        """A sentence that warns of grades by a model, with the error that a good judge would cause; else empty."""
        if not self.judge or self.gold is not None:
            return ""
        sensitivity, specificity = _JUDGE
        seen = sensitivity * self.confidence + (1 - specificity) * (1 - self.confidence)
        error = math.sqrt(float(np.mean((seen - self.confidence) ** 2)))
        return (
            f"Answers were graded by a model ({self.judge}), and its mistakes count as the error of the answers: a "
            f"judge that is right in {percent(sensitivity, 0)} of right and {percent(specificity, 0)} of wrong answers "
            f"would make calibrated confidences look wrong by {error:.3f}. Grade some random answers by hand and pass "
            f"them with truecal.labels.judged (--gold)."
        )

    @property
    def left_out(self) -> str:
        """Which answers were left out, as a sentence; empty if none was."""
        counts = (
            (self.n_refused, counted(self.n_refused, "refusal")),
            (self.n_unparsed, counted(self.n_unparsed, "answer") + " without a readable confidence"),
            (self.n_ungraded, counted(self.n_ungraded, "answer") + " not graded right or wrong"),
        )
        texts = [text for number, text in counts if number]
        return f"Left out: {', '.join(texts)}." if texts else ""

    def with_gold(self, gold: Mapping[Any, Any]) -> Self:
        """Return the answers with gold labels of some of them; the logged grades are then those of a judge.

        Parameters
        ----------
        gold : mapping
            Whether an answer is right, 0 or 1, by the question, or by question and number of the attempt where a
            question was answered several times. Answers that were left out are ignored.
        """
        given = {
            (str(key[0]), int(key[1])) if isinstance(key, tuple) else str(key): value
            for key, value in gold.items()
        }
        questions = list(map(str, self.question))
        if self.n_questions < self.n and not given.keys().isdisjoint(questions):
            raise InputError(
                "names questions that were answered several times",
                argument="gold",
                remedy="Name each answer by (question, repeat).",
            )
        pairs = zip(questions, self.repeat.tolist(), strict=True)
        found = [given.get(pair, given.get(pair[0])) for pair in pairs]
        if all(value is None for value in found):
            raise InputError(
                f"names none of the {counted(self.n_questions, 'question')}, such as {show_value(self.question[0])}",
                argument="gold",
            )
        values = np.array([np.nan if value is None else value for value in found], dtype=np.float64)
        labels.judged(self.correct, values)  # raises if there are too few
        return replace(self, gold=values)

    def take(self, rows: Any) -> Self:
        """Return some of the answers; what was left out before is no longer counted.

        Parameters
        ----------
        rows : array-like
            Row numbers, or which rows to keep.
        """
        names = ("correct", "confidence", "question", "cluster", "repeat")
        part = {name: getattr(self, name)[rows] for name in names}
        if self.gold is not None:
            part["gold"] = self.gold[rows]
        return replace(self, **part, n_refused=0, n_unparsed=0, n_ungraded=0)

    def estimate(self, *, norm: NormLike = 2, confidence_level: float = 0.95) -> Estimate:
        """Return the calibration error with its interval.

        Parameters
        ----------
        norm : {1, 2, "l1", "l2"}
            Order of the norm.
        confidence_level : float
            Level of the interval.
        """
        return estimate(
            self.labels,
            self.confidence,
            norm=norm,
            confidence_level=confidence_level,
            clusters=self.clusters,
        )

    def risk_coverage(self, *, confidence_level: float = 0.95) -> RiskCoverage:
        """Return the accuracy of the most confident answers.

        Parameters
        ----------
        confidence_level : float
            Level of the intervals.
        """
        return risk_coverage(
            self.correct, self.confidence, confidence_level=confidence_level, clusters=self.clusters
        )

    def sentence(self) -> str:
        """Return the result in words, for a paper."""
        found = self.estimate()
        assert found.interval is not None
        name = " on ".join(filter(None, (self.model or "The model", self.task)))
        method = "one answer per" if self.clusters is None else "clustered by"
        rest = f" {self.left_out}" if self.left_out else ""
        rest += f" {self.incomplete}" if self.incomplete else "" if rest else " No answer was left out."
        rest += f" {self.doubt}" if self.doubt else ""
        graded, accuracy = "", self.accuracy
        if self.gold is not None:
            n_gold = int(np.count_nonzero(~np.isnan(self.gold)))
            weak = weak_calibration(self.labels, self.confidence)
            accuracy = weak.observed_expected.value * self.mean_confidence
            graded = (
                f", graded by {self.judge or 'a judge'} and corrected with {counted(n_gold, 'gold label')} of a random "
                f"sample,"
            )
        return (
            f"{name} gave {counted(self.n, 'answer')} to {counted(self.n_questions, 'question')}{graded} with an "
            f"accuracy of {percent(accuracy)} and a mean confidence of {percent(self.mean_confidence)}. Its "
            f"calibration error (l2, {found.estimator}) is {percent(found.value)}, {level(found.interval.level)} CI "
            f"{percent(found.interval.low)} to {percent(found.interval.high)}, {method} {self.clustered_by}.{rest}"
        )


@dataclass(frozen=True, eq=False)
class AnswerComparison(Result):
    """Two models on the same questions: the first minus the second, with intervals that are paired by question.

    Attributes
    ----------
    models : tuple of str
        Names.
    calibration_error, brier_score, accuracy, mean_confidence : tuple of float
        The value of each model.
    calibration_error_difference, brier_score_difference, accuracy_difference, mean_confidence_difference : Interval
        Confidence interval of the difference.
    n_questions : int
        Questions that both answered.
    n_unmatched : int
        Questions that only one of them answered, which are left out.
    """

    models: tuple[str, str]
    calibration_error: tuple[float, float]
    brier_score: tuple[float, float]
    accuracy: tuple[float, float]
    mean_confidence: tuple[float, float]
    calibration_error_difference: Interval
    brier_score_difference: Interval
    accuracy_difference: Interval
    mean_confidence_difference: Interval
    n_questions: int
    n_unmatched: int

    def __str__(self) -> str:
        a, b = self.models
        left_out = f", {self.n_unmatched} left out" if self.n_unmatched else ""
        lines = [f"{a} minus {b}, {counted(self.n_questions, 'question')} of both{left_out}"]
        for name in _MEASURES:
            first, second = getattr(self, name)
            interval = getattr(self, f"{name}_difference")
            lines.append(
                f"  {name.replace('_', ' '):18} {first:.4f} - {second:.4f} = {first - second:+.4f}, "
                f"{interval.low:+.4f} to {interval.high:+.4f} ({level(interval.level)})"
            )
        return "\n".join(lines)


_MEASURES = ("calibration_error", "brier_score", "accuracy", "mean_confidence")


def compare_answers(
    first: Answers, second: Answers, *, confidence_level: float = 0.95, rng: RNGLike = 0
) -> AnswerComparison:
    """Compare two models on the questions that both answered.

    Each model has its own right and wrong answers, so `truecal.compare`, which has one set of labels, does not apply.
    Intervals come from a jackknife that leaves out questions (in up to 50 groups) from both models at once.

    Parameters
    ----------
    first, second : Answers
        The answers of each model.
    confidence_level : float
        Level of the intervals.
    rng : seed or numpy.random.Generator, optional
        Random seed of the groups.

    Returns
    -------
    AnswerComparison

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.integrations.llm import Answers, compare_answers
    >>> from truecal.integrations.llm._answers import Answer
    >>> rng = np.random.default_rng(0)
    >>> right = rng.random(400) < 0.7
    >>> sure, modest = (
    ...     Answers.from_rows((Answer(f"q{i}", 1, bool(y), c) for i, y in enumerate(right)), model=name)
    ...     for name, c in (("sure", "95%"), ("modest", "75%"))
    ... )
    >>> result = compare_answers(sure, modest)
    >>> result.calibration_error_difference.low > 0
    True
    """
    check_fraction("confidence_level", confidence_level)
    for name, answers in (("first", first), ("second", second)):
        if answers.gold is not None:
            raise InputError("has gold labels, which compare_answers does not use", argument=name)
    shared = np.intersect1d(first.question, second.question)
    if len(shared) < 2:
        raise InputError(f"The models share {len(shared)} questions; at least 2 are needed")
    unmatched = len(np.union1d(first.question, second.question)) - len(shared)
    parts = [answers.take(np.isin(answers.question, shared)) for answers in (first, second)]
    # Clusters of questions, where there are any, are left out as a whole.
    names, code = np.unique(parts[0].cluster, return_inverse=True)
    cluster_of = dict(zip(parts[0].question.tolist(), code.reshape(-1).tolist(), strict=True))
    n_groups = min(_GROUPS, len(names))
    if n_groups < 2:
        raise InputError("All questions are in one cluster; at least 2 are needed")
    group_of_cluster = as_generator(rng).permutation(len(names)) % n_groups
    groups = [np.array([group_of_cluster[cluster_of[q]] for q in part.question.tolist()]) for part in parts]
    value = np.array([_measures(part) for part in parts])
    left_out = np.array(
        [
            np.subtract(
                *(_measures(part.take(group != k)) for part, group in zip(parts, groups, strict=True))
            )
            for k in range(n_groups)
        ]
    )
    spread = np.sqrt((n_groups - 1) * left_out.var(axis=0))
    half = stdtrit(n_groups - 1, 0.5 + confidence_level / 2) * spread
    difference = value[0] - value[1]
    method = f"jackknife over {n_groups} groups of questions"
    results: dict[str, Any] = {}
    for name, pair, d, h in zip(_MEASURES, value.T, difference, half, strict=True):
        results[name] = (float(pair[0]), float(pair[1]))
        results[f"{name}_difference"] = Interval(float(d - h), float(d + h), confidence_level, method)
    return AnswerComparison(
        models=(first.model or "first", second.model or "second"),
        n_questions=len(shared),
        n_unmatched=unmatched,
        **results,
    )


def _measures(answers: Answers) -> FloatArray:
    """Return the measures of one model, in the order of `_MEASURES`."""
    brier = float(np.mean((answers.confidence - answers.correct) ** 2))
    error = calibration_error(answers.correct, answers.confidence, clusters=answers.clusters)
    return np.array([error, brier, answers.accuracy, answers.mean_confidence])
