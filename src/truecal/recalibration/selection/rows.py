"""The rows that a recalibrator is chosen on: checked, ordered, split into folds, resampled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal._lib.checks import check_count
from truecal._lib.types import FloatArray
from truecal.data.predictions import read_weights
from truecal.exceptions import InputError
from truecal.recalibration._scores import Scores, read_labels, read_scores


@dataclass(frozen=True, eq=False)
class Rows:
    """Checked scores with the numbers of their classes, and weights if there are any.

    Attributes
    ----------
    scores : Scores
        Scores, in an order that does not depend on the one they came in.
    label : ndarray of shape (n,)
        Number of each row's class.
    weight : ndarray of shape (n,) or None
        Positive weights.
    origin : ndarray of shape (n,)
        Where each row was when it came in.
    n_given : int
        How many rows came in.
    positive : label
        The positive class of two.
    """

    scores: Scores
    label: NDArray[np.intp]
    weight: FloatArray | None
    origin: NDArray[np.intp]
    n_given: int
    positive: Any

    @classmethod
    def read(
        cls, y: Any, scores: Any, weight: Any, given: str, pos_label: Any, labels: Sequence[Any] | None
    ) -> Rows:
        """Check scores, labels and weights; rows of weight 0 are left out."""
        read = read_scores(scores, given)
        if pos_label is None:
            label, classes = read_labels(y, read, labels)
            pos_label = classes.tolist()[1]
        elif read.n_classes == 2:
            label, _ = read_labels(np.asarray(y) == pos_label, read)
        else:
            raise InputError(
                f"is for two classes. Scores have {read.n_columns} columns", argument="pos_label"
            )
        checked = read_weights(weight, len(read))
        order = _order(read, label, checked)
        if checked is not None:
            order = order[checked[order] > 0]
        return cls(read, label, checked, np.arange(len(read)), len(read), pos_label).take(order)

    @property
    def n(self) -> float:
        """Number of rows, or their total weight."""
        return len(self.label) if self.weight is None else float(self.weight.sum())

    def take(self, rows: NDArray[Any]) -> Rows:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(
            self, scores=self.scores[rows], label=self.label[rows], weight=weight, origin=self.origin[rows]
        )

    def folds(self, cv: int | ArrayLike, rng: np.random.Generator) -> NDArray[np.intp]:
        """Return the fold of each row."""
        if np.ndim(cv):
            given = np.asarray(cv)
            if given.shape != (self.n_given,):
                raise InputError(
                    f"has shape {given.shape}. One fold is needed for each of {self.n_given} rows",
                    argument="cv",
                )
            fold = np.unique(given[self.origin], return_inverse=True)[1].reshape(-1)
            if fold.max() == 0:
                raise InputError("must have at least two different folds", argument="cv")
            return fold
        n, number = len(self.label), check_count("cv", cv, least=2)
        if number > n:
            raise InputError(f"must be at most the number of rows, {n}. Got {number} instead", argument="cv")
        # Without regard to labels. Folds that are balanced by label share each other's luck, and every
        # candidate seems to gain.
        return rng.permutation(n) % number

    def resamples(self, number: int, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Draw rows with replacement, and yield how much each counts."""
        n = len(self.label)
        whole = self.weight is not None and bool((self.weight == np.floor(self.weight)).all())
        for _ in range(number):
            if self.weight is not None and whole:
                yield rng.multinomial(int(self.n), self.weight / self.n).astype(np.float64)
            else:
                count = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
                yield count if self.weight is None else count * self.weight


def _order(scores: Scores, label: NDArray[np.intp], weight: FloatArray | None) -> NDArray[np.intp]:
    """Return an order of rows that is the same however they are shuffled."""
    # With many classes one number that tells rows apart is enough, and quicker than sorting by all columns.
    apart = np.cos(np.arange(scores.n_columns))
    key = scores.columns[0].values if scores.n_classes == 2 else scores.values @ apart
    return np.lexsort((np.zeros(len(label)) if weight is None else weight, label, key))
