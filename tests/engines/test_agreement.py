"""The same rows on every engine: the same cells, and estimates near those from the rows themselves."""

import duckdb
import polars as pl
import pytest
from dask import dataframe as dd

import truecal
from support.engine_contract import assert_same
from truecal.data import as_sample
from truecal.data.cells import Cells
from truecal.data.frames import summarize

N_PARTS = 5

#: How near estimates from cells must be at 200,000 rows.
BOUNDS = {"ew_bin": 1e-8, "ew_debias": 1e-8, "em_bin": 5e-5, "em_debias": 5e-5, "ks": 1e-5, "kde": 1e-5}


@pytest.fixture(scope="module", params=["resnet110_c10", "densenet161_imgnet"])
def rows(request):
    return truecal.paper.population(request.param).sample(200_000, rng=0)


@pytest.fixture(scope="module")
def files(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    y, p = rows
    for k in range(N_PARTS):
        pl.DataFrame({"p": p[k::N_PARTS], "y": y[k::N_PARTS]}).write_parquet(folder / f"part-{k}.parquet")
    return folder


def test_all_engines_agree(rows, files, spark, client):
    y, p = rows
    frames = {
        "polars": pl.scan_parquet(files / "*.parquet"),
        "duckdb": duckdb.read_parquet(str(files / "*.parquet")),
        "dask": dd.read_parquet(files),
        "spark": spark.read.parquet(str(files)),
    }
    assert frames["spark"].rdd.getNumPartitions() > 1
    assert frames["dask"].npartitions > 1
    exact = Cells.from_sample(as_sample(y, p))
    for frame in frames.values():
        cells = summarize(frame, score="p", label="y")
        assert_same(cells, exact)
        for estimator, bound in BOUNDS.items():
            near = truecal.calibration_error(cells, estimator=estimator)
            assert near == pytest.approx(truecal.calibration_error(y, p, estimator=estimator), abs=bound)


def test_cells_of_one_engine_are_merged_with_those_of_another(rows, files, spark, tmp_path):
    y, p = rows
    first = summarize(duckdb.read_parquet(str(files / "part-[01].parquet")), score="p", label="y")
    rest = summarize(
        spark.read.parquet(*(str(files / f"part-{k}.parquet") for k in (2, 3, 4))), score="p", label="y"
    )
    first.save(tmp_path / "first.npz")
    assert_same(Cells.load(tmp_path / "first.npz").merge(rest), Cells.from_sample(as_sample(y, p)))
