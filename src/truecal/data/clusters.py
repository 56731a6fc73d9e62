"""Rows that depend on each other: sums by cluster and score group or cell, in memory or merged from parts.

A cluster has a number of rows, a sum of scores and a sum of labels in each cell that its rows fall into, and there may
be as many of these pairs of a cluster and a cell as rows. Up to 2^24 pairs are kept as they are. Beyond, an engine puts
whole clusters together at random, by a hash of their names, into 256 blocks. These have at most 256 x 2^16 = 2^24
pairs, however many rows and clusters there are. Clusters are independent of each other, and so are blocks of whole
clusters: products across blocks, sandwich variances and sign flips of blocks are as valid as those of clusters. What
is lost is one in 256 of the pairs of rows, and precision of the variance, which 256 blocks give to within 9%.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from truecal._lib import numeric
from truecal._lib.numeric import order_of
from truecal._lib.types import FloatArray
from truecal.data.labels import cluster_columns, number_values
from truecal.data.pseudo_labels import Nuisance
from truecal.exceptions import InputError

if TYPE_CHECKING:
    from truecal.data.sample import Sample

Keys = NDArray[np.uint64]

#: Most pairs of a cluster and a cell whose sums are kept, and the number of blocks beyond.
MOST_PAIRS, N_BLOCKS = 1 << 24, 1 << 8


def number_clusters(clusters: Any, n: int) -> tuple[Keys, NDArray[np.intp]]:
    """Return a number of 64 bits for each cluster, the same in every part of the data, and each row's cluster, from 0.

    Examples
    --------
    >>> keys, cluster = number_clusters([5, 3, 5], 3)
    >>> len(keys), cluster
    (2, array([1, 0, 1]))
    """
    keys, cluster = np.zeros(1, dtype=np.uint64), np.zeros(n, dtype=np.intp)
    for column in cluster_columns(clusters, n):
        values, place = number_values(column)
        joint, cluster = number_values(cluster * len(values) + place)
        before, own = np.divmod(joint, max(len(values), 1))
        keys = _mix(keys[before] * np.uint64(31) + _hash(values)[own])
    return keys, cluster


def cluster_keys(clusters: Any, n: int) -> Keys:
    """Return a number of 64 bits for each row's cluster, the same in every part of the data.

    Examples
    --------
    >>> cluster_keys(["a", "b", "a"], 3)[[0, 2]] == cluster_keys(["c", "a"], 2)[1]
    array([ True,  True])
    """
    keys, cluster = number_clusters(clusters, n)
    return keys[cluster]


def _hash(values: NDArray[Any]) -> Keys:
    """Return numbers for different values; 1 and 1.0 have the same, as they are equal."""
    if values.dtype.kind in "biu":
        return _mix(values.astype(np.uint64))
    return _mix(np.fromiter(map(_number, values.tolist()), dtype=np.uint64, count=len(values)))


def _number(value: Any) -> int:
    if isinstance(value, int | float) and value == int(value):
        return int(value) % 2**64
    return int.from_bytes(hashlib.blake2b(str(value).encode(), digest_size=8).digest(), "little")


def _mix(key: Keys) -> Keys:
    """Return the numbers with their bits spread evenly (the finaliser of splitmix64)."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(key ^ (key >> np.uint64(31)))


def make_clusters(
    keys: Keys,
    cluster: NDArray[np.intp],
    group: NDArray[np.intp],
    /,
    *,
    scores: FloatArray,
    positives: FloatArray,
    weight: FloatArray | None = None,
    rows: FloatArray | None = None,
    **others: Any,
) -> Clusters:
    """Return the sums of each cluster in each group, from sums in any order; those of the same pair are added up."""
    filled = np.bincount(cluster, minlength=len(keys)) > 0
    keys, number = np.unique(keys, return_inverse=True)
    present = np.bincount(number, filled) > 0
    cluster = (np.cumsum(present) - 1)[number][cluster]
    keys, n_clusters = keys[present], int(present.sum())
    columns = {"weight": weight, "scores": scores, "positives": positives}
    table = _sum_pairs(cluster, group, n_clusters, columns if rows is None else {**columns, "rows": rows})
    if len(table.cluster) > MOST_PAIRS:
        raise InputError(
            f"have {len(table.cluster):,} pairs of a cluster and a cell, more than the {MOST_PAIRS:,} kept in memory",
            argument="clusters",
            remedy="Summarise all rows at once with truecal.summarize, which merges clusters into blocks.",
        )
    return replace(table, **{"keys": keys, **others})


def _sum_pairs(
    cluster: NDArray[np.intp], group: NDArray[np.intp], n_clusters: int, columns: dict[str, FloatArray | None]
) -> Clusters:
    """Return the sums of columns over the rows of each cluster in each group; None stands for a column of ones."""
    cluster, group, sums = numeric.sum_pairs(cluster, group, list(columns.values()))
    named: dict[str, Any] = dict(zip(columns, sums, strict=True))
    return Clusters(cluster, group, n_clusters=n_clusters, **named)


def _check_mergeable(known: list[Clusters], n_parts: int) -> None:
    problem = None
    if len(known) < n_parts:
        problem = "Parts with clusters cannot be merged with parts without"
    elif any(table.keys is None or table.equal for table in known):
        problem = "Parts whose clusters are merged into blocks, or count the same, cannot be merged"
    if problem is not None:
        raise InputError(problem, remedy="Summarise all rows at once.")


def merge_clusters(tables: Sequence[Clusters | None], groups: Sequence[NDArray[np.intp]]) -> Clusters | None:
    """Return the combined sums of several parts; None if none has clusters.

    Parameters
    ----------
    tables : sequence of Clusters
        The parts, all with clusters or none.
    groups : sequence of ndarray
        For each part, the group of the whole that each of its groups belongs to.
    """
    known = [table for table in tables if table is not None]
    if not known:
        return None
    _check_mergeable(known, len(tables))

    def joined(name: str) -> Any:
        return np.concatenate([getattr(table, name) for table in known])

    first = np.cumsum([0, *(table.n_clusters for table in known)])
    counted = all(table.rows is None for table in known)
    rows = [table.weight if table.rows is None else table.rows for table in known]
    return make_clusters(
        joined("keys"),
        np.concatenate([table.cluster + start for table, start in zip(known, first, strict=False)]),
        np.concatenate([group[table.group] for group, table in zip(groups, known, strict=True)]),
        **{name: joined(name) for name in ("weight", "scores", "positives")},
        rows=None if counted else np.concatenate(rows),
    )


#: Clusters without weight for each estimated parameter (an even number), and blocks of scores in which they have sums.
_COPIES, _BLOCKS = 40, 256


#: Fields of `Clusters` that have a value for each cluster in each group.
_TABLE = ("cluster", "group", "weight", "positives", "rows", "scores")


def variance_factor(n_clusters: float) -> float:
    """Return G / (G - 1), which makes a sum of squared deviations over G clusters an unbiased variance."""
    return n_clusters / max(n_clusters - 1, 1.0)


@dataclass(frozen=True, eq=False)
class Independent:
    """Independent rows, with the interface of `Clusters`.

    ``sample.dependence`` is one of the two. Ask it, instead of whether a sample has clusters.

    Attributes
    ----------
    degrees_of_freedom : float
        Degrees of freedom of an estimated variance.
    """

    degrees_of_freedom: float = math.inf
    named: ClassVar[bool] = False
    equal: ClassVar[bool] = False
    n_named: ClassVar[None] = None
    n_clusters: ClassVar[float] = math.inf
    effective_number: ClassVar[float] = math.inf
    unit: ClassVar[str] = "rows"

    def sum_covariance(self, sample: Sample, if_0: FloatArray, if_1: FloatArray) -> FloatArray:
        """Return the sum over rows of the products of their values; see `Sample.sum_covariance`."""
        # A row with label z has the value (1 - z) if_0 + z if_1, and 0 and 1 have no product of the two.
        both = sample.positives2 - sample.labels2
        mixed = (if_0 * both) @ if_1.T
        misses = if_0 * (sample.weight2 - sample.positives2 - both)
        return np.asarray(misses @ if_0.T + (if_1 * sample.labels2) @ if_1.T + mixed + mixed.T)


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
    named : bool
        Whether the user named them; else every row is a cluster.
    n_weightless : int
        Number of clusters, the last ones, without weight: they carry the noise of estimated parameters.
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
    named: bool = True
    n_weightless: int = 0
    unit: ClassVar[str] = "clusters"

    @property
    def degrees_of_freedom(self) -> float:
        """Degrees of freedom of an estimated variance: one less than the number of clusters."""
        return max(self.n_clusters - 1.0, 1.0)

    def sum_covariance(self, sample: Sample, if_0: FloatArray, if_1: FloatArray) -> FloatArray:
        """Return G / (G - 1) times the sum over clusters of the products of their sums."""
        misses = self.weight - self.positives
        each = misses * if_0[:, self.group] + self.positives * if_1[:, self.group]
        sums = np.stack([np.bincount(self.cluster, values, self.n_clusters) for values in each])
        return np.asarray(sums @ sums.T) * variance_factor(self.n_clusters)

    @property
    def n_named(self) -> int:
        """Number of clusters, also where they were merged into blocks."""
        return self.n_clusters - self.n_weightless if self.merged is None else len(self.merged)

    def of_rows(self) -> Clusters:
        """Return the clusters without those that have no weight."""
        if not self.n_weightless:
            return self
        kept = self.cluster < self.n_clusters - self.n_weightless
        columns = {name: values[kept] for name in _TABLE if (values := getattr(self, name)) is not None}
        return replace(self, **columns, n_clusters=self.n_named, n_weightless=0)

    def scaled(self, factor: float) -> Clusters:
        """Return the clusters with the weights multiplied by a factor."""
        scores = None if self.scores is None else self.scores * factor
        return replace(self, weight=self.weight * factor, positives=self.positives * factor, scores=scores)

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
        """Return what `to_arrays` wrote; None if there is nothing; raise ValueError if it is invalid."""
        arrays = {name[9:]: file[name] for name in file if name.startswith("clusters.")}
        if not arrays:
            return None
        kinds = (("n_clusters", int), ("equal", bool), ("named", bool), ("n_weightless", int))
        table = cls(**arrays | {name: kind(arrays[name]) for name, kind in kinds if name in arrays})
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


def sum_by_cluster(
    cluster: NDArray[Any] | None,
    start: NDArray[np.intp],
    weight: FloatArray,
    positives: FloatArray,
    *,
    counted: bool,
    equal: bool,
    nuisance: Nuisance | None,
) -> Clusters | None:
    """Sum rows, sorted by score, over each cluster in each group, if they depend on each other.

    Estimated parameters make every row a cluster if there are no others.
    """
    if cluster is None and nuisance is None:
        return None
    columns: dict[str, FloatArray | None] = {"weight": weight, "positives": positives}
    columns |= {} if counted else {"rows": None}
    kept, number = numeric.number_values(np.arange(len(weight)) if cluster is None else cluster)
    group = np.repeat(np.arange(len(start)), np.diff(start, append=len(number)))
    table = _sum_pairs(number, group, len(kept), columns)
    table = replace(table, equal=equal, named=cluster is not None)
    return table if nuisance is None else _with_nuisance(table, nuisance, start, weight)


def _with_nuisance(
    table: Clusters, nuisance: Nuisance, start: NDArray[np.intp], weight: FloatArray
) -> Clusters:
    r"""Return the clusters with further ones, without weight, that carry the noise of estimated parameters.

    If :math:`\hat\eta - \eta` has the variance V, every sum of :math:`x z` changes with it by the sum of
    :math:`x\,dz/d\eta`. So do sums over clusters of :math:`\pm \sqrt{V / K}\,dz/d\eta`, one for each of K, whose
    total is 0: squares and products of sums over clusters then have the noise that all rows have in common.
    """
    n_groups = len(start)
    first = np.arange(0, n_groups, max(1, -(-n_groups // _BLOCKS)))  # a few blocks of groups stand for all
    middle = (first + np.append(first[1:], n_groups)) // 2
    sums = np.add.reduceat(np.add.reduceat(weight * nuisance.slope.T, start, axis=1), first, axis=1)
    signs = np.tile([-1.0, 1.0], _COPIES // 2) / math.sqrt(_COPIES)
    of_each = np.sqrt(nuisance.variance)[:, np.newaxis] * sums
    positives = (signs[:, np.newaxis] * of_each[:, np.newaxis]).reshape(-1, len(first))
    n_more, zeros = len(positives), np.zeros(positives.size)
    joined = {
        "cluster": np.append(table.cluster, np.repeat(table.n_clusters + np.arange(n_more), len(first))),
        "group": np.append(table.group, np.tile(middle, n_more)),
        "positives": np.append(table.positives, positives),
        "weight": np.append(table.weight, zeros),
    }
    if table.rows is not None:
        joined["rows"] = np.append(table.rows, zeros)
    order = np.lexsort((joined["cluster"], joined["group"]))
    changes: dict[str, Any] = {name: values[order] for name, values in joined.items()}
    return replace(table, **changes, n_clusters=table.n_clusters + n_more, n_weightless=n_more)
