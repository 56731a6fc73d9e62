"""How predictions are read: from containers of any kind to checked arrays, and the keywords of every function."""

from __future__ import annotations

import decimal
import inspect
import numbers
import re
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from truecal._lib.checks import check_choice
from truecal._lib.lazy import fill_docstring
from truecal._lib.numeric import IntArray
from truecal._lib.text import counted, listing
from truecal._lib.types import FloatArray
from truecal.data import faults
from truecal.exceptions import InputError, Remedy, warn_user

if TYPE_CHECKING:
    import narwhals as nw

#: What counts as a real number among Python objects.
NUMBERS = (numbers.Real, decimal.Decimal, np.bool_)
#: What NumPy reads by itself.
_PLAIN = (np.ndarray, list, tuple)


def to_array(data: Any, name: str) -> tuple[NDArray[Any], list[Any] | None]:
    """Return the values as a NumPy array, by position, and the column names where there are any."""
    if isinstance(data, _PLAIN):
        return _as_array(data, name), None
    if type(data).__module__.partition(".")[0] == "torch":
        return _from_torch(data, name), None
    if type(data).__module__.startswith("scipy.sparse"):
        raise TypeError(f"{name} is a sparse matrix. Pass a dense array: {name}.toarray().")
    import narwhals as nw  # slow to import, and arrays do not need it

    try:
        frame = nw.from_native(data, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise InputError(
            "has several columns of the same name", argument=name, remedy="Rename them."
        ) from error
    if isinstance(frame, nw.LazyFrame):
        raise InputError("is a lazy frame", argument=name, remedy="Collect it first.")
    if isinstance(frame, nw.DataFrame):
        return _stack_columns(frame, name), list(frame.columns)
    return _as_array(_values(frame) if isinstance(frame, nw.Series) else data, name), None


def warn_of_other_order(**given: Any) -> None:
    """Warn of pandas objects whose indexes hold the same values in another order, since rows are matched by position.

    Parameters
    ----------
    **given
        Arguments by name: columns and frames of any kind, or tuples and mappings of them. None is left out.
    """
    indexes = []
    for name, value in given.items():
        columns = (
            value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else [value]
        )
        pandas = (column for column in columns if type(column).__module__.partition(".")[0] == "pandas")
        indexes += [(name, column.index) for column in pandas if hasattr(column, "index")]
    for name, index in indexes[1:]:
        first, other = indexes[0]
        if not index.equals(other) and _same_values(index, other):
            warn_user(
                f"Rows are matched by position, and {name} has the index of {first} in another order. Give both one "
                f"order, as with .loc, or pass {name}.to_numpy() if positions are right."
            )


def _same_values(index: Any, other: Any) -> bool:
    """Return whether two pandas indexes hold the same values in any order; extremes of integers are compared first."""
    if len(index) != len(other) or index.dtype != other.dtype:
        return False
    if index.dtype.kind in "iu" and (index.min(), index.max()) != (other.min(), other.max()):
        return False
    return set(index.tolist()) == set(other.tolist())


def _from_torch(data: Any, name: str) -> NDArray[Any]:
    try:
        tensor = data.detach().cpu()
        small = any(kind in str(tensor.dtype) for kind in ("bfloat16", "float8"))  # NumPy does not have them
        return np.asarray(tensor.float() if small else tensor)
    except (TypeError, RuntimeError) as error:  # sparse, quantized and other tensors that NumPy cannot hold
        raise InputError(
            f"is a {data.dtype} tensor with layout {data.layout}, which cannot become an array", argument=name
        ) from error


def _values(series: nw.Series[Any]) -> NDArray[Any]:
    """Return a column as an array; 128-bit integers become objects."""
    import narwhals as nw

    if series.dtype in (nw.Int128, nw.UInt128):
        return np.array(series.to_list(), dtype=object)
    return series.to_numpy()


def _stack_columns(frame: nw.DataFrame[Any], name: str) -> NDArray[Any]:
    columns = [_values(column) for column in frame.iter_columns()]
    if len(columns) == 1:
        return _as_array(columns[0], name)
    odd = [
        label
        for label, column in zip(frame.columns, columns, strict=True)
        if _not_numbers(column) is not None
    ]
    if odd:
        raise InputError(
            f"has columns that do not hold numbers: {listing(odd)}", argument=name, remedy="Leave them out."
        )
    return np.column_stack(columns) if columns else np.empty((len(frame), 0))


def _as_array(data: Any, name: str) -> NDArray[Any]:
    if hasattr(data, "mask") and isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        array = data.data.astype(object)
        array[np.ma.getmaskarray(data)] = None
        return array
    try:
        array = _plain_array(data)
    except ValueError as error:
        raise InputError("must be rectangular: its rows have different lengths", argument=name) from error
    except RuntimeError as error:  # a list of tensors with gradients
        raise InputError(f"cannot become an array: {error}", argument=name) from error
    if array.ndim == 0:
        raise InputError(
            f"must be a list, an array or a column. Got {data!r} instead", argument=name, value=data
        )
    return array


def _plain_array(data: Any) -> NDArray[Any]:
    """Return an array; that of a column of lists has two dimensions."""
    array = np.asarray(data)
    if array.dtype.kind == "T" or (array.dtype.kind in "US" and not isinstance(data, np.ndarray)):
        array = np.asarray(data, dtype=object)  # or NumPy turns the NaN of ["yes", nan] into text
    lists = array.dtype.kind == "O" and array.ndim == 1 and array.size and all(map(np.ndim, array))
    return np.array([np.asarray(row) for row in array]) if lists else array


def to_numbers(
    array: NDArray[Any], name: str, remedy: Remedy | str | None = None
) -> NDArray[np.floating[Any]]:
    """Return real numbers in their own floating type, missing ones as NaN, or refuse anything else."""
    if array.dtype.kind == "f":
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind == "c":
        raise InputError("must be real numbers. Complex data not supported", argument=name)
    odd = _not_numbers(array)
    if odd is not None:
        raise faults.bad_values(odd, array, name, "non-numeric value", remedy=remedy)
    if array.dtype.kind == "O":
        array = np.where(faults.find_missing(array), np.nan, array)
    return array.astype(np.float64)


def _not_numbers(array: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Return where an array holds neither a real number nor a missing value, or None if nowhere."""
    if array.dtype.kind in "fiub":
        return None
    if array.dtype.kind != "O":
        return np.ones(array.shape, dtype=bool)
    odd = faults.which(lambda value: not (isinstance(value, NUMBERS) or faults.is_missing(value)), array)
    return odd if odd.any() else None


def check_shape(array: NDArray[Any], name: str) -> None:
    """Refuse anything but one value, or one row of values, for each prediction."""
    # scikit-learn's checks look for the words "Reshape your data" and "0 feature(s)" in these messages.
    if array.ndim not in (1, 2):
        raise InputError(
            f"must have shape (n,) or (n, K). Got shape {array.shape} instead",
            argument=name,
            remedy="Reshape your data.",
        )
    if array.size == 0:
        noun = "sample" if len(array) == 0 else "feature"
        raise InputError(
            f"is empty: 0 {noun}(s) (shape={array.shape}) while a minimum of 1 is required", argument=name
        )


def check_length(array: Sized, name: str, n: int, other: str) -> None:
    """Reject an array whose number of rows differs from that of `other`."""
    if len(array) != n:
        raise InputError(
            f"has {counted(len(array), 'row')}, {other} has {n:,}. They must have the same length",
            argument=name,
            count=len(array),
        )


def to_python(value: Any) -> Any:
    """Return a NumPy scalar as a Python object."""
    return value.item() if isinstance(value, np.generic) else value


def refuse_missing(array: NDArray[Any], name: str, rule: faults.Rule = faults.MISSING) -> None:
    """Refuse missing values."""
    missing = faults.find_missing(array)
    if missing.any():
        raise rule.error(missing, np.full(len(array), None), name)


def read_probabilities(
    y_proba: Any, name: str = "y_proba", *, remedy: Remedy = Remedy.LOGITS
) -> tuple[NDArray[np.floating[Any]], list[Any] | None]:
    """Return checked probabilities, and the names of their columns where there are any."""
    array, names = to_array(y_proba, name)
    check_shape(array, name)
    proba = to_numbers(array, name)
    # The minimum and the maximum are NaN if any value is, so this one comparison finds every fault.
    if not (proba.min() >= 0 and proba.max() <= 1):
        refuse_missing(proba, name)
        raise _out_of_range(proba, name, remedy)
    if proba.dtype.itemsize > 8:  # only now, for rounding would hide an excess beyond float64
        proba = proba.astype(np.float64)
    if proba.ndim == 1 or proba.shape[1] == 1:
        return proba, None
    total = proba.sum(axis=1, dtype=np.float64)
    faults.UNEVEN.refuse(total, name)
    return proba, names


def _out_of_range(proba: NDArray[np.floating[Any]], name: str, logits: Remedy) -> InputError:
    """Return the error of values outside [0, 1], with the scale that fits them; `logits` is the remedy for logits."""
    values = faults.look_at([faults.finite(proba)])
    remedy = faults.fitting_remedy(values)
    if remedy is Remedy.LOGITS:
        remedy = logits
    elif remedy is Remedy.LOG_PROBABILITIES and logits is Remedy.SCORES_ARE_LOGITS:
        remedy = Remedy.SCORES_ARE_LOG_PROBABILITIES
    error = faults.OUTSIDE.error((proba < 0) | (proba > 1), proba, name, remedy=remedy)
    if remedy is not Remedy.MISSING_CODE:
        return error
    first = int((proba == values.code).reshape(len(proba), -1).any(axis=1).argmax())
    return InputError(
        error.problem, argument=name, count=error.count, first_row=first, value=values.code, remedy=remedy
    )


def read_logits(logits: Any) -> tuple[FloatArray, list[Any] | None]:
    """Return the probabilities of logits, and the names of their columns where there are any.

    One column goes through the sigmoid, several through the softmax, both stable and in float64, so that fewer
    scores round to 1.
    """
    array, names = finite_numbers(logits, "logits")
    if array.ndim == 1 or array.shape[1] == 1:
        return np.asarray(scipy.special.expit(array.reshape(-1))), None
    with np.errstate(over="ignore"):  # 1e308 less -1e308 is infinite, and its probability rightly 0
        return np.asarray(scipy.special.softmax(array, axis=1)), names


def finite_numbers(values: Any, name: str) -> tuple[FloatArray, list[Any] | None]:
    """Return finite numbers as float64, and the names of their columns where there are any."""
    array, names = to_array(values, name)
    check_shape(array, name)
    array = to_numbers(array, name).astype(np.float64)
    if not np.isfinite(array).all():
        faults.NOT_FINITE.refuse(array, name)
    return array, names


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
    return read_logits(logits)[0]


def read_weights(sample_weight: Any, n: int) -> FloatArray | None:
    """Return checked weights, or None if there are none."""
    if sample_weight is None:
        return None
    weight = to_numbers(to_array(sample_weight, "sample_weight")[0], "sample_weight").astype(np.float64)
    if weight.shape not in ((n,), (n, 1)):
        raise InputError(
            f"has shape {weight.shape}. One weight is needed for each of {n} rows", argument="sample_weight"
        )
    weight = weight.reshape(n)
    faults.WEIGHT.refuse(weight, "sample_weight")
    if not weight.any():
        raise faults.no_weight("sample_weight")
    return weight


# --- Keywords --------------------------------------------------------------------------------------------

_Function = TypeVar("_Function", bound=Callable[..., object])


class Reading(TypedDict, total=False):
    """Keywords of `truecal.Sample.from_predictions`, which describes them."""

    sample_weight: ArrayLike | None
    weighting: str | None
    clusters: Any
    pos_label: Any
    labels: Sequence[Any] | None
    multiclass: str | None


def keywords_among(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of predictions among the arguments of a function that writes them out itself."""
    return {name: arguments[name] for name in Reading.__annotations__ if name in arguments}


_PREDICTIONS = """\
y_true : array-like of shape (n,), (n, 1) or one-hot (n, K), or Sample
    Labels. A `Sample` (or `Cells`) stands for both labels and probabilities.
y_proba : array-like of shape (n,), (n, 1), (n, 2) or (n, K), optional
    Probabilities."""

_WEIGHTS = """\
sample_weight : array-like of shape (n,), optional
    Weight of each row.
weighting : {"sampling", "counts", "clusters"}, optional
    Whether a weight of 2 stands for two rows (``"counts"``) or not (``"sampling"``, the default); ``"clusters"``
    makes every cluster count the same."""

_CLUSTERS = """\
clusters : array-like of shape (n,) or (n, k), or data frame, optional
    Rows with the same value depend on each other; several columns are crossed."""

_CLASSES = """\
pos_label, labels, multiclass
    The positive class, the class of each column, and what to look at for several classes; see
    `truecal.Sample.from_predictions`."""


def takes_predictions(function: _Function) -> _Function:
    """Write out ``**reading`` of a function, in its signature and for the lines of its docstring that are fragments.

    These are ``{predictions}`` and ``{reading}``, or ``{weights}``, ``{clusters}`` and ``{classes}`` one by one.
    `rng` is the last keyword everywhere.

    Examples
    --------
    >>> @takes_predictions
    ... def share(y_true, y_proba=None, *, digits=2, **reading): ...
    >>> list(inspect.signature(share).parameters)[2:5]
    ['digits', 'sample_weight', 'weighting']
    """
    signature = inspect.signature(function)
    *own, _ = signature.parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    read = [
        inspect.Parameter(name, keyword, default=None, annotation=getattr(kind, "__forward_arg__", kind))
        for name, kind in Reading.__annotations__.items()
    ]
    last = [parameter for parameter in own if parameter.name == "rng"]
    first = [parameter for parameter in own if parameter not in last]
    function.__signature__ = signature.replace(parameters=[*first, *read, *last])  # type: ignore[attr-defined]
    fragments = {"weights": _WEIGHTS, "clusters": _CLUSTERS, "classes": _CLASSES}
    whole = "\n".join(fragments.values())
    return fill_docstring(predictions=_PREDICTIONS, reading=whole, **fragments)(function)


#: The value of `multiclass` for the error of the top label among rows with the same predicted class.
TOP_BY_CLASS = "top_by_class"
#: That for columns that are labels, of which a row can have any number, and not classes.
MULTILABEL = "multilabel"

#: What weights mean where uncertainty is reported.
WEIGHT_KINDS = ("sampling", "counts", "clusters")
#: How a target says that it is one of several classes.
_AGAINST_THE_REST = " against the rest"


def class_target(classes: list[Any], k: int) -> str:
    """Return what a score of class k is the probability of, in words."""
    return f"P(y = {classes[k]!r}){'' if len(classes) == 2 else _AGAINST_THE_REST}"


def top_target(n_classes: int, k: int | None = None) -> str:
    """Return what the score of the top label, or of the k most probable classes, is the probability of, in words."""
    return f"top {'label' if k is None else k} of {n_classes} classes"


def class_alone(target: str) -> str:
    """Return the target of a class for a place where all classes are shown."""
    return target.removesuffix(_AGAINST_THE_REST)


def is_top_label(target: str) -> bool:
    """Return whether a target is that of the top label."""
    return target.startswith("top label")


def is_top(target: str) -> bool:
    """Return whether a target is a right prediction, by the top label or one of the top k, and not an event."""
    return target.startswith("top ")


def check_multiclass(multiclass: str | None, pos_label: Any = None) -> None:
    """Refuse an unknown way to measure several classes, and a positive class with the top label."""
    if multiclass is None:
        return
    if multiclass in ("canonical", TOP_BY_CLASS, MULTILABEL):
        interval = "" if multiclass == "canonical" else ", confidence_interval"
        raise InputError(
            f"{multiclass!r} is for calibration_error, estimate{interval} and calibration_test only",
            argument="multiclass",
            value=multiclass,
            remedy="Use 'top', 'top_k' or 'classwise'.",
        )
    if not (isinstance(multiclass, str) and re.fullmatch("top_(k|[1-9][0-9]*)", multiclass)):
        check_choice(
            "multiclass", multiclass, ("top", "classwise", "top_k", TOP_BY_CLASS, MULTILABEL, "canonical")
        )
    if pos_label is not None and multiclass.startswith("top"):
        raise InputError(
            f"cannot be combined with multiclass={multiclass!r}: the top class differs from row to row",
            argument="pos_label",
        )


def weights_are_counts(weight: FloatArray | None, kind: str | None, cluster: IntArray | None = None) -> bool:
    """Return whether a weight of 2 stands for two rows; refuse an unknown meaning, or one that weights cannot have."""
    if kind is None:
        return False
    check_choice("weighting", kind, WEIGHT_KINDS)
    if kind == "clusters":
        if cluster is None:
            raise InputError("'clusters' needs clusters", argument="weighting", value=kind)
        return False
    if weight is None:
        raise InputError(f"{kind!r} needs sample_weight", argument="weighting", value=kind)
    if kind == "counts":
        faults.FRACTION.refuse(weight, "sample_weight")
    return kind == "counts"


def equal_weights(weight: FloatArray | None, cluster: IntArray) -> FloatArray:
    """Return weights with the same total, the mean cluster size, in each cluster that has any weight."""
    given = np.ones(len(cluster)) if weight is None else weight
    total = np.bincount(cluster, given)
    scale = given.sum() / np.count_nonzero(total)
    return np.asarray(given * (scale / np.where(total > 0, total, 1.0))[cluster])
