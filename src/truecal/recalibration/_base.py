"""Base class of the recalibrators: scikit-learn's interface without scikit-learn."""

from __future__ import annotations

import importlib
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal._lib.checks import check_choice
from truecal._lib.types import FloatArray
from truecal.data.arrays import read_weights
from truecal.data.extremes import Floor
from truecal.exceptions import InputError
from truecal.recalibration._scores import Column, Scores, check_logits, read_labels, read_scores

#: A fitted map from the scores of one class to its recalibrated probabilities.
ScoreMap = Callable[[Column], FloatArray]


class NotFittedError(ValueError, AttributeError):
    """`transform` was called before `fit`."""


class Recalibrator(ABC):
    """Learns the observed frequency at each score on held-out predictions, and corrects other scores.

    It behaves as a scikit-learn transformer: `fit`, `transform`, `get_params`, `set_params`; it can be
    cloned, pickled and put into a pipeline. scikit-learn itself is not needed.

    Scores may have shape (n,) or (n, 1), the positive class, (n, 2), or (n, K). What `transform` returns
    are probabilities in the same shape, as float64. With two columns the second is recalibrated and the
    first is its complement.

    Labels are 0 and 1, or the numbers of the columns; else the sorted labels stand for the columns, as in
    scikit-learn's ``classes_``, and the greater of two is the positive class.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The class of each column; two for one column.
    n_features_in_ : int
        Number of columns seen in `fit`.
    floor_ : Floor
        What probabilities of exactly 0 and 1 count as where their logarithm is needed, in `fit` and in `transform`:
        no more than the rows of `fit` can show. With n rows, K columns (1 for two classes) and smallest positive
        score s, an exact 0 is min(1 / (n + 1), s) / (2K), and half a step for shares of up to 200 votes. It is 0 if
        no score was exactly 0 in `fit`.
    """

    input: str
    classes_: NDArray[Any]
    n_features_in_: int
    floor_: Floor

    def __init__(self, input: str = "probabilities") -> None:
        self.input = input

    def fit(self, scores: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from scores and labels.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
            Probabilities or logits, as `input` says. Not those that the model was trained on.
        y : array-like of shape (n,), (n, 1) or one-hot (n, K)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Frequencies: weight 2 equals the row twice, weight 0 leaves it out.

        Returns
        -------
        Self
        """
        self._check_parameters()
        read = self._read(scores)
        if read.are_logits:
            check_logits(read)
        label, classes = read_labels(y, read)
        weight = read_weights(sample_weight, len(read))
        if weight is not None and not weight.all():
            kept = weight > 0
            read, label, weight = read[kept], label[kept], weight[kept]
        return self._fit_read(read.with_floor(weight), label, weight, classes)

    def transform(self, scores: ArrayLike) -> FloatArray:
        """Return recalibrated probabilities in the shape of `scores`.

        Parameters
        ----------
        scores : array-like
            Probabilities or logits, as `input` says, with the columns that it was fitted on.
        """
        if not self.__sklearn_is_fitted__():
            # If scikit-learn is in use its own class is raised, which its users catch.
            exceptions = sys.modules.get("sklearn.exceptions")
            kind: type[Exception] = NotFittedError if exceptions is None else exceptions.NotFittedError
            raise kind(f"This {type(self).__name__} is not fitted yet. Call fit(scores, y) first.")
        read = self._read(scores)
        if read.n_columns != self.n_features_in_:
            raise InputError(
                f"X has {read.n_columns} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input: the columns that it was fitted on"
            )
        return self._transform_read(read)

    def fit_transform(
        self, scores: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> FloatArray:
        """Return the recalibrated scores of the training rows; they look better than those of new rows will.

        Parameters
        ----------
        scores, y, sample_weight : array-like
            Scores, in the same form as for `fit`.
        """
        return self.fit(scores, y, sample_weight=sample_weight).transform(scores)

    def _read(self, scores: ArrayLike) -> Scores:
        return read_scores(scores, self.input)

    def _fit_read(
        self, scores: Scores, label: NDArray[np.intp], weight: FloatArray | None, classes: NDArray[Any]
    ) -> Self:
        """Learn from checked rows of positive weight."""
        self._learn(scores, label, weight)
        self.classes_, self.n_features_in_, self.floor_ = classes, scores.n_columns, scores.floor
        return self

    def _transform_read(self, scores: Scores) -> FloatArray:
        """Return the recalibrated probabilities of checked scores; an exact 0 counts as in `fit`."""
        return self._apply(replace(scores, floor=self.floor_))

    @abstractmethod
    def _learn(self, scores: Scores, label: NDArray[np.intp], weight: FloatArray | None) -> None:
        """Set the fitted attributes from rows of positive weight."""

    @abstractmethod
    def _apply(self, scores: Scores) -> FloatArray:
        """Return the recalibrated probabilities."""

    def _check_parameters(self) -> None:  # noqa: B027 - most have nothing more to check than `input`
        """Raise an InputError if a parameter of the constructor is invalid."""

    # -- scikit-learn's conventions ------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the constructor.

        Parameters
        ----------
        deep : bool
            Changes nothing here; scikit-learn passes it.
        """
        names = inspect.signature(type(self)).parameters
        return {name: getattr(self, name) for name in sorted(names)}

    def set_params(self, **params: Any) -> Self:
        """Change parameters of the constructor by name; fit again afterwards.

        Parameters
        ----------
        **params
            New values by name.

        Returns
        -------
        Self
        """
        known = self.get_params()
        for name, value in params.items():
            check_choice(f"a parameter of {type(self).__name__}", name, known)
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value != defaults[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        # Only scikit-learn calls this, so importing it is safe.
        utils = importlib.import_module("sklearn.utils")
        tags = utils.Tags(
            estimator_type="transformer",
            target_tags=utils.TargetTags(required=True),
            transformer_tags=utils.TransformerTags(preserves_dtype=[]),
            # One column is for two classes. Without this its checks would pass three classes with it.
            classifier_tags=utils.ClassifierTags(multi_class=False),
        )
        # Columns are classes, not features. scikit-learn has no tag for that, and its checks would fit any
        # estimator of 2-D arrays on five columns with two classes. Its IsotonicRegression is tagged alike.
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


class PerClassRecalibrator(Recalibrator):
    """One map for two classes; for more, one for each against the rest, with rows normalised to sum to 1.

    Attributes
    ----------
    maps_ : tuple of callables
        One fitted map for two classes, K for K > 2.
    """

    maps_: tuple[ScoreMap, ...]

    @abstractmethod
    def _fit_map(self, column: Column, label: NDArray[np.bool_], weight: FloatArray | None) -> ScoreMap:
        """Return the map fitted to one class."""

    def _learn(self, scores: Scores, label: NDArray[np.intp], weight: FloatArray | None) -> None:
        classes = (1,) if scores.n_classes == 2 else range(scores.n_classes)
        self.maps_ = tuple(
            self._fit_map(column, label == k, weight)
            for column, k in zip(scores.columns, classes, strict=True)
        )

    def _apply(self, scores: Scores) -> FloatArray:
        mapped = [fitted(column) for fitted, column in zip(self.maps_, scores.columns, strict=True)]
        if scores.n_classes == 2:
            return scores.shaped(mapped[0])
        values = np.column_stack(mapped)
        total = values.sum(axis=1, keepdims=True)
        # If every class is mapped to 0, keep the model's probabilities.
        return np.where(total > 0, values / np.where(total > 0, total, 1), scores.probabilities)


class PredictsProba:
    """A recalibrator of another package that has `predict_proba` and takes one column for each class.

    Parameters
    ----------
    model : object
        With ``fit(probabilities, labels)`` and ``predict_proba(probabilities)``, as those of probmetrics.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, scores: FloatArray, labels: Any, **more: Any) -> Self:
        """Fit to probabilities and labels."""
        self.model.fit(_columns(scores), labels, **more)
        return self

    def transform(self, scores: FloatArray) -> FloatArray:
        """Return probabilities of the shape of the scores."""
        proba = np.asarray(self.model.predict_proba(_columns(scores)), dtype=np.float64)
        return proba[:, 1] if np.ndim(scores) == 1 else proba


def _columns(scores: FloatArray) -> FloatArray:
    values = np.asarray(scores, dtype=np.float64)
    return np.column_stack([1 - values, values]) if values.ndim == 1 else values
