import json
import re

import numpy as np
import pytest

from support.command_line import COLUMNS, refuse, run, write_csv


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr("truecal.cli._input.table.MANY_ROWS", 1)
    monkeypatch.setattr("truecal.cli._input.table.MANY_BYTES", 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("label,score\nyes,.5\nmaybe,.5\n", "column 'label' must .*--pos-label"),
        ("label,score\n1,.5\n2,.5\n", "column 'label' must .*--pos-label"),
        (
            "label,score\n1,50%\n0,20%\n",
            "column 'score' has 2 values with a percent sign .*row 1: '50%'.*--percent",
        ),
        ("label,score\n1,50\n0,20\n", r"column 'score' has 2 values outside \[0, 1\].*--percent"),
        ("label,score\n1,.5\n0,x\n", "column 'score' has 1 non-numeric value .*row 2: 'x'"),
        ("label,score\n1,.5\n0,\n", "column 'score' has 1 missing .*row 2.*--drop-missing"),
        ("label,score\n1,.5\n,.5\n", "column 'label' has 1 missing .*row 2.*--drop-missing"),
        ("label,score\n1,.5\n0,1.7\n", r"column 'score' has 1 value outside \[0, 1\].*row 2: 1.7.*--logits"),
        ("label,p0,p1,p2\n1,.5,.2,.2\n", "columns 'p0', 'p1', 'p2' has 1 row .*sum.*--normalize"),
        ("label,p0,p1,p2\n3,.5,.2,.3\n", "column 'label' has 1 label .*--classes"),
        (
            "label,p0,p1,p2\n" + 10 * "1,.9,.05,.05\n2,.05,.9,.05\n",
            "column 'label' has no label 0.* counted from 1.*--classes",
        ),
        ("label,score\n0.25,1\n0.5,0\n0.75,1\n", "--label and --score"),
    ],
)
def test_bad_values_are_named_by_column_row_and_option(content, message, tmp_path):
    (tmp_path / "a.csv").write_text(content)
    said = refuse("measure", tmp_path / "a.csv")
    assert "a.csv: " in said
    assert re.search(message, said), said


def test_one_bad_row_in_many_is_found(tmp_path):
    rows = [f"{k % 2},0.5" for k in range(30_000)]
    path = tmp_path / "long.csv"
    path.write_text("label,score\n" + "\n".join([*rows[:25_000], "1,oops", *rows[25_000:]]) + "\n")
    assert "column 'score' has 1 non-numeric value (first at row 25001: 'oops')" in refuse("measure", path)
    texts = [f'{{"label": {k % 2}, "score": 0.5}}' for k in range(30_000)]
    texts[20_000] = '{"label": 1, "score": "oops"}'
    (tmp_path / "long.jsonl").write_text("\n".join(texts))
    assert "first at row 20001: 'oops'" in refuse("measure", tmp_path / "long.jsonl")


def test_rows_that_are_dropped_are_counted(tmp_path):
    holes = np.where(np.arange(600) % 6 == 0, "", COLUMNS["score"].astype(str))
    path = write_csv(tmp_path / "a.csv", {"label": COLUMNS["label"], "score": holes})
    result = run("measure", path, "--drop-missing", "--format", "json")
    assert json.loads(result.stdout)["n"] == 500
    assert "dropped 100 of 600 rows with missing values" in result.stderr
    (tmp_path / "b.csv").write_text("label,score\n1,\n,0.5\n")
    assert "missing value in every row" in refuse("measure", tmp_path / "b.csv", "--drop-missing")


def test_normalising(tmp_path):
    (tmp_path / "a.csv").write_text("label,p0,p1,p2\n0,.5,.2,.2\n1,0,0,0\n")
    assert "whose sum is not positive" in refuse("measure", tmp_path / "a.csv", "--normalize")
    (tmp_path / "a.csv").write_text("label,p0,p1,p2\n0,.5,.2,.2\n1,0,1,0\n")
    result = run("measure", tmp_path / "a.csv", "--normalize", "--estimator", "ew_bin")
    assert "divided rows by their sum, from 0.9 to 1" in result.stderr
    (tmp_path / "a.csv").write_text("label,score\n0,.5\n")
    assert "--normalize needs" in refuse("measure", tmp_path / "a.csv", "--normalize")


def test_encoding_errors_in_labels_and_groups_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("label,score,g\n1,.5,é\n0,.4,è\n".encode("latin-1"))
    run("measure", path, "--estimator", "ew_bin")
    assert "column 'g' has values that are not UTF-8" in refuse("measure", path, "--group", "g")


def test_too_many_groups_are_a_mistake(tmp_path):
    path = write_csv(tmp_path / "a.csv", {"label": [0, 1] * 600, "score": [0.5] * 1200, "id": range(1200)})
    said = refuse("measure", path, "--group", "id")
    assert "1,200 different values" in said
    assert "identifier" in said


def test_what_a_large_file_cannot_do(tmp_path, large):
    path = write_csv(tmp_path / "a.csv", {**COLUMNS, "second": COLUMNS["score"] ** 2})
    assert "a.csv has too many rows for recalibrate" in refuse("recalibrate", path)
    assert "too many rows for comparing models" in refuse(
        "compare", path, "--score", "score", "--score", "second"
    )
    assert "--counts needs --weight" in refuse("measure", path, "--score", "score", "--counts")
    high = write_csv(tmp_path / "b.csv", {"label": [0, 1], "score": [0.5, 1.7]})
    said = refuse("measure", high)
    assert re.search(r"b.csv: [cC]olumn 'score' has 1 value outside \[0, 1\] \(1.7\).*--logits", said)


def test_percentages_above_100_are_refused_in_terms_of_the_file(tmp_path):
    columns = {"label": [0, 1, 1, 0], "score": [20, "", 100.05, 130]}
    path = write_csv(tmp_path / "a.csv", columns)
    said = refuse("measure", path, "--percent", "--drop-missing")
    assert "column 'score' has 2 values outside 0% to 100% (first at row 3: '100.05')" in said
    assert "--percent" not in said
    assert "1 value outside 0% to 100%" in refuse("measure", path, "--percent", "--clip", "--drop-missing")
    assert "first at row 1: '-1%'" in refuse(
        "measure", write_csv(tmp_path / "b.csv", {"label": [0, 1], "score": ["-1%", "5%"]}), "--percent"
    )


@pytest.mark.parametrize("options", [(), ("--logits",)])
def test_rows_are_numbered_as_in_the_file_after_some_were_dropped(tmp_path, options):
    path = write_csv(tmp_path / "a.csv", {"label": [0, 1, 1, 0, 1], "score": [0.2, "", 0.4, "", "inf"]})
    said = refuse("measure", path, "--drop-missing", *options)
    assert "(first at row 5: inf)" in said
    assert "--drop-missing" not in said


def test_lists_without_numbers_are_refused(tmp_path):
    import polars as pl

    empty = pl.Series([[], []], dtype=pl.List(pl.Float64))
    pl.DataFrame({"label": [0, 1], "probs": empty}).write_parquet(tmp_path / "a.parquet")
    assert "has lists without numbers" in refuse("measure", tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["weight", "sample_weight", "Weights"])
def test_weights_that_are_not_used_get_one_line(tmp_path, name):
    path = write_csv(tmp_path / "a.csv", {"label": [0, 1] * 9, "score": [0.2, 0.7] * 9, name: [1, 2] * 9})
    line = f"column '{name}' is not used; 'truecal measure --weight {name}' takes it as weights"
    assert run("measure", path, "--estimator", "ew_bin").stderr.count(line) == 1
    assert "not used" not in run("measure", path, "--estimator", "ew_bin", "--weight", name).stderr


def test_several_models_that_are_taken_together_get_one_line(tmp_path):
    columns = {"label": [0, 1] * 9, "score": [0.2, 0.7] * 9, "model": ["a", "b"] * 9}
    path = write_csv(tmp_path / "a.csv", columns)
    assert "column 'model' has 2 values" in run("measure", path, "--estimator", "ew_bin").stderr
    one = write_csv(tmp_path / "b.csv", {**columns, "model": ["a"] * 18})
    assert "column 'model'" not in run("measure", one, "--estimator", "ew_bin").stderr


@pytest.mark.parametrize(
    "given",
    [
        "measure",
        "measure --group side",
        "compare",
        "audit",
        "test",
        "test --at-most 5%",
        "test --method ks",
        "test --group side",
        "test --at-most 5% --group side",
        "report",
        "monitor",
    ],
)
def test_reversed_scores_are_named_by_every_command(tmp_path, given):
    command, *options = given.split()
    label, score = COLUMNS["label"], COLUMNS["score"]
    path = write_csv(
        tmp_path / "a.csv", {"label": label, "p": 1 - score, "good": score, "side": np.arange(600) % 2}
    )
    scores = ["--score", "p"] + (["--score", "good"] if command == "compare" else [])
    more = ["--quick", "-o", tmp_path / "a.html"] if command == "report" else []
    result = run(command, path, *scores, *options, *more, code=(0, 1))
    said = " ".join((result.stderr if command == "monitor" else result.stdout).split())
    assert said.count("Higher scores go with fewer events") == 1
    assert ("p: Higher scores" in said) == (command == "compare")
