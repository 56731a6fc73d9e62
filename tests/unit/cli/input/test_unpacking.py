import gzip
from pathlib import Path

import pytest

from support.command_line import refuse, run, value_of
from truecal.cli.input.files import open_table


def test_a_compressed_file_is_unpacked_to_disk_and_not_to_memory(plain, truth, tmp_path, monkeypatch):
    monkeypatch.setattr("truecal.cli.input.unpacking._IN_MEMORY", 1000)
    monkeypatch.setattr("truecal.cli.input.unpacking._CHUNK", 100)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(plain.read_bytes()))
    assert value_of(run("measure", path, "--format", "json")) == pytest.approx(truth)
    monkeypatch.setattr("truecal.cli.input.unpacking._DISK_RESERVE", 1 << 60)
    assert "does not fit on the disk" in refuse("measure", path)


def test_the_encoding_must_be_known_and_right(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("label,score\nné,.5\n".encode("latin-1"))
    assert "--encoding 'klingon' is unknown" in refuse("measure", path, "--encoding", "klingon")
    assert "a.csv cannot be read" in refuse("measure", path, "--encoding", "utf-32")
    assert "--encoding latin-1" in refuse("measure", path, "--pos-label", "né")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_a_temporary_file_has_no_name_so_nothing_is_left_behind(monkeypatch, frame, truth, tmp_path):
    monkeypatch.setattr("truecal.cli.input.unpacking._IN_MEMORY", 100)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(frame.write_csv().encode()))
    table = open_table(str(tmp_path / "a.csv.gz"))
    assert table.collect(table.scan(["score"])).height == 600
    assert list((tmp_path / "tmp").iterdir()) == []


def test_utf_16_may_be_declared_and_json_may_have_a_byte_order_mark(plain, frame, truth, tmp_path):
    (tmp_path / "a.csv").write_text(plain.read_text(), encoding="utf-16")
    asked = ("--format", "json")
    assert value_of(run("measure", tmp_path / "a.csv", "--encoding", "UTF-16", *asked)) == pytest.approx(
        truth
    )
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + frame.write_ndjson().encode())
    assert value_of(run("measure", tmp_path / "a.jsonl", *asked)) == pytest.approx(truth)
