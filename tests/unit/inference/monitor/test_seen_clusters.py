"""Clusters that were counted: which may count again, and how many are remembered."""

import numpy as np
import pytest

from truecal.data.cluster_sums import cluster_keys
from truecal.inference.monitor import seen_clusters
from truecal.inference.monitor.seen_clusters import SeenClusters

KEYS = cluster_keys(np.arange(5000), 5000)


def test_a_cluster_counts_once():
    seen = SeenClusters()
    assert seen.may_count(KEYS).all()
    seen.add(KEYS[:3000])
    seen.add(KEYS[4000:])
    assert seen.may_count(KEYS).tolist() == [False] * 3000 + [True] * 1000 + [False] * 1000
    assert len(seen) == 4000


def test_beyond_the_limit_a_share_of_the_clusters_counts(monkeypatch):
    monkeypatch.setattr(seen_clusters, "MOST_CLUSTERS", 1000)
    seen, counted = SeenClusters(), []
    for start in range(0, 5000, 100):
        keys = KEYS[start : start + 100]
        new = seen.may_count(keys)
        counted += keys[new].tolist()
        seen.add(keys[new])
        assert len(seen) <= 1000
    assert seen.halvings >= 2
    assert len(counted) == len(set(counted))
    assert not seen.may_count(np.array(counted, dtype=np.uint64)).any()
    fresh = cluster_keys(np.arange(5000, 9000), 4000)
    share, expected = seen.may_count(fresh).mean(), 0.5**seen.halvings
    assert share == pytest.approx(expected, abs=4 * (expected / 4000) ** 0.5)


def test_merging_keeps_the_smaller_share():
    one, two = SeenClusters(), SeenClusters(halvings=1)
    one.add(KEYS[:100])
    small = KEYS[100:200][KEYS[100:200] < 2**63]
    two.add(small)
    assert one.n_shared(two) == 0
    one.merge(two)
    assert one.halvings == 1
    assert one.keys.tolist() == sorted([*KEYS[:100][KEYS[:100] < 2**63].tolist(), *small.tolist()])
    assert one.n_shared(two) == len(small)


def test_state():
    seen = SeenClusters(halvings=1)
    seen.add(KEYS[KEYS < 2**63])
    again = SeenClusters.from_state(seen.to_state())
    assert again.keys.tolist() == seen.keys.tolist()
    assert again.halvings == 1
    with pytest.raises(ValueError, match="in order"):
        SeenClusters.from_state({**seen.to_state(), "halvings": 64})
