"""A batch of predictions and labels, reduced to what a monitor needs of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from truecal._lib.types import FloatArray
from truecal.data import as_sample, read_rows
from truecal.data.cluster_sums import Keys, cluster_keys
from truecal.data.sample import Sample
from truecal.exceptions import InputError
from truecal.inference.monitor.evidence import Evidence, tally, weigh, weigh_clusters
from truecal.inference.monitor.seen_clusters import SeenClusters

#: Regions of scores for which sums are kept.
N_REGIONS = 8


@dataclass(frozen=True, eq=False)
class Batch:
    """What a monitor needs of a batch.

    Attributes
    ----------
    evidence : Evidence or None
        What the rows say about each alternative; None if no row counts.
    sums : ndarray of shape (3, N_REGIONS)
        Number of units, and sums of their labels and scores, by region; each row of a cluster is a part of a unit.
    gap : float
        Observed frequency less mean score.
    failures : int
        Labels that contradict scores of exactly 0 or 1.
    target : str
        What the scores are probabilities of.
    clusters : ndarray of uint64, or None
        Keys of the clusters that count.
    rows_left_out : float
        Rows of clusters that do not count, for example because they were counted before.
    """

    evidence: Evidence | None
    sums: FloatArray
    gap: float
    failures: int
    target: str
    clusters: Keys | None = None
    rows_left_out: float = 0.0

    @classmethod
    def read(
        cls,
        y_true: Any,
        y_proba: Any,
        clusters: Any,
        reading: dict[str, Any],
        seen: SeenClusters | None = None,
    ) -> Self:
        """Return the batch of labels and probabilities, or of a `Sample`, without the clusters that were `seen`."""
        score, count, positives, key, target = _entries(y_true, y_proba, clusters, reading)
        cluster, left_out = None, 0.0
        if key is not None:
            counts = (seen or SeenClusters()).may_count(key)
            left_out = float(count[~counts].sum())
            score, count, positives = score[counts], count[counts], positives[counts]
            key, cluster = np.unique(key[counts], return_inverse=True)
        if not len(score):
            return cls(None, np.zeros((3, N_REGIONS)), 0.0, 0, target, key, left_out)
        cells = tally(score, count, positives)
        rows, labels, scores = cells.sum(axis=1).tolist()
        failures = 0
        if score.min() == 0 or score.max() == 1:
            failures = int(positives[score == 0].sum() + (count - positives)[score == 1].sum())
        if cluster is None:
            evidence = weigh(cells)
        else:
            evidence = weigh_clusters(score, count, positives, cluster)
            size = np.bincount(cluster, count)[cluster]
            cells = tally(score, count / size, positives / size)
        sums = cells.reshape(3, N_REGIONS, -1).sum(axis=2)
        return cls(evidence, sums, (labels - scores) / rows, failures, target, key, left_out)


def _entries(
    y_true: Any, y_proba: Any, clusters: Any, reading: dict[str, Any]
) -> tuple[FloatArray, FloatArray, FloatArray, Keys | None, str]:
    """Return scores, counts, positive labels and keys of clusters, and the target."""
    if not isinstance(y_true, Sample):
        (rows,) = read_rows(y_true, y_proba, clusters=clusters, **reading)
        score = rows.score.astype(np.float64)
        key = None if clusters is None else cluster_keys(clusters, len(score))
        return score, np.ones(len(score)), rows.label.astype(np.float64), key, rows.target
    sample = as_sample(y_true, y_proba, clusters=clusters)
    if sample.squares is not None:
        raise InputError("The monitor takes no sampling weights", remedy="Pass rows, or counts.")
    entries = sample.clusters
    if entries is None:
        return sample.score, sample.count, sample.positives, None, sample.target
    if entries.keys is None:
        raise InputError(
            "The clusters of this sample have no names, so that a cluster that comes back later cannot be recognised",
            remedy="Pass labels, probabilities and clusters, or cells that truecal.summarize made of up to 2^24 rows.",
        )
    key = entries.keys[entries.cluster]
    return sample.score[entries.group], entries.weight, entries.positives, key, sample.target
