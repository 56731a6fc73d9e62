"""How candidates are compared on held-out rows: by a criterion, and by the gain in a proper score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.data.arrays import top_target
from truecal.data.extremes import shown_by
from truecal.data.labels import Codes
from truecal.data.sample import Sample
from truecal.estimators._registry import EstimatorSpec
from truecal.inference.interval import assumption_of
from truecal.inference.resample import row_factors
from truecal.multiscale import analyse, joint_limits
from truecal.recalibration._fit_rows import FitRows
from truecal.results import Interval, Result

#: Proper scores, smaller is better. For two classes Brier's is (p - y)^2; for more it sums over the classes.
PROPER_SCORES = ("brier", "log_loss")

_EPS = float(np.finfo(np.float64).eps)

#: The name of the unchanged model.
IDENTITY = "identity"


def of_classes(probability: FloatArray) -> FloatArray:
    """Return the (n, K) probabilities of each class, also of two."""
    return np.column_stack([1 - probability, probability]) if probability.ndim == 1 else probability


def losses(probability: FloatArray, score: str, certain: FloatArray | float = 0.0) -> FloatArray:
    """Return the (n, K) losses of each prediction, if class k occurs.

    In the log loss an exact 0 counts as `certain`, and no probability as less than 2.2e-16, as in scikit-learn.

    Examples
    --------
    >>> losses(np.array([0.75]), "brier")
    array([[0.5625, 0.0625]])
    >>> losses(np.array([[0.5, 0.25, 0.25]]), "brier")
    array([[0.375, 0.875, 0.875]])
    >>> losses(np.array([0.0]), "log_loss", certain=0.005).round(2)
    array([[-0. ,  5.3]])
    """
    if score == "log_loss":
        table = of_classes(probability)
        return np.asarray(-np.log(np.maximum(np.where(table > 0, table, certain), _EPS)))
    if probability.ndim == 1:
        return np.column_stack([probability**2, (1 - probability) ** 2])
    squares = np.einsum("ij,ij->i", probability, probability)
    return np.asarray(squares[:, np.newaxis] - 2 * probability + 1)


@dataclass(frozen=True, eq=False)
class Gain:
    """How much each row's loss falls, and how it would vary if the model were calibrated; of one or of several.

    Attributes
    ----------
    value : ndarray of shape (..., n)
        Loss of the model less loss of the candidate.
    variance : ndarray of shape (..., n)
        Variance of that, for labels drawn from the model's own probabilities.
    """

    value: FloatArray
    variance: FloatArray

    @classmethod
    def stack(cls, gains: Sequence[Gain]) -> Gain:
        """Stack several gains along a new first axis."""
        return cls(np.stack([gain.value for gain in gains]), np.stack([gain.variance for gain in gains]))

    def summarize(self, rows: FitRows, factor: FloatArray | None = None) -> FloatArray:
        """Return the mean gain and its standard deviation by chance, along a new last axis.

        Rows of a cluster depend on each other. What the model implies for single rows is then not enough, and the
        variance between clusters is used where it is larger.
        """
        weight, squares = rows.each, rows.squares
        if factor is not None:
            weight, squares = factor * weight, factor * squares
        total = float(weight.sum())
        # Products of matrices would start threads of BLAS, which takes longer than these sums.
        mean = np.einsum("...i,i->...", self.value, weight) / total
        variance = np.einsum("...i,i->...", self.variance, squares)
        if rows.cluster is not None:
            times = np.ones(int(rows.cluster.max()) + 1)
            if factor is not None:
                times[rows.cluster] = factor
            residual = (rows.each * (self.value - mean[..., np.newaxis])).reshape(-1, len(rows.label))
            sums = np.stack([np.bincount(rows.cluster, row) for row in residual])
            between = np.einsum("ki,ki,i->k", sums, sums, times)
            variance = np.maximum(variance, between.reshape(variance.shape))
        return np.stack([mean, np.sqrt(variance) / total], axis=-1)


def gain_over(
    model: FloatArray, candidate: FloatArray, label: Codes, score: str, certain: FloatArray | float = 0.0
) -> Gain:
    r"""Return the gain of a candidate over the model in each row.

    With :math:`d_k` the gain if class k occurs and p the model's probabilities, the variance is
    :math:`\sum_k p_k d_k^2 - (\sum_k p_k d_k)^2`. The variance over the rows would not do: where failures are
    rare and none was seen, every row gains the same small amount, and any gain would look certain.

    Examples
    --------
    >>> gain = gain_over(np.array([0.5, 0.5]), np.array([0.75, 0.75]), np.array([1, 0]), "brier")
    >>> gain.value, gain.variance
    (array([ 0.1875, -0.3125]), array([0.0625, 0.0625]))
    """
    difference = losses(model, score, certain) - losses(candidate, score, certain)
    chance = of_classes(model)
    mean = np.einsum("ij,ij->i", chance, difference)
    square = np.einsum("ij,ij,ij->i", chance, difference, difference)
    value = difference[np.arange(len(label)), label]
    return Gain(value, np.maximum(square - mean**2, 0))


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out rows of one fold, for one class: sorted into groups once, to be counted with many weights.

    Attributes
    ----------
    rows : ndarray of shape (m,)
        Numbers of the rows.
    label : ndarray of shape (m,)
        0 or 1.
    score : ndarray of shape (n_groups,)
        The different scores, ascending.
    group : ndarray of shape (m,)
        Which score each row has.
    """

    rows: Codes
    label: FloatArray
    score: FloatArray
    group: Codes

    @classmethod
    def of(cls, rows: Codes, label: NDArray[np.bool_], score: FloatArray) -> HeldOut:
        """Sort rows into groups."""
        distinct, group = np.unique(score, return_inverse=True)
        return cls(rows, label.astype(np.float64), distinct, group)

    def sample(self, weight: FloatArray) -> Sample:
        """Return the sample in which each row counts `weight` times."""
        w = weight[self.rows]
        count = np.asarray(np.bincount(self.group, w), dtype=np.float64)
        positives = np.asarray(np.bincount(self.group, w * self.label), dtype=np.float64)
        kept = count > 0
        return Sample(score=self.score[kept], count=count[kept], positives=np.minimum(positives, count)[kept])


def parts_of(
    probability: FloatArray, label: Codes, fold: Codes, multiclass: str | None
) -> Iterator[tuple[HeldOut, ...]]:
    """Yield what is measured in each fold: one part, or one for each class.

    Folds are measured one by one. What chance adds to the labels of a fold is missing from the rows that a recalibrator
    was fitted to, so that its errors in different folds have opposite signs and would cancel in all folds together.
    """
    for k in range(int(fold.max()) + 1):
        rows = np.flatnonzero(fold == k)
        truth, table = label[rows], probability[rows]
        if probability.ndim == 1 and multiclass is None:
            yield (HeldOut.of(rows, truth == 1, table),)
            continue
        table = of_classes(table)
        if multiclass == "classwise":
            yield tuple(HeldOut.of(rows, truth == c, column) for c, column in enumerate(table.T))
        else:
            top = table.argmax(axis=1)
            yield (HeldOut.of(rows, top == truth, table[np.arange(len(table)), top]),)


@dataclass(frozen=True, eq=False)
class Criterion:
    """The quantity to minimise: a proper score, or an estimate of calibration error."""

    name: str
    spec: EstimatorSpec | None
    options: dict[str, Any]
    multiclass: str | None

    def prepare(
        self, probability: FloatArray, label: Codes, fold: Codes, certain: FloatArray
    ) -> FloatArray | tuple[HeldOut, ...]:
        """Return the proper score of each row, or the parts that the estimator measures."""
        if self.spec is None:
            return np.asarray(losses(probability, self.name, certain)[np.arange(len(label)), label])
        folds = parts_of(probability, label, fold, self.multiclass)
        return tuple(part for parts in folds for part in parts)

    def measure(self, prepared: FloatArray | tuple[HeldOut, ...], weight: FloatArray) -> float:
        """Return the criterion; a weight of 0 leaves a row out.

        For an estimator that is the lp mean over folds and classes. Debiased squares are averaged before they are
        clipped at 0.
        """
        if self.spec is None:
            return float(np.average(prepared, weights=weight))  # type: ignore[arg-type]
        powers, total, order = [], [], 1.0
        for part in prepared:
            if (size := float(weight[part.rows].sum())) > 0:
                found = self.spec(part.sample(weight), **self.options)
                order = found.norm or 1.0
                square = found.signed_square if order == 2 else None
                powers.append(found.value**order if square is None else square)
                total.append(size)
        return float(max(np.average(powers, weights=total), 0.0) ** (1 / order))

    def describe(self, rows: FitRows) -> str:
        """Return in words what is measured, and on what."""
        n_classes = rows.scores.n_classes
        if n_classes == 2 and (self.multiclass is None or self.spec is None):
            return f"{self.name} of {rows.target}"
        if self.spec is None:
            return f"{self.name} of {n_classes} classes"
        if self.multiclass == "classwise":
            return f"{self.name} of {n_classes} classes, each against the rest"
        return f"{self.name} of the {top_target(n_classes)}"


def held_out_error(
    probability: FloatArray, rows: FitRows, fold: Codes, multiclass: str | None, level: float
) -> tuple[float, Interval]:
    """Return the calibration error of held-out rows by the default estimator, and its confidence interval.

    It is the root mean square of the errors of the folds, for recalibrators that were fitted without them.
    """
    cores, several = [], False
    for parts in parts_of(probability, rows.label, fold, multiclass):
        several = several or len(parts) > 1
        for part in parts:
            sample = rows.take(part.rows).sample_of(part.label, part.score[part.group], rows.target)
            cores.append(analyse(sample))
    limits = joint_limits(cores, independent=not several)
    assumption = assumption_of([core.sample for core in cores], limits)
    return limits.error, Interval(*limits.interval(level), level, assumption, reliable=limits.reliable)


@dataclass(frozen=True)
class CandidateScore(Result):
    """Held-out performance of one candidate.

    Attributes
    ----------
    name : str
        Its name; ``"identity"`` is the unchanged model.
    criterion, criterion_se : float
        The criterion, smaller is better, and its bootstrap standard error.
    difference, difference_se : float
        The criterion minus that of the identity, with its standard error; negative is better.
    brier_gain, log_loss_gain : float
        How much the proper score improves over the identity; positive is better.
    evidence : float
        The larger of the two gains, each divided by its standard deviation under the null hypothesis that the
        model is calibrated: a z statistic.
    passes : bool
        Whether that exceeds the threshold `Selection.z`.
    chosen_share : float
        Share of the resamples in which it was chosen.
    error : float
        Calibration error on held-out rows by the default estimator: the root mean square over folds. It is that of
        recalibrators fitted without one fold; the one that is returned has seen all rows and does slightly better.
    interval : Interval
        Confidence interval of that error.
    """

    name: str
    criterion: float
    criterion_se: float
    difference: float
    difference_se: float
    brier_gain: float
    log_loss_gain: float
    evidence: float
    passes: bool
    chosen_share: float
    error: float
    interval: Interval


class Contest:
    """The predictions of the model and of all candidates for the same held-out rows."""

    def __init__(
        self,
        predictions: dict[str, FloatArray],
        rows: FitRows,
        fold: NDArray[np.intp],
        criterion: Criterion,
        z: float,
    ) -> None:
        self.rows, self.fold, self.criterion, self.z = rows, fold, criterion, z
        self.probability = {IDENTITY: rows.scores.probabilities, **predictions}
        # In proper scores an exact 0 of the model counts as no less than the rows can show, and one of a candidate too,
        # unless the model was nearly as certain.
        model = rows.scores.limits(rows.weight).table(rows.scores.probabilities)
        certain = np.minimum(shown_by(model.shape, rows.weight), of_classes(model) / 2)
        scored = [model if criterion.spec is None else rows.scores.probabilities, *predictions.values()]
        self.prepared = [criterion.prepare(q, rows.label, fold, certain) for q in scored]
        self.gains = Gain.stack(
            [
                Gain.stack([gain_over(model, q, rows.label, score, certain) for score in PROPER_SCORES])
                for q in (model, *predictions.values())
            ]
        )

    def measure(self, factor: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the criterion and the gains of all; `factor` says how much more each row counts."""
        weight = self.rows.each if factor is None else factor * self.rows.each
        value = [self.criterion.measure(prepared, weight) for prepared in self.prepared]
        return np.array(value), self.gains.summarize(self.rows, factor)

    def decide(
        self, level: float, n_resamples: int, rng: np.random.Generator
    ) -> tuple[str, tuple[CandidateScore, ...], tuple[str, ...]]:
        """Return the name of the choice, the results of each candidate, and which do about as well as the choice."""
        names, rows = list(self.probability), self.rows
        value, gain = self.measure()
        evidence = _evidence(gain)
        choice = _choose(value, evidence, self.z)
        resampled, share = np.empty((n_resamples, len(names))), np.zeros(len(names))
        counts = rows.weight if rows.counts else None
        draws = row_factors(len(self.fold), n_resamples, counts=counts, clusters=rows.cluster, rng=rng)
        for i, factor in enumerate(draws):
            resampled[i], resampled_gain = self.measure(factor)
            share[_choose(resampled[i], _evidence(resampled_gain), self.z)] += 1 / n_resamples
        spread, spread_of_difference = resampled.std(axis=0), (resampled - resampled[:, :1]).std(axis=0)
        scores = []
        for k, name in enumerate(names):
            # The unchanged model was fitted to none of these rows, so they are one fold.
            fold = np.zeros_like(self.fold) if name == IDENTITY else self.fold
            error, interval = held_out_error(
                self.probability[name], rows, fold, self.criterion.multiclass, level
            )
            scores.append(
                CandidateScore(
                    name=name,
                    criterion=float(value[k]),
                    criterion_se=float(spread[k]),
                    difference=float(value[k] - value[0]),
                    difference_se=float(spread_of_difference[k]),
                    brier_gain=float(gain[k, 0, 0]),
                    log_loss_gain=float(gain[k, 1, 0]),
                    evidence=float(evidence[k]),
                    passes=bool(evidence[k] > self.z),
                    chosen_share=float(share[k]),
                    error=error,
                    interval=interval,
                )
            )
        near = value - value[choice] <= (resampled - resampled[:, [choice]]).std(axis=0)
        ties = [one.name for k, one in enumerate(scores) if k not in (0, choice) and one.passes and near[k]]
        return names[choice], tuple(scores), tuple(ties) if choice else ()

    def count_impossible(self, name: str) -> float:
        """Return how many held-out rows have the label to which a candidate gives a probability of exactly 0."""
        label = self.rows.label
        failed = of_classes(self.probability[name])[np.arange(len(label)), label] == 0
        return float(self.rows.each[failed].sum())


def _evidence(gain: FloatArray) -> FloatArray:
    """Return the larger z statistic of the gains; axes are candidate, score, (gain, standard deviation)."""
    mean, chance = gain[..., 0], gain[..., 1]
    # Without variance the gain comes from events that the model called impossible, or there is none.
    sure = np.where(mean > 0, np.inf, 0.0)
    return np.asarray(np.where(chance > 0, mean / np.where(chance > 0, chance, 1), sure).max(axis=1))


def _choose(value: FloatArray, evidence: FloatArray, z: float) -> int:
    """Return which has the smallest criterion: the identity, which comes first, or a candidate that shows a gain."""
    allowed = evidence > z
    allowed[0] = True
    return int(np.where(allowed, value, np.inf).argmin())
