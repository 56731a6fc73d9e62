"""A batch of predictions and labels, reduced to what a monitor needs of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.data import as_sample, read_rows
from truecal.data.sample import Sample
from truecal.exceptions import InputError
from truecal.inference.monitor.evidence import Evidence, tally, weigh, weigh_clusters

#: Regions of scores for which sums are kept.
N_REGIONS = 8


@dataclass(frozen=True, eq=False)
class Batch:
    """What a monitor needs of a batch.

    Attributes
    ----------
    evidence : Evidence
        What the rows say about each alternative.
    sums : ndarray of shape (3, N_REGIONS)
        Number of units, and sums of their labels and scores, by region; each row of a cluster is a part of a unit.
    gap : float
        Observed frequency less mean score.
    failures : int
        Labels that contradict scores of exactly 0 or 1.
    target : str
        What the scores are probabilities of.
    """

    evidence: Evidence
    sums: FloatArray
    gap: float
    failures: int
    target: str

    @classmethod
    def read(cls, y_true: Any, y_proba: Any, clusters: Any, reading: dict[str, Any]) -> Self:
        """Return the batch of labels and probabilities, or of a `Sample`."""
        score, count, positives, cluster, target = _entries(y_true, y_proba, clusters, reading)
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
        return cls(evidence, sums, (labels - scores) / rows, failures, target)


def _entries(
    y_true: Any, y_proba: Any, clusters: Any, reading: dict[str, Any]
) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.intp] | None, str]:
    """Return scores, counts, positive labels and clusters, and the target."""
    if not isinstance(y_true, Sample):
        (rows,) = read_rows(y_true, y_proba, clusters=clusters, **reading)
        score = rows.score.astype(np.float64)
        return score, np.ones(len(score)), rows.label.astype(np.float64), rows.cluster, rows.target
    sample = as_sample(y_true, y_proba, clusters=clusters)
    if sample.squares is not None:
        raise InputError("The monitor takes no sampling weights", remedy="Pass rows, or counts.")
    if sample.clusters is None:
        return sample.score, sample.count, sample.positives, None, sample.target
    entries = sample.clusters
    return sample.score[entries.group], entries.weight, entries.positives, entries.cluster, sample.target
