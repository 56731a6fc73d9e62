import gzip
import io
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from support.command_line import COLUMNS, refuse, run, value_of, write_csv
from truecal.cli._input.files import encoding_of, format_by_content, format_by_name, open_table


def test_npy(truth, tmp_path):
    np.save(tmp_path / "a.npy", np.column_stack([COLUMNS["label"], COLUMNS["score"]]))
    chosen = ("--label", "column_0", "--score", "column_1")
    assert value_of(run("measure", tmp_path / "a.npy", *chosen, "--format", "json")) == pytest.approx(truth)


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


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", label=np.zeros(10_000), score=np.zeros(10_000))
    monkeypatch.setattr("truecal.cli._input.files._MOST_UNPACKED", 40_000)
    assert "it unpacks to 0.0 GB" in refuse("measure", tmp_path / "a.npz")


def test_text_of_a_pipe_that_is_not_text(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n\0\0")))
    with pytest.raises(ValueError, match="standard input cannot be read as csv: contains NUL bytes"):
        open_table("-")


@pytest.mark.parametrize(
    "text", ['{"label": 1, "score": 0.5, "score": 0.6}\n' * 3, '[{"label": 1, "label": 0}]']
)
def test_a_key_that_is_given_twice_is_refused(text, tmp_path):
    (tmp_path / "a.json").write_text(text)
    assert "is given more than once in a row" in refuse("measure", tmp_path / "a.json")


@pytest.mark.parametrize("orient", ["columns", "index", "split", "table", "records"])
def test_json_of_pandas_is_read_in_every_orientation(orient, frame, truth, tmp_path):
    """The default is one object with a key for each row, which took minutes."""
    path = tmp_path / "a.json"
    frame.select("label", "score").to_pandas().to_json(path, orient=orient, double_precision=15)
    assert value_of(run("measure", path, "--format", "json")) == pytest.approx(truth)
    stdin = path.read_bytes()
    assert value_of(run("measure", "-", "--format", "json", stdin=stdin)) == pytest.approx(truth)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"label": [0, 1], "score": [0.5]}', "its columns differ in length: 'label' 2, 'score' 1"),
        ('{"a":' * 5000, "not valid JSON"),
    ],
)
def test_one_object_that_is_no_table(text, problem, tmp_path):
    (tmp_path / "a.json").write_text(text)
    assert problem in refuse("measure", tmp_path / "a.json")


@pytest.mark.parametrize("encoding", ["hex", "rot13", "base64", "no-such"])
def test_encodings_that_are_not_of_text(encoding, plain):
    assert f"--encoding '{encoding}' is unknown" in refuse("measure", plain, "--encoding", encoding)


@pytest.mark.parametrize("many", [10**9, 10])
def test_inches_do_not_swallow_rows(many, tmp_path, monkeypatch):
    monkeypatch.setattr("truecal.cli._input.table.MANY_BYTES", many)
    path = write_csv(tmp_path / "a.csv", {**COLUMNS, "size": ['5"2'] * 600})
    asked = ("--score", "score", "--format", "json", "--estimator", "ew_bin")
    assert json.loads(run("measure", path, *asked).stdout)["n"] == 600
    path.write_text(path.read_text().replace('5"2', '"5"', 1))
    assert "line 3 has a quotation mark" in refuse("measure", path)


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


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"label": 1, "score": 0.5}\n{"label": 0, "score": 0.2}\n{"label": 0, "sc\n', "line 3 is not valid JSON"),
        ('[{"label": 1, "score": 0.5},\n{"label": 0 "score": 0.2}]', "line 2 column 13"),
    ],
)  # fmt: skip
def test_the_line_that_is_not_json_is_named(text, where, tmp_path):
    (tmp_path / "a.jsonl").write_text(text)
    assert where in refuse("measure", tmp_path / "a.jsonl")


def test_objects_are_not_loaded(tmp_path):
    np.savez(tmp_path / "a.npz", label=np.array([{}, {}], dtype=object))
    assert "pickled objects, which are not loaded" in refuse("measure", tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.csv", "csv"),
        ("a.CSV.GZ", "csv"),
        ("a.b.parquet", "parquet"),
        ("a.json", "jsonl"),
        ("a.xlsx", "excel"),
        ("a", None),
    ],
)
def test_the_name_gives_the_format(name, format):
    assert format_by_name(Path(name)) == format


def test_the_content_gives_the_format():
    heads = {
        b"PAR1": "parquet",
        b"\x93NUMPY": "npy",
        b'\xef\xbb\xbf {"a"': "jsonl",
        b"[{": "jsonl",
        b"a,b": "csv",
    }
    assert [format_by_content(head) for head in heads] == list(heads.values())
    assert encoding_of("a".encode("utf-16")) == "utf-16"
