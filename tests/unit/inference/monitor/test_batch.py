"""What a monitor needs of a batch."""

import numpy as np
import pytest

from truecal import InputError, Sample
from truecal.data.cells import Cells
from truecal.data.cluster_sums import cluster_keys
from truecal.inference.monitor.batch import N_REGIONS, Batch
from truecal.inference.monitor.seen_clusters import SeenClusters

SCORE = np.array([0.0, 0.01, 0.5, 0.99, 1.0])
LABEL = np.array([1, 1, 1, 1, 0])


def test_sums_gap_and_failures():
    batch = Batch.read(LABEL, SCORE, None, {})
    assert batch.sums.shape == (3, N_REGIONS)
    assert batch.sums.sum(axis=1) == pytest.approx([5, 4, 2.5])
    assert batch.sums[0, 0] == 2
    assert batch.gap == pytest.approx(0.3)
    assert batch.failures == 2
    assert batch.evidence.rows == 5


def test_rows_of_clusters_are_parts_of_units():
    batch = Batch.read(LABEL, SCORE, ["a", "a", "b", "b", "b"], {})
    assert batch.sums[0].sum() == pytest.approx(2)
    assert batch.sums[1].sum() == pytest.approx(1 + 2 / 3)
    assert batch.gap == pytest.approx(0.3)
    assert (batch.evidence.rows, batch.evidence.units) == (5, 2)


@pytest.mark.parametrize("clusters", [None, [1, 1, 2, 2, 3]])
def test_samples_equal_rows(clusters):
    rows = Batch.read(LABEL, SCORE, clusters, {})
    keys = None if clusters is None else cluster_keys(np.unique(clusters), 3)
    sample = Sample.from_predictions(LABEL, SCORE, clusters=clusters)
    sample = Batch.read(Cells.from_sample(sample, keys), None, None, {})
    assert sample.sums == pytest.approx(rows.sums)
    assert sample.evidence.log_ratio == pytest.approx(rows.evidence.log_ratio)
    assert (sample.failures, sample.target) == (2, rows.target)


def test_weights_are_refused():
    weighted = Sample.from_predictions(LABEL, SCORE, sample_weight=[0.5, 0.7, 1, 1, 1])
    with pytest.raises(InputError, match="no sampling weights"):
        Batch.read(weighted, None, None, {})


def test_clusters_that_were_seen_are_left_out():
    names, seen = ["a", "a", "b", "b", "c"], SeenClusters()
    seen.add(cluster_keys(["b"], 1))
    batch = Batch.read(LABEL, SCORE, names, {}, seen)
    chosen = [0, 1, 4]
    alone = Batch.read(LABEL[chosen], SCORE[chosen], ["a", "a", "c"], {})
    assert batch.sums.tolist() == alone.sums.tolist()
    assert (batch.rows_left_out, batch.evidence.units, batch.gap) == (2, 2, alone.gap)
    seen.add(batch.clusters)
    again = Batch.read(LABEL, SCORE, names, {}, seen)
    assert (again.evidence, again.rows_left_out, again.failures) == (None, 5, 0)


def test_clusters_without_names_are_refused():
    with pytest.raises(InputError, match="have no names"):
        Batch.read(Sample.from_predictions(LABEL, SCORE, clusters=[1, 1, 2, 2, 3]), None, None, {})
