"""The query of `truecal sql` on DuckDB, PostgreSQL and Spark, and read by sqlglot in every dialect."""

import json
import subprocess
import sys

import duckdb
import polars as pl
import pytest
import sqlglot
from sqlglot import exp

import truecal
from support import sql_contract as contract
from truecal.data.sql import DIALECTS


class DuckDB:
    dialect = "duckdb"

    def __init__(self):
        self.connection = duckdb.connect()

    def load(self, name, table):
        self.connection.register(name, table)

    def run(self, query):
        return self.connection.sql(query)


class Spark:
    dialect = "spark"

    def __init__(self, session):
        self.session = session

    def load(self, name, table):
        self.session.createDataFrame(table).repartition(4).createOrReplaceTempView(name)

    def run(self, query):
        return self.session.sql(query)


@pytest.fixture(scope="module", params=["duckdb", "postgres", "spark"])
def database(request):
    if request.param == "duckdb":
        base = DuckDB()
    elif request.param == "spark":
        base = Spark(request.getfixturevalue("spark"))
    else:
        base = request.getfixturevalue("postgres")
    base.load("predictions", contract.TABLE)
    return base


@pytest.mark.parametrize("case", contract.CASES)
def test_the_same_cells_as_summarize(database, case):
    contract.check_case(database, case)


def test_bad_rows_are_counted_and_refused(database):
    contract.check_faults(database)


def test_names_are_quoted(database):
    contract.check_names(database)


def test_from_a_table_in_postgresql_to_a_result(postgres, tmp_path):
    """The commands of the guide: the query, psql, and the error with its interval."""
    postgres.load("predictions", contract.TABLE)
    truecal_command = [sys.executable, "-m", "truecal"]
    options = ["--table", "public.predictions", "--label", "truth", "--pos-label", "true", "--score", "score"]
    query = subprocess.check_output([*truecal_command, "sql", "--dialect", "postgres", *options], text=True)
    (tmp_path / "cells.csv").write_text(postgres.psql(query, "--csv"))
    command = [*truecal_command, "measure", tmp_path / "cells.csv", "--cells", "--format", "json"]
    found = json.loads(subprocess.check_output(command))
    expected = truecal.estimate(
        truecal.summarize(pl.from_arrow(contract.TABLE), label="truth", score="score"), confidence_level=0.95
    )
    assert found["value"] == pytest.approx(expected.value, rel=1e-9)
    assert found["interval"]["high"] == pytest.approx(expected.interval.high, rel=1e-9)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_sqlglot_reads_it_and_finds_the_same_cells(dialect):
    """Queries for databases that are not here are translated by sqlglot and run on DuckDB."""
    table = '"predictions"' if dialect == "snowflake" else "predictions"
    columns = {"label": '"label"', "score": '"score"', "weight": '"weight"', "by": '"site"'}
    query = truecal.cells_query(table, **columns, dialect=dialect)
    (parsed,) = sqlglot.parse(query, dialect=dialect, error_level=sqlglot.ErrorLevel.RAISE)
    parts = {found.alias for found in parsed.find_all(exp.CTE)}
    assert {found.name for found in parsed.find_all(exp.Table)} == {"predictions", *parts}
    assert all(part.startswith("truecal_") for part in parts)  # so that no table of the user has their names
    if dialect in ("bigquery", "snowflake", "redshift"):
        base = DuckDB()
        base.load("predictions", contract.TABLE)
        frame, options = (
            pl.from_arrow(contract.TABLE),
            {"label": "label", "score": "score", "weight": "weight"},
        )
        expected = truecal.summarize(frame, **options, weighting="sampling")
        contract.assert_same(truecal.read_cells(base.run(parsed.sql(dialect="duckdb"))), expected)
