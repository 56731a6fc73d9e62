"""What the query of `truecal.cells_query` must do in every database: the cells of `summarize`, and bad rows counted.

`tests/unit` runs it on SQLite, `tests/engines` on DuckDB, PostgreSQL and Spark. A database has a `dialect`, `load`
takes a name and a PyArrow table, and `run` returns the result of a query as a frame.
"""

import sqlite3

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import truecal
from support.engine_contract import make_table
from truecal.exceptions import InputError

TABLE = make_table()
#: What is asked of the database; `summarize` needs no negative label.
CASES = {
    "plain": {"score": "score", "label": "label"},
    "float32": {"score": "single", "label": "tiny"},
    "rounded": {"score": "tenth", "label": "real"},
    "booleans": {"score": "score", "label": "truth", "pos_label": True},
    "text": {"score": "score", "label": "answer", "pos_label": "yes", "neg_label": "no"},
    "other": {"score": "score", "label": "label", "pos_label": 0},
    "weights": {"score": "score", "label": "label", "weight": "weight"},
    "groups": {"score": "score", "label": "label", "by": ["site", "day"]},
    "clusters": {"score": "score", "label": "label", "cluster": "kind"},
    "clusters, weights, groups": {
        "score": "tenth", "label": "label", "weight": "weight", "by": ["day"], "cluster": "animal",
    },
}  # fmt: skip
#: A change in one row, and the complaint about two such rows and ten good ones.
FAULTS = {
    "score null": ({"score": None}, "score has 2 missing values"),
    "score high": ({"score": 1.25}, r"score has 2 values outside \[0, 1\] \(smallest: 1.25\)"),
    "score low": ({"score": -1e-20}, r"score has 2 values outside \[0, 1\] \(smallest: -1e-20\)"),
    "score nan": (
        {"score": float("nan")},
        r"score has 2 (missing values|values outside \[0, 1\] \(smallest: NaN\))",
    ),
    "label null": ({"label": None}, "label has 2 missing labels"),
    "label other": ({"label": 7}, "label has 2 other labels"),
    "cluster null": ({"id": None}, "cluster has 2 missing values"),
    "weight null": ({"weight": None}, "weight has 2 values missing or outside"),
    "weight negative": ({"weight": -1.0}, "weight has 2 values missing or outside"),
}


class SQLite:
    """A database in memory."""

    dialect = "sqlite"

    def __init__(self):
        self.connection = sqlite3.connect(":memory:")

    def load(self, name, table):
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        names = ", ".join('"' + column.replace('"', '""') + '"' for column in table.column_names)
        quoted = '"' + name.replace('"', '""') + '"'
        self.connection.execute(f"DROP TABLE IF EXISTS {quoted}")
        self.connection.execute(f"CREATE TABLE {quoted} ({names})")
        marks = ", ".join("?" * len(table.column_names))
        self.connection.executemany(f"INSERT INTO {quoted} VALUES ({marks})", rows)

    def run(self, query):
        return pl.read_database(query, self.connection, infer_schema_length=None)


def assert_same(found, expected):
    """Cells are equal: counts and labels exactly, scores to 1e-12."""
    assert np.array_equal(found.cell, expected.cell)
    assert found.dtype == expected.dtype
    for name in ("score", "count", "positives", "lower", "squares", "positive_squares"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=0)
    assert (found.clusters is None) == (expected.clusters is None)
    if found.clusters is not None:
        assert found.clusters.n_clusters == expected.clusters.n_clusters
        for name in ("keys", "cluster", "group", "weight", "scores", "positives", "rows"):
            one, other = getattr(found.clusters, name), getattr(expected.clusters, name)
            assert (one is None) == (other is None), name
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=0, err_msg=name)


def check_case(database, case):
    options = dict(CASES[case])
    found = truecal.read_cells(
        database.run(truecal.cells_query("predictions", **options, dialect=database.dialect)),
        by=options.get("by"),
    )
    options.pop("neg_label", None)
    expected = truecal.summarize(pl.from_arrow(TABLE), **options, weighting="sampling")
    if "by" not in options:
        assert_same(found, expected)
        return
    assert list(found) == list(expected)
    for key, cells in expected.items():
        assert_same(found[key], cells)


def check_faults(database):
    """Every fault is counted, and the first is raised with notes on the others."""
    good = [{"score": 0.1 * k, "label": k % 2, "weight": 1.0, "id": k // 2} for k in range(10)]
    types = {"score": pa.float64(), "label": pa.int64(), "weight": pa.float64(), "id": pa.int64()}
    types["fault"] = pa.string()
    rows = [
        {**row, "fault": fault}
        for fault, (change, _) in FAULTS.items()
        for row in (*good, *2 * [{**good[0], **change}])
    ]
    database.load("faulty", pa.Table.from_pylist(rows, schema=pa.schema(types)))
    query = truecal.cells_query(
        "faulty",
        label="label",
        score="score",
        weight="weight",
        cluster="id",
        by="fault",
        dialect=database.dialect,
    )
    found = pl.from_arrow(nw.from_native(database.run(query)).lazy().collect().to_arrow())
    for fault, (_, complaint) in FAULTS.items():
        with pytest.raises(InputError, match=complaint) as caught:
            truecal.read_cells(found.filter(pl.col("fault") == fault))
        assert caught.value.count == 2
    with pytest.raises(InputError) as caught:
        truecal.read_cells(found)
    notes = [str(caught.value), *caught.value.__notes__]
    assert sum(int(note.split(" has ")[1].split()[0]) for note in notes) == 2 * len(FAULTS)


def check_names(database):
    """Reserved words, blanks, quotes, dots and attempts to end the statement are names and nothing else."""
    names = (
        ["order", "a b", 'say "p"', "t.p"]
        if database.dialect != "spark"
        else ["order", "a b", "say `p`", "t-p"]
    )
    evil = "x'; DROP TABLE predictions; --"
    columns = {
        names[0]: [0, 1, 1, 0],
        names[1]: [0.2, 0.7, 0.9, 0.9],
        names[2]: [1.0, 2, 0, 1],
        names[3]: list("aabb"),
    }
    database.load("select", pa.table({**columns, evil: ["it's", "it's", "no", "no"]}))
    options = {
        "label": names[0],
        "score": names[1],
        "weight": names[2],
        "by": names[3],
        "dialect": database.dialect,
    }
    found = truecal.read_cells(database.run(truecal.cells_query("select", **options)), by=names[3])
    assert {key: (cells.n, cells.positives.sum()) for key, cells in found.items()} == {
        "a": (3, 2),
        "b": (1, 0),
    }
    options = {
        "label": evil,
        "score": names[1],
        "pos_label": "it's",
        "neg_label": "no",
        "dialect": database.dialect,
    }
    assert truecal.read_cells(database.run(truecal.cells_query("select", **options))).positives.sum() == 2
    for table in ("given", "inside", "cells"):  # parts of the query have no such names
        database.load(table, pa.table({"y": [0, 1], "p": [0.2, 0.7]}))
        query = truecal.cells_query(table, label="y", score="p", dialect=database.dialect)
        assert truecal.read_cells(database.run(query)).n == 2
    check_misspelt(database)
    check_groups_in_quotes(database)


def check_misspelt(database):
    """A name that no column has is an error of the database, whatever it is a name of."""
    for what in ("label", "score", "weight", "by", "cluster"):
        options = {"label": "label", "score": "score", "dialect": database.dialect, what: "nosuch"}
        with pytest.raises(Exception, match=r"(?i)nosuch"):
            database.run(truecal.cells_query("predictions", **options))


def check_groups_in_quotes(database):
    """A group whose name is given in quotes has that name in the result, without the quotes."""
    frame = pa.table({"y": [0, 1, 1], "p": [0.2, 0.7, 0.9], "Region X": list("aab")})
    database.load("quoted", frame)
    query = truecal.cells_query("quoted", label="y", score="p", by='"Region X"', dialect=database.dialect)
    found = database.run(query)
    assert "Region X" in found.columns
    for by in ("Region X", '"Region X"'):
        assert {key: cells.n for key, cells in truecal.read_cells(found, by=by).items()} == {"a": 2, "b": 1}
