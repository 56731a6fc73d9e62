"""What a monitor needs of a batch."""

import numpy as np
import pytest

from truecal import InputError, Sample
from truecal.inference.monitor.batch import N_REGIONS, Batch

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
    sample = Batch.read(Sample.from_predictions(LABEL, SCORE, clusters=clusters), None, None, {})
    assert sample.sums == pytest.approx(rows.sums)
    assert sample.evidence.log_ratio == pytest.approx(rows.evidence.log_ratio)
    assert (sample.failures, sample.target) == (2, rows.target)


def test_weights_are_refused():
    weighted = Sample.from_predictions(LABEL, SCORE, sample_weight=[0.5, 0.7, 1, 1, 1])
    with pytest.raises(InputError, match="no sampling weights"):
        Batch.read(weighted, None, None, {})
