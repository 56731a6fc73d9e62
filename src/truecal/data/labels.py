"""From labels of any kind to 0 and 1, or to the numbers of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.text import listing
from truecal.data.arrays import NUMBERS, find_missing, plain, tell

_NAME_THEM = "Pass labels=[...] to name the class of each column."


def check_labels(truth: NDArray[Any], n: int) -> None:
    """Refuse labels that are too few, too many or missing."""
    if len(truth) != n:
        raise ValueError(f"y_true has {len(truth)} rows, y_proba has {n}. They must have the same length.")
    missing = find_missing(truth)
    if missing is not None:
        raise ValueError(
            f"y_true has {tell(missing, truth, 'missing (NaN) label')}. Remove or mend these rows."
        )


# --- One column of scores: 0 and 1 -----------------------------------------------------------------


def binary_labels(truth: NDArray[Any], pos_label: Any) -> NDArray[Any]:
    """Return labels of 0 and 1, as numbers or booleans."""
    if truth.ndim == 2 and truth.shape[1] == 2:
        truth = _from_one_hot(truth)
    truth = _one_column(truth)
    if pos_label is None:
        label = _zero_one(truth)
        if label is not None:
            return label
        seen = _distinct(truth)
        raise ValueError(f"y_true must hold 0 and 1. Got {listing(seen)} instead. {_remedy(seen)}")
    seen = _distinct(truth)
    pos_label = plain(pos_label)
    if len(seen) > 2:
        raise ValueError(
            f"y_true must hold two labels. Got {listing(seen)}. For one class against the rest pass "
            f"y_true == {pos_label!r}, or y_proba with one column for each class."
        )
    # One label alone may be the negative one; then pos_label need not be there, but it must be of its kind.
    if pos_label not in seen and (len(seen) == 2 or isinstance(seen[0], str) != isinstance(pos_label, str)):
        raise ValueError(f"pos_label {pos_label!r} is not among the labels {listing(seen)}.")
    return np.asarray(truth == pos_label)


def _zero_one(truth: NDArray[Any]) -> NDArray[Any] | None:
    """Return the labels in a type that adds up, or None if they are not all 0 and 1."""
    if truth.dtype.kind == "b":
        return truth
    if truth.dtype.kind in "iu":
        return truth if truth.min() >= 0 and truth.max() <= 1 else None
    if truth.dtype.kind == "f" or (truth.dtype.kind == "O" and all(isinstance(t, NUMBERS) for t in truth)):
        one = np.asarray(truth == 1, dtype=bool)
        return one if (one | (truth == 0)).all() else None
    return None


def _remedy(seen: list[Any]) -> str:
    if len(seen) <= 2:
        return f"Pass pos_label={seen[-1]!r} (or another) to say which is positive."
    if isinstance(seen[0], float | int) and seen[0] >= 0 and seen[-1] <= 1:
        return "Labels come first, then probabilities: are they the wrong way round?"
    return "For several classes pass y_proba with one column for each class."


# --- Several columns: the number of the true one ---------------------------------------------------


def class_columns(
    truth: NDArray[Any], n_classes: int, pos_label: Any, labels: list[Any] | None, names: list[Any] | None
) -> tuple[NDArray[Any], list[Any]]:
    """Return the column of each row's true class, and the class of each column."""
    if labels is not None and (len(labels) != n_classes or len(set(labels)) != n_classes):
        raise ValueError(f"labels must name {n_classes} different classes. Got {listing(labels)} instead.")
    if truth.ndim == 2 and truth.shape[1] > 1:
        if truth.shape[1] != n_classes:
            raise ValueError(f"y_true is one-hot with {truth.shape[1]} columns, y_proba has {n_classes}.")
        column, classes = _from_one_hot(truth), labels or names or list(range(n_classes))
    else:
        truth = _one_column(truth)
        seen = _distinct(truth)
        classes = labels or _guess_classes(seen, n_classes, pos_label, names)
        column = _look_up(truth, seen, classes)
    if pos_label is not None and plain(pos_label) not in classes:
        raise ValueError(f"pos_label {plain(pos_label)!r} is not among the classes {listing(classes)}.")
    return column, classes


def _guess_classes(seen: list[Any], n_classes: int, pos_label: Any, names: list[Any] | None) -> list[Any]:
    """Return the names of the columns, else 0 to K - 1, else the sorted labels; never a mere guess."""
    text = isinstance(seen[0], str)
    if names is not None:
        if not text:  # most frames have text for names, even for numbers
            names = [int(name) if str(name).isdecimal() else name for name in names]
        if not set(names).isdisjoint(seen):
            return names
    if not text:
        return list(range(n_classes))
    if names is not None:
        raise ValueError(
            f"y_true holds {listing(seen)}, and the columns of y_proba are {listing(names)}. {_NAME_THEM}"
        )
    if len(seen) != n_classes:
        raise ValueError(
            f"y_true has {len(seen)} different labels ({listing(seen)}) for {n_classes} columns of y_proba. "
            f"{_NAME_THEM}"
        )
    if n_classes == 2 and pos_label != seen[1]:
        # Does the second column follow the sorted labels, or pos_label? Guessing wrong is silent nonsense.
        raise ValueError(
            f"y_true holds the strings {listing(seen)}, and two columns of y_proba could be in "
            f"either order. Pass labels=[first, second], or the column of the positive class with pos_label."
        )
    return seen


def _look_up(truth: NDArray[Any], seen: list[Any], classes: list[Any]) -> NDArray[Any]:
    place = {label: column for column, label in enumerate(classes)}
    unknown = [label for label in seen if label not in place]
    if unknown:
        fault = np.isin(truth, unknown)
        raise ValueError(
            f"y_true has {tell(fault, truth, 'label')} outside the {len(classes)} columns of y_proba, whose "
            f"classes are {listing(classes)}. {_NAME_THEM}"
        )
    if classes == list(range(len(classes))) and truth.dtype.kind in "iub":
        return truth
    columns = np.array([place[label] for label in seen])
    return columns[np.unique(truth, return_inverse=True)[1].reshape(-1)]


# --- Shapes and values -----------------------------------------------------------------------------


def _from_one_hot(truth: NDArray[Any]) -> NDArray[np.intp]:
    hot = np.asarray(truth == 1, dtype=bool)
    wrong = (hot.sum(axis=1) != 1) | ~(hot | np.asarray(truth == 0, dtype=bool)).all(axis=1)
    if wrong.any():
        rows = "1 row that is" if wrong.sum() == 1 else f"{wrong.sum()} rows that are"
        raise ValueError(
            f"y_true has {rows} not one-hot (first at row {wrong.argmax()}: "
            f"{truth[wrong.argmax()].tolist()}). Each row must hold a single 1 among 0s."
        )
    return np.asarray(hot.argmax(axis=1), dtype=np.intp)


def _one_column(truth: NDArray[Any]) -> NDArray[Any]:
    if truth.ndim > 2 or (truth.ndim == 2 and truth.shape[1] != 1):
        raise ValueError(f"y_true must have shape (n,) or be one-hot. Got shape {truth.shape} instead.")
    return truth.reshape(-1)


def _distinct(truth: NDArray[Any]) -> list[Any]:
    """Return the different labels, sorted; whole floats as integers, so that 1.0 prints and maps as 1."""
    try:
        seen = [plain(value) for value in np.unique(truth).tolist()]
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in truth.tolist()})
        raise ValueError(
            f"y_true holds labels that have no order (types {', '.join(kinds)}). Use labels of one type."
        ) from error
    return [int(value) if isinstance(value, float) and value.is_integer() else value for value in seen]
