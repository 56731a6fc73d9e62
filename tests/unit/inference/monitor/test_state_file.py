"""State files: exact, whole, and refused if changed."""

import json
from pathlib import Path

import numpy as np
import pytest

from truecal.exceptions import InputError
from truecal.inference.monitor.state_file import decode, encode, read_state, write_state


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
