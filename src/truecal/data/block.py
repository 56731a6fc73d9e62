"""A block: many samples of the same size, which estimators take at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.runs import IntArray
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample, sort_rows
from truecal.data.score_groups import ScoreGroups, ones, prefix_sums


@dataclass(frozen=True, eq=False)
class Block(ScoreGroups):
    """Samples of the same number of rows without weights, as a simulation draws them.

    The groups of all samples stand in one array, one sample after another; `bounds` says where each begins. Iterating
    gives the samples themselves.

    Attributes
    ----------
    bounds : ndarray of shape (n_samples + 1,)
        Number of the first group of each sample, and at the end the number of groups.
    row_score, row_label : ndarray of shape (n_samples, n)
        Scores of the rows, ascending, and their labels in the same order; zeros come first among equal scores.

    Examples
    --------
    >>> block = Block.from_rows(np.array([[1, 0, 1], [0, 0, 1]]), np.array([[0.7, 0.2, 0.2], [0.1, 0.6, 0.4]]))
    >>> block.score, block.count, block.bounds
    (array([0.2, 0.7, 0.1, 0.4, 0.6]), array([2., 1., 1., 1., 1.]), array([0, 2, 5]))
    >>> [sample.positives.tolist() for sample in block]
    [[1.0, 1.0], [0.0, 1.0, 0.0]]
    """

    bounds: IntArray = field(kw_only=True)
    row_score: FloatArray = field(kw_only=True)
    row_label: FloatArray = field(kw_only=True)

    @classmethod
    def from_rows(cls, label: NDArray[Any], score: NDArray[Any], *, target: str = "P(y = 1)") -> Block:
        """Group each row of two (samples, rows) arrays: labels of 0 and 1, scores in [0, 1].

        Parameters
        ----------
        label, score : ndarray of shape (n_samples, n)
            Each row of these arrays is a sample.
        target : str
            What the scores are probabilities of, in words.
        """
        scores, labels = sort_rows(label, score)
        first = np.ones(scores.shape, dtype=np.bool_)
        np.not_equal(scores[:, 1:], scores[:, :-1], out=first[:, 1:])
        start = np.flatnonzero(first)
        if len(start) == scores.size:
            groups = scores.ravel(), ones(scores.size), labels.ravel()
        else:
            total = prefix_sums(labels.ravel())  # whole numbers, so that differences are exact
            count = np.diff(start, append=scores.size).astype(np.float64)
            groups = scores.ravel()[start], count, np.diff(total[start], append=total[-1])
        sizes = np.count_nonzero(first, axis=1)
        return cls(
            *groups,
            score.dtype,
            target,
            bounds=np.append(0, np.cumsum(sizes)),
            row_score=scores,
            row_label=labels,
        )

    @cached_property
    def n(self) -> int:
        """Number of rows of each sample."""
        return int(self.row_score.shape[1])

    @property
    def whole(self) -> bool:
        """True: rows are counted."""
        return True

    @cached_property
    def distinct(self) -> NDArray[np.bool_]:
        """Whether all scores of a sample are different, for each sample."""
        return np.asarray(self.sizes == self.n)

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        """The samples one by one."""
        return tuple(
            Sample(
                self.score[first:end],
                ones(self.n) if end - first == self.n else self.count[first:end],
                self.positives[first:end],
                self.dtype,
                self.target,
            )
            for first, end in zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True)
        )

    def __len__(self) -> int:
        return len(self.row_score)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)
