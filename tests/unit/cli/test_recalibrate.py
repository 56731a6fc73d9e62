import csv
import json

import numpy as np
import pytest

import truecal
from support.command_line import COLUMNS, refuse, run, spread, value_of, write_csv


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("predictions") / "plain.csv")


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
