"""What the recalibrators read: scores as probabilities or as logits, checked once, here."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, logsumexp

from truecal._lib.checks import check_choice
from truecal._lib.types import FloatArray
from truecal.data import probabilities_from_logits
from truecal.data.arrays import tell, to_array, to_numbers

#: How scores may be given. They are never guessed from their range.
INPUTS = ("probabilities", "logits")

#: How far a row of probabilities may be from a sum of 1, as in `truecal.data`.
_SUM_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class Column:
    """Scores of one class against the rest, one for each row, as probabilities or as logits.

    Logits keep what probabilities lose near 1, so that each quantity is taken from what was given.
    """

    values: NDArray[np.floating[Any]]
    is_logit: bool

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
        """The probabilities in float64, those of 0 and 1 moved inside by the resolution of their type."""
        # The betacal package of Kull et al. does the same. The bound is symmetric: a score of 0 must not
        # weigh ten times what a score of 1 does because floats are finer there.
        smallest = float(np.finfo(self.values.dtype).eps)
        return np.clip(self.values.astype(np.float64), smallest, 1 - smallest)


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
    """

    values: NDArray[np.floating[Any]]
    are_logits: bool
    names: list[Any] | None
    flat: bool

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
        return Scores(self.values[rows], self.are_logits, self.names, self.flat)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The positive class of two, or each class of several against the rest."""
        if self.n_columns == 1:
            return (Column(self.values, self.are_logits),)
        if self.n_columns == 2:
            # The second column says it all; this makes (n, 2) give the very answer of (n,).
            second = self.values[:, 1] - self.values[:, 0] if self.are_logits else self.values[:, 1]
            return (Column(second, self.are_logits),)
        values = one_against_rest(self.values) if self.are_logits else self.values
        return tuple(Column(column, self.are_logits) for column in values.T)

    @cached_property
    def probabilities(self) -> FloatArray:
        """What the model itself says: shape (n,) for two classes, (n, K) for more."""
        if self.n_classes == 2:
            return self.columns[0].probability.astype(np.float64)
        if self.are_logits:
            return probabilities_from_logits(self.values)
        return np.asarray(self.values / self.values.sum(axis=1, dtype=np.float64, keepdims=True))

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
    # The sum of the others holds the greatest term, so that this difference loses nothing ...
    with np.errstate(divide="ignore"):
        odds = shifted - np.log(exponentials.sum(axis=1, keepdims=True) - exponentials)
    # ... except for the greatest itself, whose others are summed on their own.
    shifted[rows, top] = -np.inf
    odds[rows, top] = -logsumexp(shifted, axis=1)
    return np.asarray(odds)


def read_scores(scores: ArrayLike, given: str) -> Scores:
    """Check scores that are given as ``"probabilities"`` or as ``"logits"``."""
    check_choice("input", given, INPUTS)
    array, names = _dense(scores)
    values = to_numbers(array, "scores")
    finite = np.isfinite(values)
    if not finite.all():
        raise ValueError(
            f"scores has {tell(~finite, values, 'NaN or infinite value')}. Remove or mend these rows."
        )
    flat = values.ndim == 1
    if values.ndim == 2 and values.shape[1] == 1:
        values, names = values[:, 0], None
    if given == "logits":
        return Scores(values.astype(np.float64), True, names, flat)
    _check_probabilities(values)
    return Scores(values, False, names, flat)


def doubt_logits(scores: Scores) -> None:
    """Refuse or doubt logits that look like probabilities; a sigmoid over these would spoil them silently."""
    low, high = float(scores.values.min()), float(scores.values.max())
    if low < 0 or high > 1:
        return
    if scores.values.ndim == 2 and (np.abs(scores.values.sum(axis=1) - 1) < 1e-6).all():
        raise ValueError("scores are said to be logits, but all rows sum to 1. Say input='probabilities'.")
    if low < high:
        warnings.warn(
            "scores are said to be logits, and all lie in [0, 1]. If they are probabilities, say "
            "input='probabilities'.",
            UserWarning,
            stacklevel=3,
        )


def _dense(scores: Any) -> tuple[NDArray[Any], list[Any] | None]:
    """Return a non-empty array of one or two dimensions, and the names of its columns."""
    # The words that scikit-learn's users and its checks look for are in these messages.
    if type(scores).__module__.startswith("scipy.sparse"):
        raise TypeError("scores are a sparse matrix. Pass a dense array: scores.toarray().")
    array, names = to_array(scores, "scores")
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: scores must be real numbers.")
    if array.dtype.kind == "O":
        for value in array.ravel().tolist():
            if isinstance(value, dict | set | bytes):
                raise TypeError(
                    f"scores must be numbers: the argument must be a string or a number, not {value!r}."
                )
    if array.ndim not in (1, 2):
        raise ValueError(
            f"scores must have shape (n,) or (n, K). Got shape {array.shape} instead. Reshape your data."
        )
    for length, noun in zip(array.shape, ("sample", "feature"), strict=False):
        if length == 0:
            raise ValueError(
                f"scores are empty: 0 {noun}(s) (shape={array.shape}) while a minimum of 1 is required."
            )
    return array, names


def _check_probabilities(values: NDArray[np.floating[Any]]) -> None:
    outside = (values < 0) | (values > 1)
    if outside.any():
        raise ValueError(
            f"scores has {tell(outside, values, 'value')} outside [0, 1]. "
            f"Pass probabilities, or say input='logits'."
        )
    if values.ndim == 1:
        return
    total = values.sum(axis=1, dtype=np.float64)
    off = np.abs(total - 1) > _SUM_TOLERANCE
    if off.any():
        raise ValueError(
            f"scores has {off.sum()} of {len(off)} rows that do not sum to 1 (first at row {off.argmax()}: "
            f"{total[off.argmax()]:.6g}). Pass one probability for each class, or say input='logits'."
        )
