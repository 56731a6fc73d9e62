"""The input of recalibrators: scores as probabilities or as logits, and labels by scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, logsumexp

from truecal._lib.checks import check_choice
from truecal._lib.types import FloatArray
from truecal.data.arrays import finite_numbers, probabilities_from_logits, read_probabilities
from truecal.data.extremes import NO_FLOOR, Floor, floor_of, limits_of
from truecal.data.faults import bad_values
from truecal.data.labels import Codes, Labels
from truecal.data.question import refuse_counted_from_one
from truecal.exceptions import InputError, Remedy, warn_user

#: How scores may be given. They are never guessed from their range.
INPUTS = ("probabilities", "logits")


@dataclass(frozen=True, eq=False)
class Column:
    """Scores of one class against the rest, one for each row, as probabilities or as logits.

    Logits keep the digits that probabilities lose near 1, so each quantity is computed from what was given. The floor
    says what probabilities of exactly 0 and 1 count as in logarithms.
    """

    values: NDArray[np.floating[Any]]
    is_logit: bool
    floor: Floor = NO_FLOOR

    @cached_property
    def probability(self) -> NDArray[np.floating[Any]]:
        """The scores as probabilities, in the type that they came in."""
        return np.asarray(expit(self.values)) if self.is_logit else self.values

    @cached_property
    def logit(self) -> FloatArray:
        """The scores as finite log odds."""
        if self.is_logit:
            return np.asarray(self.values, dtype=np.float64)
        inside = self._inside
        return np.asarray(np.log(inside) - np.log1p(-inside))

    @cached_property
    def logs(self) -> tuple[FloatArray, FloatArray]:
        """The finite logarithms of the probability and of its complement."""
        if self.is_logit:
            return np.asarray(log_expit(self.logit)), np.asarray(log_expit(-self.logit))
        inside = self._inside
        return np.log(inside), np.log1p(-inside)

    @property
    def _inside(self) -> FloatArray:
        """The probabilities in float64, moved inside by the floor and at least by the resolution of their type."""
        # The resolution is symmetric: a score near 0 must not weigh ten times what a score near 1 does because floats
        # are finer there. The betacal package of Kull et al. has the same bound.
        return self.floor.clip(self.values, float(np.finfo(self.values.dtype).eps))


@dataclass(frozen=True, eq=False)
class Scores:
    """Checked scores of `n_columns` columns; one or two columns are two classes.

    Attributes
    ----------
    values : ndarray of shape (n,) or (n, K)
        What was given. One column is (n,).
    are_logits : bool
        Whether these are logits.
    names : list or None
        The names of the columns of a frame.
    flat : bool
        Whether they were given as (n,), and the answer goes back so.
    floor : Floor
        What probabilities of exactly 0 and 1 count as in logarithms.
    """

    values: NDArray[np.floating[Any]]
    are_logits: bool
    names: list[Any] | None
    flat: bool
    floor: Floor = NO_FLOOR

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_columns(self) -> int:
        """Number of columns as given; 1 for shape (n,)."""
        return 1 if self.values.ndim == 1 else self.values.shape[1]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return max(2, self.n_columns)

    def __getitem__(self, rows: Any) -> Scores:
        return replace(self, values=self.values[rows])

    def with_floor(self, weight: FloatArray | None) -> Scores:
        """Return the scores with the floor that these rows have, if they are probabilities."""
        if self.are_logits:
            return self
        return replace(self, floor=floor_of(self._of_classes, weight))

    def limits(self, weight: FloatArray | None) -> Floor:
        """Return the smallest probability that an exact 0, or the complement of an exact 1, can mean in these rows."""
        return limits_of(self.probabilities if self.are_logits else self._of_classes, weight)

    @property
    def _of_classes(self) -> NDArray[np.floating[Any]]:
        """The given scores: of the positive class of two, or of each class."""
        return self.columns[0].values if self.n_classes == 2 else self.values

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The positive class of two, or each class of several against the rest."""
        if self.n_columns == 1:
            return (Column(self.values, self.are_logits, self.floor),)
        if self.n_columns == 2:
            # The second column is enough, and (n, 2) then gives the same result as (n,).
            second = self.values[:, 1] - self.values[:, 0] if self.are_logits else self.values[:, 1]
            return (Column(second, self.are_logits, self.floor),)
        values = one_against_rest(self.values) if self.are_logits else self.values
        return tuple(Column(column, self.are_logits, self.floor) for column in values.T)

    @cached_property
    def probabilities(self) -> FloatArray:
        """The model's own probabilities: shape (n,) for two classes, (n, K) for more."""
        if self.n_classes == 2:
            return self.columns[0].probability.astype(np.float64)
        if self.are_logits:
            return probabilities_from_logits(self.values)
        return np.asarray(self.values / self.values.sum(axis=1, dtype=np.float64, keepdims=True))

    def logs(self, smallest: float) -> FloatArray:
        """Return the finite logarithms of (n, K) probabilities, of which none counts as less than `smallest`."""
        values = np.asarray(self.values, dtype=np.float64)
        return np.asarray(np.log(np.maximum(values, max(self.floor.zero, smallest))))

    def shaped(self, positive: FloatArray) -> FloatArray:
        """Return probabilities of the positive class in the shape that the scores came in."""
        if self.flat:
            return positive
        return positive[:, np.newaxis] if self.n_columns == 1 else np.column_stack([1 - positive, positive])


def one_against_rest(logits: NDArray[np.floating[Any]]) -> FloatArray:
    r"""Return the log odds of each class against all others, :math:`z_k - \log\sum_{j \ne k} e^{z_j}`.

    Examples
    --------
    >>> one_against_rest(np.array([[100.0, 0.0, 0.0]]))
    array([[  99.30685282, -100.        , -100.        ]])
    """
    z = np.asarray(logits, dtype=np.float64)
    rows, top = np.arange(len(z)), z.argmax(axis=1)
    shifted = z - z[rows, top][:, np.newaxis]
    exponentials = np.exp(shifted)
    # The sum of the others contains the largest term, so this difference loses nothing ...
    with np.errstate(divide="ignore"):
        odds = shifted - np.log(exponentials.sum(axis=1, keepdims=True) - exponentials)
    # ... except for the largest itself, whose others are summed on their own.
    shifted[rows, top] = -np.inf
    odds[rows, top] = -logsumexp(shifted, axis=1)
    return np.asarray(odds)


def read_scores(scores: ArrayLike, given: str) -> Scores:
    """Check scores that are given as ``"probabilities"`` or as ``"logits"``."""
    check_choice("input", given, INPUTS)
    _refuse_objects(scores)
    values: NDArray[np.floating[Any]]
    if given == "logits":
        values, names = finite_numbers(scores, "scores")
    else:
        values, names = read_probabilities(scores, "scores", remedy=Remedy.SCORES_ARE_LOGITS)
    flat = values.ndim == 1
    if not flat and values.shape[1] == 1:
        values, names = values[:, 0], None
    return Scores(values, given == "logits", names, flat)


def read_labels(
    y: Any, scores: Scores, labels: Sequence[Any] | None = None, *, questioned: bool = False
) -> tuple[Codes, NDArray[Any]]:
    """Return the number of each row's class, and the classes in the order of the columns.

    The classes are `labels` if that is given. Otherwise, as in scikit-learn, they are the sorted labels, unless
    these are the numbers of the columns from 0, or the names of the columns of a frame; then a class may be
    missing from `y`. If `questioned`, text labels of several unnamed columns give the warning of `truecal.estimate`.

    Examples
    --------
    >>> read_labels(["yes", "no", "yes"], read_scores([0.9, 0.2, 0.6], "probabilities"))
    (array([1, 0, 1]), array(['no', 'yes'], dtype='<U3'))
    """
    if y is None:
        raise InputError("fit requires y to be passed, but the target y is None: labels are needed")
    truth = Labels(y, len(scores), name="y", scores_name="scores")
    # scikit-learn's checks look for the words "Unknown label type".
    if truth.values.dtype.kind == "f" and (truth.values != np.floor(truth.values)).any():
        wrong = truth.values != np.floor(truth.values)
        rule, remedy = "(Unknown label type: continuous)", "Are labels and scores in the wrong order?"
        raise bad_values(wrong, truth.values, "y", "fractional value", rule, remedy=remedy)
    sure = not questioned or scores.n_classes == 2 or truth.values.dtype.kind not in "OSTU"
    column, classes = truth.columns(scores.n_classes, classes=labels, names=scores.names, sorted_classes=sure)
    unnamed = labels is None and scores.names is None and scores.n_classes > 2
    if unnamed and classes == list(range(scores.n_classes)):
        refuse_counted_from_one(column, scores.probabilities, "y", "Count them from 0.")
    return column.astype(np.intp), np.array(classes)


def check_logits(scores: Scores) -> None:
    """Reject, or warn about, logits that look like probabilities: a sigmoid would silently distort them."""
    low, high = float(scores.values.min()), float(scores.values.max())
    if low < 0 or high > 1:
        return
    if scores.values.ndim == 2 and (np.abs(scores.values.sum(axis=1) - 1) < 1e-6).all():
        raise InputError(
            "were passed as logits, but all rows sum to 1", argument="scores", remedy=Remedy.NOT_LOGITS
        )
    if low < high:
        warn_user(
            "scores were passed as logits, but all lie in [0, 1]. If they are probabilities, pass "
            "input='probabilities'."
        )


def _refuse_objects(scores: Any) -> None:
    """Refuse non-numeric Python objects with the TypeError that scikit-learn's checks expect."""
    if isinstance(scores, np.ndarray) and scores.dtype.kind == "O":
        for value in scores.ravel().tolist():
            if isinstance(value, dict | set | bytes):
                raise TypeError(
                    f"scores must be numbers: the argument must be a string or a number, not {value!r}."
                )
