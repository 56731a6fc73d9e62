"""Time and memory of truecal's estimators, as ratios to what the work needs at least, timed in the same run.

Equal-width bins need counts, and three calls of ``np.bincount`` give them; most other estimators need an order, and
``np.sort`` gives it; a first call needs NumPy. A ratio means the same on another machine. Almost: on some processors
NumPy's AVX-512 sort is several times slower than its AVX2 sort (57 against 13 ns a row at 10^6 rows on an AMD EPYC),
and a slow sort makes everything look good. So ratios to sorting are taken both ways.
"""

from __future__ import annotations

import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

import truecal
from experiments._page import Page, markdown, power, seconds

COUNTED = ("ew_bin", "ew_debias", "ew_mce", "ew_label")
ORDERED = ("em_bin", "em_debias", "em_mce", "em_label", "em_sweep", "ew_sweep", "multiscale")
N_BINS = 15

#: Goals, as ratios: to three counts, to a loop of counts, to sorting 10^6 rows or more, to sorting 10^3, to importing
#: NumPy, for separable labels, and memory as multiples of the scores.
COUNT_GOAL, LOOP_GOAL, SORT_GOAL, FEW_GOAL, IMPORT_GOAL, SEPARABLE_GOAL, MEMORY_GOAL = (
    2,
    1.2,
    1.4,
    5,
    2.5,
    10,
    5,
)
#: For 10^3 rows by the default estimator; and the exponent of n log n between 10^4 and 10^7, with a tenth for memory.
DEFAULT_FEW_GOAL, SLOPE_GOAL = 100, 1.18

Row = dict[str, object]
Calls = dict[str, Callable[[], object]]


def calibrated(n: int, dtype: str = "int64") -> tuple[np.ndarray, np.ndarray]:
    """Draw uniform scores in random order, and labels of a calibrated model."""
    rng = np.random.default_rng(0)
    scores = rng.random(n)
    return (rng.random(n) < scores).astype(dtype), scores


def crowded(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the scores of a classifier that is mostly certain: half of them above 0.999, some exactly 1."""
    rng = np.random.default_rng(0)
    scores = 1 / (1 + np.exp(-rng.normal(7, 10, n)))
    return (rng.random(n) < scores).astype(np.int64), scores


def separable(n: int, flipped: str = "none") -> tuple[np.ndarray, np.ndarray]:
    """Label scores by a threshold at a half, then flip five: anywhere, or where the sweep sees them late."""
    rng = np.random.default_rng(0)
    scores = rng.random(n)
    labels = (scores > 0.5).astype(np.int64)
    if flipped == "anywhere":
        labels[:5] ^= 1
    elif flipped == "at the threshold":
        labels[np.argsort(np.abs(scores - 0.5))[:5]] ^= 1
    return labels, scores


def classes(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw float32 probabilities of k classes, and the classes."""
    rng = np.random.default_rng(0)
    proba = rng.standard_normal((n, k), dtype=np.float32)
    proba *= 2
    np.exp(proba, out=proba)
    proba /= proba.sum(axis=1, keepdims=True)
    return rng.integers(0, k, n), proba


def race(calls: Calls, repeats: int) -> dict[str, list[float]]:
    """Time all calls in turn, `repeats` times, so that what slows the machine for a while slows them all.

    Times are of the processor, not of the clock: other programs disturb them less.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats + 1):
        for name, call in calls.items():
            start = time.process_time()
            call()
            times[name].append(time.process_time() - start)
    return {name: values[1:] for name, values in times.items()}  # the first round warms up


def ratios(
    data: str, n: int, times: dict[str, list[float]], references: Sequence[str], goals: dict[str, float]
) -> list[Row]:
    """Return one row for each call and each reference that it is compared with."""
    return [
        {
            "data": data,
            "n": n,
            "work": name,
            "seconds": statistics.median(values),
            "reference": reference,
            "reference_seconds": statistics.median(times[reference]),
            "ratio": statistics.median(values) / statistics.median(times[reference]),
            "ratio_of_best": min(values) / min(times[reference]),
            "goal": goals[name],
        }
        for name, values in times.items()
        if name not in references
        for reference in references
    ]


def estimate_with(
    labels: np.ndarray, scores: np.ndarray, estimator: str, **options: object
) -> Callable[[], object]:
    """Return the call that is timed."""
    return lambda: truecal.calibration_error(labels, scores, estimator=estimator, **options)


def against_counting(n: int, repeats: int) -> list[Row]:
    """Time the equal-width estimators against three plain counts of the same rows."""
    labels, scores = calibrated(n)
    known = np.minimum((scores * N_BINS).astype(np.intp), N_BINS - 1)

    def count(bins: np.ndarray) -> None:
        np.bincount(bins, minlength=N_BINS)
        np.bincount(bins, scores, N_BINS)
        np.bincount(bins, labels, N_BINS)

    references: Calls = {
        "three `np.bincount`": lambda: count(known),
        "bin numbers and three `np.bincount`": lambda: count(
            np.minimum((scores * N_BINS).astype(np.intp), N_BINS - 1)
        ),
    }
    calls = {name: estimate_with(labels, scores, name) for name in COUNTED}
    times = race(references | calls, repeats)
    return ratios("calibrated", n, times, list(references), dict.fromkeys(COUNTED, COUNT_GOAL))


def against_a_loop(n: int, k: int, repeats: int) -> list[Row]:
    """Time a classwise estimate against a plain loop over the classes."""
    labels, proba = classes(n, k)

    def loop() -> float:
        total = 0.0
        for c in range(k):
            scores = proba[:, c]
            bins = np.minimum((scores * N_BINS).astype(np.intp), N_BINS - 1)
            np.bincount(bins, minlength=N_BINS)
            gap = np.bincount(bins, scores, N_BINS) - np.bincount(bins, labels == c, N_BINS)
            total += float(np.abs(gap).sum()) / n
        return total / k

    name, reference = "classwise ew_bin", "loop of `np.bincount`"
    call = estimate_with(labels, proba, "ew_bin", norm=1, multiclass="classwise")
    assert abs(loop() - float(call())) < 1e-6  # type: ignore[arg-type]  # float32 bins of rows on an edge
    times = race({reference: loop, name: call}, repeats)
    return ratios(f"{k:,} classes, float32", n, times, [reference], {name: LOOP_GOAL})


def against_sorting(
    data: str,
    labels: np.ndarray,
    scores: np.ndarray,
    estimators: Sequence[str],
    repeats: int,
    goals: dict[str, float],
) -> list[Row]:
    """Time estimators on one data set against sorting its scores."""
    calls = {name: estimate_with(labels, scores, name) for name in estimators}
    times = race({"`np.sort`": lambda: np.sort(scores)} | calls, repeats)
    return ratios(data, len(scores), times, ["`np.sort`"], goals)


def sorting_times(quick: bool) -> list[Row]:
    """Time every comparison with sorting under the settings of this process."""
    sizes, middle, repeats = ((10**4,), 10**4, 3) if quick else ((10**6, 10**7), 10**6, 7)
    goals, ties = dict.fromkeys(ORDERED, SORT_GOAL), dict.fromkeys(ORDERED, math.nan)
    few = dict.fromkeys((*COUNTED, *ORDERED), FEW_GOAL) | {"multiscale": DEFAULT_FEW_GOAL}
    rows = against_sorting("calibrated", *calibrated(10**3), list(few), 50 if quick else 500, few)
    for n in sizes:
        rows += against_sorting("calibrated", *calibrated(n), ORDERED, repeats, goals)
    rows += against_sorting("mostly certain", *crowded(middle), ORDERED, repeats, ties)
    labels, scores = calibrated(middle)
    rows += against_sorting("float32 scores", labels, scores.astype(np.float32), ORDERED, repeats, ties)
    for dtype in ("bool", "float64"):
        labels, scores = calibrated(middle, dtype)
        rows += against_sorting(f"calibrated, {dtype} labels", labels, scores, ["em_sweep"], repeats, goals)
    for flipped in ("none", "anywhere", "at the threshold"):
        data = "separable" + (f", 5 flipped {flipped}" if flipped != "none" else "")
        labels, scores = separable(middle, flipped)
        rows += against_sorting(data, labels, scores, ["em_sweep"], repeats, {"em_sweep": SEPARABLE_GOAL})
    return rows


def sorting_times_without(features: str, quick: bool) -> list[Row]:
    """Time every comparison with sorting in a new process, where NumPy leaves features of the processor unused."""
    done = subprocess.run(
        [sys.executable, "-m", "experiments.core", *(["--quick"] if quick else [])],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "NPY_DISABLE_CPU_FEATURES": features},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def avx512_features() -> str:
    """Name what NumPy uses of AVX-512 on this processor; the names differ between its versions."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return " ".join(name for name in found if name.startswith(("AVX512", "X86_V4")))


def first_calls(repeats: int) -> list[Row]:
    """Time processes that make one estimate against one that imports NumPy, all from compiled bytecode."""
    call = "import truecal; truecal.calibration_error([0, 1, 1, 0], [0.1, 0.4, 0.8, 0.9]{})"
    programs = {
        "`import numpy`": "import numpy",
        "multiscale": call.format(""),
        "ew_bin": call.format(", estimator='ew_bin'"),
        "interval": "import truecal; truecal.estimate([0, 1, 1, 0], [0.1, 0.4, 0.8, 0.9], confidence_level=0.95)",
    }
    goals = {"multiscale": IMPORT_GOAL, "ew_bin": IMPORT_GOAL, "interval": math.nan}
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    times: dict[str, list[float]] = {name: [] for name in programs}
    with tempfile.TemporaryDirectory() as compiled:
        for _ in range(repeats + 1):
            for name, program in programs.items():
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run(
                    [sys.executable, "-c", program],
                    env={**environment, "PYTHONPYCACHEPREFIX": compiled},
                    check=True,
                )
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                times[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    measured = {name: values[1:] for name, values in times.items()}  # the first round compiles
    return ratios("first call of a process", 4, measured, ["`import numpy`"], goals)


def growth(sizes: Sequence[int], most_seconds: float) -> list[Row]:
    """Time every registered estimator as the number of rows grows, until one call takes too long."""
    names = ["`np.sort`", *(spec.name for spec in truecal.list_estimators())]
    best: dict[str, dict[int, float]] = {name: {} for name in names}
    for n in sizes:
        labels, scores = calibrated(n)
        calls: Calls = {}
        for name in names:
            if best[name].get(n // 10, 0.0) * 20 < most_seconds:
                sort, call = name == "`np.sort`", estimate_with(labels, scores, name)
                calls[name] = (lambda scores=scores: np.sort(scores)) if sort else call
        for name, values in race(calls, 3 if n < 10**7 else 1).items():
            best[name][n] = min(values)
    rows: list[Row] = []
    for name, found in best.items():
        first, last = min(found), max(found)
        rows.append(
            {
                "estimator": name,
                **{str(n): found.get(n) for n in sizes},
                "up_to": last,
                "slope": math.log(found[last] / found[first]) / math.log(last / first),
                "slope_at_the_end": math.log10(found[last] / found[last // 10]),
            }
        )
    return rows


def peak_memory(n: int, estimators: Iterable[str]) -> list[Row]:
    """Measure each estimator in a fresh process; sizes are multiples of the float64 scores."""
    labels, scores = calibrated(n)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / "labels.npy"), str(Path(folder) / "scores.npy")]
        np.save(files[0], labels)
        np.save(files[1], scores)
        for name in estimators:
            command = [sys.executable, str(Path(__file__).with_name("_memory.py")), name, *files]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peak = {kind: size and size / scores.nbytes for kind, size in json.loads(done.stdout).items()}
            rows.append({"n": n, "estimator": name, **peak, "goal": MEMORY_GOAL})
    return rows


def time_table(rows: Sequence[Row], *extra: str) -> str:
    """Lay out ratios for people; a goal that is missed by the best times is marked."""
    return markdown(
        [
            {
                **{name: row[name] for name in extra},
                "data": row["data"],
                "n": power(row["n"]),
                "work": f"`{row['work']}`",
                "time": seconds(row["seconds"]),
                "reference": row["reference"],
                "its time": seconds(row["reference_seconds"]),
                "ratio of medians": f"{row['ratio']:.2f}",
                "ratio of the best": f"{row['ratio_of_best']:.2f}",
                "goal": "" if math.isnan(row["goal"]) else f"≤ {row['goal']:g}" + _missed(row),
            }
            for row in rows
        ]
    )


def _missed(row: Row) -> str:
    return ", missed" if row["ratio_of_best"] > row["goal"] else ""


def growth_table(rows: Sequence[Row], sizes: Sequence[int]) -> str:
    """Lay out growth for people."""
    return markdown(
        [
            {
                "estimator": row["estimator"] if "np." in row["estimator"] else f"`{row['estimator']}`",
                **{power(n): "" if row[str(n)] is None else seconds(row[str(n)]) for n in sizes},
                "exponent": f"{row['slope']:.2f}",
                "in the last decade": f"{row['slope_at_the_end']:.2f}",
            }
            for row in rows
        ]
    )


def main(*, quick: bool = False) -> Page:
    """Run everything and write the page; ``quick`` uses less data and only prints."""
    features = avx512_features()
    settings = {"as NumPy chooses": ""} | ({"without AVX-512": features} if features else {})
    counted = [
        row for n in ((10**4,) if quick else (10**6, 10**7)) for row in against_counting(n, 3 if quick else 7)
    ]
    counted += against_a_loop(*((500, 100) if quick else (50_000, 1_000)), repeats=2)
    started = first_calls(2 if quick else 9)
    sizes = (10**3, 10**4) if quick else (10**4, 10**5, 10**6, 10**7)
    grown = growth(sizes, most_seconds=120)
    memory = peak_memory(10**5 if quick else 10**7, [spec.name for spec in truecal.list_estimators()])
    sorting = [
        {"sorting": setting, **row}
        for setting, off in settings.items()
        for row in sorting_times_without(off, quick)
    ]
    missed = [
        f"`{row['work']}` ({row['data']}, {power(row['n'])}): {row['ratio_of_best']:.2f} for {row['goal']:g}"
        for row in (*counted, *started, *sorting)
        if _missed(row)
    ]
    missed += [
        f"memory of `{row['estimator']}`: {row['allocated']:.1f} for {row['goal']}"
        for row in memory
        if row["allocated"] > row["goal"]
    ]
    missed += [
        f"growth of `{row['estimator']}`: {row['slope']:.2f} for {SLOPE_GOAL}"
        for row in grown
        if row["slope"] > SLOPE_GOAL
    ]
    memory_table = markdown(
        [
            {
                "n": power(row["n"]),
                "estimator": f"`{row['estimator']}`",
                "resident": "not measured here" if row["resident"] is None else f"{row['resident']:.2f}",
                "allocated": f"{row['allocated']:.2f}",
                "goal": f"≤ {row['goal']}",
            }
            for row in memory
        ]
    )
    listed = "\n".join(f"- {line}" for line in missed) or "None."
    page = f"""# Time and memory of the estimators

`truecal.calibration_error(labels, scores, estimator=...)` with 15 bins, on float64 scores in random order, with int64
labels unless stated otherwise, including all checks. Calls alternate with the work that they are compared with (CPU
times); ratios are those of the medians, and of the best, of several rounds.

## Equal-width bins, relative to counting

Three counts are the number of rows, the sum of scores and the sum of labels of each bin. Plain counts neither check
their input nor are exact for any order of the rows, and put some scores that lie on an edge into the wrong bin.

{time_table(counted)}

## Other estimators, relative to sorting

On some processors NumPy's AVX-512 sort is slower than its AVX2 sort, which makes the ratio look better, so both are
shown where there are both. Setting `NPY_DISABLE_CPU_FEATURES` to the AVX-512 features of such a processor makes every
sort of NumPy faster, not only truecal's. Two of a hundred float32 scores among 10^6 are tied, and so are "mostly
certain" scores, of which half are above 0.999: they crowd in one cell, and equal-mass bins sort all of them. For such
data there are no goals.

{time_table(sorting, "sorting")}

## First call of a process

Starting Python, importing truecal and one estimate of four rows, relative to starting Python and importing NumPy, from
compiled bytecode. An interval needs `scipy.special`, which takes twice as long to import as NumPy.

{time_table(started)}

## Growth

Time of one call as the number of rows grows, and the exponent of n in it, from the first to the last number of rows and
in the last decade. For n log n it is 1.08; up to {SLOPE_GOAL} passes, because 10^7 rows need fresh memory.

{growth_table(grown, sizes)}

## Peak memory

Peak memory of one call beyond its inputs, in multiples of the size of the scores, each measured in a new process:
resident size of the process, and memory allocated by NumPy.

{memory_table}

## Goals that are missed

By the best times of this run.

{listed}
"""
    named = {
        "counting": counted,
        "sorting": sorting,
        "first call": started,
        "growth": grown,
        "memory": memory,
    }
    return Page(page, {"": [{"measure": name, **row} for name, rows in named.items() for row in rows]})


if __name__ == "__main__":
    print(json.dumps(sorting_times(quick="--quick" in sys.argv)))
