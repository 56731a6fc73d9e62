"""Settings, comparisons, parts, and the files of a run."""

from __future__ import annotations

import csv
import json

import pytest

import truecal
from truecal.reproduce import NAMES, Settings, load_part, run
from truecal.reproduce._contract import as_markdown, compare_with_paper, write_csv

QUICKEST = "appendix_d"


def test_comparisons_are_by_joint_standard_errors():
    assert compare_with_paper("q", 1.0, 1.29, 0.1).agrees
    assert not compare_with_paper("q", 1.0, 1.31, 0.1).agrees
    assert compare_with_paper("q", 1.0, 1.41, 0.1, published_error=0.1).agrees


def test_the_effort_selects_one_of_three_values(tmp_path):
    for effort, value in (("full", 1), ("quick", 2), ("tiny", 3)):
        assert Settings(out=tmp_path, effort=effort).of(1, 2, 3) == value


def test_the_work_folder_is_made_when_it_is_needed(tmp_path):
    settings = Settings(out=tmp_path / "out")
    assert not settings.out.exists()
    assert settings.work == tmp_path / "out" / "work"
    assert settings.work.is_dir()


def test_names_are_modules_with_a_function_of_that_name():
    assert len(set(NAMES)) == len(NAMES)
    assert {load_part(name).name for name in NAMES} == set(NAMES)
    with pytest.raises(ValueError, match="fig4"):
        load_part("fig44")


def test_a_record_has_command_settings_and_files(settings):
    run(settings, [QUICKEST], command="truecal reproduce --only appendix_d")
    record = json.loads((settings.out / f"{QUICKEST}.json").read_text())
    assert (record["seed"], record["effort"], record["version"]) == (1, "tiny", truecal.__version__)
    assert record["command"] == "truecal reproduce --only appendix_d"
    assert all((settings.out / name).exists() for name in record["files"])
    manifest = json.loads((settings.out / "manifest.json").read_text())
    assert [part["part"] for part in manifest["parts"]] == [QUICKEST]


@pytest.mark.slow
def test_the_summary_has_all_parts_in_the_order_of_the_paper(settings):
    run(settings, [QUICKEST])
    rows = run(settings, ["fig2"])
    assert list(dict.fromkeys(row["part"] for row in rows)) == ["fig2", QUICKEST]
    with (settings.out / "comparison.csv").open(newline="") as file:
        kept = list(csv.DictReader(file))
    assert [row["quantity"] for row in kept] == [row["quantity"] for row in rows]


def test_markdown_has_a_table_for_each_place_and_numbers_each_note_once():
    row = {
        "where": "Table 9", "quantity": "q", "published": "1", "reproduced": "2", "error": 0.123, "agrees": False,
        "note": "Because.",
    }  # fmt: skip
    text = as_markdown([row, {**row, "agrees": None, "note": ""}, row, {**row, "where": "Figure 9"}])
    head = ["| quantity | paper | here | agrees |", "|---|---|---|---|"]
    noted = "| q | 1 | 2 ± 0.12 | **no** [1] |"
    notes = ["", "1. Because."]
    assert text.splitlines() == [
        "## Table 9", "", *head, noted, "| q | 1 | 2 ± 0.12 |  |", noted, *notes, "",
        "## Figure 9", "", *head, noted, *notes,
    ]  # fmt: skip


def test_csv_has_the_columns_of_all_rows_and_six_digits(tmp_path):
    write_csv(tmp_path / "t.csv", [{"a": 1 / 3}, {"a": 2, "b": "x"}])
    assert (tmp_path / "t.csv").read_text().splitlines() == ["a,b", "0.333333,", "2,x"]
