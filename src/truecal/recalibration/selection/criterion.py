"""How candidates are compared: by a criterion, and by the gain in a proper score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.estimators._registry import EstimatorSpec
from truecal.results import mean_over_classes

#: Proper scores, smaller is better. For two classes Brier's is (p - y)^2; for more it sums over the classes.
PROPER_SCORES = ("brier", "log_loss")


def losses(probability: FloatArray, score: str) -> FloatArray:
    """Return the (n, K) losses of each prediction, if class k occurs.

    Parameters
    ----------
    probability : ndarray of shape (n,) or (n, K)
        Probability of the positive class, or of each class.
    score : {"brier", "log_loss"}
        The log loss takes a probability of 0 as 2.2e-16, as scikit-learn does; else it would be infinite.

    Examples
    --------
    >>> losses(np.array([0.75]), "brier")
    array([[0.5625, 0.0625]])
    >>> losses(np.array([[0.5, 0.25, 0.25]]), "brier")
    array([[0.375, 0.875, 0.875]])
    """
    if score == "log_loss":
        table = np.column_stack([1 - probability, probability]) if probability.ndim == 1 else probability
        return np.asarray(-np.log(np.maximum(table, np.finfo(np.float64).eps)))
    if probability.ndim == 1:
        return np.column_stack([probability**2, (1 - probability) ** 2])
    squares = np.einsum("ij,ij->i", probability, probability)
    return np.asarray(squares[:, np.newaxis] - 2 * probability + 1)


@dataclass(frozen=True, eq=False)
class Gain:
    """How much each row's loss falls, and how it would vary if the model were calibrated.

    Attributes
    ----------
    value : ndarray of shape (n,)
        Loss of the model less loss of the candidate.
    variance : ndarray of shape (n,)
        Variance of that, for labels drawn from the model's own probabilities.
    """

    value: FloatArray
    variance: FloatArray

    def summarize(self, weight: FloatArray | None = None) -> tuple[float, float]:
        """Return the mean gain and its standard deviation by chance; a weight of 0 leaves a row out."""
        if weight is None:
            return float(self.value.mean()), float(np.sqrt(self.variance.sum())) / len(self.value)
        total = weight.sum()
        # A whole weight stands for so many rows of their own; any other for one row that counts so much.
        spread = weight if (weight == np.floor(weight)).all() else weight**2
        return float(weight @ self.value / total), float(np.sqrt(spread @ self.variance) / total)


def gain_over(model: FloatArray, candidate: FloatArray, label: NDArray[np.intp], score: str) -> Gain:
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
    difference = losses(model, score) - losses(candidate, score)
    chance = np.column_stack([1 - model, model]) if model.ndim == 1 else model
    mean = np.einsum("ij,ij->i", chance, difference)
    square = np.einsum("ij,ij,ij->i", chance, difference, difference)
    value = difference[np.arange(len(label)), label]
    return Gain(value, np.maximum(square - mean**2, 0))


@dataclass(frozen=True, eq=False)
class Column:
    """Rows of labels and scores, sorted into groups once, to be counted with many weights.

    Attributes
    ----------
    label : ndarray of shape (n,)
        0 or 1.
    score : ndarray of shape (n_groups,)
        The different scores, ascending.
    group : ndarray of shape (n,)
        Which score each row has.
    """

    label: FloatArray
    score: FloatArray
    group: NDArray[np.intp]

    @classmethod
    def from_rows(cls, label: NDArray[np.bool_], score: FloatArray) -> Column:
        """Sort rows into groups."""
        distinct, group = np.unique(score, return_inverse=True)
        return cls(label.astype(np.float64), distinct, group)

    def sample(self, weight: FloatArray | None) -> Sample:
        """Return the sample in which each row counts `weight` times."""
        w = np.ones(len(self.group)) if weight is None else weight
        count = np.asarray(np.bincount(self.group, w), dtype=np.float64)
        positives = np.asarray(np.bincount(self.group, w * self.label), dtype=np.float64)
        kept = count > 0
        return Sample(self.score[kept], count[kept], positives[kept])


@dataclass(frozen=True, eq=False)
class Judged:
    """Predictions of one candidate, ready to be measured with any weights.

    Attributes
    ----------
    columns : tuple of Column
        What the estimator measures: one, or one for each class. Empty for a proper score.
    loss : ndarray of shape (n,) or None
        The proper score of each row, if that is the criterion.
    """

    columns: tuple[Column, ...] = ()
    loss: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Criterion:
    """The quantity to minimise: a proper score, or an estimate of calibration error."""

    name: str
    spec: EstimatorSpec | None
    options: dict[str, Any]
    multiclass: str | None

    def prepare(self, probability: FloatArray, label: NDArray[np.intp]) -> Judged:
        """Reduce predictions to what the criterion looks at."""
        if self.spec is None:
            return Judged(loss=losses(probability, self.name)[np.arange(len(label)), label])
        return Judged(columns=tuple(self._columns(probability, label)))

    def _columns(self, probability: FloatArray, label: NDArray[np.intp]) -> Iterator[Column]:
        if probability.ndim == 1 and self.multiclass is None:
            yield Column.from_rows(label == 1, probability)
            return
        table = np.column_stack([1 - probability, probability]) if probability.ndim == 1 else probability
        if self.multiclass == "classwise":
            yield from (Column.from_rows(label == k, column) for k, column in enumerate(table.T))
        else:
            top = table.argmax(axis=1)
            yield Column.from_rows(top == label, table[np.arange(len(table)), top])

    def measure(self, judged: Judged, weight: FloatArray | None = None) -> float:
        """Return the criterion; a weight of 0 leaves a row out."""
        if judged.loss is not None:
            return float(np.average(judged.loss, weights=weight))
        assert self.spec is not None
        return mean_over_classes(
            [self.spec(column.sample(weight), **self.options) for column in judged.columns]
        ).value

    def describe(self, n_classes: int, positive: Any) -> str:
        """Return in words what is measured, and on what."""
        if n_classes == 2 and (self.multiclass is None or self.spec is None):
            return f"{self.name} of P(y = {positive!r})"
        if self.spec is None:
            return f"{self.name} of {n_classes} classes"
        if self.multiclass == "classwise":
            return f"{self.name} of {n_classes} classes, each against the rest"
        return f"{self.name} of the top label of {n_classes} classes"
