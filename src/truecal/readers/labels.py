"""From labels of any kind to 0 and 1, or to the numbers of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.readers.arrays import find_missing, listing, plain, tell


def check_labels(truth: NDArray[Any], proba: NDArray[Any]) -> None:
    """Refuse labels that are too few, too many or missing."""
    if truth.ndim == 0 or len(truth) != len(proba):
        rows = "one value" if truth.ndim == 0 else f"{len(truth)} rows"
        raise ValueError(f"y_true has {rows}, y_proba has {len(proba)}. They must have the same length.")
    missing = find_missing(truth)
    if missing.any():
        raise ValueError(
            f"y_true has {tell(missing, truth, 'missing (NaN) label')}. Remove or mend these rows."
        )


def binary_labels(truth: NDArray[Any], pos_label: Any) -> NDArray[Any]:
    """Return 0/1 or boolean labels for one column of scores."""
    if truth.ndim == 2 and truth.shape[1] == 2:
        truth = _from_one_hot(truth)
    truth = _one_column(truth)
    if pos_label is None:
        if truth.dtype.kind == "b" or _is_zero_one(truth):
            return truth
        seen = _distinct(truth)
        hint = f" Pass pos_label={seen[-1]!r} (or another) to say which is positive." if len(seen) <= 2 else (
            " For several classes pass y_proba with one column for each class."
        )  # fmt: skip
        raise ValueError(f"y_true must hold 0 and 1. Got {listing(seen)} instead.{hint}")
    seen = _distinct(truth)
    pos_label = plain(pos_label)
    if len(seen) > 2:
        raise ValueError(
            f"y_true must hold two labels. Got {listing(seen)}. For one class against the rest pass "
            f"y_true == {pos_label!r}, or y_proba with one column for each class."
        )
    if pos_label not in seen and (len(seen) == 2 or type(seen[0]) is not type(pos_label)):
        raise ValueError(f"pos_label {pos_label!r} is not among the labels {listing(seen)}.")
    return np.asarray(truth == pos_label)


def _is_zero_one(truth: NDArray[Any]) -> bool:
    if truth.dtype.kind in "iu":
        return bool(truth.min() >= 0 and truth.max() <= 1)
    if truth.dtype.kind == "O" and not all(
        isinstance(value, bool | int | float | np.number) for value in truth
    ):
        return False
    return truth.dtype.kind in "fO" and bool(((truth == 0) | (truth == 1)).all())


def class_columns(
    truth: NDArray[Any], n_classes: int, pos_label: Any, labels: Sequence[Any] | None, names: list[str] | None
) -> tuple[NDArray[Any], list[Any]]:
    """Return the column of each row's true class, and the class of each column."""
    if truth.ndim == 2 and truth.shape[1] > 1:
        if truth.shape[1] != n_classes:
            raise ValueError(f"y_true is one-hot with {truth.shape[1]} columns, y_proba has {n_classes}.")
        truth = _from_one_hot(truth)
    truth = _one_column(truth)
    seen = _distinct(truth)
    classes = _classes(seen, n_classes, pos_label, labels, names)
    if pos_label is not None and plain(pos_label) not in classes:
        raise ValueError(f"pos_label {pos_label!r} is not among the classes {listing(classes)}.")
    place = {label: column for column, label in enumerate(classes)}
    unknown = [label for label in seen if label not in place]
    if unknown:
        fault = np.isin(truth, unknown)
        raise ValueError(
            f"y_true has {tell(fault, truth, 'label')} outside the {n_classes} columns of y_proba, whose "
            f"classes are {listing(classes)}. Pass labels=[...] to name the class of each column."
        )
    if classes == list(range(n_classes)) and truth.dtype.kind in "iub":
        return truth, classes
    columns = np.array([place[label] for label in seen])
    return columns[np.unique(truth, return_inverse=True)[1].reshape(-1)], classes


def _classes(
    seen: list[Any], n_classes: int, pos_label: Any, labels: Sequence[Any] | None, names: list[str] | None
) -> list[Any]:
    if labels is not None:
        classes = [plain(label) for label in labels]
        if len(classes) != n_classes or len(set(classes)) != n_classes:
            raise ValueError(
                f"labels must name {n_classes} different classes. Got {listing(classes)} instead."
            )
        return classes
    if not isinstance(seen[0], str):
        return list(range(n_classes))
    if names is not None and set(seen) <= set(names):
        return list(names)
    if len(seen) != n_classes:
        raise ValueError(
            f"y_true has {len(seen)} different labels ({listing(seen)}) for {n_classes} columns of y_proba. "
            f"Pass labels=[...] to name the class of each column."
        )
    if n_classes == 2 and pos_label != seen[1]:
        # Does the second column follow the sorted labels, or pos_label? Guessing wrong is silent nonsense.
        raise ValueError(
            f"y_true holds the strings {listing(seen)}, and two columns of y_proba could be in "
            f"either order. Pass labels=[first, second], or the column of the positive class with pos_label."
        )
    return seen


def _from_one_hot(truth: NDArray[Any]) -> NDArray[np.intp]:
    hot = np.asarray(truth == 1)
    wrong = (hot.sum(axis=1) != 1) | ~(hot | (truth == 0)).all(axis=1)
    if wrong.any():
        raise ValueError(
            f"y_true has {wrong.sum()} rows that are not one-hot (first at row {wrong.argmax()}: "
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
        seen = np.unique(truth).tolist()
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in truth.tolist()})
        raise ValueError(f"y_true mixes labels of the types {', '.join(kinds)}. Use one type.") from error
    return [int(value) if isinstance(value, float) and value.is_integer() else value for value in seen]
