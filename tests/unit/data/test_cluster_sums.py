"""Sums by cluster and cell: they add up in any parts, and clusters are known by the same keys in all of them."""

from dataclasses import replace

import numpy as np
import pytest

import truecal
from truecal.data import clusters
from truecal.data.cells import Cells
from truecal.data.clusters import cluster_keys, make_clusters, merge_clusters
from truecal.data.sample import Sample


def test_keys_depend_on_the_value_and_not_on_its_type_or_place():
    assert len(set(cluster_keys(np.arange(100_000), 100_000).tolist())) == 100_000
    expected = cluster_keys([3, 5], 2)
    for others in ([3.0, 5.0], np.array([3, 5], dtype=np.uint8), np.array([3, 5], dtype=object)):
        assert cluster_keys(others, 2).tolist() == expected.tolist()
    assert cluster_keys(["5", "x"], 2)[1] == cluster_keys(["x"], 1)[0]
    crossed = cluster_keys([["a", 1], ["a", 2], ["b", 1], ["a", 1]], 4)
    assert len(set(crossed.tolist())) == 3
    assert crossed[0] == crossed[3]
    assert cluster_keys([[1, 2]], 1) != cluster_keys([[2, 1]], 1)


def test_keys_are_even_enough_for_blocks():
    for names in (np.arange(100_000), np.arange(100_000) * 256, [f"q{k}" for k in range(100_000)]):
        blocks = (cluster_keys(names, 100_000) % np.uint64(256)).astype(np.int64)
        counts = np.bincount(blocks, minlength=256)
        expected = 100_000 / 256
        chi_square = float(((counts - expected) ** 2 / expected).sum())
        assert chi_square < 255 + 6 * np.sqrt(2 * 255)


def table_of(key, group):
    ones = np.ones(len(key))
    keys = np.array(key, dtype=np.uint64)
    place = np.arange(len(key))
    return make_clusters(keys, place, np.array(group), weight=ones, scores=ones / 2, positives=ones * 0)


def test_pairs_are_added_up():
    table = table_of([7, 3, 7, 7], [1, 0, 1, 0])
    assert table.n_clusters == 2
    assert table.group.tolist() == [0, 0, 1]
    assert table.cluster.tolist() == [0, 1, 1]
    assert table.weight.tolist() == [1, 1, 2]
    assert table.scores.tolist() == [0.5, 0.5, 1.0]
    assert table.keys.tolist() == [3, 7]


def test_parts_share_clusters():
    parts = [table_of([1, 2], [0, 0]), table_of([2, 3], [0, 1])]
    whole = merge_clusters(parts, [np.array([1]), np.array([0, 1])])
    assert whole.n_clusters == 3
    assert whole.sizes.tolist() == [1, 2, 1]
    assert whole.group.tolist() == [0, 1, 1, 1]
    assert merge_clusters([None, None], [np.array([0])] * 2) is None


def test_what_cannot_be_merged_is_refused():
    part, groups = table_of([1], [0]), [np.array([0])] * 2
    with pytest.raises(truecal.InputError, match="with parts without"):
        merge_clusters([part, None], groups)
    with pytest.raises(truecal.InputError, match="cannot be merged"):
        merge_clusters([part, replace(part, keys=None)], groups)


def test_too_many_pairs_are_refused(monkeypatch):
    monkeypatch.setattr(clusters, "MOST_PAIRS", 2)
    with pytest.raises(truecal.InputError, match=r"3 pairs of a cluster and a cell.*summarize"):
        table_of([1, 2, 3], [0, 0, 0])


@pytest.mark.parametrize("weighted", [False, True])
def test_cells_with_clusters_are_merged_saved_and_loaded(tmp_path, weighted):
    rng = np.random.default_rng(0)
    score = rng.random(500).round(2)
    label, name = (rng.random(500) < score).astype(int), rng.integers(0, 40, 500).astype(str)
    weight = rng.integers(0, 3, 500) / 2 if weighted else None

    def stream(rows):
        found = truecal.CalibrationStream()
        found.update(
            label[rows],
            score[rows],
            clusters=name[rows],
            sample_weight=None if weight is None else weight[rows],
        )
        return found.cells

    parts = [stream(slice(k, None, 3)) for k in range(3)]
    whole = parts[0].merge(*parts[1:])
    whole.save(tmp_path / "whole.npz")
    expected = Sample.from_predictions(label, score, clusters=name, sample_weight=weight)
    for found in (whole, Cells.load(tmp_path / "whole.npz"), Cells.from_sample(expected)):
        assert found.clusters.n_clusters == expected.clusters.n_clusters
        assert sorted(found.clusters.sizes) == sorted(expected.clusters.sizes)
        near = truecal.estimate(found, confidence_level=0.95)
        exact = truecal.estimate(expected, confidence_level=0.95)
        assert near.value == pytest.approx(exact.value, abs=1e-12)
        assert near.interval.high == pytest.approx(exact.interval.high, abs=1e-12)


def test_a_damaged_file_is_refused(tmp_path):
    cells = Cells.from_sample(Sample.from_predictions([0, 1, 1], [0.2, 0.5, 0.9], clusters=[1, 1, 2]))
    wrong = replace(cells, clusters=replace(cells.clusters, cluster=cells.clusters.cluster + 5))
    wrong.save(tmp_path / "wrong.npz")
    with pytest.raises(truecal.InputError, match="clusters contradict"):
        Cells.load(tmp_path / "wrong.npz")
