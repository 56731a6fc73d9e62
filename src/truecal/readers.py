"""From whatever holds predictions to `Sample`: the one place where input is checked.

`read` takes arrays, Series, columns and tensors; `from_logits` the outputs before the softmax;
`load_logits` the pickled logit files that go with the paper.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax

from truecal._checks import check_choice
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
    truth = _plain_array(y_true, "y_true")[0]
    _check_lengths(truth, proba)
    weight, kept = _weights(sample_weight, len(proba))

    if proba.ndim == 1 and multiclass is None:
        label, target = (
            _binary_labels(truth, pos_label),
            f"P(y = {1 if pos_label is None else _plain(pos_label)!r})",
        )
        return (_group(label, proba, weight, kept, target),)
    if proba.ndim == 1:
        proba = np.column_stack([1 - proba, proba])
        names = None
    column, classes = _class_columns(truth, proba.shape[1], pos_label, labels, names)
    if multiclass == "top" or (multiclass is None and pos_label is None and len(classes) > 2):
        top = proba.argmax(axis=1)
        score = np.take_along_axis(proba, top[:, np.newaxis], axis=1)[:, 0]
        return (_group(top == column, score, weight, kept, f"top label of {len(classes)} classes"),)
    if multiclass == "classwise" and pos_label is None:
        chosen = list(range(len(classes)))
    else:
        chosen = [1 if pos_label is None else classes.index(_plain(pos_label))]
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
    array = _numbers(_plain_array(logits, "logits")[0], "logits").astype(np.float64)
    _check_shape(array, "logits")
    finite = np.isfinite(array)
    if not finite.all():
        raise ValueError(
            f"logits has {_count(~finite, array, 'infinite or NaN value')}. Remove or mend these rows."
        )
    if array.ndim == 1 or array.shape[1] == 1:
        return np.asarray(expit(array.reshape(len(array))))
    return np.asarray(softmax(array, axis=1))


# --- The pickled logit files of the paper's data ---------------------------------------------------


@dataclass(frozen=True, eq=False)
class LogitSplits:
    """Logits and labels of a validation (calibration) split and of a test split."""

    val_logits: NDArray[Any]
    val_labels: NDArray[Any]
    test_logits: NDArray[Any]
    test_labels: NDArray[Any]


class _ArraysOnly(pickle.Unpickler):
    """Load pickled NumPy arrays of numbers, and refuse to build anything else."""

    _ALLOWED = frozenset(
        {
            *((module, name) for module in ("numpy", "numpy._core.multiarray", "numpy.core.multiarray")
              for name in ("ndarray", "dtype", "_reconstruct", "scalar")),
            *((module, "_frombuffer") for module in ("numpy._core.numeric", "numpy.core.numeric")),
            ("_codecs", "encode"),  # how protocol 2 writes the bytes of an array
        }
    )  # fmt: skip

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._ALLOWED:
            raise ValueError(f"it holds {module}.{name}, and only NumPy arrays of numbers are loaded")
        return super().find_class(module, name)


def load_logits(path: str | Path) -> LogitSplits:
    """Load a pickle of ``((val_logits, val_labels), (test_logits, test_labels))``, arrays only.

    A pickle can run any program. This reader builds NumPy arrays and nothing else, and refuses a file
    that holds any other object.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    LogitSplits

    Raises
    ------
    ValueError
        If the file holds anything but that layout.
    """
    path = Path(path)
    with path.open("rb") as file:
        try:
            content = _ArraysOnly(file, encoding="latin1").load()
        except FileNotFoundError:
            raise
        except Exception as error:
            raise ValueError(f"{path} is not a safe file of logits: {error}.") from error
    try:
        (val_logits, val_labels), (test_logits, test_labels) = content
        arrays = [np.asarray(part) for part in (val_logits, val_labels, test_logits, test_labels)]
        if any(array.dtype.kind not in "fiub" for array in arrays):
            raise TypeError("an array does not hold numbers")
        for logits, labels in (arrays[:2], arrays[2:]):
            if logits.ndim != 2 or labels.size != len(logits):
                raise TypeError(f"logits of shape {logits.shape} with labels of shape {labels.shape}")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must hold ((val_logits, val_labels), (test_logits, test_labels)): {error}."
        ) from error
    return LogitSplits(arrays[0], arrays[1].ravel(), arrays[2], arrays[3].ravel())


# --- Containers ------------------------------------------------------------------------------------


def _plain_array(data: Any, name: str) -> tuple[NDArray[Any], list[str] | None]:
    """Return the values as a NumPy array, by position, and the column names where there are any."""
    if isinstance(data, np.ndarray | list | tuple):
        return _as_array(data, name), None
    if type(data).__module__.partition(".")[0] == "torch":
        tensor = data.detach().cpu()
        return np.asarray(tensor.float() if "bfloat16" in str(tensor.dtype) else tensor), None
    native = nw.from_native(data, allow_series=True, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        raise ValueError(f"{name} is a lazy frame. Collect it first.")
    if isinstance(native, nw.DataFrame):
        columns = [native[column].to_numpy() for column in native.columns]
        return np.column_stack(columns) if columns else np.empty((len(native), 0)), list(native.columns)
    if isinstance(native, nw.Series):
        return _as_array(native.to_numpy(), name), None
    return _as_array(data, name), None


def _as_array(data: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ValueError(f"{name} must be rectangular: its rows have different lengths.") from error
    if array.dtype.kind == "O" and array.ndim == 1 and array.size and all(np.ndim(row) for row in array):
        return np.array([np.asarray(row) for row in array])  # a column of lists
    return array


def _numbers(array: NDArray[Any], name: str) -> NDArray[np.floating[Any]]:
    """Return real numbers in their own floating type, or say what they are."""
    if array.dtype.kind == "O":
        try:
            array = np.where(_missing(array), np.nan, array).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be numbers. Got {_first_odd(array)!r}.") from error
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise ValueError(f"{name} must be numbers. Got {array.dtype} values.")
    return array if array.dtype.itemsize <= 8 else array.astype(np.float64)


def _missing(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where an array holds NaN, None or another mark of a missing value."""
    if array.dtype.kind == "f":
        return np.asarray(np.isnan(array))
    if array.dtype.kind != "O":
        return np.zeros(array.shape, dtype=bool)
    marks = [
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
        for value in array.ravel().tolist()
    ]
    return np.array(marks, dtype=bool).reshape(array.shape)


def _first_odd(array: NDArray[Any]) -> Any:
    for value in array.ravel().tolist():
        try:
            float(value)
        except (TypeError, ValueError):
            return value
    return array.ravel()[0]


# --- Probabilities ---------------------------------------------------------------------------------


def _probabilities(y_proba: Any) -> tuple[NDArray[np.floating[Any]], list[str] | None]:
    array, names = _plain_array(y_proba, "y_proba")
    if array.size == 0:
        raise ValueError("y_proba is empty. At least one row is needed.")
    proba = _numbers(array, "y_proba")
    _check_shape(proba, "y_proba")
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


def _check_shape(array: NDArray[Any], name: str) -> None:
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise ValueError(f"{name} must have shape (n,) or (n, K). Got shape {array.shape} instead.")


def _refuse_probabilities(proba: NDArray[np.floating[Any]]) -> None:
    missing = np.isnan(proba)
    if missing.any():
        raise ValueError(
            f"y_proba has {_count(missing, proba, 'missing (NaN) value')}. Remove or mend these rows."
        )
    outside = (proba < 0) | (proba > 1)
    raise ValueError(
        f"y_proba has {_count(outside, proba, 'value')} outside [0, 1]. "
        f"Pass probabilities; for logits use truecal.readers.from_logits."
    )


def _count(fault: NDArray[np.bool_], array: NDArray[Any], noun: str) -> str:
    """Say how many values are at fault and where the first is: "3 values (first at row 17: 1.2)"."""
    first = int(fault.reshape(len(fault), -1).any(axis=1).argmax())
    value = array[first] if array.ndim == 1 else array[first][fault[first]][0]
    number = int(fault.sum())
    return f"{number} {noun}{'s' if number > 1 else ''} (first at row {first}: {_plain(value)!r})"


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as the Python object that prints without its type."""
    return value.item() if isinstance(value, np.generic) else value


# --- Labels ----------------------------------------------------------------------------------------


def _check_lengths(truth: NDArray[Any], proba: NDArray[Any]) -> None:
    if truth.ndim == 0 or len(truth) != len(proba):
        rows = "one value" if truth.ndim == 0 else f"{len(truth)} rows"
        raise ValueError(f"y_true has {rows}, y_proba has {len(proba)}. They must have the same length.")
    missing = _missing(truth)
    if missing.any():
        raise ValueError(
            f"y_true has {_count(missing, truth, 'missing (NaN) label')}. Remove or mend these rows."
        )


def _binary_labels(truth: NDArray[Any], pos_label: Any) -> NDArray[Any]:
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
        raise ValueError(f"y_true must hold 0 and 1. Got {_listing(seen)} instead.{hint}")
    seen = _distinct(truth)
    pos_label = _plain(pos_label)
    if len(seen) > 2:
        raise ValueError(
            f"y_true must hold two labels. Got {_listing(seen)}. For one class against the rest pass "
            f"y_true == {pos_label!r}, or y_proba with one column for each class."
        )
    if pos_label not in seen and (len(seen) == 2 or type(seen[0]) is not type(pos_label)):
        raise ValueError(f"pos_label {pos_label!r} is not among the labels {_listing(seen)}.")
    return np.asarray(truth == pos_label)


def _is_zero_one(truth: NDArray[Any]) -> bool:
    if truth.dtype.kind in "iu":
        return bool(truth.min() >= 0 and truth.max() <= 1)
    if truth.dtype.kind == "O" and not all(
        isinstance(value, bool | int | float | np.number) for value in truth
    ):
        return False
    return truth.dtype.kind in "fO" and bool(((truth == 0) | (truth == 1)).all())


def _class_columns(
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
    if pos_label is not None and _plain(pos_label) not in classes:
        raise ValueError(f"pos_label {pos_label!r} is not among the classes {_listing(classes)}.")
    place = {label: column for column, label in enumerate(classes)}
    unknown = [label for label in seen if label not in place]
    if unknown:
        fault = np.isin(truth, unknown)
        raise ValueError(
            f"y_true has {_count(fault, truth, 'label')} outside the {n_classes} columns of y_proba, whose "
            f"classes are {_listing(classes)}. Pass labels=[...] to name the class of each column."
        )
    if classes == list(range(n_classes)) and truth.dtype.kind in "iub":
        return truth, classes
    columns = np.array([place[label] for label in seen])
    return columns[np.unique(truth, return_inverse=True)[1].reshape(-1)], classes


def _classes(
    seen: list[Any], n_classes: int, pos_label: Any, labels: Sequence[Any] | None, names: list[str] | None
) -> list[Any]:
    if labels is not None:
        classes = [_plain(label) for label in labels]
        if len(classes) != n_classes or len(set(classes)) != n_classes:
            raise ValueError(
                f"labels must name {n_classes} different classes. Got {_listing(classes)} instead."
            )
        return classes
    if not isinstance(seen[0], str):
        return list(range(n_classes))
    if names is not None and set(seen) <= set(names):
        return list(names)
    if len(seen) != n_classes:
        raise ValueError(
            f"y_true has {len(seen)} different labels ({_listing(seen)}) for {n_classes} columns of y_proba. "
            f"Pass labels=[...] to name the class of each column."
        )
    if n_classes == 2 and pos_label != seen[1]:
        # Does the second column follow the sorted labels, or pos_label? Guessing wrong is silent nonsense.
        raise ValueError(
            f"y_true holds the strings {_listing(seen)}, and two columns of y_proba could be in "
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


def _listing(values: Sequence[Any], most: int = 6) -> str:
    shown = ", ".join(repr(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, ... ({len(values)} in all)"


# --- Weights, and the way into the sample ----------------------------------------------------------


def _weights(sample_weight: Any, n: int) -> tuple[FloatArray | None, NDArray[np.bool_] | None]:
    """Return checked positive weights and which rows have them; None, None where there are no weights."""
    if sample_weight is None:
        return None, None
    weight = _numbers(_plain_array(sample_weight, "sample_weight")[0], "sample_weight").astype(np.float64)
    if weight.size != n or weight.ndim not in (1, 2):
        raise ValueError(
            f"sample_weight has shape {weight.shape}. One weight is needed for each of {n} rows."
        )
    weight = weight.reshape(n)
    if not (weight.min() >= 0 and weight.max() < np.inf):
        fault = ~((weight >= 0) & (weight < np.inf))
        raise ValueError(
            f"sample_weight has {_count(fault, weight, 'negative, NaN or infinite value')}. "
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
