"""Real engines, each started once: Spark with two threads, a Dask cluster of two processes, DuckDB, PostgreSQL."""

import io
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv
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


_POSTGRES_TYPES = {
    "double": "double precision",
    "float": "real",
    "int8": "smallint",
    "int64": "bigint",
    "bool": "boolean",
}


class Postgres:
    """A server of its own, without a network, in a folder that is removed; psql is its client."""

    dialect = "postgres"

    def __init__(self, programs):
        self.folder = Path(tempfile.mkdtemp(prefix="truecal-postgres-"))
        self._programs = programs
        # The server refuses to run as root; Debian's package has made a user for it.
        self._user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self._user:
            shutil.chown(self.folder, "postgres")
        self._call(
            "initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync", "-D", self.folder / "data"
        )
        settings = f"-c listen_addresses= -c fsync=off -k {self.folder}"
        log = self.folder / "log"
        self._call("pg_ctl", "-D", self.folder / "data", "-l", log, "-o", settings, "-w", "start")

    def _call(self, program, *arguments):
        command = [*self._user, str(self._programs / program), *map(str, arguments)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/tmp")

    def stop(self):
        self._call("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "stop")
        shutil.rmtree(self.folder)

    def psql(self, script, *options):
        command = [
            self._programs / "psql",
            "-h",
            self.folder,
            "-U",
            "postgres",
            "-qX",
            "-v",
            "ON_ERROR_STOP=1",
        ]
        result = subprocess.run([*command, *options], input=script, capture_output=True, text=True)
        if result.returncode:
            raise RuntimeError(result.stderr)  # what the server says, as the other databases do
        return result.stdout

    def load(self, name, table):
        quoted = ['"' + column.replace('"', '""') + '"' for column in [name, *table.column_names]]
        types = [_POSTGRES_TYPES.get(str(field.type), "text") for field in table.schema]
        columns = ", ".join(f"{column} {kind}" for column, kind in zip(quoted[1:], types, strict=True))
        rows = io.BytesIO()
        pyarrow.csv.write_csv(table, rows, pyarrow.csv.WriteOptions(include_header=False))
        script = f"DROP TABLE IF EXISTS {quoted[0]};\nCREATE TABLE {quoted[0]} ({columns});\n"
        self.psql(f"{script}COPY {quoted[0]} FROM STDIN (FORMAT csv);\n{rows.getvalue().decode()}\\.\n")

    def run(self, query):
        return pl.read_csv(self.psql(query, "--csv").encode(), infer_schema_length=None)


@pytest.fixture(scope="session")
def postgres():
    """PostgreSQL, if its server is installed."""
    places = [*Path("/usr/lib/postgresql").glob("*/bin"), *(Path(place) for place in os.get_exec_path())]
    programs = [
        place for place in places if all((place / name).exists() for name in ("initdb", "pg_ctl", "psql"))
    ]
    if not programs:
        pytest.skip("there is no PostgreSQL server here (Debian: apt install postgresql)")
    if os.geteuid() == 0 and "postgres" not in (user.pw_name for user in pwd.getpwall()):
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    server = Postgres(programs[0])
    yield server
    server.stop()
