import csv
import json

import numpy as np
import polars as pl
import pytest

import truecal
from support.command_line import COLUMNS, refuse, run, spread, value_of, write_csv


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_rows_are_written_with_their_recalibrated_scores(plain, tmp_path):
    run("recalibrate", plain, "--write", tmp_path / "out.csv")
    rows = read(tmp_path / "out.csv")
    assert list(rows[0]) == [*COLUMNS, "score_recalibrated"]
    assert [row["region"] for row in rows] == COLUMNS["region"].tolist()
    better = np.array([float(row["score_recalibrated"]) for row in rows])
    before = truecal.calibration_error(COLUMNS["label"], COLUMNS["score"])
    assert truecal.calibration_error(COLUMNS["label"], better) < before / 2
    after = run("measure", tmp_path / "out.csv", "--score", "score_recalibrated", "--format", "json")
    assert value_of(after) < before / 2


def test_another_file_is_recalibrated(plain, tmp_path):
    (tmp_path / "new.csv").write_text("score\n0.2\n0.9\n")
    run("recalibrate", plain, "--apply", tmp_path / "new.csv", "--write", tmp_path / "out.csv")
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3
    (tmp_path / "odd.csv").write_text("scores\n0.2\n0.9\n")
    message = refuse("recalibrate", plain, "--apply", tmp_path / "odd.csv", "--write", tmp_path / "no.csv")
    assert "odd.csv has no column 'score'. It has: 'scores'" in message
    assert not (tmp_path / "no.csv").exists()
    assert "--apply needs --write" in refuse("recalibrate", plain, "--apply", tmp_path / "new.csv")


def test_the_input_is_never_overwritten(plain):
    assert "would be overwritten" in refuse("recalibrate", plain, "--write", plain)


def test_text_that_a_spreadsheet_would_run_is_quoted(tmp_path):
    odd = np.array(["=1+1", "@x", "-1", "+cmd", "fine", "a=b"])[np.arange(600) % 6]
    path = write_csv(tmp_path / "a.csv", {**COLUMNS, "note": odd})
    run("recalibrate", path, "--write", tmp_path / "out.csv")
    assert [row["note"] for row in read(tmp_path / "out.csv")][:6] == [
        "'=1+1",
        "'@x",
        "-1",
        "'+cmd",
        "fine",
        "a=b",
    ]


def test_dropped_rows_are_not_written(tmp_path):
    holes = np.where(np.arange(600) % 6 == 0, "", COLUMNS["score"].astype(str))
    path = write_csv(tmp_path / "a.csv", {**COLUMNS, "score": holes})
    run("recalibrate", path, "--drop-missing", "--write", tmp_path / "out.csv")
    rows = read(tmp_path / "out.csv")
    assert len(rows) == 500
    assert [row["region"] for row in rows] == COLUMNS["region"][np.arange(600) % 6 != 0].tolist()


def test_several_classes(tmp_path):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 400)
    label = (proba.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1).clip(max=2)
    sharp = proba**3 / (proba**3).sum(axis=1, keepdims=True)
    columns = {"label": label, **{f"p{k}": sharp[:, k] for k in range(3)}}
    run("recalibrate", write_csv(tmp_path / "a.csv", columns), "--write", tmp_path / "out.csv")
    rows = read(tmp_path / "out.csv")
    assert list(rows[0])[-3:] == ["p0_recalibrated", "p1_recalibrated", "p2_recalibrated"]


def test_logits_are_taken_as_they_are(tmp_path):
    columns = {"label": COLUMNS["label"], "score": 3 * np.log(COLUMNS["score"] / (1 - COLUMNS["score"]))}
    path = write_csv(tmp_path / "a.csv", columns)
    assert "--logits" in refuse("recalibrate", path)
    assert run("recalibrate", path, "--logits").exit_code == 0


def test_a_calibrated_model_is_left_as_it_is(tmp_path):
    y, p = spread(600, 1)
    path = write_csv(tmp_path / "a.csv", {"label": y, "score": p})
    content = json.loads(run("recalibrate", path, "--format", "json").stdout)
    assert content["leave_alone"] is True


def test_the_table_fits_80_columns(plain):
    assert max(map(len, run("recalibrate", plain).stdout.splitlines())) <= 80


def test_compare_proves_the_gain_of_other_rows(plain, tmp_path):
    y, p = spread(1200)
    fresh, out = tmp_path / "fresh.csv", tmp_path / "out.csv"
    write_csv(fresh, {"label": y[600:], "score": p[600:]})
    assert "fitted to these rows" not in run("recalibrate", plain, "--apply", fresh, "--write", out).stderr
    options = ("--label", "label", "--score", "score", "--score", "score_recalibrated")
    printed = " ".join(run("compare", out, *options).stdout.split())
    assert "score_recalibrated is better calibrated" in printed


def test_rows_that_were_fitted_are_not_to_be_measured(plain, tmp_path):
    out = ("--write", tmp_path / "out.csv")
    for others in ((), ("--apply", plain)):
        said = run("recalibrate", plain, *others, *out, "--quiet").stderr
        assert "was fitted to these rows, so its error on them is too small" in said
    assert "fitted to these rows" not in run("recalibrate", plain).stderr
    y, p = spread(600, 1)
    calibrated = write_csv(tmp_path / "a.csv", {"label": y, "score": p})
    assert "fitted to these rows" not in run("recalibrate", calibrated, *out).stderr


def test_no_column_is_overwritten(tmp_path):
    path = write_csv(tmp_path / "a.csv", {**COLUMNS, "score_recalibrated": COLUMNS["score"]})
    options = ("--label", "label", "--score", "score")
    run("recalibrate", path, *options, "--write", tmp_path / "b.csv")
    rows = read(tmp_path / "b.csv")
    assert list(rows[0])[-2:] == ["score_recalibrated", "score_recalibrated_2"]
    assert [float(row["score_recalibrated"]) for row in rows] == COLUMNS["score"].tolist()
    run("recalibrate", tmp_path / "b.csv", *options, "--write", tmp_path / "c.csv")
    assert list(read(tmp_path / "c.csv")[0])[-1] == "score_recalibrated_3"


def test_the_gain_is_measured_on_another_file(plain, tmp_path):
    y, p = spread(900)
    fresh = write_csv(tmp_path / "fresh.csv", {"label": y[600:], "score": p[600:]})
    printed = " ".join(run("recalibrate", plain, "--test", fresh).stdout.split())
    assert "after is better calibrated" in printed
    content = json.loads(run("recalibrate", plain, "--test", fresh, "--format", "json").stdout)
    assert content["test"]["n"] == [300, 300]
    assert content["test"]["errors"][1] < content["test"]["errors"][0] / 2
    assert "has no column" in refuse("recalibrate", plain, "--test", write_csv(tmp_path / "x.csv", {"a": y}))


def test_several_classes_are_tested_on_another_file(tmp_path):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 1600)
    label = (proba.cumsum(axis=1) < rng.random((1600, 1))).sum(axis=1).clip(max=2)
    sharp = proba**3 / (proba**3).sum(axis=1, keepdims=True)
    paths = []
    for name, rows in (("fit", slice(800)), ("test", slice(800, None))):
        columns = {"label": label[rows], **{f"p{k}": sharp[rows, k] for k in range(3)}}
        paths.append(write_csv(tmp_path / f"{name}.csv", columns))
    printed = run("recalibrate", paths[0], "--test", paths[1], "--write", tmp_path / "out.csv").stdout
    assert "after is better calibrated" in " ".join(printed.split())
    scores = [word for k in range(3) for word in ("--score", f"p{k}_recalibrated")]
    before = value_of(run("measure", tmp_path / "out.csv", "--score", "p?", "--format", "json"))
    after = value_of(run("measure", tmp_path / "out.csv", *scores, "--format", "json"))
    assert after < before / 2


def test_labels_whose_classes_are_not_known_are_refused_as_by_measure(tmp_path):
    words = write_csv(tmp_path / "a.csv", {"label": ["bad", "good"] * 50, "score": [0.2, 0.8] * 50})
    assert "--pos-label" in refuse("recalibrate", words)
    columns = {"label": [1, 2, 3] * 30, **{f"p{k}": [0.2, 0.3, 0.5] * 30 for k in range(3)}}
    columns["p0"], columns["p1"] = [0.5, 0.2, 0.3] * 30, [0.3, 0.5, 0.2] * 30
    assert "outside the classes" in refuse("recalibrate", write_csv(tmp_path / "b.csv", columns))


def test_bad_scores_of_another_file_are_named_with_that_file(tmp_path):
    holes = np.where(np.arange(600) % 6 == 0, "", COLUMNS["score"].astype(str))
    path = write_csv(tmp_path / "a.csv", {**COLUMNS, "score": holes})
    other = write_csv(tmp_path / "other.csv", {"score": [0.1] * 700 + [1.7]})
    options = ("--drop-missing", "--quiet", "--apply", other, "--write", tmp_path / "out.csv")
    said = refuse("recalibrate", path, *options)
    assert "other.csv: column 'score' has 1 value outside [0, 1] (first at row 701: 1.7)" in said


@pytest.mark.parametrize(
    "suffix", ["csv", "TSV", "txt", "jsonl", "json", "parquet", "pq", "arrow", "feather"]
)
def test_the_name_says_the_format_and_the_readers_take_it(plain, tmp_path, suffix):
    name = f"a.{suffix}"
    run("recalibrate", plain, "--write", tmp_path / "known.csv")
    run("recalibrate", plain, "--write", tmp_path / name)
    column = ("--label", "label", "--score", "score_recalibrated", "--format", "json")
    expected, found = (value_of(run("measure", tmp_path / file, *column)) for file in ("known.csv", name))
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["a.xlsx", "a.npz", "a.csv.gz", "a.html", "a"])
def test_other_formats_are_refused_before_anything_is_fitted(plain, tmp_path, name):
    message = refuse("recalibrate", plain, "--write", tmp_path / name)
    assert ".csv" in message or "spreadsheets" in message
    assert not (tmp_path / name).exists()


def test_names_of_columns_are_guarded_in_text_only(tmp_path):
    path = write_csv(
        tmp_path / "a.csv", {"label": COLUMNS["label"], "score": COLUMNS["score"], "=1+1": COLUMNS["score"]}
    )
    known = ("--label", "label", "--score", "score")
    for name, head in (("b.csv", "'=1+1"), ("b.parquet", "=1+1")):
        run("recalibrate", path, *known, "--write", tmp_path / name)
        frame = (pl.read_csv if name == "b.csv" else pl.read_parquet)(tmp_path / name)
        assert frame.columns == ["label", "score", head, "score_recalibrated"]


@pytest.mark.parametrize("logits", [False, True])
def test_reversed_scores_are_named(tmp_path, logits):
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, 600)
    score = -z if logits else 1 / (1 + np.exp(z))
    path = write_csv(
        tmp_path / "a.csv", {"label": (rng.random(600) < 1 / (1 + np.exp(-z))).astype(int), "score": score}
    )
    options = ("--logits",) if logits else ()
    spoken = " ".join(run("test", path, *options, code=1).stdout.split())
    (sentence,) = json.loads(run("recalibrate", path, *options, "--format", "json").stdout)["warnings"]
    assert sentence in spoken
    assert sentence in " ".join(run("recalibrate", path, *options).stdout.split())


def test_log_probabilities_are_named(tmp_path):
    path = tmp_path / "logs.csv"
    path.write_text("label,score\n" + "".join(f"{k % 2},{-0.1 * (1 + k % 7)}\n" for k in range(60)))
    assert "add --log-probabilities" in run("recalibrate", path, code=2).stderr
