"""Cells at scale: their error, and the time and memory of `truecal.summarize` on each engine.

    python -m experiments engines --rows 1e8

Files of predictions are made in a temporary folder. Every engine that the environment has is measured, each in a
process of its own; `.venv-engines`, which `make test-engines` makes, has all of them. What is compared with is the
engine's own plainest query over the same files: scores to 2^16 equal steps, and count and sums by step.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl

import truecal
from experiments._memory import peak_resident
from experiments._page import Page, markdown, power, seconds
from truecal.data import as_sample
from truecal.data.cells import Cells, cell_error
from truecal.data.frames import summarize
from truecal.data.sample import Sample
from truecal.estimators._registry import list_estimators

ROOT = Path(__file__).parents[1]
REAL = Path(os.environ.get("TRUECAL_SHARED", ROOT.parent / "shared")) / "data"
POPULATION = "resnet110_c100"
PART_ROWS = 5_000_000
TIME_GOAL, MEMORY_GOAL, ERROR_GOAL = 1.5, 10**9, 1e-4

Row = dict[str, object]
Queries = dict[str, Callable[[], object]]


# --- How far cells are from rows -------------------------------------------------------------------


def samples(sizes: dict[int, int]) -> Iterator[tuple[str, Sample]]:
    """Draw from the ten populations, as often as `sizes` says, and read the real data where it is."""
    for name in truecal.paper.NAMES:
        for n, draws in sizes.items():
            for seed in range(draws):
                yield power(n), as_sample(*truecal.paper.population(name).sample(n, rng=seed))
    for path in sorted(REAL.glob("*.npz")):
        file = np.load(path)
        if "confidence" in file:
            yield "real", as_sample(file["pred"] == file["labels"], file["confidence"])
        elif "test_logits" in file:
            yield "real", as_sample(file["test_labels"], file["test_logits"], logits=True)
        elif "probs" in file:
            yield "real", as_sample(file["labels"], np.clip(file["probs"], 0, 1), multiclass="top")
        elif "top5_probs" in file:
            yield "real", as_sample(file["top5_preds"][:, 0] == file["labels"], file["top5_probs"][:, 0])
        else:
            yield "real", as_sample(file["labels"], file["scores"])


def differences(quick: bool) -> list[Row]:
    """Measure by how much every estimator differs on cells, and what it says of that itself."""
    rows: list[Row] = []
    for data, sample in samples({10**4: 2} if quick else {10**4: 20, 10**5: 5, 10**6: 3, 10**7: 1}):
        cells = Cells.from_sample(sample)
        for spec in list_estimators():
            exact, near = spec(sample), spec(cells)
            stated = cell_error(cells, lambda sample, spec=spec: spec(sample).value)
            rows.append(
                {
                    "what": "difference",
                    "data": data,
                    "estimator": spec.name,
                    "difference": abs(near.value - exact.value),
                    "stated": stated,
                    "same_bins": near.n_bins == exact.n_bins,
                }
            )
    return rows


def differences_table(rows: list[Row]) -> str:
    """Lay out the largest and the median difference of each estimator, by size of data."""
    sets = list(dict.fromkeys(str(row["data"]) for row in rows))
    table = []
    for name in dict.fromkeys(row["estimator"] for row in rows):
        mine = [row for row in rows if row["estimator"] == name]
        line: Row = {"estimator": f"`{name}`"}
        for data in sets:
            values = [row["difference"] for row in mine if row["data"] == data]
            line[f"{data}: largest (median)"] = f"{max(values):.0e} ({statistics.median(values):.0e})"
        line["same bins"] = f"{np.mean([row['same_bins'] for row in mine]):.0%}"
        line["largest with the same bins"] = f"{max(r['difference'] for r in mine if r['same_bins']):.0e}"
        line["within what is stated"] = (
            f"{np.mean([r['difference'] <= r['stated'] + 1e-12 for r in mine]):.0%}"
        )
        table.append(line)
    return markdown(table)


# --- Time and memory of engines --------------------------------------------------------------------


def make_files(folder: Path, n: int) -> None:
    """Write `n` predictions of one population to Parquet files of five million rows, float64 and int8."""
    folder.mkdir(parents=True)
    population = truecal.paper.population(POPULATION)
    for k, first in enumerate(range(0, n, PART_ROWS)):
        y, p = population.sample(min(PART_ROWS, n - first), rng=k)
        part = pl.DataFrame({"score": p, "label": y.astype(np.int8)})
        part.write_parquet(folder / f"part-{k:04}.parquet")


def polars_queries(folder: str) -> Queries:
    def frame() -> pl.LazyFrame:
        return pl.scan_parquet(f"{folder}/*.parquet")

    def bare(*more: pl.Expr) -> object:
        step = (pl.col("score") * 65536).cast(pl.Int32).alias("step")
        sums = [pl.len(), pl.col("score").sum(), pl.col("label").cast(pl.Int64).sum(), *more]
        return frame().group_by(step).agg(sums).collect(engine="streaming")

    limits = pl.col("score").min().alias("smallest"), pl.col("score").max().alias("largest")
    return {
        "bare": bare,
        "bare, with minimum and maximum": lambda: bare(*limits),
        "truecal": lambda: summarize(frame(), score="score", label="label"),
    }


def duckdb_queries(folder: str) -> Queries:
    import duckdb

    duckdb.execute("SET enable_progress_bar = false")
    query = (
        f"SELECT CAST(floor(score * 65536) AS INTEGER) AS step, count(*), sum(score), sum(label) "
        f"FROM read_parquet('{folder}/*.parquet') GROUP BY step"
    )
    return {
        "bare": lambda: duckdb.sql(query).arrow(),
        "truecal": lambda: summarize(
            duckdb.read_parquet(f"{folder}/*.parquet"), score="score", label="label"
        ),
    }


def dask_queries(folder: str) -> Queries:
    from dask import dataframe as dd
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1")
    Client(cluster)

    def bare() -> object:
        frame = dd.read_parquet(folder)
        frame = frame.assign(step=(frame["score"] * 65536).astype("int32"))
        return frame.groupby("step").agg({"score": ["count", "sum"], "label": "sum"}).compute()

    return {"bare": bare, "truecal": lambda: summarize(dd.read_parquet(folder), score="score", label="label")}


def spark_queries(folder: str) -> Queries:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    session = builder.config("spark.driver.memory", "2g").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")

    def bare() -> object:
        frame = session.read.parquet(folder).withColumn("step", f.floor(f.col("score") * 65536).cast("int"))
        return frame.groupBy("step").agg(f.count("*"), f.sum("score"), f.sum("label")).toArrow()

    return {
        "bare": bare,
        "truecal": lambda: summarize(session.read.parquet(folder), score="score", label="label"),
    }


ENGINES: dict[str, tuple[str, Callable[[str], Queries]]] = {
    "Polars": ("polars", polars_queries),
    "DuckDB": ("duckdb", duckdb_queries),
    "Dask, 2 processes": ("dask", dask_queries),
    "Spark, local[2]": ("pyspark", spark_queries),
}


def worker(engine: str, folder: str, only: str, rounds: int) -> None:
    """Time queries in turn in this process, and print the times with its peak of memory."""
    module, make = ENGINES[engine]
    if find_spec(module) is None:
        print(json.dumps(None))
        return
    warnings.simplefilter("ignore")
    queries = make(folder)
    if only:
        queries = {only: queries[only]}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in queries}
    for _ in range(rounds + (rounds > 1)):  # the first round of several warms up
        for name, query in queries.items():
            began, worked = time.perf_counter(), time.process_time()
            query()
            times[name].append((time.perf_counter() - began, time.process_time() - worked))
    print(json.dumps({"times": {k: v[rounds > 1 :] for k, v in times.items()}, "peak": peak_resident()}))
    sys.stdout.flush()
    os._exit(0)  # clusters need not be taken down with care


def python() -> str:
    """Return the interpreter with the most engines: this one, or that of `make test-engines`."""
    other = ROOT / ".venv-engines/bin/python"
    return sys.executable if find_spec("pyspark") or not other.exists() else str(other)


def run_worker(engine: str, folder: Path, only: str = "", rounds: int = 5) -> dict[str, object] | None:
    """Run `worker` in a new process."""
    command = [python(), "-m", "experiments.engines", engine, str(folder), only, str(rounds)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def engine_rows(engine: str, folder: Path, n: int, rounds: int) -> list[Row]:
    """Return the times of an engine's queries, as ratios to its bare one."""
    outcome = run_worker(engine, folder, rounds=rounds)
    if outcome is None:
        print(f"{engine} is not installed: left out.")
        return []
    clocks = {name: np.array(times) for name, times in outcome["times"].items()}  # by round: wall, processor
    return [
        {
            "what": "engine",
            "engine": engine,
            "rows": n,
            "query": name,
            "seconds": np.median(clock[:, 0]),
            "processor_seconds": np.median(clock[:, 1]),
            "ratio": np.median(clock[:, 0] / clocks["bare"][:, 0]),
            "processor_ratio": np.median(clock[:, 1] / clocks["bare"][:, 1]),
        }
        for name, clock in clocks.items()
    ]


def engines_table(rows: list[Row]) -> str:
    """Lay out times; processor time is that of this process, and so not of Dask's workers and Spark's Java."""
    return markdown(
        [
            {
                "engine": row["engine"],
                "rows": power(row["rows"]),
                "query": row["query"],
                "time": seconds(row["seconds"]),
                "ns per row": f"{row['seconds'] / row['rows'] * 1e9:.1f}",
                "ratio to bare": f"{row['ratio']:.2f}",
                "ratio of CPU time": (
                    f"{row['processor_ratio']:.2f}" if row["engine"] in ("Polars", "DuckDB") else "-"
                ),
            }
            for row in rows
        ]
    )


def peaks(folder: Path, n: int) -> list[Row]:
    """Measure the peak of resident memory, in a new process for each query."""
    rows: list[Row] = []
    for engine, query in (("Polars", "bare"), ("Polars", "truecal"), ("DuckDB", "truecal")):
        outcome = run_worker(engine, folder, only=query, rounds=1)
        if outcome is not None:
            rows.append(
                {"what": "peak", "engine": engine, "rows": n, "query": query, "bytes": outcome["peak"]}
            )
    return rows


# --- In memory, and what goes wrong ----------------------------------------------------------------


def timed(call: Callable[[], object]) -> tuple[float, object]:
    began = time.perf_counter()
    outcome = call()
    return time.perf_counter() - began, outcome


def in_memory(n: int) -> list[Row]:
    """Compare estimates from rows in memory with those from cells of the same rows."""
    y, p = truecal.paper.population(POPULATION).sample(n, rng=0)
    frame = pl.DataFrame({"score": p, "label": y})
    reading, cells = timed(lambda: summarize(frame, score="score", label="label"))
    rows: list[Row] = [{"what": "memory", "estimator": "(summarize)", "rows": n, "cells": reading}]
    for name in ("em_sweep", "em_debias", "ew_bin", "kde"):
        exact_time, exact = timed(lambda name=name: truecal.calibration_error(y, p, estimator=name))
        cell_time, near = timed(lambda name=name: truecal.calibration_error(cells, estimator=name))
        rows.append(
            {
                "what": "memory",
                "estimator": name,
                "rows": n,
                "exact": exact_time,
                "cells": cell_time,
                "difference": abs(near - exact),
            }
        )
    test_time, _ = timed(lambda: truecal.calibration_test(cells, n_resamples=199, rng=0))
    rows.append(
        {"what": "memory", "estimator": "(calibration_test, 199 draws)", "rows": n, "cells": test_time}
    )
    return rows


def memory_table(rows: list[Row]) -> str:
    def shown(row: Row, key: str, form: Callable[[float], str]) -> str:
        return form(row[key]) if key in row else "-"

    return markdown(
        [
            {
                "what": f"`{row['estimator']}`".replace("`(", "").replace(")`", ""),
                "from rows": shown(row, "exact", seconds),
                "from cells": shown(row, "cells", seconds),
                "difference": shown(row, "difference", lambda value: f"{value:.0e}"),
            }
            for row in rows
        ]
    )


def find_bad_rows(folder: Path, n: int) -> Row:
    """Put a null, a NaN and a score above 1 into the middle of the files, and look at the error message."""
    parts = sorted(folder.glob("*.parquet"))
    middle = parts[len(parts) // 2]
    part = pl.read_parquet(middle)
    row = pl.int_range(pl.len())
    bad = pl.when(row == 7).then(None).when(row == 8).then(float("nan")).when(row == 9).then(1.7)
    part.with_columns(bad.otherwise(pl.col("score")).alias("score")).write_parquet(middle)
    try:
        began = time.perf_counter()
        summarize(pl.scan_parquet(f"{folder}/*.parquet"), score="score", label="label")
    except ValueError as error:
        return {"what": "faults", "rows": n, "seconds": time.perf_counter() - began, "message": str(error)}
    finally:
        part.write_parquet(middle)
    raise RuntimeError("The bad rows were not found.")


def main(*, quick: bool = False, rows: int = 10**8) -> Page:
    """Run everything and write the page; ``quick`` uses little data and only prints."""
    if quick:
        rows = 10**6
    found: list[Row] = differences(quick)
    accuracy = differences_table(found)
    folder = Path(tempfile.mkdtemp(prefix="truecal-bench-"))
    try:
        sizes = [n for n in (10**6, 10**7, 10**8, 10**9) if n < rows] + [rows]
        for n in sizes:
            make_files(folder / power(n), n)
        disk = sum(file.stat().st_size for file in (folder / power(rows)).iterdir())
        grown = [
            row for n in sizes for row in engine_rows("Polars", folder / power(n), n, 7 if n > 10**7 else 15)
        ]
        others = [
            row
            for engine in list(ENGINES)[1:]
            for n in sizes[-2:]
            for row in engine_rows(engine, folder / power(n), n, 3 if n <= 10**7 or engine == "DuckDB" else 1)
        ]
        resident = peaks(folder / power(rows), rows)
        faults = find_bad_rows(folder / power(rows), rows)
    finally:
        shutil.rmtree(folder)
    memory = in_memory(min(rows, 10**7))
    peak_table = markdown(
        [
            {
                "engine": row["engine"],
                "query": row["query"],
                "rows": power(row["rows"]),
                "peak": f"{row['bytes'] / 1e6:.0f} MB",
                "goal": f"< {MEMORY_GOAL / 1e6:.0f} MB",
            }
            for row in resident
        ]
    )
    single = f" (Dask and Spark at {power(rows)}: one run)" if rows > 10**7 else ""
    page = f"""# Cells: their error, and engines at scale

## Difference between estimates from cells and from rows

Absolute differences (errors are fractions) over the ten populations of the paper, with 20 samples of 10^4 rows, 5 of
10^5, 3 of 10^6 and 1 of 10^7 from each, and over real predictions (`shared/data`, 92 to 274,260 rows). Goal for
bin, debias and sweep: {ERROR_GOAL:g}.

{accuracy}

Edges of equal-width bins coincide with cell edges if the number of bins divides 25,200, so 15 bins differ only by
rounding. Equal-mass bins differ by the rows of one cell at each edge. A sweep searches for the first number of bins at
which the bin means are not monotone; if two bin means are nearly equal, one row decides, and the sweep over cells may
stop at a different number of bins ("same bins"). *Within what is stated* is the share of cases in which the difference
was at most `Estimate.cell_error`, which arranges the rows within their cells in eight random ways and takes twice the
largest change.

## Time

Parquet files of {PART_ROWS:,} rows, float64 scores and int8 labels, {disk / 1e6:.0f} MB at {power(rows)} rows.
*Bare* is a query in the engine itself: scores rounded to 2^16 equal steps, then count, sum of scores and sum of labels
by step. Times and ratios are medians of 3 to 15 alternating runs{single}.
Goal for Polars: at most {TIME_GOAL} times the bare query.

{engines_table(grown)}

{engines_table(others) if others else "No other engine was installed."}

## Memory

Peak resident memory of a dedicated process, including Python and all libraries.

{peak_table}

## Bad rows

A null, a NaN and a score of 1.7 in the middle of {power(rows)} rows: found in {seconds(faults["seconds"])}, in the same
pass.

> {faults["message"]}

## Estimates from rows in memory and from cells

{power(min(rows, 10**7))} rows. Times from cells exclude `summarize`, which runs once.

{memory_table(memory)}
"""
    return Page(page, {"": [*found, *grown, *others, *resident, faults, *memory]})


if __name__ == "__main__":
    worker(*sys.argv[1:4], int(sys.argv[4]))
