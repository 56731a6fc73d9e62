"""Labels and weights of the recalibrators, by scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.text import listing
from truecal._lib.types import FloatArray
from truecal.data.arrays import find_missing, tell, to_array, to_numbers
from truecal.recalibration._scores import Scores


def read_labels(
    y: Any, scores: Scores, labels: Sequence[Any] | None = None
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the number of each row's class, and the classes in the order of the columns.

    The classes are `labels` if that is given. Else, as in scikit-learn, they are the sorted labels, unless
    these are the numbers of the columns from 0, or the names of the columns of a frame; then a class may
    be missing from `y`.

    Examples
    --------
    >>> from truecal.recalibration._scores import read_scores
    >>> read_labels(["yes", "no", "yes"], read_scores([0.9, 0.2, 0.6], "probabilities"))
    (array([1, 0, 1]), array(['no', 'yes'], dtype='<U3'))
    """
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None: labels are needed.")
    truth = to_array(y, "y")[0]
    if len(truth) != len(scores):
        raise ValueError(
            f"y has {len(truth)} rows, scores has {len(scores)}. They must have the same length."
        )
    missing = find_missing(truth)
    if missing is not None and missing.any():
        raise ValueError(f"y has {tell(missing, truth, 'missing (NaN) label')}. Remove or mend these rows.")
    if truth.ndim == 2 and truth.shape[1] == scores.n_classes:
        truth = _from_one_hot(truth)
    if truth.ndim > 2 or (truth.ndim == 2 and truth.shape[1] != 1):
        raise ValueError(f"y must have shape (n,) or be one-hot. Got shape {truth.shape} instead.")
    seen, number = _distinct(truth.reshape(-1))
    classes = _classes(seen, scores) if labels is None else _named(seen, scores, labels)
    place = {label: column for column, label in enumerate(classes)}
    return np.array([place[label] for label in seen], dtype=np.intp)[number], np.array(classes)


def _from_one_hot(truth: NDArray[Any]) -> NDArray[np.intp]:
    hot = np.asarray(truth == 1)
    wrong = (hot.sum(axis=1) != 1) | ~(hot | (truth == 0)).all(axis=1)
    if wrong.any():
        raise ValueError(f"y has {wrong.sum()} rows that are not one-hot (first at row {wrong.argmax()}).")
    return np.asarray(hot.argmax(axis=1), dtype=np.intp)


def _distinct(truth: NDArray[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the sorted labels, whole floats as integers, and which of them each row has."""
    try:
        values, number = np.unique(truth, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in truth.tolist()})
        raise ValueError(f"y mixes labels of the types {', '.join(kinds)}. Use one type.") from error
    if values.dtype.kind == "f":
        broken = values != np.floor(values)
        if broken.any():
            raise ValueError(f"Unknown label type: y must hold classes. Got {float(values[broken][0])!r}.")
        values = values.astype(np.int64)
    return values.tolist(), number.reshape(-1)


def _classes(seen: list[Any], scores: Scores) -> list[Any]:
    numbers = list(range(scores.n_classes))
    if set(seen) <= set(numbers):
        return numbers
    if scores.names is not None and set(seen) <= set(scores.names):
        return list(scores.names)
    if len(seen) == scores.n_classes:
        return seen
    kind = "one column of scores is" if scores.n_columns == 1 else f"{scores.n_columns} columns of scores are"
    raise ValueError(
        f"y holds {len(seen)} different label{'s' if len(seen) > 1 else ''} ({listing(seen)}), but {kind} "
        f"for {scores.n_classes} classes. Number the classes from 0, or pass a column for each class."
    )


def _named(seen: list[Any], scores: Scores, labels: Sequence[Any]) -> list[Any]:
    classes: list[Any] = np.asarray(labels).tolist()
    if len(classes) != scores.n_classes or len(set(classes)) != len(classes):
        raise ValueError(f"labels must name {scores.n_classes} different classes. Got {listing(classes)}.")
    unknown = [label for label in seen if label not in classes]
    if unknown:
        raise ValueError(f"y holds {listing(unknown)}, which is not among the classes {listing(classes)}.")
    return classes


def read_weights(sample_weight: Any, n: int) -> FloatArray | None:
    """Return checked weights, or None. Weights are frequencies: 2 is the row twice, 0 leaves it out."""
    if sample_weight is None:
        return None
    weight = to_numbers(to_array(sample_weight, "sample_weight")[0], "sample_weight").astype(np.float64)
    if weight.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weight.shape}. One weight is needed for each of {n} rows."
        )
    wrong = ~((weight >= 0) & (weight < np.inf))
    if wrong.any():
        raise ValueError(
            f"sample_weight has {tell(wrong, weight, 'negative, NaN or infinite value')}. "
            f"Weights are frequencies: 0 leaves a row out, 2 counts it twice."
        )
    if not weight.any():
        raise ValueError("sample_weight is zero in every row. At least one row must count.")
    return weight
