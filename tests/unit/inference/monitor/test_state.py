"""State files, looks, the history and clusters that were counted."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from truecal import CalibrationMonitor
from truecal.data.clusters import cluster_keys
from truecal.exceptions import InputError
from truecal.inference.monitor import _state
from truecal.inference.monitor._evidence import decode, encode
from truecal.inference.monitor._state import History, SeenClusters, read_state, write_state


def test_numbers_are_exact():
    numbers = np.array([0.1, -np.inf, 1e-300, np.pi])
    assert decode(encode(numbers)).tobytes() == numbers.tobytes()


def test_round_trip(tmp_path):
    path = tmp_path / "state.json"
    write_state(path, "thing", {"value": 0.1, "names": ["ä"]})
    assert read_state(path, "thing")["value"] == 0.1
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]


def test_a_changed_file_is_refused(tmp_path):
    path = tmp_path / "state.json"
    write_state(path, "thing", {"value": 1})
    body = json.loads(path.read_text())
    path.write_text(json.dumps({**body, "value": 2}))
    with pytest.raises(InputError, match="checksum does not match"):
        read_state(path, "thing")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"checksum": 1', "7", "[" * 100_000, '{"a": 1e999, "checksum": 1}', "NaN"]
)
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(InputError, match="not a state file"):
        read_state(path, "thing")


def test_another_kind_is_refused(tmp_path):
    path = tmp_path / "state.json"
    write_state(path, "thing", {})
    with pytest.raises(InputError, match="holds 'thing', version 3"):
        read_state(path, "other")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="has no such device")
def test_a_device_is_refused_and_not_read():
    with pytest.raises(InputError, match="not a regular file"):
        read_state("/dev/zero", "thing")


def test_integers_of_64_bits_are_exact():
    numbers = np.array([0, 2**63 + 1, 2**64 - 1], dtype=np.uint64)
    assert decode(encode(numbers), 3, dtype="<u8").tolist() == numbers.tolist()
    with pytest.raises(ValueError, match="reshape"):
        decode(encode(numbers), 4)


LOOK = CalibrationMonitor().update([0, 1], [0.2, 0.7], time=0)


def test_large_evidence_is_infinite():
    assert replace(LOOK, log_evalue=0.0).evalue == 1.0
    assert replace(LOOK, log_evalue=1e4).evalue == float("inf")


def test_a_look_survives_its_numbers():
    history = History()
    history.add(replace(LOOK, alarm=True, time="2026-11-16"), 0)
    (again,) = History.from_state(history.to_state()).looks
    assert again == history.last
    assert (again.alarm, again.change_alarm, again.time) == (True, False, "2026-11-16")


@pytest.mark.parametrize("n", [0, 1, 5, 256, 257, 1000])
def test_first_last_and_at_most_257(n):
    history = History()
    for window in range(n):
        history.add(replace(LOOK, time=window), window)
    times = [look.time for look in history.looks]
    assert len(times) <= 257
    assert times == sorted(set(times))
    assert times[:1] == [0][:n]
    assert times[-1:] == [n - 1][:n]
    assert len({b - a for a, b in itertools.pairwise(times[:-1])}) <= 1
    again = History.from_state(history.to_state())
    assert again == history
    again.add(LOOK, n)
    history.add(LOOK, n)
    assert again == history


KEYS = cluster_keys(np.arange(5000), 5000)


def test_a_cluster_counts_once():
    seen = SeenClusters()
    assert seen.may_count(KEYS).all()
    seen.add(KEYS[:3000])
    seen.add(KEYS[4000:])
    assert seen.may_count(KEYS).tolist() == [False] * 3000 + [True] * 1000 + [False] * 1000
    assert len(seen) == 4000


def test_beyond_the_limit_a_share_of_the_clusters_counts(monkeypatch):
    monkeypatch.setattr(_state, "MOST_CLUSTERS", 1000)
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


def test_clusters_are_restored():
    seen = SeenClusters(halvings=1)
    seen.add(KEYS[KEYS < 2**63])
    again = SeenClusters.from_state(seen.to_state())
    assert again.keys.tolist() == seen.keys.tolist()
    assert again.halvings == 1
    with pytest.raises(ValueError, match="in order"):
        SeenClusters.from_state({**seen.to_state(), "halvings": 64})
