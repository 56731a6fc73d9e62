"""The object that everything reads: predictions sorted by score, with equal scores kept together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from truecal._lib.codes import number_values, order_of, sum_pairs
from truecal._lib.isotonic import isotonic_rate
from truecal._lib.types import FloatArray
from truecal.data.score_groups import ScoreGroups, ones, prefix_sums

#: Integers as wide as each floating-point type, to sort a score and its label as one number.
_KEYS: dict[int, type[np.signedinteger[Any]]] = {2: np.int16, 4: np.int32, 8: np.int64}
#: Fields of `Clusters` that have a value for each cluster in each group.
_TABLE = ("cluster", "group", "weight", "positives", "rows", "scores")


@dataclass(frozen=True, eq=False)
class Clusters:
    """Sums over the rows of one cluster in one score group: what dependence between rows needs.

    Attributes
    ----------
    cluster : ndarray of int
        Number of the cluster, from 0.
    group : ndarray of int
        Number of the score group, in ascending order.
    weight, positives : ndarray
        Rows, or their weight, and the sum of their labels (times the weights).
    n_clusters : int
        Number of clusters.
    rows : ndarray, or None
        Number of rows, where `weight` is something else.
    scores : ndarray, or None
        Sum of the scores (times the weights), where a group holds different scores.
    equal : bool
        Whether weights make every cluster count the same, instead of every row.
    keys : ndarray of uint64, or None
        What each cluster is known by in other parts of the data.
    merged : ndarray, or None
        If clusters were merged into `n_clusters` blocks: number of rows of each cluster.
    """

    cluster: NDArray[np.intp]
    group: NDArray[np.intp]
    weight: FloatArray
    positives: FloatArray
    n_clusters: int
    rows: FloatArray | None = None
    scores: FloatArray | None = None
    equal: bool = False
    keys: NDArray[np.uint64] | None = None
    merged: FloatArray | None = None

    @property
    def n_named(self) -> int:
        """Number of clusters, also where they were merged into blocks."""
        return self.n_clusters if self.merged is None else len(self.merged)

    def residual(self, score: FloatArray) -> FloatArray:
        """Return the sums of w (f - y); `score` is that of each group."""
        scores = self.weight * score[self.group] if self.scores is None else self.scores
        return scores - self.positives

    def to_arrays(self) -> dict[str, Any]:
        """Return all fields under names that begin with "clusters.", for a file."""
        known = {part.name: getattr(self, part.name) for part in fields(self)}
        return {f"clusters.{name}": value for name, value in known.items() if value is not None}

    @classmethod
    def from_arrays(cls, file: Any, n_groups: int) -> Clusters | None:
        """Return what `to_arrays` gave; None if there is nothing, ValueError if it cannot be."""
        arrays = {name[9:]: file[name] for name in file if name.startswith("clusters.")}
        if not arrays:
            return None
        table = cls(**arrays | {"n_clusters": int(arrays["n_clusters"]), "equal": bool(arrays["equal"])})
        sums = [value for name in _TABLE if (value := getattr(table, name)) is not None]
        sound = (
            all(array.shape == table.cluster.shape and array.dtype.kind in "fiu" for array in sums)
            and ((table.cluster >= 0) & (table.cluster < table.n_clusters)).all()
            and ((table.group >= 0) & (table.group < n_groups)).all()
            and (table.weight > 0).all()
            and ((table.positives >= 0) & (table.positives <= table.weight * (1 + 1e-9))).all()
        )
        if not sound:
            raise ValueError("its clusters contradict each other")
        return table

    @cached_property
    def by_cluster(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Order of the entries by cluster, and within a cluster by group; and where each cluster begins in it."""
        return order_of(self.cluster, self.n_clusters)

    @cached_property
    def effective_number(self) -> float:
        """Number of clusters of equal weight that would be as uncertain, (sum m)^2 / sum m^2 over the weights m."""
        weight = np.bincount(self.cluster, self.weight, self.n_clusters)
        return float(weight.sum() ** 2 / (weight @ weight))

    @cached_property
    def sizes(self) -> FloatArray:
        """Number of rows of each cluster."""
        rows = self.weight if self.rows is None else self.rows
        return np.bincount(self.cluster, rows, self.n_clusters).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
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

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        weights: str | None = None,
        pos_label: Any = None,
        labels: Sequence[Any] | None = None,
        multiclass: str | None = None,
        clusters: Any = None,
    ) -> Sample:
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
        weights : {"sampling", "counts", "clusters"}, optional
            What the weights mean where uncertainty is reported: ``"sampling"``, the default, for survey,
            inverse-probability or normalised weights; ``"counts"`` if weight 2 stands for two rows. ``"clusters"``
            divides the weight of each row by that of its cluster, so that every cluster counts the same.
        pos_label : label, optional
            The positive class. With K > 2 columns: this class against the rest.
        labels : sequence of K labels, optional
            The class of each column, as scikit-learn's ``classes_``; one column is that of the second. By
            default what the names of a frame's columns give, if the labels are among them, else 0 to K - 1, or
            the sorted labels if they are strings and there are K of them; categories in another order are refused.
        multiclass : {"top"}, optional
            ``"top"``: the largest probability and whether that class was right, the default for K > 2.
        clusters : array-like of shape (n,) or (n, k), or data frame, optional
            Rows that depend on each other have the same value, such as one patient; several columns are crossed.

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

        return as_sample(
            y_true,
            y_proba,
            sample_weight=sample_weight,
            weights=weights,
            pos_label=pos_label,
            labels=labels,
            multiclass=multiclass,
            clusters=clusters,
        )

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
        """Kish's effective number of rows, (sum w)^2 / sum w^2; the number of rows if they are counted."""
        return self.n if self.counted else self.n**2 / float(self.weight2.sum())

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
        """Sums of w^2 over the rows labelled 1 of each group."""
        return self.positives if self.positive_squares is None else self.positive_squares

    @property
    def degrees_of_freedom(self) -> float:
        """Degrees of freedom of an estimated variance: infinite without clusters, else one less than these."""
        return math.inf if self.clusters is None else max(self.clusters.n_clusters - 1.0, 1.0)

    def quantile(self, tail: float) -> float:
        """Return how many standard errors an interval extends to one side: Student's t, or normal."""
        return -float(scipy.special.stdtrit(self.degrees_of_freedom, tail))

    def sum_covariance(self, if_0: FloatArray, if_1: FloatArray) -> FloatArray:
        r"""Return the covariance matrix of k weighted sums over rows, by rows or by clusters.

        A row of group g adds w times the value ``if_0[:, g]`` or ``if_1[:, g]``, according to its label, to each sum.
        The values have mean 0. With :math:`E_c` the sums of cluster c of G, it is
        :math:`\frac{G}{G-1} \sum_c E_c E_c'`.

        Parameters
        ----------
        if_0, if_1 : ndarray of shape (k, n_groups)
            Value of a row with label 0, and with label 1.
        """
        table = self.clusters
        if table is None:
            misses = if_0 * (self.weight2 - self.positives2)
            return np.asarray(misses @ if_0.T + (if_1 * self.positives2) @ if_1.T)
        each = (table.weight - table.positives) * if_0[:, table.group] + table.positives * if_1[
            :, table.group
        ]
        sums = np.stack([np.bincount(table.cluster, values, table.n_clusters) for values in each])
        return np.asarray(sums @ sums.T) * (table.n_clusters / max(table.n_clusters - 1, 1))

    def standard_error(self, if_0: FloatArray, if_1: FloatArray) -> float:
        """Return the standard error of the mean of a value that depends on the group and the label of a row."""
        mean = float(((self.count - self.positives) * if_0 + self.positives * if_1).sum()) / self.n
        variance = self.sum_covariance((if_0 - mean)[np.newaxis], (if_1 - mean)[np.newaxis])
        return math.sqrt(max(float(variance[0, 0]), 0.0)) / self.n

    @property
    def size_fields(self) -> dict[str, Any]:
        """Number of rows, effective number of rows and number of clusters, as results have them."""
        return {
            "n": self.n,
            "effective_size": None if self.counted else self.effective_size,
            "n_clusters": None if self.clusters is None else self.clusters.n_named,
        }

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
        return isotonic_rate(self.count, self.positives)

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
        return Sample(score / count, count, positives, self.dtype, self.target)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled arrays forget that they are read-only, and a stride of zero is written out in full.
        count = None if self.one_row_each else self.count
        rest = (self.dtype, self.target, self.squares, self.positive_squares, self.clusters)
        return _rebuild, (self.score, count, self.positives, *rest)

    def with_positives(self, positives: FloatArray) -> Sample:
        """Return the same scores with other labels, as resampling draws them; rows are counted and independent.

        Parameters
        ----------
        positives : ndarray of shape (n_groups,)
            Sum of the labels of each group.
        """
        return replace(self, positives=positives, squares=None, positive_squares=None, clusters=None)

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
        table = self.clusters
        return replace(
            self,
            count=self.count * factor,
            positives=self.positives * factor,
            squares=None if self.squares is None else self.squares * factor**2,
            positive_squares=None if self.positive_squares is None else self.positive_squares * factor**2,
            clusters=table
            and replace(
                table,
                weight=table.weight * factor,
                positives=table.positives * factor,
                scores=None if table.scores is None else table.scores * factor,
            ),
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
    ) -> Sample:
        """Group checked rows: `label` of 0 and 1, `score` in [0, 1], `weight` positive.

        Parameters
        ----------
        label : ndarray of shape (n,)
            Labels, 0 and 1.
        score : ndarray of shape (n,)
            Scores in [0, 1], float16, float32 or float64.
        weight : ndarray of shape (n,), optional
            Positive weights.
        target : str
            What the score is the probability of, in words.
        sampling : bool
            Whether weights are sampling weights, and not the number of times that a row was seen.
        clusters : ndarray of shape (n,), optional
            Number of the cluster of each row.
        equal_clusters : bool
            Whether the weights make every cluster count the same.

        Returns
        -------
        Sample
        """
        if weight is None and clusters is None:
            return cls._from_sorted(*sort_rows(label, score), score.dtype, target)
        if weight is None:
            order, weight = (
                np.argsort(score),
                np.ones(len(label)),
            )  # sums of whole numbers do not depend on the order
        else:
            # Label and weight order the rows inside a tie, so that sums round the same for any row order.
            order = np.lexsort((weight, label, score))
            weight = weight[order]
        score, label = score[order], label[order]
        start = _group_starts(score)
        start = np.arange(len(score)) if start is None else start
        positives, square = weight * label, weight**2
        return cls(
            score=score[start].astype(np.float64) + 0.0,  # -0.0 becomes 0.0
            count=np.add.reduceat(weight, start),
            positives=np.add.reduceat(positives, start),
            dtype=score.dtype,
            target=target,
            squares=np.add.reduceat(square, start) if sampling else None,
            positive_squares=np.add.reduceat(square * label, start) if sampling else None,
            clusters=None
            if clusters is None
            else replace(
                _by_cluster(clusters[order], start, weight, positives, counted=not sampling),
                equal=equal_clusters,
            ),
        )

    @classmethod
    def _from_sorted(cls, score: FloatArray, label: FloatArray, dtype: np.dtype[Any], target: str) -> Sample:
        start = _group_starts(score)
        if start is None:
            return cls(score, ones(len(score)), label, dtype, target)
        edges = np.append(start, len(score))
        rows, positives = edges.astype(np.float64), prefix_sums(label)[edges]
        sample = cls(score[start], np.diff(rows), np.diff(positives), dtype, target)
        # What others would compute from these.
        vars(sample).update(n=len(score), whole=True, cumulative_count=rows, cumulative_positives=positives)
        return sample


def sort_rows(label: NDArray[Any], score: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Return scores and labels in the order of the scores, along the last axis; among equal scores zeros come first.

    A score in [0, 1] leaves the top bit of its exponent unused. Shifting its bits left by one frees
    the lowest bit for the label, without loss, and integers sort as the floats do. One sort of such
    keys costs half of an argsort and two takes.

    Parameters
    ----------
    label : ndarray
        Labels, 0 and 1.
    score : ndarray
        Scores in [0, 1], float16, float32 or float64.
    """
    integer = _KEYS[score.dtype.itemsize]
    keys = np.ascontiguousarray(score).view(integer) << 1  # the sign of -0.0 falls off here
    labels = np.empty(score.shape)
    keys |= label.astype(integer, copy=False)
    keys.sort(axis=-1)
    np.bitwise_and(keys, 1, out=labels)
    keys >>= 1
    return keys.view(score.dtype).astype(np.float64, copy=False), labels


def _rebuild(score: FloatArray, count: FloatArray | None, *rest: Any) -> Sample:
    return Sample(score, ones(len(score)) if count is None else count, *rest)


def _group_starts(score: NDArray[Any]) -> NDArray[np.intp] | None:
    """Return where scores that differ from the one before begin; None if all do."""
    differs = np.not_equal(score[1:], score[:-1])
    if np.count_nonzero(differs) == len(differs):
        return None
    return np.concatenate([[0], differs.nonzero()[0] + 1])


def _by_cluster(
    cluster: NDArray[Any],
    start: NDArray[np.intp],
    weight: FloatArray,
    positives: FloatArray,
    *,
    counted: bool,
) -> Clusters:
    """Sum rows, sorted by score, over each cluster in each group."""
    kept, cluster = number_values(cluster)
    group = np.repeat(np.arange(len(start)), np.diff(start, append=len(cluster)))
    columns = [weight, positives, *([] if counted else [np.ones(len(weight))])]
    cluster, group, columns = sum_pairs(cluster, group, columns)
    return Clusters(
        cluster=cluster,
        group=group,
        weight=columns[0],
        positives=columns[1],
        n_clusters=len(kept),
        rows=None if counted else columns[2],
    )
