"""From a table in a database to the results of the commands, by way of a file of cells."""

import json
import sqlite3
from contextlib import closing

import pandas as pd
import pytest

import truecal
from support.command_line import COLUMNS, refuse, run

GIVEN = {"label": "label", "score": "score", "weight": "weight"}


def write_cells(frame, path, **options):
    """Let SQLite reduce the rows to cells, and write them as CSV."""
    with closing(sqlite3.connect(":memory:")) as base:
        frame.to_sql("t", base, index=False)
        query = truecal.cells_query("t", **GIVEN, by="region", dialect="sqlite", **options)
        pd.read_sql_query(query, base).to_csv(path, index=False)


@pytest.fixture(scope="module")
def rows():
    return pd.DataFrame(COLUMNS)


@pytest.fixture(scope="module")
def cells(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("cells") / "cells.csv"
    write_cells(rows, path)
    return path


def test_measure(cells, rows):
    found = json.loads(run("measure", cells, "--cells", "--format", "json").stdout)
    expected = truecal.estimate(truecal.summarize(rows, **GIVEN, weighting="sampling"), confidence_level=0.95)
    assert found["value"] == pytest.approx(expected.value, rel=1e-9)
    assert found["interval"]["low"] == pytest.approx(expected.interval.low, rel=1e-9)
    assert found["detected"] == ["merged the groups of 'region'; --group measures each"]


def test_measure_by_group(cells, rows):
    found = json.loads(run("measure", cells, "--cells", "--group", "region", "--format", "json").stdout)
    for row in found["results"][1:]:
        part = truecal.summarize(rows[rows.region == row["group"]], **GIVEN, weighting="sampling")
        assert row["value"] == pytest.approx(truecal.estimate(part).value, rel=1e-9)


def test_rows_are_not_sums_of_weights(cells, rows, tmp_path):
    """The sentences of cells are those of the rows."""
    path = tmp_path / "rows.csv"
    rows.to_csv(path, index=False)
    given = ("--label", "label", "--score", "score", "--weight", "weight", "--group", "region")
    of_rows = run("measure", path, *given, "-q").stdout.replace(str(path), "")
    of_cells = run("measure", cells, "--cells", "--group", "region", "-q").stdout.replace(str(cells), "")
    assert "600 rows, effective n = 514.3" in of_cells
    heads = [[line.split()[:5] for line in text.splitlines()[:4]] for text in (of_rows, of_cells)]
    assert heads[0] == heads[1]
    sizes = [
        [row.split()[3] for row in text.splitlines() if row.startswith(("(all)", "east", "north", "south"))]
        for text in (of_rows, of_cells)
    ]
    assert sizes[0] == sizes[1]


@pytest.mark.filterwarnings("ignore::truecal.CalibrationWarning")  # equal scores look like repeated rows
def test_weights_may_be_counts(cells, rows):
    found = json.loads(run("test", cells, "--cells", "--counts", "--format", "json", code=(0, 1)).stdout)
    expected = truecal.calibration_test(truecal.summarize(rows, **GIVEN), rng=0)
    assert found["result"]["pvalue"] == pytest.approx(expected.pvalue)


def test_clusters(rows, tmp_path):
    """Rows five by five depend on each other, and lie in several groups."""
    clustered = rows.assign(id=[f"c{k // 5}" for k in range(600)])
    write_cells(clustered, tmp_path / "cells.csv", cluster="id")
    found = json.loads(
        run("measure", tmp_path / "cells.csv", "--cells", "--group", "region", "--format", "json").stdout
    )
    cells = truecal.summarize(clustered, **GIVEN, weighting="sampling", cluster="id")
    expected = truecal.estimate(cells, confidence_level=0.95)
    assert found["interval"]["low"] == pytest.approx(expected.interval.low, rel=1e-9)
    assert found["columns"]["cluster"] == "cluster"
    assert found["results"][0]["n_clusters"] == 120


def test_report(cells, tmp_path):
    run("report", cells, "--cells", "--group", "region", "--quick", "-o", tmp_path / "page.html")
    assert "region" in (tmp_path / "page.html").read_text()


def test_what_is_refused(cells, tmp_path):
    assert "--cells cannot be combined with '--label'" in refuse("measure", cells, "--cells", "--label", "y")
    assert "no column 'site'" in refuse("measure", cells, "--cells", "--group", "site")
    assert "no column 'cell'" in refuse("measure", "flights", "--cells")
    table = pd.read_csv(cells)
    table.loc[0, "cell"], table.loc[1, "cell"] = -2, -1
    table.to_csv(tmp_path / "bad.csv", index=False)
    said = refuse("measure", tmp_path / "bad.csv", "--cells")
    assert "outside [0, 1]" in said  # all faults, not only the first
    assert "missing" in said
