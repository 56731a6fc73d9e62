"""Files of a run: records, the summary, CSV and Markdown."""

from __future__ import annotations

import csv
import json

import pytest

import truecal
from truecal.reproduce import run
from truecal.reproduce.files import as_markdown, write_csv

QUICKEST = "appendix_d"


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


def test_markdown_numbers_each_note_once():
    row = {
        "where": "Table 9", "quantity": "q", "source": "paper", "published": "1", "reproduced": "2",
        "error": 0.123, "agrees": False, "note": "Because.",
    }  # fmt: skip
    lines = as_markdown([row, {**row, "agrees": None, "note": "", "source": "independent"}, row]).splitlines()
    assert lines[-5:] == [
        "| Table 9 | q | 1 | 2 ± 0.12 | **no** [1] |",
        "| Table 9 | q | 1 (independent) | 2 ± 0.12 |  |",
        "| Table 9 | q | 1 | 2 ± 0.12 | **no** [1] |",
        "",
        "1. Because.",
    ]


def test_csv_has_the_columns_of_all_rows_and_six_digits(tmp_path):
    write_csv(tmp_path / "t.csv", [{"a": 1 / 3}, {"a": 2, "b": "x"}])
    assert (tmp_path / "t.csv").read_text().splitlines() == ["a,b", "0.333333,", "2,x"]
