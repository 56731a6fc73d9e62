"""Streams of predictions: cells that grow batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import check_choice
from truecal.data import as_sample
from truecal.data.arrays import to_array
from truecal.data.cells import N_CELLS, Cells, check_same_target, merge_all
from truecal.data.clusters import cluster_keys
from truecal.estimators._registry import DEFAULT_ESTIMATOR
from truecal.exceptions import InputError
from truecal.inference.estimate import estimate
from truecal.results import Estimate


class CalibrationStream:
    """The calibration error of a stream of predictions, in memory of fixed size.

    Batches come in through `update` and are not kept: only the cells that they fall into, at most 2^16 (see
    `truecal.data.cells`). Streams of several processes or days can be merged. With clusters, memory grows with the
    number of pairs of a cluster and a cell, of which there may be 2^24 (about 1 GB).

    Parameters
    ----------
    pos_label, labels, multiclass
        How to read each batch, as in `truecal.estimate`; ``multiclass`` may be ``"top"``. Where labels are
        text, name the classes: a batch need not hold all of them.

    Examples
    --------
    >>> import numpy as np
    >>> stream = CalibrationStream()
    >>> rng = np.random.default_rng(0)
    >>> for batch in range(100):
    ...     scores = rng.random(1000)
    ...     stream.update(rng.random(1000) < scores**1.2, scores)
    >>> stream
    CalibrationStream(n=100000)
    >>> print(stream.compute(estimator="em_debias"))
    em_debias (l2) of P(y = 1): 0.0470, n = 100000, 15 bins, cells ± 1e-05
    """

    def __init__(
        self, *, pos_label: Any = None, labels: Sequence[Any] | None = None, multiclass: str | None = None
    ) -> None:
        if multiclass is not None:
            check_choice("multiclass", multiclass, ("top",))
        self._reading = {"pos_label": pos_label, "labels": labels, "multiclass": multiclass}
        self._batches: list[Cells] = []
        self._waiting = 0

    def update(
        self,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        clusters: Any = None,
    ) -> None:
        """Add a batch, which may be empty.

        Parameters
        ----------
        y_true, y_proba, sample_weight
            As in `truecal.estimate`.
        clusters : array-like of shape (n,) or (n, k), or data frame, optional
            Rows that depend on each other have the same value, in this batch or in others. Given with every batch
            or with none.
        """
        proba = to_array(y_proba, "y_proba")[0]
        if not len(proba):
            return
        reading = {**self._reading, "sample_weight": sample_weight}
        if clusters is None:
            cells = Cells.from_sample(as_sample(y_true, y_proba, **reading))
        else:
            # Keys that are sorted are numbered in their order, whatever rows of weight 0 leave out.
            key = cluster_keys(clusters, len(proba)).view(np.int64)
            sample = as_sample(y_true, y_proba, **reading, clusters=key)
            if sample_weight is not None:
                key = key[to_array(sample_weight, "sample_weight")[0] > 0]
            cells = Cells.from_sample(sample, keys=np.unique(key).view(np.uint64))
        self._add([cells])

    def merge(self, *others: CalibrationStream) -> Self:
        """Add the rows of other streams, and return this one.

        Parameters
        ----------
        *others : CalibrationStream
            The other streams, which stay as they are.
        """
        for other in others:
            self._add(other._batches)
        return self

    @property
    def n(self) -> float:
        """Number of rows so far, or their total weight."""
        return sum(cells.n for cells in self._batches)

    @property
    def cells(self) -> Cells:
        """The rows so far, as cells, which every function that takes a `Sample` accepts."""
        if not self._batches:
            raise InputError("Nothing has come in yet. Call update first.")
        self._merge()
        return self._batches[0]

    def compute(self, estimator: str = DEFAULT_ESTIMATOR, **options: Any) -> Estimate:
        """Return the calibration error so far.

        Parameters
        ----------
        estimator : str
            One of `truecal.list_estimators`.
        **options
            The other parameters of `truecal.estimate` that a `Sample` can go with, such as `norm`.
        """
        return estimate(self.cells, estimator=estimator, **options)

    def reset(self) -> None:
        """Forget everything."""
        self._batches, self._waiting = [], 0

    def _add(self, batches: list[Cells]) -> None:
        both = [*self._batches[:1], *batches]
        check_same_target(both)
        if len({cells.dependence.unit for cells in both}) > 1:
            raise InputError("must come with every batch or with none", argument="clusters")
        self._batches += batches
        # Merging costs as much for a few rows as for many, so small batches wait for others.
        self._waiting += sum(map(_size, batches))
        if self._waiting > N_CELLS and self._waiting > _size(self._batches[0]):
            self._merge()

    def _merge(self) -> None:
        self._batches, self._waiting = [merge_all(self._batches)], 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n:.10g})"


def _size(cells: Cells) -> int:
    return len(cells) if cells.clusters is None else len(cells.clusters.weight)
