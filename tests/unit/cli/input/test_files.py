import gzip
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support.command_line import COLUMNS, refuse, run, value_of, write_csv
from truecal.cli._input.files import open_table

# Every kind of file, by both paths: tests/contract/test_prediction_files.py.


def test_bundled_data_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = json.loads(run("measure", "flights", "--format", "json").stdout)
    assert content["source"] == "flights"
    assert content["columns"] == {"label": ["late"], "score": ["boosting"]}
    assert (
        json.loads(run("measure", "digits", "--format", "json").stdout)["target"] == "top label of 10 classes"
    )
    write_csv(tmp_path / "flights")  # a file of that name comes first
    assert (
        json.loads(run("measure", "flights", "--input-format", "csv", "--format", "json").stdout)["n"] == 600
    )
    assert "Did you mean 'flights'?" in refuse("measure", "flight")


@pytest.mark.parametrize("parts", [("a.parquet", "b.parquet"), ("day=1/a.parquet", "day=2/a.parquet")])
def test_a_folder_and_a_glob_of_parquet_files(parts, frame, truth, tmp_path):
    for name, part in zip(parts, (frame[:250], frame[250:]), strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        part.write_parquet(tmp_path / name)
    (tmp_path / "_SUCCESS").touch()
    for source in (tmp_path, tmp_path / "**" / "*.parquet"):
        assert value_of(run("measure", source, "--format", "json")) == pytest.approx(truth)


def test_a_name_with_brackets_is_a_name(truth, tmp_path):
    path = write_csv(tmp_path / "model[1].csv", COLUMNS)
    assert value_of(run("measure", path, "--format", "json")) == pytest.approx(truth)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes need a POSIX system")
def test_a_named_pipe_is_read_once(plain, truth, tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(plain.read_bytes()), daemon=True)
    writer.start()
    assert value_of(run("measure", pipe, "--format", "json")) == pytest.approx(truth)
    writer.join(timeout=10)


def test_files_and_folders_that_are_not_there(tmp_path):
    assert "gone.csv: no such file" in refuse("measure", tmp_path / "gone.csv")
    assert "no file matches" in refuse("measure", tmp_path / "*.parquet")
    assert "folder without Parquet files" in refuse("measure", tmp_path)
    assert "standard input is empty" in refuse("measure", "-", stdin=b"")


def test_a_device_that_is_a_file_is_read_as_a_pipe_is(plain, truth):
    command = [sys.executable, "-m", "truecal", "measure", "/dev/stdin", "--format", "json"]
    if not Path("/dev/stdin").exists():
        pytest.skip("needs /dev/stdin")
    with plain.open("rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, check=True)
    assert json.loads(done.stdout)["value"] == pytest.approx(truth)


@pytest.mark.parametrize("many", [10**9, 10])
def test_a_glob_of_packed_text_files_whose_columns_differ_in_order(many, frame, truth, tmp_path, monkeypatch):
    monkeypatch.setattr("truecal.cli._input.table.MANY_BYTES", many)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(frame[:250].write_csv().encode()))
    rest = frame[250:].select("score", "weight", "region", "label")
    (tmp_path / "b.csv").write_text(rest.write_csv(separator=";"))
    asked = ("--format", "json", "--estimator", "ew_bin")
    result = run("measure", tmp_path / "*.csv*", *asked)
    assert json.loads(result.stdout)["n"] == 600
    alone = run("measure", write_csv(tmp_path / "all.txt"), *asked)
    assert value_of(result) == pytest.approx(value_of(alone), abs=1e-4 if many == 10 else 1e-12)
    (tmp_path / "c.csv").write_text("label,p\n1,0.5\n")
    assert "c.csv has other columns than" in refuse("measure", tmp_path / "*.csv*")


def test_a_compressed_file_is_unpacked_to_disk_and_not_to_memory(plain, truth, tmp_path, monkeypatch):
    monkeypatch.setattr("truecal.cli._input.files._IN_MEMORY", 1000)
    monkeypatch.setattr("truecal.cli._input.files._CHUNK", 100)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(plain.read_bytes()))
    assert value_of(run("measure", path, "--format", "json")) == pytest.approx(truth)
    monkeypatch.setattr("truecal.cli._input.files._DISK_RESERVE", 1 << 60)
    assert "does not fit on the disk" in refuse("measure", path)


def test_the_encoding_must_be_known_and_right(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("label,score\nné,.5\n".encode("latin-1"))
    assert "--encoding 'klingon' is unknown" in refuse("measure", path, "--encoding", "klingon")
    assert "a.csv cannot be read" in refuse("measure", path, "--encoding", "utf-32")
    assert "--encoding latin-1" in refuse("measure", path, "--pos-label", "né")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_a_temporary_file_has_no_name_so_nothing_is_left_behind(monkeypatch, frame, truth, tmp_path):
    monkeypatch.setattr("truecal.cli._input.files._IN_MEMORY", 100)
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
