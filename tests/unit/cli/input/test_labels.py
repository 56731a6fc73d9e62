"""How labels of files are read."""

import json

import numpy as np
import polars as pl
import pytest

from support.command_line import COLUMNS, recommended, refuse, run, value_of, write_csv


def test_labels_of_a_type_and_options_of_another(plain):
    assert "--pos-label must be numeric" in refuse("measure", plain, "--pos-label", "yes")
    assert "column 'region' has 600 non-numeric values" in refuse("measure", plain, "--weight", "region")


def test_a_pos_label_of_words_is_reported(tmp_path):
    path = write_csv(
        tmp_path / "a.csv", {"label": np.array(["no", "yes"])[COLUMNS["label"]], "score": COLUMNS["score"]}
    )
    result = run("measure", path, "--format", "json")
    assert value_of(result) == pytest.approx(recommended(COLUMNS["label"], COLUMNS["score"]))
    assert "using 'yes' as the positive label" in json.loads(result.stdout)["detected"]


def test_one_hot_labels_that_are_not(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,c,ya,yb,yc\n.5,.2,.3,1,0,0\n.5,.2,.3,1,1,0\n")
    scores = [part for name in "abc" for part in ("--score", name)]
    labels = [part for name in "abc" for part in ("--label", f"y{name}")]
    assert "1 row without a single 1 among 0s" in refuse("measure", path, *scores, *labels)
    assert "2 columns of labels for 3 columns of scores" in refuse("measure", path, *scores, *labels[2:])


def test_lists_of_text_classes_need_their_order(tmp_path):
    frame = pl.DataFrame({"label": ["a", "b", "c"], "probs": [[0.5, 0.2, 0.3]] * 3})
    frame.write_parquet(tmp_path / "a.parquet")
    assert "--classes a,b,c" in refuse("measure", tmp_path / "a.parquet")
    frame.with_columns(probs=pl.Series([[0.5, 0.2, 0.3], [1.0], [0.0, 1.0]])).write_parquet(
        tmp_path / "a.parquet"
    )
    assert "'probs' has lists of different lengths (first at row 2)" in refuse(
        "measure", tmp_path / "a.parquet"
    )


@pytest.mark.parametrize("many", [10**9, 1])
def test_predicted_classes_that_cannot_be_compared(many, tmp_path, monkeypatch):
    monkeypatch.setattr("truecal.cli._input.table.MANY_ROWS", many)
    path = tmp_path / "a.parquet"
    columns = {"confidence": [0.9, 0.8, 0.7], "label": [0, 1, 1]}
    pl.DataFrame({**columns, "guess": ["cat", "dog", "dog"]}).write_parquet(path)
    said = refuse("measure", path, "--predicted", "guess")
    assert "column 'label' holds numbers and column 'guess' text, so they cannot be compared" in said
    pl.DataFrame({**columns, "guess": [0, None, 1]}).write_parquet(path)
    assert "column 'guess' has 1 missing value (first at row 2)" in refuse(
        "measure", path, "--predicted", "guess"
    )
