import gzip
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support.command_line import COLUMNS, refuse, run, value_of, write_csv

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
    monkeypatch.setattr("truecal.cli.input.table.MANY_BYTES", many)
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
