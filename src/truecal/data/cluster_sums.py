"""Sums by cluster and cell: what dependent rows need of data that is too large for memory or arrives in parts.

A cluster has a number of rows, a sum of scores and a sum of labels in each cell that its rows fall into, and there may
be as many of these pairs of a cluster and a cell as rows. Up to 2^24 pairs are kept as they are. Beyond, an engine puts
whole clusters together at random, by a hash of their names, into 256 blocks. These have at most 256 x 2^16 = 2^24
pairs, however many rows and clusters there are. Clusters are independent of each other, and so are blocks of whole
clusters: products across blocks, sandwich variances and sign flips of blocks are as valid as those of clusters. What
is lost is one in 256 of the pairs of rows, and precision of the variance, which 256 blocks give to within 9%.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.numeric import sum_pairs
from truecal._lib.types import FloatArray
from truecal.data.labels import cluster_columns, number_values
from truecal.data.sample import Clusters
from truecal.exceptions import InputError

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
    for k, column in enumerate(cluster_columns(clusters, n)):
        values, place = number_values(column)
        joint, cluster = (
            number_values(cluster * len(values) + place) if k else (np.arange(len(values)), place)
        )
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
    given = [weight, scores, positives, *([] if rows is None else [rows])]
    cluster, group, columns = sum_pairs(cluster, group, given)
    if len(cluster) > MOST_PAIRS:
        raise InputError(
            f"have {len(cluster):,} pairs of a cluster and a cell, more than the {MOST_PAIRS:,} kept in memory",
            argument="clusters",
            remedy="Summarise all rows at once with truecal.summarize, which merges clusters into blocks.",
        )
    return Clusters(
        cluster=cluster,
        group=group,
        weight=columns[0],
        scores=columns[1],
        positives=columns[2],
        rows=None if rows is None else columns[3],
        n_clusters=n_clusters,
        **{"keys": keys, **others},
    )


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
