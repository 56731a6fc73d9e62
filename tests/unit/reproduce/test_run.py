"""The runner: what it notes, what it skips, and how it goes on after an interruption."""

from __future__ import annotations

import csv
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import truecal
from truecal.cli.reproduce import command
from truecal.reproduce import run
from truecal.reproduce.contract import compare_with_paper
from truecal.reproduce.simulate import draw_estimates, run_study

QUICKEST = "appendix_d"


@pytest.mark.slow
def test_a_finished_part_is_skipped_unless_forced_or_asked_for_otherwise(settings):
    lines: list[str] = []
    run(settings, [QUICKEST], report=lines.append)
    written = (settings.out / f"{QUICKEST}.csv").stat().st_mtime_ns
    run(settings, [QUICKEST], report=lines.append)
    assert "already finished" in lines[-1]
    assert (settings.out / f"{QUICKEST}.csv").stat().st_mtime_ns == written
    run(settings, [QUICKEST], report=lines.append, force=True)
    assert (settings.out / f"{QUICKEST}.csv").stat().st_mtime_ns > written
    run(replace(settings, seed=2), [QUICKEST], report=lines.append)
    assert "already finished" not in lines[-2]
    assert json.loads((settings.out / f"{QUICKEST}.json").read_text())["seed"] == 2


@pytest.mark.slow
def test_a_part_whose_file_was_lost_is_run_again(settings):
    run(settings, [QUICKEST])
    (settings.out / f"{QUICKEST}.png").unlink()
    run(settings, [QUICKEST])
    assert (settings.out / f"{QUICKEST}.png").exists()


def test_notes_say_how_files_came_about(settings):
    run(settings, [QUICKEST], command="truecal reproduce --only appendix_d")
    note = json.loads((settings.out / f"{QUICKEST}.json").read_text())
    assert (note["seed"], note["effort"], note["version"]) == (1, "tiny", truecal.__version__)
    assert note["command"] == "truecal reproduce --only appendix_d"
    assert all((settings.out / name).exists() for name in note["files"])
    manifest = json.loads((settings.out / "manifest.json").read_text())
    assert [part["part"] for part in manifest["parts"]] == [QUICKEST]


@pytest.mark.slow
def test_the_summary_holds_all_parts_in_the_order_of_the_paper(settings):
    run(settings, [QUICKEST])
    rows = run(settings, ["fig2"])
    assert list(dict.fromkeys(row["part"] for row in rows)) == ["fig2", QUICKEST]
    with (settings.out / "comparison.csv").open(newline="") as file:
        kept = list(csv.DictReader(file))
    assert [row["quantity"] for row in kept] == [row["quantity"] for row in rows]


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_workers(settings, tmp_path):
    population = truecal.Population(truecal.simulation.BetaScores(2, 1), truecal.simulation.PowerCurve(2))
    options = {"n": 2**17, "estimators": ["ks"], "repeats": 5}  # three blocks
    one = draw_estimates(settings, "one", population, **options)["ks"]
    two = draw_estimates(replace(settings, out=tmp_path / "two", n_jobs=2), "one", population, **options)[
        "ks"
    ]
    np.testing.assert_array_equal(one, two)
    assert len(np.unique(one)) == 5


def test_estimates_and_studies_that_were_kept_are_not_drawn_again(settings, monkeypatch):
    population = truecal.Population(truecal.simulation.BetaScores(2, 1), truecal.simulation.PowerCurve(2))
    first = draw_estimates(settings, "kept", population, n=50, estimators=["ks", "em_bin"], repeats=3)
    rows = run_study(settings, "kept", {"a": population}, estimators=["em_bin"], sizes=[50], repeats=3)
    monkeypatch.setattr(truecal.Population, "sample_many", None)
    again = draw_estimates(settings, "kept", population, n=50, estimators=["ks"], repeats=3)
    np.testing.assert_array_equal(first["ks"], again["ks"])
    assert (
        run_study(settings, "kept", {"a": population}, estimators=["em_bin"], sizes=[50], repeats=3) == rows
    )


def test_comparisons_are_by_joint_standard_errors():
    assert compare_with_paper("q", 1.0, 1.29, 0.1).agrees
    assert not compare_with_paper("q", 1.0, 1.31, 0.1).agrees
    assert compare_with_paper("q", 1.0, 1.41, 0.1, published_error=0.1).agrees


def test_the_command_prints_the_comparison_and_lists_the_parts(tmp_path):
    runner = CliRunner()
    done = runner.invoke(command, ["--only", QUICKEST, "--quick", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "bins of the sweep when calibrated" in done.stdout
    assert (tmp_path / "out" / f"{QUICKEST}.svg").exists()
    listed = runner.invoke(command, ["--list"])
    assert "Figure 4" in listed.stdout
    assert "appendix_c" in listed.stdout


def test_a_folder_that_is_not_there_is_named(settings, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        run(replace(settings, data=tmp_path / "nowhere"), ["table1"])


@pytest.mark.slow
def test_pickled_logits_of_the_papers_layout_are_read(settings, data, tmp_path):
    folder = tmp_path / "logits"
    folder.mkdir()
    with np.load(data / "two_splits.npz") as file:
        content = ((file["val_logits"], file["val_labels"]), (file["test_logits"], file["test_labels"]))
    with (folder / "probs_resnet110_c10_logits.p").open("wb") as target:
        pickle.dump(content, target)
    run(replace(settings, logits=folder), ["table1", "table2"])
    with (settings.out / "table1_real.csv").open(newline="") as file:
        assert [row["model"] for row in csv.DictReader(file)] == ["resnet110_c10"]
    with (settings.out / "table2.csv").open(newline="") as file:
        ways = {
            row["way"]
            for row in csv.DictReader(file)
            if row["set"] == "resnet110_c10" and row["scores"] == "real"
        }
    assert ways == {"printed", "mle", "recipe", "recipe_coarse"}
