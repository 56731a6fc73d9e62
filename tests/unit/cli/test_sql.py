import json
from pathlib import Path

import pytest

from support.command_line import refuse, run
from truecal.cli.sql import _label
from truecal.data.sql import cells_query

COLUMNS = ("--table", "t", "--label", "y", "--score", "p")


def test_the_query_is_printed(tmp_path):
    expected = cells_query(
        "t", label="y", score="p", weight="w", by=["a", "b"], cluster="id", dialect="duckdb"
    )
    options = (
        "--dialect",
        "duckdb",
        *COLUMNS,
        "--weight",
        "w",
        "--group",
        "a",
        "--group",
        "b",
        "--cluster",
        "id",
    )
    assert run("sql", *options).stdout == f"{expected}\n"
    assert json.loads(run("sql", *options, "--format", "json").stdout)["query"] == expected
    run("sql", *options, "-o", tmp_path / "cells.sql")
    assert (tmp_path / "cells.sql").read_text() == f"{expected}\n"


@pytest.mark.parametrize(
    ("text", "label"), [(None, None), ("1", 1), ("0.5", 0.5), ("TRUE", True), ("yes", "yes"), ("'1'", "1")]
)
def test_labels(text, label):
    assert _label(text) == label
    assert type(_label(text)) is type(label)


def test_labels_reach_the_query():
    options = ("sql", "--dialect", "postgres", *COLUMNS)
    assert "\"y\" = 'ja'" in run(*options, "--pos-label", "ja", "--neg-label", "nein").stdout
    assert '"y" = TRUE' in run(*options, "--pos-label", "true").stdout


def test_what_is_refused():
    assert "--neg-label must be given" in refuse(
        "sql", "--dialect", "postgres", *COLUMNS, "--pos-label", "ja"
    )
    assert "oracle" in run("sql", "--dialect", "oracle", *COLUMNS, code=2).stderr


def test_the_model_of_the_dbt_example_is_what_the_command_prints():
    model = Path(__file__).parents[3] / "examples/dbt/models/calibration_cells.sql"
    options = ("--table", "{{ ref('predictions') }}", "--label", "y", "--score", "p", "--group", "model")
    assert run("sql", "--dialect", "snowflake", *options).stdout == model.read_text()
