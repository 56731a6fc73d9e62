"""compare, plan, recalibrate, estimators, and what all commands share."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import truecal
from support.command_line import COLUMNS, refuse, run, spread, write_csv


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("predictions") / "plain.csv")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return write_csv(folder / "m.csv", {**COLUMNS, "mended": COLUMNS["score"] ** 2})


# --- compare ---------------------------------------------------------------------------------------


def test_compare_names_the_better_model(models):
    chosen = ("--score", "score", "--score", "mended")
    assert "mended is better calibrated" in run("compare", models, *chosen).stdout
    (found,) = json.loads(run("compare", models, *chosen, "--format", "json").stdout)["results"]
    truth = truecal.compare(COLUMNS["label"], COLUMNS["score"], COLUMNS["score"] ** 2)
    assert found["difference"] == pytest.approx(truth.difference)
    assert found["names"] == ["score", "mended"]


def test_compare_needs_two_models(models):
    for chosen in (("score",), ("score", "score")):
        options = [part for name in chosen for part in ("--score", name)]
        assert "compare needs two models" in refuse("compare", models, *options)


# --- plan ------------------------------------------------------------------------------------------


def test_plan_both_ways():
    content = json.loads(run("plan", "--error", "0.1", "--repeats", "100", "--format", "json").stdout)
    assert 200 < content["results"][0]["n"] < 700
    content = json.loads(run("plan", "--rows", "350", "--repeats", "100", "--format", "json").stdout)
    assert 0.07 < content["results"][0]["true_error"] < 0.14
    assert "0.1000" in run("plan", "--error", "0.1", "--repeats", "50").stdout


def test_plan_draws(tmp_path, monkeypatch):
    from truecal.cli import plan

    monkeypatch.setattr(plan, "_PLOTTED_SIZES", (100, 400))
    run("plan", "--error", "0.2", "--repeats", "50", "--plot", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "must end in" in refuse("plan", "--error", "0.2", "--plot", tmp_path / "a.bmp")


def test_plan_refuses_what_cannot_be():
    assert "Give --error" in refuse("plan")
    assert "true_error must lie between" in refuse("plan", "--error", "2")


# --- recalibrate -----------------------------------------------------------------------------------


def test_recalibrate_writes_scores(plain, tmp_path):
    run("recalibrate", plain, "--write", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    mended = np.array([float(row["score_recalibrated"]) for row in rows])
    before = truecal.calibration_error(COLUMNS["label"], COLUMNS["score"])
    assert truecal.calibration_error(COLUMNS["label"], mended) < before / 2


def test_recalibrate_another_file(plain, tmp_path):
    (tmp_path / "new.csv").write_text("score\n0.2\n0.9\n")
    run("recalibrate", plain, "--apply", tmp_path / "new.csv", "--write", tmp_path / "out.csv")
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3
    (tmp_path / "odd.csv").write_text("scores\n0.2\n0.9\n")
    said = refuse("recalibrate", plain, "--apply", tmp_path / "odd.csv", "--write", tmp_path / "no.csv")
    assert "odd.csv has no column 'score'. It has: 'scores'" in said
    assert not (tmp_path / "no.csv").exists()
    assert "--apply needs --write" in refuse("recalibrate", plain, "--apply", tmp_path / "new.csv")


def test_a_calibrated_model_is_left_alone(tmp_path):
    y, p = spread(600, 1)
    path = write_csv(tmp_path / "a.csv", {"label": y, "score": p})
    content = json.loads(run("recalibrate", path, "--format", "json").stdout)
    assert content["leave_alone"] is True


# --- All of them -----------------------------------------------------------------------------------


def test_estimators_are_listed():
    names = [row["name"] for row in json.loads(run("estimators", "--format", "json").stdout)["results"]]
    assert names == [spec.name for spec in truecal.list_estimators()]


def python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    return done.stdout


def test_help_imports_nothing_heavy():
    code = """
import sys
from truecal.__main__ import main
sys.argv = ["truecal", "--help"]
try:
    main()
except SystemExit:
    pass
print([name for name in ("numpy", "scipy", "polars", "matplotlib", "rich", "jinja2") if name in sys.modules])
"""
    said = python(code)
    assert "measure" in said
    assert "Completion" in said
    assert said.splitlines()[-1] == "[]"


def test_completion_knows_commands_and_options():
    code = "from truecal.__main__ import main; main()"
    asked = {"_TRUECAL_COMPLETE": "bash_complete", "COMP_WORDS": "truecal re", "COMP_CWORD": "1"}
    assert {"plain,report", "plain,recalibrate", "plain,reproduce"} == set(python(code, **asked).split())
    asked |= {"COMP_WORDS": "truecal measure --no", "COMP_CWORD": "2"}
    assert python(code, **asked).split() == ["plain,--norm"]


def test_every_command_has_help():
    from truecal.cli import COMMANDS

    for name in COMMANDS:
        assert "Usage:" in run(name, "--help").stdout


def test_progress_is_shown_on_a_terminal_only(capsys, monkeypatch):
    from truecal.cli._output import stage

    with stage("reading"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with stage("reading"):
        pass
    assert "reading ..." in capsys.readouterr().err


def test_an_interrupt_ends_with_its_usual_code(plain, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("truecal.inference.estimate.estimate", interrupt)
    assert run("measure", plain, code=130).stderr.endswith("truecal: interrupted.\n")
