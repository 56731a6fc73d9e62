"""Labels and probabilities, or logits, to `Sample`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax

from truecal._checks import check_choice
from truecal.readers.arrays import check_shape, plain, tell, to_array, to_numbers
from truecal.readers.labels import binary_labels, check_labels, class_columns
from truecal.sample import FloatArray, Sample

#: How far a row of probabilities may be from a sum of 1: float32 softmax and rounded files pass.
_SUM_TOLERANCE = 1e-3


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
        The class of each column, as scikit-learn's ``classes_``. By default 0 to K - 1, the column names
        of a frame, or the sorted labels if there are K of them.
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
    >>> from truecal.readers import read
    >>> read(["no", "yes", "yes"], [0.2, 0.7, 0.9], pos_label="yes")
    (Sample(n=3, groups=3, target="P(y = 'yes')"),)
    >>> read([2, 0], [[0.1, 0.2, 0.7], [0.4, 0.5, 0.1]])
    (Sample(n=2, groups=2, target='top label of 3 classes'),)
    """
    if multiclass is not None:
        check_choice("multiclass", multiclass, ("top", "classwise"))
        if pos_label is not None and multiclass == "top":
            raise ValueError("multiclass='top' has no pos_label: the top class differs from row to row.")
    proba, names = _probabilities(y_proba)
    truth = to_array(y_true, "y_true")[0]
    check_labels(truth, proba)
    weight, kept = _weights(sample_weight, len(proba))

    if proba.ndim == 1 and multiclass is None:
        label, target = (
            binary_labels(truth, pos_label),
            f"P(y = {1 if pos_label is None else plain(pos_label)!r})",
        )
        return (_group(label, proba, weight, kept, target),)
    if proba.ndim == 1:
        proba = np.column_stack([1 - proba, proba])
        names = None
    column, classes = class_columns(truth, proba.shape[1], pos_label, labels, names)
    if multiclass == "top" or (multiclass is None and pos_label is None and len(classes) > 2):
        top = proba.argmax(axis=1)
        score = np.take_along_axis(proba, top[:, np.newaxis], axis=1)[:, 0]
        return (_group(top == column, score, weight, kept, f"top label of {len(classes)} classes"),)
    if multiclass == "classwise" and pos_label is None:
        chosen = list(range(len(classes)))
    else:
        chosen = [1 if pos_label is None else classes.index(plain(pos_label))]
    rest = "" if len(classes) == 2 else " against the rest"
    return tuple(
        _group(column == k, proba[:, k], weight, kept, f"P(y = {classes[k]!r}){rest}") for k in chosen
    )


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

    Examples
    --------
    >>> from truecal.readers import from_logits
    >>> from_logits([1, 0], [40.0, -1000.0])[0].score
    array([0., 1.])
    """
    return read(y_true, probabilities_from_logits(logits), **options)


def probabilities_from_logits(logits: ArrayLike) -> FloatArray:
    """Return the sigmoid of one column of logits, the softmax of several.

    Examples
    --------
    >>> probabilities_from_logits([[1000.0, 1000.0], [0.0, -1000.0]])
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    array = to_numbers(to_array(logits, "logits")[0], "logits").astype(np.float64)
    check_shape(array, "logits")
    finite = np.isfinite(array)
    if not finite.all():
        raise ValueError(
            f"logits has {tell(~finite, array, 'infinite or NaN value')}. Remove or mend these rows."
        )
    if array.ndim == 1 or array.shape[1] == 1:
        return np.asarray(expit(array.reshape(len(array))))
    return np.asarray(softmax(array, axis=1))


def _probabilities(y_proba: Any) -> tuple[NDArray[np.floating[Any]], list[str] | None]:
    array, names = to_array(y_proba, "y_proba")
    if array.size == 0:
        raise ValueError("y_proba is empty. At least one row is needed.")
    proba = to_numbers(array, "y_proba")
    check_shape(proba, "y_proba")
    # Least and greatest are NaN if any value is, so this one comparison finds every fault.
    if not (proba.min() >= 0 and proba.max() <= 1):
        _refuse_probabilities(proba)
    if proba.ndim == 2 and proba.shape[1] == 1:
        return proba[:, 0], None
    if proba.ndim == 2:
        excess = proba.sum(axis=1, dtype=np.float64) - 1
        off = np.abs(excess) > _SUM_TOLERANCE
        if off.any():
            worst = int(np.abs(excess).argmax())
            raise ValueError(
                f"y_proba has {off.sum()} of {len(off)} rows that do not sum to 1 (first at row "
                f"{off.argmax()}; the worst, row {worst}, sums to {1 + excess[worst]:.6g}). Pass one "
                f"probability for each class; for logits use truecal.readers.from_logits."
            )
    return proba, names


def _refuse_probabilities(proba: NDArray[np.floating[Any]]) -> None:
    missing = np.isnan(proba)
    if missing.any():
        raise ValueError(
            f"y_proba has {tell(missing, proba, 'missing (NaN) value')}. Remove or mend these rows."
        )
    outside = (proba < 0) | (proba > 1)
    raise ValueError(
        f"y_proba has {tell(outside, proba, 'value')} outside [0, 1]. "
        f"Pass probabilities; for logits use truecal.readers.from_logits."
    )


def _weights(sample_weight: Any, n: int) -> tuple[FloatArray | None, NDArray[np.bool_] | None]:
    """Return checked positive weights and which rows have them; None, None where there are no weights."""
    if sample_weight is None:
        return None, None
    weight = to_numbers(to_array(sample_weight, "sample_weight")[0], "sample_weight").astype(np.float64)
    if weight.size != n or weight.ndim not in (1, 2):
        raise ValueError(
            f"sample_weight has shape {weight.shape}. One weight is needed for each of {n} rows."
        )
    weight = weight.reshape(n)
    if not (weight.min() >= 0 and weight.max() < np.inf):
        fault = ~((weight >= 0) & (weight < np.inf))
        raise ValueError(
            f"sample_weight has {tell(fault, weight, 'negative, NaN or infinite value')}. "
            f"Weights are frequencies: 0 leaves a row out, 2 counts it twice."
        )
    if not weight.any():
        raise ValueError("sample_weight is zero in every row. At least one row must count.")
    return weight, weight > 0


def _group(
    label: NDArray[Any],
    score: NDArray[Any],
    weight: FloatArray | None,
    kept: NDArray[np.bool_] | None,
    target: str,
) -> Sample:
    if weight is not None and kept is not None and not kept.all():
        label, score, weight = label[kept], score[kept], weight[kept]
    return Sample.from_rows(label, score, weight, target=target)
