"""`summarize` on DuckDB, Dask and Spark, by the contract that all engines share."""

import contextlib
import io
import re

import pytest

from support import engine_contract as contract
from truecal import summarize
from truecal.data._expressions import collect


@pytest.mark.parametrize("case", contract.CASES)
def test_the_same_cells_as_from_arrays(make, case):
    contract.check_case(make, case)


@pytest.mark.parametrize("fault", contract.FAULTS)
def test_one_bad_row_in_the_middle_is_found(make, fault):
    contract.check_fault(make, fault)


def test_groups(make):
    contract.check_groups(make)


def test_logits(make):
    contract.check_logits(make)


def test_many_classes(make):
    contract.check_many_classes(make)


def test_every_fault_is_counted(make):
    contract.check_several_rows(make)


def test_an_empty_frame(make):
    contract.check_empty(make)


def test_labels_of_every_kind(make):
    contract.check_kinds_of_labels(make)
    contract.check_labels_counted_from_one(make)


def test_clusters(make, request):
    contract.check_clusters(make, few="dask" in request.node.name)  # Dask takes ten seconds for each


def test_blocks_of_clusters(make, monkeypatch):
    contract.check_blocks(make, monkeypatch)


def test_spark_compiles_the_sums_of_clusters(spark, monkeypatch):
    """Java interprets methods of more than 8,000 bytes, which made sums of clusters twenty times slower."""
    sizes = []

    def collect_and_measure(frame):
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            frame.to_native().explain(mode="codegen")
        sizes.extend(map(int, re.findall(r"maxMethodCodeSize:(\d+)", shown.getvalue())))
        return collect(frame)

    monkeypatch.setattr("truecal.data.frames.collect", collect_and_measure)
    monkeypatch.setattr("truecal.data.frames.MOST_PAIRS", 1000)
    frame = spark.createDataFrame(contract.make_table())
    summarize(frame, score="score", label="label", cluster="patient")
    assert len(sizes) > 2
    assert max(sizes) < 8000


def test_bad_clusters(make):
    contract.check_bad_clusters(make)
