"""From labels and probabilities, or logits, to `Sample`: the one place where predictions are checked."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from truecal._lib.checks import check_choice, did_you_mean, hint_at_seed
from truecal._lib.types import FloatArray
from truecal.data.arrays import (
    bad_values,
    check_shape,
    refuse_missing,
    to_array,
    to_numbers,
    to_python,
    warn_of_other_order,
)
from truecal.data.counting import Counting
from truecal.data.labels import Codes, Labels, read_clusters
from truecal.data.reading import Reading
from truecal.data.sample import Sample
from truecal.data.scales import finite, fitting_remedy, look_at, warn_of_classes
from truecal.exceptions import InputError, Remedy

#: The value of `multiclass` for the error of the top label among rows with the same predicted class.
TOP_BY_CLASS = "top_by_class"

#: How far a row of probabilities may be from a sum of 1: float32 softmax and rounded files pass.
SUM_TOLERANCE = 1e-3

#: Limits of weights other than 0. Beyond them sums, products and squares of weights could overflow or vanish.
MIN_WEIGHT, MAX_WEIGHT = 1e-100, 1e100

#: What is wrong with other weights, and what weights mean.
WEIGHT_RULE = f"outside [{MIN_WEIGHT:g}, {MAX_WEIGHT:g}]"
WEIGHT_REMEDY = "A weight of 2 counts a row twice, and 0 leaves it out."
#: What is wrong with weights that are said to count rows and cannot.
COUNT_RULE = "with a fractional part, which cannot count rows"

#: What weights mean where uncertainty is reported.
WEIGHT_KINDS = ("sampling", "counts", "clusters")
#: How a target says that clusters count the same, and not rows.
EQUAL_CLUSTERS = ", every cluster counted once"


#: Fewest rows, and standard errors of a mean, from which to conclude that labels are counted from 1.
_FEW_ROWS, _CLEAR = 10, 5.0


@dataclass(frozen=True, eq=False)
class Rows:
    """Checked predictions, row by row: 0/1 labels, scores in [0, 1], weights and clusters where there are any.

    Attributes
    ----------
    label : ndarray of shape (n,)
        Labels, 0 or 1.
    score : ndarray of shape (n,)
        Scores in [0, 1], in the type that they came in.
    weight : ndarray of shape (n,), or None
        Weights; None where every row counts once.
    target : str
        What the score is the probability of, in words.
    counts : bool
        Whether a weight of 2 stands for two rows, also where uncertainty is reported.
    cluster : ndarray of shape (n,), or None
        Number of the cluster of each row.
    equal_clusters : bool
        Whether the weights make every cluster count the same, instead of every row.
    """

    label: NDArray[Any]
    score: NDArray[Any]
    weight: FloatArray | None
    target: str
    counts: bool = False
    cluster: Codes | None = None
    equal_clusters: bool = False

    def kept(self) -> Rows:
        """Return the rows without those of weight 0."""
        if self.weight is None or self.weight.all():
            return self
        kept, columns = self.weight > 0, vars(self).items()
        chosen: dict[str, Any] = {
            name: value[kept] for name, value in columns if isinstance(value, np.ndarray)
        }
        return replace(self, **chosen)

    @property
    def plain(self) -> bool:
        """Whether there are neither weights nor clusters."""
        return self.weight is None and self.cluster is None

    def group(self, *, counting: Counting | None = None) -> Sample:
        """Return the sample; rows of weight 0 are left out.

        Parameters
        ----------
        counting : Counting, optional
            How rows can be counted in bins, if the purpose only needs sums over them. Where that is quicker, a group
            of the sample then has all rows of a bin or of a part of it, with their mean score.
        """
        counted = counting.count(self.label, self.score, self.target) if counting and self.plain else None
        if counted is not None:
            return counted
        rows = self.kept()
        sampling = rows.weight is not None and not rows.counts
        return Sample.from_rows(
            rows.label,
            rows.score,
            rows.weight,
            target=rows.target,
            sampling=sampling,
            clusters=rows.cluster,
            equal_clusters=rows.equal_clusters,
        )


@dataclass(frozen=True, eq=False)
class ClassRows(Sequence[Rows]):
    """The rows of each class against the rest, made when they are asked for.

    Attributes
    ----------
    column : ndarray of shape (n,)
        Number of the true class of each row.
    proba : ndarray of shape (n, K)
        Probabilities of the classes.
    targets : list of str
        What the score of each class is the probability of, in words.
    common : dict
        The other attributes of `Rows`, which are the same for all classes.
    """

    column: NDArray[Any]
    proba: NDArray[Any]
    targets: list[str]
    common: dict[str, Any]

    def __len__(self) -> int:
        return len(self.targets)

    @overload
    def __getitem__(self, k: int) -> Rows: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[Rows]: ...
    def __getitem__(self, k: int | slice) -> Rows | Sequence[Rows]:
        if isinstance(k, slice):
            return [self[one] for one in range(*k.indices(len(self)))]
        k = range(len(self))[k]
        return Rows(self.column == k, self.proba[:, k], target=self.targets[k], **self.common)


def group_rows(rows: Sequence[Rows], *, counting: Counting | None = None) -> tuple[Sample, ...]:
    """Return the sample of each set of rows, as `Rows.group` does; classes may be counted all at once.

    Parameters
    ----------
    rows : sequence of Rows
        At least one.
    counting : Counting, optional
        As for `Rows.group`.
    """
    if counting is not None and len(rows) > 1 and isinstance(rows, ClassRows) and rows[0].plain:
        counted = counting.count_classes(rows.column, rows.proba, rows.targets)
        if counted is not None:
            return tuple(counted)
    return tuple(one.group(counting=counting) for one in rows)


def as_samples(
    y_true: Any, y_proba: Any = None, *, logits: bool = False, **reading: Any
) -> tuple[Sample, ...]:
    """Check predictions and group them; one sample, or for ``multiclass="classwise"`` one for each class.

    Parameters
    ----------
    y_true, y_proba, **reading
        As for `truecal.Sample.from_predictions`; or a `Sample` alone, which is returned as it is.
    logits : bool
        Whether `y_proba` are logits.

    Returns
    -------
    tuple of Sample
        One, or K for classwise.

    Examples
    --------
    >>> as_samples([2, 0], [[0.1, 0.2, 0.7], [0.4, 0.5, 0.1]])
    (Sample(n=2, groups=2, target='top label of 3 classes'),)
    """
    if not isinstance(y_true, Sample):
        return group_rows(read_rows(y_true, y_proba, logits=logits, **reading))
    given = [name for name, value in {"y_proba": y_proba, **reading}.items() if value is not None]
    if given:
        raise InputError(
            "cannot be given beside a Sample, which already holds labels, scores, weights and clusters",
            argument=" and ".join(given),
            remedy="Give them when the Sample is built: Sample.from_predictions(...).",
        )
    return (y_true,)


def samples_and_rows(
    y_true: Any, y_proba: Any = None, *, counting: Counting | None = None, **reading: Any
) -> tuple[tuple[Sample, ...], Sequence[Rows] | None]:
    """Return what `as_samples` does, and the rows without those of weight 0; None for a Sample, whose rows are gone.

    Parameters
    ----------
    y_true, y_proba, **reading
        As for `as_samples`.
    counting : Counting, optional
        As for `Rows.group`.
    """
    if isinstance(y_true, Sample):
        return as_samples(y_true, y_proba, **reading), None
    rows = read_rows(y_true, y_proba, **reading)
    if rows[0].weight is not None:
        rows = [one.kept() for one in rows]
    return group_rows(rows, counting=counting), rows


def as_sample(y_true: Any, y_proba: Any = None, **reading: Any) -> Sample:
    """Return the one sample of the predictions; several, as for classwise, are refused.

    Parameters
    ----------
    y_true, y_proba, **reading
        As for `as_samples`.

    Examples
    --------
    >>> as_sample([0, 1], [0.2, 0.9])
    Sample(n=2, groups=2, target='P(y = 1)')
    """
    samples = as_samples(y_true, y_proba, **reading)
    if len(samples) > 1:
        raise InputError(
            f"'classwise' gives {len(samples)} samples, and only one can be used here",
            argument="multiclass",
            value="classwise",
            remedy=Remedy.ONE_CLASS,
        )
    return samples[0]


def refuse_clusters(sample: Sample, purpose: str) -> None:
    """Refuse a sample with clusters where rows are taken to be independent."""
    if sample.clusters is not None:
        raise InputError(
            f"are not supported by {purpose}, which takes rows to be independent",
            argument="clusters",
            remedy=Remedy.NO_CLUSTERS,
        )


def no_use_for_clusters(clusters: Any, function: str) -> None:
    """Refuse `clusters` where no uncertainty is reported, instead of ignoring them."""
    if clusters is not None:
        raise InputError(
            f"have no effect on {function}, which reports no uncertainty",
            argument="clusters",
            remedy=Remedy.NO_CLUSTERS,
        )


def read_rows(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    weights: str | None = None,
    pos_label: Any = None,
    labels: Any = None,
    multiclass: str | None = None,
    clusters: Any = None,
    logits: bool = False,
    **unknown: Any,
) -> Sequence[Rows]:
    """Check predictions, and return their rows in the order in which they came.

    Parameters
    ----------
    y_true, y_proba, sample_weight, weights, pos_label, labels, multiclass, clusters
        As for `truecal.Sample.from_predictions`.
    logits : bool
        Whether `y_proba` are logits.
    **unknown
        What a function that passes its keywords on was given by mistake; a TypeError.

    Returns
    -------
    sequence of Rows
        One, or K for classwise.

    Examples
    --------
    >>> (rows,) = read_rows([2, 0], [[0.1, 0.2, 0.7], [0.4, 0.5, 0.1]])
    >>> rows.score.tolist(), rows.label.tolist()
    ([0.7, 0.5], [True, False])
    """
    for name in unknown:
        hint = hint_at_seed(name) or did_you_mean(name, Reading.__annotations__)
        raise TypeError(f"unexpected keyword argument {name!r}{f'. {hint}' if hint else ''}")
    if y_proba is None:
        raise InputError(
            "is missing", argument="y_proba", remedy="Pass labels and probabilities, or one Sample."
        )
    warn_of_other_order(y_true=y_true, y_proba=y_proba, sample_weight=sample_weight, clusters=clusters)
    check_multiclass(multiclass, pos_label)
    proba, names = read_logits(y_proba) if logits else read_probabilities(y_proba)
    if not logits:  # of which some round to 1
        warn_of_classes(proba)
    proba = proba[:, 0] if proba.ndim == 2 and proba.shape[1] == 1 else proba
    truth = Labels(y_true, len(proba))
    if names and truth.column_names and names != truth.column_names and set(names) == set(truth.column_names):
        raise InputError(
            "have the same columns in another order",
            remedy="Give them one order.",
            argument="y_true and y_proba",
        )
    cluster = None if clusters is None else read_clusters(clusters, len(proba))
    weight = read_weights(sample_weight, len(proba))
    common: dict[str, Any] = {
        "weight": weight,
        "counts": weights_are_counts(weight, weights, cluster),
        "cluster": cluster,
    }
    suffix = ""
    if weights == "clusters" and cluster is not None:
        common |= {"weight": equal_weights(weight, cluster), "equal_clusters": True}
        suffix = EQUAL_CLUSTERS
    classes = None if labels is None else to_array(labels, "labels")[0].ravel().tolist()

    if proba.ndim == 1 and classes is None and (multiclass is None or pos_label is not None):
        target = f"P(y = {1 if pos_label is None else to_python(pos_label)!r})"
        return (Rows(truth.binary(pos_label), proba, target=target + suffix, **common),)
    if proba.ndim == 1:
        proba = np.column_stack([1 - proba, proba])
        if classes is not None and pos_label is not None:  # the one column is that of pos_label
            classes.sort(key=lambda label: bool(label == pos_label))
    named = classes is not None
    column, classes = truth.columns(proba.shape[1], pos_label=pos_label, classes=classes, names=names)
    if not named and classes == list(range(len(classes))):
        refuse_counted_from_one(column, proba)
    if multiclass is not None and multiclass.startswith("top_"):
        return (Rows(**_top_k(proba, column, multiclass), **common),)
    if multiclass == "top" or (multiclass is None and pos_label is None and len(classes) > 2):
        top = proba.argmax(axis=1)
        score = np.take_along_axis(proba, top[:, np.newaxis], axis=1)[:, 0]
        target = f"top label of {len(classes)} classes"
        return (Rows(top == column, score, target=target + suffix, **common),)
    if multiclass == "classwise" and pos_label is None:
        targets = [class_target(classes, k) + suffix for k in range(len(classes))]
        return ClassRows(column, proba, targets, common)
    k = 1 if pos_label is None else classes.index(truth.as_label(pos_label))
    return (Rows(column == k, proba[:, k], target=class_target(classes, k) + suffix, **common),)


def refuse_counted_from_one(
    column: NDArray[Any],
    proba: NDArray[np.floating[Any]],
    argument: str = "y_true",
    remedy: str | Remedy = Remedy.LABELS,
) -> None:
    """Refuse labels without 0 if the class of the column before is clearly the more probable one.

    Labels from 1 to K lie outside the classes 0 to K - 1, unless the last one does not occur.
    """
    if len(column) < _FEW_ROWS or proba.shape[1] < 3 or column.min() < 1:
        return
    rows, column = np.arange(len(column)), column.astype(np.intp)
    given, before = proba[rows, column].astype(np.float64), proba[rows, column - 1].astype(np.float64)
    gain = before - given
    if gain.mean() <= _CLEAR * gain.std() / math.sqrt(len(gain)):
        return
    raise InputError(
        f"has no label 0, and the probabilities fit labels that are counted from 1: the mean probability of the true "
        f"class is then {before.mean():.3g}, and {given.mean():.3g} if the first column is class 0",
        argument=argument,
        remedy=remedy,
    )


def _top_k(proba: NDArray[np.floating[Any]], column: NDArray[Any], multiclass: str) -> dict[str, Any]:
    """Return whether the true class is among the k most probable ones, and their total probability."""
    classes = proba.shape[1]
    k = min(5, classes - 1) if multiclass == "top_k" else int(multiclass.removeprefix("top_"))
    if not 1 <= k < classes:
        raise InputError(
            f"'top_{k}' needs more than {k} classes. Got {classes} instead",
            argument="multiclass",
            value=multiclass,
        )
    # A stable order of the negative values: of equal probabilities the first columns count, as for the top label.
    best = np.argsort(-proba, axis=1, kind="stable")[:, :k]
    score = np.minimum(np.take_along_axis(proba, best, axis=1).sum(axis=1, dtype=np.float64), 1.0)
    label = (best == column[:, np.newaxis]).any(axis=1)
    return {"label": label, "score": score, "target": f"top {k} of {classes} classes"}


def class_target(classes: list[Any], k: int) -> str:
    """Return what a score of class k is the probability of, in words."""
    return f"P(y = {classes[k]!r}){'' if len(classes) == 2 else ' against the rest'}"


def check_multiclass(multiclass: str | None, pos_label: Any = None) -> None:
    """Refuse an unknown way to measure several classes, and a positive class with the top label."""
    if multiclass is None:
        return
    if multiclass in ("canonical", TOP_BY_CLASS):
        interval = "" if multiclass == "canonical" else ", confidence_interval"
        raise InputError(
            f"{multiclass!r} is for calibration_error, estimate{interval} and calibration_test only",
            argument="multiclass",
            value=multiclass,
            remedy="Use 'top', 'top_k' or 'classwise'.",
        )
    if not (isinstance(multiclass, str) and re.fullmatch("top_(k|[1-9][0-9]*)", multiclass)):
        check_choice("multiclass", multiclass, ("top", "classwise", "top_k", TOP_BY_CLASS, "canonical"))
    if pos_label is not None and multiclass.startswith("top"):
        raise InputError(
            f"cannot be combined with multiclass={multiclass!r}: the top class differs from row to row",
            argument="pos_label",
        )


def weights_are_counts(weight: FloatArray | None, kind: str | None, cluster: Codes | None = None) -> bool:
    """Return whether a weight of 2 stands for two rows; refuse an unknown meaning, or one that weights cannot have."""
    if kind is None:
        return False
    check_choice("weights", kind, WEIGHT_KINDS)
    if kind == "clusters":
        if cluster is None:
            raise InputError("'clusters' needs clusters", argument="weights", value=kind)
        return False
    if weight is None:
        raise InputError(f"{kind!r} needs sample_weight", argument="weights", value=kind)
    if kind == "counts" and (part := weight != np.floor(weight)).any():
        raise bad_values(part, weight, "sample_weight", "value", COUNT_RULE, remedy=Remedy.SAMPLING)
    return kind == "counts"


def equal_weights(weight: FloatArray | None, cluster: Codes) -> FloatArray:
    """Return weights that add up to the mean size of a cluster in each of them; a cluster without weight stays out."""
    given = np.ones(len(cluster)) if weight is None else weight
    total = np.bincount(cluster, given)
    scale = given.sum() / np.count_nonzero(total)
    return np.asarray(given * (scale / np.where(total > 0, total, 1.0))[cluster])


def read_logits(logits: Any, name: str = "logits") -> tuple[FloatArray, list[Any] | None]:
    """Return the probabilities of logits, and the names of their columns where there are any.

    One column goes through the sigmoid, several through the softmax, both stable and in float64, so that fewer
    scores round to 1.
    """
    array, names = finite_numbers(logits, name)
    if array.ndim == 1 or array.shape[1] == 1:
        return np.asarray(scipy.special.expit(array.reshape(-1))), None
    with np.errstate(over="ignore"):  # 1e308 less -1e308 is infinite, and its probability rightly 0
        return np.asarray(scipy.special.softmax(array, axis=1)), names


def finite_numbers(values: Any, name: str) -> tuple[FloatArray, list[Any] | None]:
    """Return finite numbers as float64, and the names of their columns where there are any."""
    array, names = to_array(values, name)
    check_shape(array, name)
    array = to_numbers(array, name).astype(np.float64)
    finite = np.isfinite(array)
    if not finite.all():
        raise bad_values(~finite, array, name, "infinite or NaN value", remedy=Remedy.DROP_ROWS)
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


def read_probabilities(
    y_proba: Any, name: str = "y_proba", *, remedy: Remedy = Remedy.LOGITS
) -> tuple[NDArray[np.floating[Any]], list[Any] | None]:
    """Return checked probabilities, and the names of their columns where there are any.

    Parameters
    ----------
    y_proba : array-like of shape (n,), (n, 1) or (n, K)
        Probabilities; those of several columns must sum to 1.
    name : str
        What messages call them.
    remedy : Remedy
        What to do about values that look like logits.
    """
    array, names = to_array(y_proba, name)
    check_shape(array, name)
    proba = to_numbers(array, name)
    # The minimum and the maximum are NaN if any value is, so this one comparison finds every fault.
    if not (proba.min() >= 0 and proba.max() <= 1):
        refuse_missing(proba, name, "value")
        raise _out_of_range(proba, name, remedy)
    if proba.dtype.itemsize > 8:  # only now, for rounding would hide an excess beyond float64
        proba = proba.astype(np.float64)
    if proba.ndim == 1 or proba.shape[1] == 1:
        return proba, None
    total = proba.sum(axis=1, dtype=np.float64)
    off = np.abs(total - 1) > SUM_TOLERANCE
    if off.any():
        raise bad_values(off, total, name, "row", "whose sum is not 1", remedy=Remedy.NORMALIZE)
    return proba, names


def _out_of_range(proba: NDArray[np.floating[Any]], name: str, logits: Remedy) -> InputError:
    """Return the error of values outside [0, 1], with the scale that fits them; `logits` is what to do about logits."""
    values = look_at([finite(proba)])
    remedy = fitting_remedy(values)
    outside = (proba < 0) | (proba > 1)
    if remedy is Remedy.LOGITS:
        remedy = logits
    elif remedy is Remedy.LOG_PROBABILITIES and logits is Remedy.SCORES_ARE_LOGITS:
        remedy = Remedy.SCORES_ARE_LOG_PROBABILITIES
    error = bad_values(outside, proba, name, "value", "outside [0, 1]", remedy=remedy)
    if remedy is not Remedy.MISSING_CODE:
        return error
    first = int((proba == values.code).reshape(len(proba), -1).any(axis=1).argmax())
    return InputError(
        error.problem, argument=name, count=error.count, first_row=first, value=values.code, remedy=remedy
    )


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
    wrong = ~((weight == 0) | (weight >= MIN_WEIGHT) & (weight <= MAX_WEIGHT))
    if wrong.any():
        raise bad_values(wrong, weight, "sample_weight", "value", WEIGHT_RULE, remedy=WEIGHT_REMEDY)
    if not weight.any():
        raise InputError("is zero in every row. At least one row must count", argument="sample_weight")
    return weight
