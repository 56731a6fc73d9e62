"""From labels of any kind to 0 and 1, to the numbers of columns, or to the numbers of clusters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib import numeric
from truecal._lib.text import counted, listing
from truecal.data.arrays import (
    NUMBERS,
    check_length,
    class_target,
    refuse_missing,
    to_array,
    to_python,
    top_target,
)
from truecal.data.faults import MISSING_LABEL, TWO_LABELS, ZERO_ONE, bad_values, got, outside_classes
from truecal.data.pseudo_labels import ImperfectLabels
from truecal.exceptions import InputError, Remedy, show_value, warn_user

Codes = NDArray[np.intp]


class Labels:
    """Checked labels of n rows, before it is decided which class they are compared with.

    Parameters
    ----------
    y : array-like of shape (n,), (n, 1) or one-hot (n, K)
        Labels.
    n : int
        Number of rows.
    name, scores_name : str
        What messages call the labels and the scores.
    """

    def __init__(self, y: Any, n: int, *, name: str = "y_true", scores_name: str = "y_proba") -> None:
        self.name, self.scores_name = name, scores_name
        if isinstance(y, ImperfectLabels):
            raise InputError("must be true labels here, not those of truecal.labels", argument=name)
        self.values, self.column_names = to_array(y, name)
        self.categories = _categories(y)
        check_length(self.values, name, n, scores_name)
        refuse_missing(self.values, name, MISSING_LABEL)
        self.dates = self.values.dtype if self.values.dtype.kind in "mM" else None
        if self.dates is not None:  # as text, or nanoseconds would be compared as integers
            self.values = self.values.astype(str)

    # --- One column of scores: 0 and 1 ---------------------------------------------------------------

    def binary(self, pos_label: Any = None) -> NDArray[Any]:
        """Return labels of 0 and 1, as numbers or booleans."""
        if self.values.ndim == 2 and self.values.shape[1] == 2:
            truth: NDArray[Any] = self._from_one_hot()
        else:
            truth = self._one_column()
        if pos_label is None:
            label = _zero_one(truth)
            if label is None:
                seen = self._distinct(truth)
                raise self._error(got(ZERO_ONE, seen), _binary_remedy(seen))
            return label
        seen = self._distinct(truth)
        positive = self.as_label(pos_label)
        if len(seen) > 2:
            raise self._error(got(TWO_LABELS, seen), Remedy.ONE_VERSUS_REST)
        # One label alone may be the negative one; then pos_label need not be there, but it must be of its kind.
        if positive not in seen and (len(seen) == 2 or isinstance(seen[0], str) != isinstance(positive, str)):
            raise _not_among("labels", positive, seen)
        return np.array([label == positive for label in seen])[_codes(truth)]

    # --- Several columns: the number of the true one -------------------------------------------------

    def columns(
        self,
        n_classes: int,
        *,
        pos_label: Any = None,
        classes: Sequence[Any] | None = None,
        names: list[Any] | None = None,
        sorted_classes: bool = False,
    ) -> tuple[NDArray[Any], list[Any]]:
        """Return the column of each row's true class, and the class of each column.

        Parameters
        ----------
        n_classes : int
            Number of columns.
        pos_label : label, optional
            The positive class.
        classes : sequence, optional
            The class of each column, if it was given.
        names : list, optional
            The names of the columns of a frame.
        sorted_classes : bool
            Whether the sorted labels may stand for the columns, as in scikit-learn's ``classes_``. Otherwise
            that is refused where it could be wrong without a sign of it.
        """
        if classes is not None:
            classes = [self.as_label(label) for label in classes]
            check_classes(classes, n_classes)
        if self.values.ndim == 2 and self.values.shape[1] > 1:
            if self.values.shape[1] != n_classes:
                raise self._error(
                    f"is one-hot with {self.values.shape[1]} columns, {self.scores_name} has {n_classes}"
                )
            column: NDArray[Any] = self._from_one_hot()
            known = classes or names or list(range(n_classes))
        else:
            truth = self._one_column()
            seen = self._distinct(truth)
            known = classes or self._guess_classes(seen, n_classes, pos_label, names, sorted_classes)
            column = self._look_up(truth, seen, known)
        if pos_label is not None and self.as_label(pos_label) not in known:
            raise _not_among("classes", self.as_label(pos_label), known)
        return column, known

    def _guess_classes(
        self, seen: list[Any], n_classes: int, pos_label: Any, names: list[Any] | None, sorted_classes: bool
    ) -> list[Any]:
        """Return the classes that the columns' names give, else 0 to K - 1, else the sorted labels."""
        if names is not None and (known := classes_of(names, seen)) is not None:
            return known
        numbers = list(range(n_classes))
        if not isinstance(seen[0], str) and (not sorted_classes or set(seen) <= set(numbers)):
            return numbers
        if sorted_classes and len(seen) == n_classes:
            return seen
        scores = self.scores_name
        if names is not None:
            problem = f"holds {listing(seen)}, but the columns of {scores} are {listing(names)}"
            raise self._error(problem, Remedy.LABELS)
        if len(seen) != n_classes:
            what = "classes" if sorted_classes else f"columns of {scores}"
            labels = f"{counted(len(seen), 'different label')} ({listing(seen)})"
            raise self._error(f"has {labels} for {n_classes} {what}", Remedy.LABELS)
        return self._in_order(seen, pos_label)

    def _in_order(self, seen: list[Any], pos_label: Any) -> list[Any]:
        """Return the sorted text labels as the classes of as many columns; refuse another order that is as likely."""
        scores, two = self.scores_name, len(seen) == 2
        if two and pos_label != seen[1]:
            # Does the second column follow the sorted labels, or pos_label? A wrong guess would not show.
            problem = (
                f"holds the strings {listing(seen)}, and two columns of {scores} could be in either order"
            )
            raise self._error(problem, Remedy.COLUMN_ORDER)
        order = [label for label in self.categories if label in seen]
        # sklearn's models sort classes, and others go by the codes of the categories.
        if order and order != seen:
            raise self._error(
                f"has the categories {listing(order)}, and the columns of {scores} could be in this order or in that "
                f"of the alphabet",
                Remedy.LABELS,
            )
        numbered = all(label.isdecimal() for label in seen) and sorted(seen, key=int) == seen
        if order or numbered or two:  # categories, numbers or pos_label give the same order
            return seen
        warn_user(
            f"The columns of {scores} have no names, and are taken in the order of the sorted labels: "
            f"{listing(seen, 20)}. Pass labels=[...] to name the class of each column."
        )
        return seen

    def _look_up(self, truth: NDArray[Any], seen: list[Any], classes: list[Any]) -> NDArray[Any]:
        column_of = {label: column for column, label in enumerate(classes)}
        unknown = np.array([label not in column_of for label in seen])
        if unknown.any():
            rule, wrong = outside_classes(classes, self.scores_name), unknown[_codes(truth)]
            raise bad_values(wrong, truth, self.name, "label", rule, remedy=Remedy.LABELS)
        if classes == list(range(len(classes))) and truth.dtype.kind in "iub":
            return truth
        return np.array([column_of[label] for label in seen], dtype=np.intp)[_codes(truth)]

    # --- Shapes and values ---------------------------------------------------------------------------

    def _from_one_hot(self) -> Codes:
        hot = np.asarray(self.values == 1, dtype=bool)
        wrong = (hot.sum(axis=1) != 1) | ~(hot | np.asarray(self.values == 0, dtype=bool)).all(axis=1)
        if wrong.any():
            raise InputError(
                f"has {counted(int(wrong.sum()), 'row')} without a single 1 among 0s, as one-hot labels have it",
                argument=self.name,
                count=int(wrong.sum()),
                first_row=int(wrong.argmax()),
                value=self.values[wrong.argmax()].tolist(),
            )
        return np.asarray(hot.argmax(axis=1), dtype=np.intp)

    def _one_column(self) -> NDArray[Any]:
        shape = self.values.shape
        if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
            raise self._error(f"must have shape (n,) or be one-hot. Got shape {shape} instead")
        return self.values.reshape(-1)

    def _distinct(self, truth: NDArray[Any]) -> list[Any]:
        """Return the distinct labels, sorted; whole floats as integers, so that 1.0 prints and maps as 1."""
        try:
            seen = [to_python(value) for value in np.unique(truth).tolist()]
        except TypeError as error:
            types = sorted({type(value).__name__ for value in truth.tolist()})
            raise self._error(
                f"mixes labels of the types {', '.join(types)}", "Use labels of one type."
            ) from error
        return [int(value) if isinstance(value, float) and value.is_integer() else value for value in seen]

    def as_label(self, value: Any) -> Any:
        """Return a label given by the user in the form in which labels are compared."""
        if self.dates is not None:
            return str(np.asarray(value, dtype=self.dates))
        return to_python(value)

    def _error(self, problem: str, remedy: Remedy | str | None = None) -> InputError:
        return InputError(problem, argument=self.name, remedy=remedy)


def _categories(y: Any) -> list[Any]:
    """Return the categories of a pandas column, or of an Enum of Polars, in their order; else nothing."""
    dtype: Any = getattr(y, "dtype", None)
    return list(dtype.categories) if type(dtype).__name__ in ("CategoricalDtype", "Enum") else []


def _zero_one(truth: NDArray[Any]) -> NDArray[Any] | None:
    """Return the labels in a type that adds up, or None if they are not all 0 and 1."""
    if truth.dtype.kind == "b":
        return truth
    if truth.dtype.kind in "iu":
        return truth if int(np.bitwise_or.reduce(truth)) in (0, 1) else None  # no label has another bit
    if truth.dtype.kind == "f" or (truth.dtype.kind == "O" and all(isinstance(t, NUMBERS) for t in truth)):
        one = np.asarray(truth == 1, dtype=bool)
        return one if (one | (truth == 0)).all() else None
    return None


def _binary_remedy(seen: list[Any]) -> Remedy:
    if isinstance(seen[0], float | int) and seen[0] >= 0 and seen[-1] <= 1:
        return Remedy.SWAPPED
    return Remedy.POS_LABEL if len(seen) <= 2 else Remedy.COLUMN_PER_CLASS


def _codes(truth: NDArray[Any]) -> Codes:
    """Return which of the sorted labels each row has."""
    return np.asarray(np.unique(truth, return_inverse=True)[1].reshape(-1), dtype=np.intp)


def _not_among(what: str, label: Any, known: list[Any]) -> InputError:
    return InputError(
        f"{show_value(label)} is not among the {what} {listing(known)}", argument="pos_label", value=label
    )


def check_classes(classes: list[Any], n_classes: int) -> None:
    """Refuse names of classes that are too few, too many or not different."""
    if len(classes) != n_classes or len(set(classes)) != n_classes:
        raise InputError(
            f"must name {n_classes} different classes. Got {listing(classes)} instead", argument="labels"
        )


def check_pos_label(pos_label: Any, classes: list[Any]) -> Any:
    """Return `pos_label` as a Python object, or refuse one that is not a class."""
    if to_python(pos_label) not in classes:
        raise _not_among("classes", to_python(pos_label), classes)
    return to_python(pos_label)


def event_of(classes: list[Any], multiclass: str | None, pos_label: Any) -> tuple[int | None, str]:
    """Return the column of the class that is asked for, or None for the top label; and the event in words."""
    if multiclass == "top" or (multiclass is None and pos_label is None and len(classes) > 2):
        return None, top_target(len(classes))
    k = 1 if pos_label is None else classes.index(check_pos_label(pos_label, classes))
    return k, class_target(classes, k)


def classes_of(names: Sequence[Any], seen: Sequence[Any]) -> list[Any] | None:
    """Return the class of each column where its name gives it; None to go by the order of the columns.

    Parameters
    ----------
    names : sequence
        Names of several columns of scores.
    seen : sequence
        The labels that occur.

    Examples
    --------
    >>> classes_of(["prob_dog", "prob_cat"], ["cat", "dog"])
    ['dog', 'cat']
    >>> classes_of(["p2", "p1", "p0"], [0, 1, 2])
    [2, 1, 0]
    >>> classes_of(["True", "False"], [False, True])
    [True, False]
    """
    if isinstance(seen[0], str):
        exact, ends = list(names), without_common_prefix([str(name) for name in names])
    else:
        if set(seen) <= {0, 1} and (booleans := booleans_in_names(names)):
            return [type(seen[0])(value) for value in booleans]
        exact = [int(name) if str(name).isdecimal() else name for name in names]
        ends = numbers_in_names(names) or []
    if not set(exact).isdisjoint(seen):
        return exact
    return ends if set(seen) <= set(ends) else None


def without_common_prefix(names: Sequence[str]) -> list[Any]:
    """Return names without the letters that all of them begin with.

    Examples
    --------
    >>> without_common_prefix(["prob_dog", "prob_cat"])
    ['dog', 'cat']
    """
    same = [len(set(letters)) == 1 for letters in zip(*names, strict=False)]
    n_same = same.index(False) if False in same else len(same)
    return [name[n_same:] for name in names]


def booleans_in_names(names: Sequence[Any]) -> list[bool] | None:
    """Return which of two columns is that of True, where the names end in True and False; else None.

    Examples
    --------
    >>> booleans_in_names(["p_True", "p_False"]), booleans_in_names(["p_yes", "p_no"])
    ([True, False], None)
    """
    ends = [re.search(r"(true|false)$", str(name).lower()) for name in names]
    values = [end[1] == "true" for end in ends if end]
    return values if len(names) == 2 and set(values) == {True, False} else None


def numbers_in_names(names: Sequence[Any]) -> list[int] | None:
    """Return the number at the end of each column's name, or None if some have none or the same.

    Examples
    --------
    >>> numbers_in_names(["p2", "p0", "p1"]), numbers_in_names(["a", "b"])
    ([2, 0, 1], None)
    """
    ends = [re.search(r"(\d+)\s*$", str(name)) for name in names]
    numbers = [int(end[1]) for end in ends if end]
    return numbers if len(set(numbers)) == len(names) else None


def read_clusters(clusters: Any, n: int) -> Codes | None:
    """Return the number of each row's cluster, from 0, or None; the values of several columns are crossed.

    Examples
    --------
    >>> read_clusters([7, 3, 7], 3).tolist()
    [1, 0, 1]
    >>> read_clusters([["a", 1], ["a", 2], ["a", 1]], 3).tolist()
    [0, 1, 0]
    """
    if clusters is None:
        return None
    code = np.zeros(n, dtype=np.intp)
    for column in cluster_columns(clusters, n):
        part = number_values(column)[1]
        code = number_values(code * (part.max(initial=0) + 1) + part)[1]
    return code


def cluster_columns(clusters: Any, n: int) -> list[NDArray[Any]]:
    """Return the columns that name clusters, without missing values.

    Parameters
    ----------
    clusters : array-like of shape (n,) or (n, k), or data frame
        Names of clusters.
    n : int
        Number of rows.
    """
    import narwhals as nw

    frame = nw.from_native(clusters, eager_only=True, allow_series=False, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns = [to_array(column.to_native(), "clusters")[0] for column in frame.iter_columns()]
    else:
        array = to_array(clusters, "clusters")[0]
        columns = [array] if array.ndim == 1 else list(array.T) if array.ndim == 2 else []
    if not columns:
        raise InputError("must have shape (n,), or (n, k) for k columns to be crossed", argument="clusters")
    for column in columns:
        check_length(column, "clusters", n, "y_true")
        refuse_missing(column, "clusters")
    return columns


def number_values(column: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    """Return the distinct values of a column, and which of them each row has.

    Examples
    --------
    >>> number_values(np.array([7, 3, 7]))
    (array([3, 7]), array([1, 0, 1]))
    """
    if column.dtype.kind != "O":
        return numeric.number_values(column)
    number: dict[Any, int] = {}
    place = np.array([number.setdefault(value, len(number)) for value in column.tolist()], dtype=np.intp)
    values = np.empty(len(number), dtype=object)
    values[:] = list(number)
    return values, place
