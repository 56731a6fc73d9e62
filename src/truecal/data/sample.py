"""The central data structure: predictions sorted by score, with ties grouped."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Unpack

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from truecal._lib.numeric import (
    IntArray,
    isotonic_rate,
    lp_norm,
    over_runs,
    run_ends,
)
from truecal._lib.types import FloatArray
from truecal.data.arrays import Reading, takes_predictions
from truecal.data.clusters import Clusters, Independent, sum_by_cluster
from truecal.data.pseudo_labels import PseudoLabels

#: Rows per step of a pass over all, whose arrays stay in the cache of a processor.
STEP = 1 << 14

#: The count that all groups of one row each see through a stride of zero, which costs no memory.
_ONE = np.ones(1)

#: Integers as wide as each floating-point type, to sort a score and its label as one number.
_KEYS: dict[int, type[np.signedinteger[Any]]] = {2: np.int16, 4: np.int32, 8: np.int64}


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreGroups:
    """Score groups of one sample, or of several samples one after another.

    A formula that is written for runs of groups serves both: `bounds` says where samples begin and end, and sums over
    a run do not depend on what is before and behind it.

    Attributes
    ----------
    score : ndarray of shape (n_groups,)
        Scores, in ascending order within a sample.
    count : ndarray of shape (n_groups,)
        Rows, or total weight, of each group.
    positives : ndarray of shape (n_groups,)
        Sum of the 0/1 labels (times the weights) of each group.
    dtype : numpy.dtype
        The type that the scores came in. Equal-width edges are rounded to it, so that a float32 score of
        0.3 meets the edge 3/10 as a float64 one does.
    target : str
        What the score is the probability of, in words.
    one_row_each : bool
        Whether every group is one row: no ties and no weights.
    """

    score: FloatArray
    count: FloatArray
    positives: FloatArray
    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.float64))
    target: str = "P(y = 1)"
    one_row_each: bool = field(init=False)
    _read_only: ClassVar[tuple[str, ...]] = ("score", "count", "positives")

    def __post_init__(self) -> None:
        known = vars(self)
        for name in self._read_only:
            array = known[name] = known[name].view()
            array.setflags(write=False)
        known["one_row_each"] = self.count.base is _ONE
        if self.one_row_each:
            known.update(label=self.positives, score_sum=self.score, even=True, whole=True)

    @cached_property
    def bounds(self) -> IntArray:
        """Number of the first group of each sample, and at the end the number of groups."""
        return _one_run(len(self.score))

    @cached_property
    def sizes(self) -> IntArray:
        """Number of groups of each sample."""
        return self.bounds[1:] - self.bounds[:-1]

    @property
    def samples(self) -> tuple[ScoreGroups, ...]:
        """The samples one by one."""
        return (self,)

    def on_the_scale_of_rows(self) -> ScoreGroups:
        """Return these groups; sampling weights of a `Sample` may need another scale."""
        return self

    @cached_property
    def n(self) -> float:
        """Number of rows of each sample, an int; or the total weight, a float if weights have fractions."""
        if self.one_row_each:
            return len(self.score)
        total = float(self.count.sum())
        return int(total) if self.whole else total

    @cached_property
    def label(self) -> FloatArray:
        """Mean label of each group."""
        return self.positives / self.count

    @cached_property
    def score_sum(self) -> FloatArray:
        """Sum of the scores of the rows of each group."""
        return self.score * self.count

    @cached_property
    def middle_rank(self) -> FloatArray:
        """Rank within its sample of the middle row of each group.

        The middle of m equal rows is (m - 1)/2 after the first. The smallest count represents one row, so that
        the scale of the weights does not matter.
        """
        bounds, before = self.bounds, self.cumulative_count[:-1]
        rank = self.count - over_runs(np.minimum.reduceat(self.count, bounds[:-1]), bounds)
        rank /= 2
        rank += before
        if len(bounds) > 2:
            rank -= over_runs(before[bounds[:-1]], bounds)
        return np.asarray(rank)

    @cached_property
    def cumulative_count(self) -> FloatArray:
        """Rows before each group, and at the end the total: ``n_groups + 1`` values."""
        if self.one_row_each:
            return np.arange(len(self.score) + 1, dtype=np.float64)
        return prefix_sums(self.count)

    @cached_property
    def cumulative_positives(self) -> FloatArray:
        """Sum of the labels before each group, and at the end the total: ``n_groups + 1`` values."""
        return prefix_sums(self.positives)

    @cached_property
    def even(self) -> bool:
        """Whether all groups have the same count, as when no scores tie and there are no weights."""
        return bool((self.count == self.count[0]).all())

    @cached_property
    def whole(self) -> bool:
        """Whether all counts are whole numbers, so that their sums are exact."""
        return bool((self.count == np.floor(self.count)).all())

    @property
    def rounding(self) -> float:
        """Bound on the rounding error of sums of counts; zero for whole numbers."""
        return 0.0 if self.whole and self.n < 2**53 else 1e-10 * self.n

    def rows_between(self, start: IntArray, end: IntArray) -> FloatArray:
        """Return the rows, or the weight, from group `start` up to group `end`."""
        if self.one_row_each:
            return np.asarray(end - start, dtype=np.float64)
        return self.cumulative_count[end] - self.cumulative_count[start]

    def sums(self, start: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return count, sum of scores and sum of labels of the runs of groups that begin at `start`.

        Sums within each run (NumPy adds pairwise) are more accurate than differences of prefix sums. All three
        are added in the same order, so that rounding never makes a mean larger than 1.
        """
        if self.one_row_each:
            count = self.rows_between(start, run_ends(start, len(self.score)))
        else:
            count = np.add.reduceat(self.count, start)
        return count, np.add.reduceat(self.score_sum, start), np.add.reduceat(self.positives, start)

    def distance(self, level: FloatArray, start: IntArray, p: float) -> FloatArray:
        """Return the l_p distance of the scores of each sample from the level of their run of groups."""
        gap = np.repeat(level, run_ends(start, len(self.score)) - start)
        np.subtract(self.score, gap, out=gap)
        return lp_norm(gap, None if self.one_row_each else self.count, p, self.bounds, out=gap)


@lru_cache
def _one_run(n: int) -> IntArray:
    """Return the bounds of the only sample."""
    bounds = np.array([0, n])
    bounds.setflags(write=False)
    return bounds


@lru_cache
def ones(n: int) -> FloatArray:
    """Return the counts of groups of one row each."""
    return np.ndarray((n,), np.float64, _ONE, strides=(0,))


def prefix_sums(values: FloatArray) -> FloatArray:
    """Return the sum of the values before each one, and at the end the total."""
    sums = np.empty(len(values) + 1)
    sums[0] = 0.0
    np.add.accumulate(values, out=sums[1:])
    return sums


@dataclass(frozen=True, eq=False, kw_only=True)
class Sample(ScoreGroups):
    r"""Predictions as sorted score groups: distinct score, count of rows, sum of labels.

    In memory every distinct score is one group. Data too large for memory is reduced to cells first, and
    then a cell is a group and `score` is the mean score of its rows. Estimators see no difference. A
    group is never cut, so that the order of rows cannot matter.

    Build one with `from_predictions` or `from_logits`, which check their input. The constructor does not check
    its arrays: `score` ascending and distinct in [0, 1], `count` positive, ``0 <= positives <= count``.

    Attributes
    ----------
    score : ndarray of shape (n_groups,)
        Scores in ascending order.
    count : ndarray of shape (n_groups,)
        Rows, or total weight, of each group.
    positives : ndarray of shape (n_groups,)
        Sum of the 0/1 labels (times the weights) of each group.
    dtype : numpy.dtype
        The type that the scores came in. Equal-width edges are rounded to it, so that a float32 score of
        0.3 meets the edge 3/10 as a float64 one does.
    target : str
        What the score is the probability of, in words.
    squares, positive_squares : ndarray of shape (n_groups,), or None
        With sampling weights w: sums of w^2, and of w^2 over the rows labelled 1. None if rows are counted.
    clusters : Clusters or None
        The same rows by cluster, if rows of a cluster depend on each other.
    label_squares, noise : ndarray of shape (n_groups,), or None
        With labels z other than 0 and 1 (`truecal.labels`): sums of w^2 z^2, and of w^2 times the variance of z. None
        if labels are 0 and 1, whose squares are the labels.
    pseudo : PseudoLabels or None
        These labels row by row.

    Examples
    --------
    >>> sample = Sample.from_predictions([1, 0, 1, 1], [0.9, 0.2, 0.2, 0.7])
    >>> sample.score, sample.count, sample.positives
    (array([0.2, 0.7, 0.9]), array([2., 1., 1.]), array([1., 1., 1.]))
    >>> sample
    Sample(n=4, groups=3, target='P(y = 1)')
    """

    squares: FloatArray | None = None
    positive_squares: FloatArray | None = None
    clusters: Clusters | None = None
    label_squares: FloatArray | None = None
    noise: FloatArray | None = None
    pseudo: PseudoLabels | None = None

    @classmethod
    @takes_predictions
    def from_predictions(cls, y_true: ArrayLike, y_proba: ArrayLike, **reading: Unpack[Reading]) -> Sample:
        """Check predictions and group them by score.

        Parameters
        ----------
        y_true : array-like of shape (n,), (n, 1) or one-hot (n, K)
            Labels. For one column of scores: 0 and 1, booleans, or any two values with `pos_label`. For K
            columns: the column's number from 0, or its name. Lists, NumPy arrays, pandas, Polars and PyArrow
            columns and torch CPU tensors are taken by position, never by index; a warning is given if pandas indexes
            hold the same values in another order.
        y_proba : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
            Probabilities. One column is the probability of the positive class.
        sample_weight : array-like of shape (n,), optional
            Weights. Estimators count a row of weight 2 twice; weight 0 leaves it out.
        weighting : {"sampling", "counts", "clusters"}, optional
            What the weights mean where uncertainty is reported: ``"sampling"``, the default, for survey,
            inverse-probability or normalised weights; ``"counts"`` if weight 2 stands for two rows. ``"clusters"``
            divides the weight of each row by that of its cluster, so that every cluster counts the same.
        clusters : array-like of shape (n,) or (n, k), or data frame, optional
            Rows that depend on each other have the same value, such as one patient; several columns are crossed.
        pos_label : label, optional
            The positive class. With K > 2 columns: this class against the rest.
        labels : sequence of K labels, optional
            The class of each column, as scikit-learn's ``classes_``; one column is that of the second. By
            default what the names of a frame's columns give, if the labels are among them, else 0 to K - 1, or
            the sorted labels if they are strings and there are K of them; categories in another order are refused.
        multiclass : {"top"}, optional
            ``"top"``: the largest probability and whether that class was right, the default for K > 2.

        Returns
        -------
        Sample

        Raises
        ------
        InputError
            What is wrong, where, how many times, and what to do.

        Examples
        --------
        >>> Sample.from_predictions(["no", "yes", "yes"], [0.2, 0.7, 0.9], pos_label="yes")
        Sample(n=3, groups=3, target="P(y = 'yes')")
        """
        from truecal.data.question import as_sample

        return as_sample(y_true, y_proba, **reading)

    @classmethod
    def from_logits(cls, y_true: ArrayLike, logits: ArrayLike, **reading: Any) -> Sample:
        """Check logits, turn them into probabilities and group these.

        One column goes through the sigmoid, several through the softmax, both stable and in float64, so that
        fewer scores round to 1.

        Parameters
        ----------
        y_true : array-like
            Labels.
        logits : array-like of shape (n,), (n, 1) or (n, K)
            Finite real numbers.
        **reading
            The keyword arguments of `from_predictions`.

        Returns
        -------
        Sample

        Examples
        --------
        >>> Sample.from_logits([1, 0], [40.0, -1000.0]).score
        array([0., 1.])
        """
        from truecal.data.question import as_sample

        return as_sample(y_true, logits, logits=True, **reading)

    def __len__(self) -> int:
        return len(self.score)

    def __repr__(self) -> str:
        return f"Sample(n={self.n:.10g}, groups={len(self)}, target={self.target!r})"

    @cached_property
    def effective_size(self) -> float:
        """Kish's effective number of rows, (sum w)^2 / sum w^2; the number of rows if they are counted.

        With labels other than 0 and 1: the number of rows with true labels that would be as informative.
        """
        if self.counted:
            return self.n
        size = self.n**2 / float(self.weight2.sum())
        if self.noise is None or self.clusters is not None:  # it shows in the differences of clusters
            return size
        of_true_labels = float(self.weight2 @ (self.score * (1 - self.score)))
        return size * (max(of_true_labels, 1e-300) / float(self.noise.sum()))

    @property
    def counted(self) -> bool:
        """Whether rows are counted, and do not have sampling weights."""
        return self.squares is None

    @property
    def weight2(self) -> FloatArray:
        """Sums of w^2 over the rows of each group: the count where rows are counted."""
        return self.count if self.squares is None else self.squares

    @property
    def positives2(self) -> FloatArray:
        """Sums of w^2 over the rows labelled 1 of each group; of w^2 z for other labels."""
        return self.positives if self.positive_squares is None else self.positive_squares

    @property
    def labels2(self) -> FloatArray:
        """Sums of w^2 z^2 over the rows of each group: those of w^2 z, if labels z are 0 and 1."""
        return self.positives2 if self.label_squares is None else self.label_squares

    @cached_property
    def dependence(self) -> Clusters | Independent:
        """How rows depend on each other: the clusters, or `Independent`, which answers the same questions.

        One formula then serves rows and clusters: ``sample.quantile``, ``sample.sum_covariance`` and
        ``sample.standard_error`` use it. ``dependence.unit``, ``.named``, ``.n_named``, ``.equal``, and
        ``.n_clusters`` and ``.effective_number``, which are infinite without clusters, need no test. With labels that
        are not the truth, the degrees of freedom of independent rows are the number of rows that have most of the
        noise.
        """
        if self.clusters is not None:
            return self.clusters
        return Independent(math.inf if self.pseudo is None else max(self.pseudo.n_noisy, 2.0))

    @property
    def degrees_of_freedom(self) -> float:
        """Degrees of freedom of an estimated variance: infinite for independent rows with true labels."""
        return self.dependence.degrees_of_freedom

    def quantile(self, tail: float) -> float:
        """Return how many standard errors an interval extends to one side: Student's t, or normal."""
        return -float(scipy.special.stdtrit(self.degrees_of_freedom, tail))

    def sum_covariance(self, if_0: FloatArray, if_1: FloatArray) -> FloatArray:
        r"""Return the covariance matrix of k weighted sums over rows, by rows or by clusters.

        A row of group g adds w times the value ``if_0[:, g]`` or ``if_1[:, g]``, according to its label, to each sum.
        The values have mean 0. With :math:`E_c` the sums of cluster c of G, it is
        :math:`\frac{G}{G-1} \sum_c E_c E_c'`.
        """
        return self.dependence.sum_covariance(self, if_0, if_1)

    def standard_error(self, if_0: FloatArray, if_1: FloatArray) -> float:
        """Return the standard error of the mean of a value that depends on the group and the label of a row."""
        mean = float(((self.count - self.positives) * if_0 + self.positives * if_1).sum()) / self.n
        variance = self.sum_covariance((if_0 - mean)[np.newaxis], (if_1 - mean)[np.newaxis])
        return math.sqrt(max(float(variance[0, 0]), 0.0)) / self.n

    @property
    def size_fields(self) -> dict[str, Any]:
        """Number of rows, effective number of rows and number of clusters, as results have them."""
        unknown = self.counted or (self.noise is not None and self.clusters is not None)
        return {
            "n": self.n,
            "effective_size": None if unknown else self.effective_size,
            "n_clusters": self.dependence.n_named if self.dependence.named else None,
            "label_kind": self.label_kind,
        }

    @property
    def label_kind(self) -> str | None:
        """The kind of labels in words, if they are not the truth."""
        return None if self.pseudo is None else self.pseudo.kind

    @property
    def label_notes(self) -> tuple[str, ...]:
        """What a reader of results must know about labels that are not the truth."""
        return () if self.pseudo is None else self.pseudo.notes

    def on_the_scale_of_rows(self) -> Sample:
        """Return the sample with weights that sum to the effective size, if they sum to less than a row per score.

        Such weights, which may sum to 1, cannot be counts, and rules that depend on the number of rows need one.
        """
        if self.counted or self.n >= len(self):
            return self
        return self.scaled(self.effective_size / self.n)

    @cached_property
    def isotonic(self) -> FloatArray:
        """Mean label of each group under the increasing curve that fits the labels best."""
        rate = isotonic_rate(self.count, self.positives)
        if self.pseudo is None:
            return rate
        end = 0.5 / max(self.effective_size, 1.0)  # a rate that is not in [0, 1] is noise
        return np.clip(rate, end, 1 - end)

    def merge_groups(self, start: NDArray[np.intp]) -> Sample:
        """Return a coarser sample of counted rows, whose groups are the runs of groups that begin at `start`.

        Parameters
        ----------
        start : ndarray of int
            Numbers of groups, ascending from 0.

        Examples
        --------
        >>> Sample.from_predictions([1, 0, 1], [0.2, 0.4, 0.9]).merge_groups(np.array([0, 2])).count
        array([2., 1.])
        """
        count, score, positives = self.sums(start)
        return Sample(
            score=score / count, count=count, positives=positives, dtype=self.dtype, target=self.target
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled arrays forget that they are read-only, and a stride of zero is written out in full.
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        if self.one_row_each:
            del values["count"]
        return _rebuild, (type(self), values)

    def with_positives(self, positives: FloatArray) -> Sample:
        """Return the same scores with other labels, as resampling draws them; rows are counted and independent.

        Parameters
        ----------
        positives : ndarray of shape (n_groups,)
            Sum of the labels of each group.
        """
        names = ("squares", "positive_squares", "clusters", "label_squares", "noise", "pseudo")
        none: dict[str, Any] = dict.fromkeys(names)
        return replace(self, positives=positives, **none)

    def scaled(self, factor: float) -> Sample:
        """Return the same rows with all weights multiplied by `factor`.

        Parameters
        ----------
        factor : float
            A positive number.

        Examples
        --------
        >>> Sample.from_predictions([1, 0], [0.9, 0.2], sample_weight=[0.1, 0.3]).scaled(10).count
        array([3., 1.])
        """
        names = ("squares", "positive_squares", "label_squares", "noise")
        squares = {name: value * factor**2 for name in names if (value := getattr(self, name)) is not None}
        return replace(
            self,
            count=self.count * factor,
            positives=self.positives * factor,
            **squares,
            clusters=self.clusters and self.clusters.scaled(factor),
        )

    @classmethod
    def from_rows(
        cls,
        label: NDArray[Any],
        score: NDArray[Any],
        weight: FloatArray | None = None,
        *,
        target: str = "P(y = 1)",
        sampling: bool = False,
        clusters: NDArray[Any] | None = None,
        equal_clusters: bool = False,
        pseudo: PseudoLabels | None = None,
    ) -> Sample:
        """Group checked rows: `label` of 0 and 1 or `pseudo`, `score` in [0, 1], `weight` positive."""
        if weight is None and clusters is None and pseudo is None:
            return group_sorted(*sort_rows(label, score), score.dtype, target)
        value = label if pseudo is None else pseudo.value
        order, groups = _row_order(score, value, weight)
        weight = ones(len(score)) if weight is None else weight[order]
        value, score = value[order], score[order]
        start = np.arange(len(score)) if groups is None else groups
        square = weight**2 if sampling else weight

        def total(values: FloatArray) -> FloatArray:
            return np.array(values) if groups is None else np.add.reduceat(values, start)

        more: dict[str, Any] = {}
        if sampling or pseudo is not None:
            more = {"squares": total(square), "positive_squares": total(square * value)}
        if pseudo is not None:
            pseudo = replace(pseudo.take(order), score=score.astype(np.float64), weight=weight)
            more["label_squares"], more["noise"] = total(square * value**2), total(square * pseudo.variance)
            more["pseudo"] = pseudo
        table = sum_by_cluster(
            None if clusters is None else clusters[order],
            start,
            weight,
            weight * value,
            counted=not sampling,
            equal=equal_clusters,
            nuisance=None if pseudo is None else pseudo.nuisance,
        )
        return cls(
            score=score[start].astype(np.float64) + 0.0,  # -0.0 becomes 0.0
            count=total(weight),
            positives=total(weight * value),
            dtype=score.dtype,
            target=target,
            clusters=table,
            **more,
        )


def group_sorted(
    score: FloatArray, label: FloatArray, dtype: np.dtype[Any], target: str = "P(y = 1)"
) -> Sample:
    """Group checked rows in ascending order of their scores, of which each counts once."""
    start = _group_starts(score)
    if start is None:
        return Sample(score=score, count=ones(len(score)), positives=label, dtype=dtype, target=target)
    edges = np.append(start, len(score))
    rows, positives = edges.astype(np.float64), prefix_sums(label)[edges]
    sample = Sample(
        score=score[start], count=np.diff(rows), positives=np.diff(positives), dtype=dtype, target=target
    )
    # Precomputed values for callers.
    vars(sample).update(n=len(score), whole=True, cumulative_count=rows, cumulative_positives=positives)
    return sample


def sort_rows(label: NDArray[Any], score: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Return scores and labels in the order of the scores, along the last axis; among equal scores zeros come first.

    A score in [0, 1] leaves the top bit of its exponent unused. Shifting its bits left by one frees
    the lowest bit for the label, without loss, and integers sort as the floats do. One sort of such
    keys costs half of an argsort and two takes.
    """
    integer = _KEYS[score.dtype.itemsize]
    keys = np.ascontiguousarray(score).view(integer) << 1  # this drops the sign of -0.0
    labels = np.empty(score.shape)
    keys |= label.astype(integer, copy=False)
    keys.sort(axis=-1)
    np.bitwise_and(keys, 1, out=labels)
    keys >>= 1
    return keys.view(score.dtype).astype(np.float64, copy=False), labels


def _row_order(
    score: NDArray[Any], value: NDArray[Any], weight: FloatArray | None
) -> tuple[NDArray[np.intp], NDArray[np.intp] | None]:
    """Return an order of rows by score in which sums are rounded alike, whatever the order in which the rows came.

    Also where scores that differ from the one before begin in it; None if all do.
    """
    order = np.argsort(score)
    groups = _group_starts(score[order])
    whole = weight is None and value.dtype.kind != "f"  # sums of whole numbers do not depend on it
    if not whole and groups is not None:
        order = np.lexsort((value, score) if weight is None else (weight, value, score))
    return order, groups


def _rebuild(kind: type[Sample], values: dict[str, Any]) -> Sample:
    return kind(**{"count": ones(len(values["score"]))} | values)


def _group_starts(score: NDArray[Any]) -> NDArray[np.intp] | None:
    """Return where scores that differ from the one before begin; None if all do."""
    differs = np.not_equal(score[1:], score[:-1])
    if np.count_nonzero(differs) == len(differs):
        return None
    return np.concatenate([[0], differs.nonzero()[0] + 1])


@dataclass(frozen=True, eq=False, kw_only=True)
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

    bounds: IntArray
    row_score: FloatArray
    row_label: FloatArray

    @classmethod
    def from_rows(cls, label: NDArray[Any], score: NDArray[Any], *, target: str = "P(y = 1)") -> Block:
        """Group each row of two (samples, rows) arrays: labels of 0 and 1, scores in [0, 1]."""
        scores, labels = sort_rows(label, score)
        first = np.ones(scores.shape, dtype=np.bool_)
        np.not_equal(scores[:, 1:], scores[:, :-1], out=first[:, 1:])
        start = np.flatnonzero(first)
        if len(start) == scores.size:
            score_of_group, count, positives = scores.ravel(), ones(scores.size), labels.ravel()
        else:
            total = prefix_sums(labels.ravel())  # whole numbers, so that differences are exact
            count = np.diff(start, append=scores.size).astype(np.float64)
            score_of_group, positives = scores.ravel()[start], np.diff(total[start], append=total[-1])
        sizes = np.count_nonzero(first, axis=1)
        return cls(
            score=score_of_group,
            count=count,
            positives=positives,
            dtype=score.dtype,
            target=target,
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
                score=self.score[first:end],
                count=ones(self.n) if end - first == self.n else self.count[first:end],
                positives=self.positives[first:end],
                dtype=self.dtype,
                target=self.target,
            )
            for first, end in zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True)
        )

    def __len__(self) -> int:
        return len(self.row_score)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)
