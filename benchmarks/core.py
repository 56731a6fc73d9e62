"""Time and memory of truecal's estimators, as ratios to one ``np.sort`` of the same scores in the same run.

Sorting is what no estimator can avoid, and a ratio means the same on another machine. Almost: on some
processors NumPy's AVX-512 sort is several times slower than its AVX2 sort (57 against 13 ns a row at 10^6
rows on an AMD EPYC), and a slow sort makes everything look good. So times are taken both ways.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

import truecal
from benchmarks._tables import machine, markdown, power, seconds, write

ESTIMATORS = ("em_bin", "em_debias", "em_sweep", "ew_bin")
TIME_GOAL, MULTISCALE_GOAL, SEPARABLE_GOAL, MEMORY_GOAL = 3, 15, 10, 5

Row = dict[str, object]


def calibrated(n: int, dtype: str = "int64") -> tuple[np.ndarray, np.ndarray]:
    """Draw uniform scores in random order, and labels of a calibrated model."""
    rng = np.random.default_rng(0)
    scores = rng.random(n)
    return (rng.random(n) < scores).astype(dtype), scores


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


def race(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
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


def compare(
    data: str, labels: np.ndarray, scores: np.ndarray, estimators: Iterable[str], repeats: int, goal: int
) -> list[Row]:
    """Time estimators on one data set, against sorting its scores."""

    def measure(estimator: str) -> Callable[[], object]:
        return lambda: truecal.calibration_error(labels, scores, estimator=estimator)

    times = race({"sort": lambda: np.sort(scores), **{name: measure(name) for name in estimators}}, repeats)
    sort = times.pop("sort")
    return [
        {
            "data": data,
            "n": len(scores),
            "estimator": name,
            "seconds": statistics.median(values),
            "sort_seconds": statistics.median(sort),
            "ratio": statistics.median(values) / statistics.median(sort),
            "ratio_of_best": min(values) / min(sort),
            "goal": goal,
        }
        for name, values in times.items()
    ]


def peak_memory(n: int, estimators: Iterable[str] = ESTIMATORS) -> list[Row]:
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


def times(quick: bool) -> list[Row]:
    """Time every case under the settings of this process."""
    sizes, middle, repeats = ((10**4, 10**5), 10**5, 3) if quick else ((10**6, 10**7), 10**6, 9)
    rows: list[Row] = []
    for n in sizes:
        rows += compare("calibrated", *calibrated(n), ESTIMATORS, repeats, TIME_GOAL)
        rows += compare("calibrated", *calibrated(n), ["multiscale"], repeats, MULTISCALE_GOAL)
    for dtype in ("bool", "float64"):
        labels, scores = calibrated(middle, dtype)
        rows += compare(f"calibrated, {dtype} labels", labels, scores, ["em_sweep"], repeats, TIME_GOAL)
    for flipped in ("none", "anywhere", "at the threshold"):
        data = "separable" + (f", 5 flipped {flipped}" if flipped != "none" else "")
        rows += compare(data, *separable(middle, flipped), ["em_sweep"], repeats, SEPARABLE_GOAL)
    return rows


def times_without(features: str, quick: bool) -> list[Row]:
    """Time every case in a new process, where NumPy leaves some features of the processor unused."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.core", *(["--quick"] if quick else [])],
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


def main(quick: bool = False) -> None:
    """Run everything and write the page; ``quick`` uses less data and only prints."""
    features = avx512_features()
    settings = {"as NumPy chooses": ""} | ({"without AVX-512": features} if features else {})
    timed = [
        {"sort": setting, **row} for setting, off in settings.items() for row in times_without(off, quick)
    ]
    memory = peak_memory(10**5 if quick else 10**7)

    time_table = markdown(
        [
            {
                "sorting": row["sort"],
                "data": row["data"],
                "n": power(row["n"]),
                "estimator": f"`{row['estimator']}`",
                "time": seconds(row["seconds"]),
                "np.sort": seconds(row["sort_seconds"]),
                "ratio of medians": f"{row['ratio']:.2f}",
                "ratio of the best": f"{row['ratio_of_best']:.2f}",
                "goal": f"≤ {row['goal']}",
            }
            for row in timed
        ]
    )
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
    page = f"""# Time and memory of the estimators

Made by `python benchmarks/run.py core`. {machine()}; truecal {truecal.__version__}.

## Time relative to sorting

`truecal.calibration_error(labels, scores, estimator=...)` on float64 scores in random order, with int64
labels unless stated otherwise, including checks, sorting and binning. Calls alternate with `np.sort(scores)` (CPU
times); ratios are those of the medians, and of the best, of several rounds. On some processors NumPy's AVX-512 sort is
slower than its AVX2 sort, which makes the ratio look better, so both are shown.

{time_table}

## Peak memory

Peak memory of one call beyond its inputs, in multiples of the size of the scores, each measured in a new process:
resident size of the process, and memory allocated by NumPy.

{memory_table}
"""
    print(page)
    if not quick:
        write(
            "core",
            page,
            [{"measure": "time", **row} for row in timed] + [{"measure": "memory", **row} for row in memory],
        )


if __name__ == "__main__":
    print(json.dumps(times(quick="--quick" in sys.argv)))
