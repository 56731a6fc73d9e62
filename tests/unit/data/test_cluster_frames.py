"""Sums by cluster and cell, from frames in memory; DuckDB, Dask and Spark are in tests/engines."""

import polars as pl
import pyarrow as pa
import pytest

from support import engine_contract as contract

MAKERS = {
    "polars": pl.from_arrow,
    "lazy": lambda table: pl.from_arrow(table).lazy(),
    "pandas": pa.Table.to_pandas,
    "arrow": lambda table: table,
}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


def test_the_same_answers_as_from_arrays(make):
    contract.check_clusters(make)


def test_blocks_of_clusters(make, monkeypatch):
    contract.check_blocks(make, monkeypatch)


def test_bad_clusters_are_refused(make):
    contract.check_bad_clusters(make)
