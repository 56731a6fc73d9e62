"""Processor time and memory of the commands and of the functions behind them, each beside a yardstick of the same run.

Seconds differ from machine to machine. So every command stands beside a process that only reads the file, the test
beside sorting the scores, a fit beside that of another package, and peak memory beside the scores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import truecal
from experiments import _fits
from experiments._page import Page, markdown, power, seconds
from experiments.core import peak_memory, race
from experiments.peers import make_environment
from truecal.data.frames import summarize

ROOT = Path(__file__).parents[1]
ROUNDS, QUICK_ROUNDS = 5, 2
#: The goals of `truecal measure` in seconds are those of a machine on which the bare query took 0.35 s.
BARE_WHEN_SET = 0.35

Row = dict[str, object]


def miscalibrated(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw uniform scores and labels; a score s is positive with probability s^1.2."""
    rng = np.random.default_rng(n)
    scores = rng.random(n)
    return (rng.random(n) < scores**1.2).astype(np.int8), scores


def make_file(folder: Path, n: int) -> Path:
    """Write predictions to a Parquet file, with four groups of rows."""
    labels, scores = miscalibrated(n)
    site = pl.Series("site", ["north", "east", "south", "west"])[np.random.default_rng(0).integers(4, size=n)]
    path = folder / f"{power(n)}.parquet"
    pl.DataFrame({"score": scores, "label": labels, "site": site}).write_parquet(path)
    return path


# --- Commands ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Process:
    """A program to time: what it is called, and its arguments to Python."""

    name: str
    rows: int
    arguments: tuple[str, ...]


def run(process: Process, compiled: Path) -> tuple[float, float]:
    """Return the processor time and the wall time of a program, with its imports, whose bytecode is in a folder."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    started = subprocess.Popen(
        [sys.executable, *process.arguments],
        env={**environment, "PYTHONPYCACHEPREFIX": str(compiled)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert started.stderr is not None
    messages = started.stderr.read()
    _, status, used = os.wait4(started.pid, 0)
    if status:
        raise RuntimeError(messages.decode()[-2000:])
    return used.ru_utime + used.ru_stime, time.perf_counter() - began


def processes(files: dict[int, Path], folder: Path) -> Iterator[Process]:
    """Yield what is timed: for each file the yardsticks first."""
    page = str(folder / "page.html")
    yield Process("`import numpy`", 0, ("-c", "import numpy"))
    for n, path in files.items():
        columns = "['score', 'label']"
        code = f"import polars as pl; pl.read_parquet({str(path)!r}, columns={columns})"
        yield Process("reading two columns with Polars", n, ("-c", code))
        code = (
            f"import polars as pl; b = (pl.col('score') * 15).floor().alias('b'); s = pl.col('score').sum(); "
            f"y = pl.col('label').cast(pl.Int64).sum(); "
            f"pl.scan_parquet({str(path)!r}).group_by(b).agg(pl.len(), s, y).collect(engine='streaming')"
        )
        yield Process("bare query: sums in 15 bins with Polars", n, ("-c", code))
        yield Process("`truecal measure`", n, ("-m", "truecal", "measure", str(path)))
        if n == min(files):
            grouped = ("-m", "truecal", "measure", str(path), "--group", "site")
            yield Process("`truecal measure --group`, 4 groups", n, grouped)
        if n < max(files):
            yield Process("`truecal report`", n, ("-m", "truecal", "report", str(path), "-o", page))


def command_rows(files: dict[int, Path], folder: Path, rounds: int) -> list[Row]:
    """Time all programs in turn, and keep the least processor time of each with its wall time."""
    found: dict[Process, list[tuple[float, float]]] = {process: [] for process in processes(files, folder)}
    for _ in range(rounds):
        for process, times in found.items():
            times.append(run(process, folder / "compiled"))
    best = {(process.name, process.rows): min(times) for process, times in found.items()}

    def yardstick(name: str, n: int) -> float | None:
        return next((cpu for (other, rows), (cpu, _) in best.items() if name in other and rows == n), None)

    rows: list[Row] = []
    for (name, n), (cpu, wall) in best.items():
        reading, bare = yardstick("reading", n), yardstick("bare", n)
        goal, measured = "", None
        if name == "`truecal measure`" and n == 10**7:
            goal, measured = 1.2 / BARE_WHEN_SET, cpu / bare
        elif "--group" in name:
            goal, measured = 2.0, cpu / yardstick("measure`", n)
        elif "report" in name and n == 10**6:
            goal, measured = 7.0, cpu
        rows.append(
            {
                "what": "command",
                "name": name,
                "rows": n,
                "processor_seconds": cpu,
                "wall_seconds": wall,
                "to_reading": reading and cpu / reading,
                "to_bare": bare and cpu / bare,
                "goal": goal,
                "measured": measured,
            }
        )
    return rows


def command_table(rows: list[Row]) -> str:
    """Lay out the programs."""
    units = {"`truecal measure`": "x bare query", "report": "s", "group": "x without groups"}

    def outcome(row: Row) -> str:
        if row["measured"] is None:
            return ""
        unit = next(unit for word, unit in units.items() if word in str(row["name"]))
        return (
            f"{row['measured']:.2g} {unit}; goal {row['goal']:.2g}: {verdict(row['measured'], row['goal'])}"
        )

    return markdown(
        [
            {
                "program": row["name"],
                "rows": power(row["rows"]) if row["rows"] else "",
                "processor": seconds(row["processor_seconds"]),
                "wall": seconds(row["wall_seconds"]),
                "x reading": f"{row['to_reading']:.1f}" if row["to_reading"] else "",
                "x bare query": f"{row['to_bare']:.1f}" if row["to_bare"] else "",
                "outcome": outcome(row),
            }
            for row in rows
        ]
    )


def verdict(measured: float, goal: float) -> str:
    """Return whether a goal is met."""
    return "met" if measured <= goal else "**missed**"


# --- Functions ---------------------------------------------------------------------------------------------------


def function_rows(sizes: tuple[int, ...], rounds: int) -> list[Row]:
    """Time `assess` and `calibration_test` beside a stable argsort of the scores, in this process."""
    goals = {("assess", 10**4): 0.4, ("assess", 10**5): 0.8, ("assess", 10**6): 2.5}
    rows: list[Row] = []
    for n in sizes:
        labels, scores = miscalibrated(n)
        calls: dict[str, Callable[[], object]] = {
            "sort": lambda scores=scores: np.argsort(scores, kind="stable"),
            "assess": lambda y=labels, p=scores: truecal.assess(y, p, rng=0),
            "assess(recalibration=False)": lambda y=labels, p=scores: truecal.assess(
                y, p, recalibration=False, rng=0
            ),
            "calibration_test": lambda y=labels, p=scores: truecal.calibration_test(y, p, rng=0),
        }
        times = {name: min(values) for name, values in race(calls, rounds).items()}
        sort = times.pop("sort")
        for name, value in times.items():
            sorts = value / sort
            in_sorts = name == "calibration_test" and n == 10**6
            goal = 15.0 if in_sorts else goals.get((name, n))
            rows.append(
                {
                    "what": "function",
                    "name": name,
                    "rows": n,
                    "processor_seconds": value,
                    "sorts": sorts,
                    "goal": goal,
                    "measured": sorts if in_sorts else value,
                }
            )
    return rows


def function_table(rows: list[Row]) -> str:
    """Lay out the functions."""

    def outcome(row: Row) -> str:
        if row["goal"] is None:
            return ""
        unit = "argsorts" if row["measured"] == row["sorts"] else "s"
        return f"goal {row['goal']:g} {unit}: {verdict(row['measured'], row['goal'])}"

    return markdown(
        [
            {
                "call": f"`{row['name']}`",
                "rows": power(row["rows"]),
                "processor": seconds(row["processor_seconds"]),
                "x stable argsort": f"{row['sorts']:.3g}",
                "outcome": outcome(row),
            }
            for row in rows
        ]
    )


def thread_rows(n: int, rounds: int) -> list[Row]:
    """Time `assess` in new processes, with as many BLAS threads as there are cores and with one."""
    code = (
        "import json, time; from experiments.application import miscalibrated; import truecal; "
        f"y, p = miscalibrated({n}); truecal.assess(y[:500], p[:500], rng=0); "
        "a, b = time.process_time(), time.perf_counter(); truecal.assess(y, p, rng=0); "
        "print(json.dumps([time.process_time() - a, time.perf_counter() - b]))"
    )
    rows: list[Row] = []
    for threads in ("", "1"):
        limit = {"OPENBLAS_NUM_THREADS": threads} if threads else {}
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
        best = min(
            json.loads(
                subprocess.run(
                    [sys.executable, "-c", code],
                    cwd=ROOT,
                    env={**kept, **limit},
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                ).stdout
            )
            for _ in range(rounds)
        )
        called = "one" if threads else "as BLAS chooses"
        rows.append(
            {
                "what": "threads",
                "name": called,
                "rows": n,
                "processor_seconds": best[0],
                "wall_seconds": best[1],
            }
        )
    return rows


def recalibration_rows(sizes: tuple[int, ...]) -> list[Row]:
    """Return what `assess` says about recalibration of large samples, in memory and summarised."""
    rows: list[Row] = []
    for n in sizes:
        labels, scores = miscalibrated(n)
        cells = summarize(pl.DataFrame({"score": scores, "label": labels}), score="score", label="label")
        for name, given in (("in memory", (labels, scores)), ("cells", (cells,))):
            advice = truecal.assess(*given, rng=0).recalibration
            assert advice is not None
            rows.append({"what": "recalibration", "name": name, "rows": n, "advice": advice.advice})
    return rows


# --- Fits --------------------------------------------------------------------------------------------------------


def fit_rows(sizes: tuple[int, ...]) -> list[Row]:
    """Time the fits of truecal, betacal and scikit-learn in turn, in one process of an environment with all three."""
    needs = ("numpy", "scipy", "narwhals", "joblib", "betacal", "scikit-learn")
    interpreter = make_environment("betacal", *needs)
    done = subprocess.run(
        [interpreter, "-W", "ignore", str(Path(_fits.__file__)), *map(str, sizes)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return [{"what": "fit", **row} for row in json.loads(done.stdout)]


def fit_table(rows: list[Row]) -> str:
    """Lay out the fits, each beside that of truecal."""
    table = []
    for row in rows:
        ratio = row["seconds"] / row["truecal_seconds"]
        table.append(
            {
                "fit": row["fit"],
                "rows": power(row["rows"]),
                "package": row["package"],
                "processor": seconds(row["seconds"]),
                "x truecal": f"{ratio:.2f}",
                "parameters": ", ".join(f"{value:.6f}" for value in row["parameters"]),
                "outcome": ""
                if row["package"] == "truecal"
                else "behind"
                if ratio > 1
                else "**ahead of truecal**",
            }
        )
    return markdown(table)


# --- Page --------------------------------------------------------------------------------------------------------


def main(*, quick: bool = False) -> Page:
    """Run everything and write the page; ``quick`` uses less data and only prints."""
    small, middle, large = (10**5, 2 * 10**5, 10**6) if quick else (10**6, 3 * 10**6, 10**7)
    rounds = QUICK_ROUNDS if quick else ROUNDS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {n: make_file(folder, n) for n in (small, middle, large)}
        commands = command_rows(files, folder, rounds)
    functions = function_rows((10**4, 10**5) if quick else (10**4, 10**5, 10**6), rounds)
    threads = thread_rows(small, rounds)
    advice = recalibration_rows((middle,))
    fits = fit_rows((10**4, 10**5) if quick else (10**5, 10**6))
    memory = peak_memory(10**5 if quick else 10**7, ("neighbor", "kde", "skce"))

    thread_table = markdown(
        [
            {
                "BLAS threads": row["name"],
                "processor": seconds(row["processor_seconds"]),
                "wall": seconds(row["wall_seconds"]),
            }
            for row in threads
        ]
    )
    memory_table = markdown(
        [
            {
                "estimator": f"`{row['estimator']}`",
                "rows": power(row["n"]),
                "x scores": f"{row['allocated']:.1f}",
                "outcome": f"goal {row['goal']}: {verdict(row['allocated'], row['goal'])}",
            }
            for row in memory
        ]
    )
    sentences = "\n\n".join(
        f"{power(row['rows'])} rows, {row['name']}:\n\n> {row['advice']}" for row in advice
    )
    page = f"""# Commands and what they call

Uniform scores; a score s is positive with probability s^1.2. Times are processor times, user and system, the least of
{rounds} alternating rounds.

## Commands

Whole processes, with all imports, from compiled bytecode. The goal of `measure` at 10^7 rows was set as 1.2 s on a
machine on which the bare query took {BARE_WHEN_SET} s; here it is that ratio. The goal of `report` is in seconds of
that machine.

{command_table(commands)}

## Functions

{function_table(functions)}

## Threads

`assess` of {power(small)} rows in a new process. Products of the test are cut so that BLAS does not share them among
threads, which would take the same time by the clock and more of the processors. The command line uses one thread of
BLAS for the rest as well, unless `OPENBLAS_NUM_THREADS` says otherwise.

{thread_table}

## Recalibration of large samples

{sentences}

## Fits

In one process with the other packages, one thread. Platt scaling is compared on logits: with smoothed targets, and
as plain logistic regression without penalty.

{fit_table(fits)}

## Memory

Peak memory that NumPy allocates beyond the inputs, in multiples of the scores.

{memory_table}
"""
    return Page(page, {"": [*commands, *functions, *threads, *advice, *fits, *memory]})
