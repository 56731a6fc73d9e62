"""Real engines, each started once: Spark with two threads, a Dask cluster of two processes, DuckDB."""

import os
import shutil

import duckdb
import pyarrow as pa
import pytest
from dask import config as dask_config
from dask import dataframe as dd
from distributed import Client, LocalCluster
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A local Spark with two threads, which cuts every frame into four partitions and every sum into three."""
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java 17 or newer, and there is no java here")
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": folder,
        "spark.sql.adaptive.enabled": "false",  # which would join small partitions into one
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("truecal")
    for name, value in settings.items():
        builder = builder.config(name, str(value))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def client():
    """A Dask cluster: two worker processes of one thread each."""
    dask_config.set({"distributed.comm.timeouts.connect": "60s"})
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", host="127.0.0.1"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(params=["duckdb", "dask", "spark"])
def make(request):
    """A function from a PyArrow table to a frame of the engine, in several parts."""
    if request.param == "duckdb":
        return lambda table: duckdb.from_arrow(table)
    if request.param == "dask":
        request.getfixturevalue("client")
        return lambda table: dd.from_pandas(table.to_pandas(types_mapper=_nullable), npartitions=4)
    session = request.getfixturevalue("spark")
    return lambda table: session.createDataFrame(table).repartition(4)


def _nullable(kind):
    # A NumPy column of booleans has no place for a null, and would become one of objects.
    import pandas as pd

    return pd.BooleanDtype() if pa.types.is_boolean(kind) else None
