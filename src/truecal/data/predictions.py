"""Labels and probabilities, or logits, to `Sample`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax

from truecal._lib.checks import check_choice
from truecal._lib.types import FloatArray
from truecal.data.arrays import check_shape, find_missing, plain, tell, to_array, to_numbers
from truecal.data.labels import binary_labels, check_labels, class_columns
from truecal.data.sample import Sample

#: How far a row of probabilities may be from a sum of 1: float32 softmax and rounded files pass.
_SUM_TOLERANCE = 1e-3

#: Beyond this, sums and products of weights could overflow.
_MOST_WEIGHT = 1e100


def read(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
) -> tuple[Sample, ...]:
    """Check predictions and group them; one sample, or for ``multiclass="classwise"`` one for each class.

    Parameters
    ----------
    y_true : array-like of shape (n,), (n, 1) or one-hot (n, K)
        Labels. For one column of scores: 0 and 1, booleans, or any two values with `pos_label`. For K
        columns: the column's number from 0, or its name. Lists, NumPy arrays, pandas, Polars and PyArrow
        columns and torch CPU tensors are taken by position, never by index.
    y_proba : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities. One column is the probability of the positive class.
    sample_weight : array-like of shape (n,), optional
        Frequencies: weight 2 equals the row twice, weight 0 leaves it out.
    pos_label : label, optional
        The positive class. With K > 2 columns: this class against the rest.
    labels : sequence of K labels, optional
        The class of each column, as scikit-learn's ``classes_``; one column is that of the second. By
        default the names of a frame's columns, if the labels are among them, else 0 to K - 1, or the
        sorted labels if they are strings and there are K of them.
    multiclass : {"top", "classwise"}, optional
        ``"top"``: the greatest probability against whether that class was right, the default for K > 2.
        ``"classwise"``: every class against the rest.

    Returns
    -------
    tuple of Sample
        One, or K for classwise.

    Raises
    ------
    ValueError
        Saying what is wrong, where, how many times, and what to do.

    Examples
    --------
    >>> from truecal.data import read
    >>> read(["no", "yes", "yes"], [0.2, 0.7, 0.9], pos_label="yes")
    (Sample(n=3, groups=3, target="P(y = 'yes')"),)
    >>> read([2, 0], [[0.1, 0.2, 0.7], [0.4, 0.5, 0.1]])
    (Sample(n=2, groups=2, target='top label of 3 classes'),)
    """
    options = {"pos_label": pos_label, "labels": labels, "multiclass": multiclass}
    return tuple(rows.group() for rows in read_rows(y_true, y_proba, sample_weight=sample_weight, **options))


@dataclass(frozen=True, eq=False)
class Rows:
    """Checked predictions, row by row: 0/1 labels, scores in [0, 1], weights where there are any.

    Attributes
    ----------
    label : ndarray of shape (n,)
        Labels, 0 or 1.
    score : ndarray of shape (n,)
        Scores in [0, 1], in the type that they came in.
    weight : ndarray of shape (n,), or None
        Frequencies; None where every row counts once.
    target : str
        What the score is the probability of, in words.
    """

    label: NDArray[Any]
    score: NDArray[Any]
    weight: FloatArray | None
    target: str

    def group(self) -> Sample:
        """Return the sample; rows of weight 0 are left out."""
        label, score, weight = self.label, self.score, self.weight
        if weight is not None and not weight.all():
            label, score, weight = label[weight > 0], score[weight > 0], weight[weight > 0]
        return Sample.from_rows(label, score, weight, target=self.target)


def read_rows(y_true: Any, y_proba: Any, **reading: Any) -> tuple[Rows, ...]:
    """Check predictions as `read` does, and return their rows in the order in which they came.

    Parameters
    ----------
    y_true, y_proba, **reading
        As in `read`.

    Returns
    -------
    tuple of Rows
        One, or K for classwise.

    Examples
    --------
    >>> (rows,) = read_rows([2, 0], [[0.1, 0.2, 0.7], [0.4, 0.5, 0.1]])
    >>> rows.score.tolist(), rows.label.tolist()
    ([0.7, 0.5], [True, False])
    """
    return _rows(y_true, *_probabilities(y_proba), **reading)


def from_logits(y_true: ArrayLike, logits: ArrayLike, **options: Any) -> tuple[Sample, ...]:
    """Read logits: one column through the sigmoid, several through the softmax, both stable.

    The arithmetic is in float64, whatever the logits come in, so that fewer scores round to 1.

    Parameters
    ----------
    y_true : array-like
        Labels, as in `read`.
    logits : array-like of shape (n,), (n, 1) or (n, K)
        Finite real numbers.
    **options
        The other parameters of `read`.

    Returns
    -------
    tuple of Sample
        One, or K for classwise.

    Examples
    --------
    >>> from truecal.data import from_logits
    >>> from_logits([1, 0], [40.0, -1000.0])[0].score
    array([0., 1.])
    """
    return tuple(rows.group() for rows in _rows(y_true, *_squashed(logits), **options))


def probabilities_from_logits(logits: ArrayLike) -> FloatArray:
    """Return the sigmoid of one column of logits, the softmax of several.

    Parameters
    ----------
    logits : array-like of shape (n,), (n, 1) or (n, K)
        Finite real numbers.

    Returns
    -------
    ndarray of shape (n,) or (n, K)
        Probabilities, float64.

    Examples
    --------
    >>> probabilities_from_logits([[1000.0, 1000.0], [0.0, -1000.0]])
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    return _squashed(logits)[0]


def _squashed(logits: Any) -> tuple[FloatArray, list[Any] | None]:
    """Return probabilities, and the names of their columns where there are any."""
    array, names = to_array(logits, "logits")
    check_shape(array, "logits")
    array = to_numbers(array, "logits").astype(np.float64)
    finite = np.isfinite(array)
    if not finite.all():
        raise ValueError(
            f"logits has {tell(~finite, array, 'infinite or NaN value')}. Remove or mend these rows."
        )
    if array.ndim == 1 or array.shape[1] == 1:
        return np.asarray(expit(array.reshape(-1))), None
    with np.errstate(over="ignore"):  # 1e308 less -1e308 is infinite, and its probability rightly 0
        return np.asarray(softmax(array, axis=1)), names


def _probabilities(y_proba: Any) -> tuple[NDArray[np.floating[Any]], list[Any] | None]:
    """Return checked probabilities, and the names of their columns where there are any."""
    array, names = to_array(y_proba, "y_proba")
    check_shape(array, "y_proba")
    proba = to_numbers(array, "y_proba")
    # Least and greatest are NaN if any value is, so this one comparison finds every fault.
    if not (proba.min() >= 0 and proba.max() <= 1):
        _refuse_probabilities(proba)
    if proba.dtype.itemsize > 8:  # only now, for rounding would hide an excess beyond float64
        proba = proba.astype(np.float64)
    if proba.ndim == 1 or proba.shape[1] == 1:
        return proba.reshape(-1), None
    excess = proba.sum(axis=1, dtype=np.float64) - 1
    off = np.abs(excess) > _SUM_TOLERANCE
    if off.any():
        worst = int(np.abs(excess).argmax())
        raise ValueError(
            f"y_proba has {off.sum()} of {len(off)} rows that do not sum to 1 (first at row "
            f"{off.argmax()}; the worst, row {worst}, sums to {1 + excess[worst]:.6g}). Pass one "
            f"probability for each class; for logits use truecal.data.from_logits."
        )
    return proba, names


def _refuse_probabilities(proba: NDArray[np.floating[Any]]) -> NoReturn:
    missing = find_missing(proba)
    if missing is not None:
        raise ValueError(
            f"y_proba has {tell(missing, proba, 'missing (NaN) value')}. Remove or mend these rows."
        )
    outside = (proba < 0) | (proba > 1)
    advice = "Pass probabilities; for logits use truecal.data.from_logits."
    if np.abs(proba - 0.5).max() < 0.5 + _SUM_TOLERANCE:
        advice = "If that is rounding, pass numpy.clip(y_proba, 0, 1)."
    raise ValueError(f"y_proba has {tell(outside, proba, 'value')} outside [0, 1]. {advice}")


def _weights(sample_weight: Any, n: int) -> FloatArray | None:
    if sample_weight is None:
        return None
    weight = to_numbers(to_array(sample_weight, "sample_weight")[0], "sample_weight").astype(np.float64)
    if weight.shape not in ((n,), (n, 1)):
        raise ValueError(
            f"sample_weight has shape {weight.shape}. One weight is needed for each of {n} rows."
        )
    weight = weight.reshape(n)
    fault = ~((weight >= 0) & (weight <= _MOST_WEIGHT))
    if fault.any():
        raise ValueError(
            f"sample_weight has {tell(fault, weight, 'value')} outside [0, {_MOST_WEIGHT:g}]. "
            f"Weights are frequencies: 0 leaves a row out, 2 counts it twice."
        )
    if not weight.any():
        raise ValueError("sample_weight is zero in every row. At least one row must count.")
    return weight


def _rows(
    y_true: Any,
    proba: NDArray[np.floating[Any]],
    names: list[Any] | None,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    multiclass: str | None = None,
) -> tuple[Rows, ...]:
    """Reduce checked probabilities to scores, and find the label of each."""
    if multiclass is not None:
        check_choice("multiclass", multiclass, ("top", "classwise"))
        if pos_label is not None and multiclass == "top":
            raise ValueError("multiclass='top' has no pos_label: the top class differs from row to row.")
    truth, hot_names = to_array(y_true, "y_true")
    check_labels(truth, len(proba))
    if names and hot_names and names != hot_names and set(names) == set(hot_names):
        raise ValueError("y_true and y_proba have the same columns in another order. Give them one order.")
    weight = _weights(sample_weight, len(proba))
    labels = None if labels is None else to_array(labels, "labels")[0].ravel().tolist()

    if proba.ndim == 1 and labels is None and (multiclass is None or pos_label is not None):
        target = f"P(y = {1 if pos_label is None else plain(pos_label)!r})"
        return (Rows(binary_labels(truth, pos_label), proba, weight, target),)
    if proba.ndim == 1:
        proba = np.column_stack([1 - proba, proba])
        if labels is not None and pos_label is not None:  # the one column is that of pos_label
            labels.sort(key=lambda label: bool(label == pos_label))
    column, classes = class_columns(truth, proba.shape[1], pos_label, labels, names)
    if multiclass == "top" or (multiclass is None and pos_label is None and len(classes) > 2):
        top = proba.argmax(axis=1)
        score = np.take_along_axis(proba, top[:, np.newaxis], axis=1)[:, 0]
        return (Rows(top == column, score, weight, f"top label of {len(classes)} classes"),)
    if multiclass == "classwise" and pos_label is None:
        chosen = list(range(len(classes)))
    else:
        chosen = [1 if pos_label is None else classes.index(plain(pos_label))]
    rest = "" if len(classes) == 2 else " against the rest"
    return tuple(Rows(column == k, proba[:, k], weight, f"P(y = {classes[k]!r}){rest}") for k in chosen)
