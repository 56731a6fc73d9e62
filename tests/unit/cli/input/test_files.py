import gzip
import io
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from support.command_line import COLUMNS, recommended, refuse, run, value_of, write_csv
from truecal.cli.input.files import open_table


@pytest.fixture(scope="module")
def frame():
    return pl.DataFrame(COLUMNS)


@pytest.fixture(scope="module")
def truth():
    return recommended(COLUMNS["label"], COLUMNS["score"])


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("predictions") / "plain.csv")


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


def test_npy(truth, tmp_path):
    np.save(tmp_path / "a.npy", np.column_stack([COLUMNS["label"], COLUMNS["score"]]))
    chosen = ("--label", "column_0", "--score", "column_1")
    assert value_of(run("measure", tmp_path / "a.npy", *chosen, "--format", "json")) == pytest.approx(truth)


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


def test_a_compressed_file_is_unpacked_to_disk_and_not_to_memory(plain, truth, tmp_path, monkeypatch):
    monkeypatch.setattr("truecal.cli.input.files._IN_MEMORY", 1000)
    monkeypatch.setattr("truecal.cli.input.files._CHUNK", 100)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(plain.read_bytes()))
    assert value_of(run("measure", path, "--format", "json")) == pytest.approx(truth)
    monkeypatch.setattr("truecal.cli.input.files._DISK_RESERVE", 1 << 60)
    assert "does not fit on the disk" in refuse("measure", path)


def test_rows_of_folders_may_differ_in_precision_but_not_in_columns(tmp_path):
    pl.DataFrame({"score": [0.1, 0.9], "label": [0, 1]}).write_parquet(tmp_path / "a.parquet")
    other = pl.DataFrame({"score": [0.2, 0.8], "label": [0, 1]})
    other.with_columns(pl.col("score").cast(pl.Float32)).write_parquet(tmp_path / "b.parquet")
    assert json.loads(run("measure", tmp_path, "--format", "json").stdout)["n"] == 4
    other.rename({"score": "prob"}).write_parquet(tmp_path / "b.parquet")
    assert "cannot be read: b.parquet has other columns than a.parquet" in refuse("measure", tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "empty.csv is empty"),
        ("blank.csv", b"\n \n", "blank.csv is empty"),
        ("header.csv", b"label,score\n", "header.csv: .*no rows"),
        ("bare.csv", b"0,0.5\n1,0.25\n", "bare.csv .* only numbers"),
        ("ragged.csv", b"label,score\n0,0.2\n1,0.3,7\n0,.1\n", "ragged.csv .*line 3 has more fields"),
        ("bytes.csv", bytes(range(256)), "NUL bytes"),
        ("excel.csv", b"PK\x03\x04....", "Excel"),
        ("table.xlsx", b"PK\x03\x04....", "Save the sheet as CSV"),
        ("umlaut.csv", "label,schätzung\n0,.5\n".encode("latin1"), "umlaut.csv .*--encoding latin-1"),
        ("text.parquet", b"label,score\n0,.5\n", "text.parquet .*not a Parquet file"),
        ("cut.parquet", b"PAR1....", "cut.parquet cannot be read as parquet"),
        ("bad.jsonl", b'{"label": 1, "score"\n', "bad.jsonl cannot be read"),
        ("bad.npz", b"PK\x03\x04 no archive", "bad.npz cannot be read as npz"),
        ("cut.csv.gz", b"\x1f\x8b\x08\x00 damaged", "cut.csv.gz .*gzip"),
        ("cut2.csv.gz", gzip.compress(b"label,score\n" * 9, mtime=0)[:-12], "cut2.csv.gz .*gzip"),
        ("cut.csv.zst", b"\x28\xb5\x2f\xfd damaged", "cut.csv.zst .*zstd"),
        ("what.dat", b"label,score\n0,.5\n", "what.dat: unrecognised file extension"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_read_end_in_one_line_that_names_them(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    assert re.search(message, refuse("measure", tmp_path / name))


def test_the_encoding_must_be_known_and_right(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("label,score\nné,.5\n".encode("latin-1"))
    assert "--encoding 'klingon' is unknown" in refuse("measure", path, "--encoding", "klingon")
    assert "a.csv cannot be read" in refuse("measure", path, "--encoding", "utf-32")
    assert "--encoding latin-1" in refuse("measure", path, "--pos-label", "né")


def test_files_and_folders_that_are_not_there(tmp_path):
    assert "gone.csv: no such file" in refuse("measure", tmp_path / "gone.csv")
    assert "no file matches" in refuse("measure", tmp_path / "*.parquet")
    assert "folder without Parquet files" in refuse("measure", tmp_path)
    assert "standard input is empty" in refuse("measure", "-", stdin=b"")


def test_wrong_names_are_answered_with_the_nearest(plain):
    for option in ("--label", "--score", "--weight", "--group"):
        assert "Did you mean 'region'?" in refuse("measure", plain, option, "regio")


def test_columns_are_found_by_name_or_path(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"pred": {"p": 0.5, "a.b": 1}, "y": 1}\n' * 3)
    table = open_table(str(tmp_path / "a.jsonl"))
    assert table.scan(["pred.p"]).collect()["c0"].to_list() == [0.5] * 3
    for name in ("pred.q", "y.p", "pred.p.x", "z"):
        with pytest.raises(ValueError, match="has no column"):
            table.scan([name])


def test_arrays_of_other_lengths_are_refused_only_where_they_are_used(tmp_path):
    np.savez(tmp_path / "a.npz", label=[0, 1], score=[0.2, 0.9], w=[1, 2, 3])
    run("measure", tmp_path / "a.npz", "--estimator", "ew_bin")
    assert "columns differ in length" in refuse("measure", tmp_path / "a.npz", "--weight", "w")


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", label=np.zeros(10_000), score=np.zeros(10_000))
    monkeypatch.setattr("truecal.cli.input.files._MOST_UNPACKED", 40_000)
    assert "it unpacks to 0.0 GB" in refuse("measure", tmp_path / "a.npz")


def test_text_of_a_pipe_that_is_not_text(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n\0\0")))
    with pytest.raises(ValueError, match="standard input cannot be read as csv: contains NUL bytes"):
        open_table("-")


def test_a_device_that_is_a_file_is_read_as_a_pipe_is(plain, truth):
    command = [sys.executable, "-m", "truecal", "measure", "/dev/stdin", "--format", "json"]
    if not Path("/dev/stdin").exists():
        pytest.skip("needs /dev/stdin")
    with plain.open("rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, check=True)
    assert json.loads(done.stdout)["value"] == pytest.approx(truth)


@pytest.mark.parametrize("many", [10**9, 10])
def test_a_glob_of_packed_text_files_whose_columns_differ_in_order(many, frame, truth, tmp_path, monkeypatch):
    monkeypatch.setattr("truecal.cli.input.files.MANY_BYTES", many)
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


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_a_temporary_file_has_no_name_so_nothing_is_left_behind(monkeypatch, frame, truth, tmp_path):
    monkeypatch.setattr("truecal.cli.input.files._IN_MEMORY", 100)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(frame.write_csv().encode()))
    table = open_table(str(tmp_path / "a.csv.gz"))
    assert table.collect(table.scan(["score"])).height == 600
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    "text", ['{"label": 1, "score": 0.5, "score": 0.6}\n' * 3, '[{"label": 1, "label": 0}]']
)
def test_a_key_that_is_given_twice_is_refused(text, tmp_path):
    (tmp_path / "a.json").write_text(text)
    assert "is given more than once in a row" in refuse("measure", tmp_path / "a.json")


@pytest.mark.parametrize("many", [10**9, 10])
def test_inches_do_not_swallow_rows(many, tmp_path, monkeypatch):
    monkeypatch.setattr("truecal.cli.input.files.MANY_BYTES", many)
    path = write_csv(tmp_path / "a.csv", {**COLUMNS, "size": ['5"2'] * 600})
    asked = ("--score", "score", "--format", "json", "--estimator", "ew_bin")
    assert json.loads(run("measure", path, *asked).stdout)["n"] == 600
    path.write_text(path.read_text().replace('5"2', '"5"', 1))
    assert "line 3 has a quotation mark" in refuse("measure", path)


def test_utf_16_may_be_declared_and_json_may_have_a_byte_order_mark(plain, frame, truth, tmp_path):
    (tmp_path / "a.csv").write_text(plain.read_text(), encoding="utf-16")
    asked = ("--format", "json")
    assert value_of(run("measure", tmp_path / "a.csv", "--encoding", "UTF-16", *asked)) == pytest.approx(
        truth
    )
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + frame.write_ndjson().encode())
    assert value_of(run("measure", tmp_path / "a.jsonl", *asked)) == pytest.approx(truth)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('label,"sc\nore"\n1,0.5\n', "line break within quotation marks"),
        ('{"label": 1, "score": 0.5},\n{"label": 1}', "not valid JSON"),
    ],
)
def test_what_cannot_be_read_is_named_in_plain_words(text, problem, tmp_path):
    path = tmp_path / ("a.csv" if text.startswith("label") else "a.jsonl")
    path.write_text(text)
    said = refuse("measure", path)
    assert problem in said
    assert said.count(str(path)) == 1


def test_blank_lines_before_the_header(plain, truth, tmp_path):
    (tmp_path / "a.csv").write_text("\n  \n" + plain.read_text())
    assert value_of(run("measure", tmp_path / "a.csv", "--format", "json")) == pytest.approx(truth)


def test_short_lines_are_many_rows(tmp_path, monkeypatch):
    # A text table with few bytes has many rows if its lines are short.
    path = tmp_path / "short.csv"
    path.write_text("y,p\n" + "1,.5\n0,.2\n" * 100)
    monkeypatch.setattr("truecal.cli.input.files.MANY_ROWS", 300)
    assert not open_table(str(path)).is_large
    monkeypatch.setattr("truecal.cli.input.files.MANY_ROWS", 150)
    assert open_table(str(path)).is_large
