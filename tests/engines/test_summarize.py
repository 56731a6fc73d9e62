"""`summarize` on DuckDB, Dask and Spark, by the contract that all engines share."""

import pytest

from support import engine_contract as contract


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


def test_clusters(make, request):
    contract.check_clusters(make, few="dask" in request.node.name)  # Dask takes ten seconds for each


def test_blocks_of_clusters(make, monkeypatch):
    contract.check_blocks(make, monkeypatch)


def test_bad_clusters(make):
    contract.check_bad_clusters(make)
