"""truecal against other packages from PyPI, each in an environment of its own, on the same data."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments import _worker
from experiments._page import Page, markdown, power, seconds

ENVIRONMENTS = Path(__file__).with_name(".envs")
REQUIREMENTS = {
    "probcal": "probcal",
    "uncertainty-calibration": "uncertainty-calibration",
    "relplot": "relplot",
    "scikit-learn": "scikit-learn",
    "calibre": "calibre>=0.14",  # earlier releases, all that Python 3.11 can have, know no sweep
}

Row = dict[str, object]


@dataclass(frozen=True)
class Task:
    """Something to compute on data of several sizes, and how each package understands it."""

    title: str
    about: str
    data: str
    sizes: tuple[int, ...]
    packages: tuple[str, ...]
    function: str


SIZES = (10**3, 10**4, 10**5, 10**6, 10**7)

TASKS = (
    Task(
        "Binned error",
        "15 bins of equal width, l1. scikit-learn has no such metric: its row is the plain mean of the gaps "
        "of `calibration_curve`, not weighted by count, and so another number.",
        "miscalibrated",
        SIZES,
        ("truecal", "probcal", "uncertainty-calibration", "relplot", "scikit-learn", "calibre"),
        "ece",
    ),
    Task(
        "Debiased error",
        "15 bins of equal mass, l2. probcal floors each bin at zero and averages the roots, which is l1. "
        "uncertainty-calibration gives the rows that are left over to the first bins (`np.array_split`).",
        "miscalibrated",
        SIZES,
        ("truecal", "probcal", "uncertainty-calibration", "calibre"),
        "debiased",
    ),
    Task(
        "Monotonic sweep",
        "Equal mass, l1. probcal stops at 100 bins.",
        "miscalibrated",
        SIZES,
        ("truecal", "probcal", "calibre"),
        "sweep",
    ),
    Task(
        "Monotonic sweep on separable labels",
        "As above, but the label is 1 if the score exceeds 0.5, so the bin means are monotone for any number of bins.",
        "separable",
        (10**3, 2 * 10**3, 10**4, 2 * 10**4),
        ("truecal", "probcal", "calibre"),
        "sweep",
    ),
    Task(
        "Smooth error (smECE)",
        "probcal smooths on the logit scale and therefore estimates a different quantity.",
        "miscalibrated",
        SIZES,
        ("truecal", "probcal", "relplot", "calibre"),
        "smooth",
    ),
)


def make_data(kind: str, n: int, folder: Path) -> list[str]:
    """Save labels and scores; a score s has the positive label with probability s^1.2 if it is miscalibrated."""
    files = [folder / f"{kind}-{n}-{part}.npy" for part in ("labels", "scores")]
    if not files[0].exists():
        rng = np.random.default_rng(n)
        scores = rng.random(n)
        labels = scores > 0.5 if kind == "separable" else rng.random(n) < scores**1.2
        np.save(files[0], labels.astype(np.int64))
        np.save(files[1], scores)
    return [str(file) for file in files]


def make_environment(package: str, *requirements: str) -> str:
    """Install a package and give its interpreter, or raise LookupError with the reason.

    Without other requirements it is that of `REQUIREMENTS`.

    The Python that runs truecal comes first, so that NumPy's version is the same where that is possible.
    """
    if package == "truecal":
        return sys.executable
    folder = ENVIRONMENTS / package
    python, done = str(folder / "bin" / "python"), folder / ".done"
    if done.exists():
        return python
    reason = ""
    for path in (sys.executable, *_other_pythons()):
        if subprocess.run(
            [path, "-m", "venv", "--clear", folder], capture_output=True, check=False
        ).returncode:
            continue  # an inactive pyenv shim, or a Python of Debian without ensurepip
        needed = requirements or (REQUIREMENTS[package],)
        pip = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", *needed]
        installed = subprocess.run(pip, capture_output=True, text=True, check=False)
        if installed.returncode == 0:
            done.touch()
            return python
        reason = installed.stderr.strip().splitlines()[-1]
    raise LookupError(f"cannot be installed here: {reason}")


def _other_pythons() -> list[str]:
    """List the Pythons of PATH and of pyenv, newest first."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    names = [f"3.{minor}" for minor in (14, 13, 12, 11)]
    on_path = [shutil.which(f"python{name}") for name in names]
    return [
        *filter(None, on_path),
        *(str(path) for name in names for path in pyenv.glob(f"{name}.*/bin/python")),
    ]


def run_case(python: str, package: str, function: str, files: list[str]) -> Row:
    """Run one worker; a case that fails gives its reason as ``outcome``."""
    worker = str(Path(_worker.__file__))
    command = [python, "-W", "ignore", worker, package, function, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == _worker.TOO_LONG:
        return {"outcome": f"over {_worker.TIME_LIMIT} s"}
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"outcome": "out of memory" if "MemoryError" in reason else reason}
    row: Row = json.loads(done.stdout)
    return {"outcome": "done", **row, "ratio": row["seconds"] / row["sort_seconds"]}


def run_task(task: Task, pythons: dict[str, str], largest: int, folder: Path) -> list[Row]:
    """Run all packages on all sizes; a package that fails is spared the larger ones."""
    rows: list[Row] = []
    failed: set[str] = set()
    for n in (size for size in task.sizes if size <= largest):
        files = make_data(task.data, n, folder)
        for package in task.packages:
            case: Row = {"outcome": "not tried"}
            if package in pythons and package not in failed:
                case = run_case(pythons[package], package, task.function, files)
                print(f"{task.title}, n = {n}, {package}: {case}", file=sys.stderr)
                if case["outcome"] != "done":
                    failed.add(package)
            rows.append({"task": task.title, "package": package, "n": n, **case})
    return rows


def grid(rows: list[Row], cell: str) -> str:
    """Lay out cases as a table of packages by sizes; `cell` formats a case that was done."""
    sizes = sorted({row["n"] for row in rows})
    table = []
    for package in dict.fromkeys(row["package"] for row in rows):
        mine = {row["n"]: row for row in rows if row["package"] == package}
        cells = {
            f"n = {power(n)}": cell.format(time=seconds(mine[n]["seconds"]), **mine[n])
            if mine[n]["outcome"] == "done"
            else mine[n]["outcome"]
            for n in sizes
        }
        table.append({"package": package, **cells})
    return markdown(table)


def where_others_are_faster(rows: list[Row]) -> str:
    """Return a table of the cases in which another package takes less time."""
    done: dict[tuple[object, object], dict[object, float]] = {}
    for row in rows:
        if row["outcome"] == "done":
            done.setdefault((row["task"], row["n"]), {})[row["package"]] = float(row["seconds"])
    found = [
        {
            "work": task,
            "n": power(n),
            "package": package,
            "its time": seconds(taken),
            "truecal": seconds(times["truecal"]),
            "ratio": f"{times['truecal'] / taken:.2f}",
        }
        for (task, n), times in done.items()
        for package, taken in sorted(times.items(), key=lambda item: item[1])
        if taken < times.get("truecal", 0.0)
    ]
    return markdown(found) if found else "Nowhere in this run."


def main(*, quick: bool = False) -> Page:
    """Run everything and write the page; ``quick`` uses less data and only prints."""
    pythons: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for package in ("truecal", *REQUIREMENTS):
        try:
            pythons[package] = make_environment(package)
        except LookupError as error:
            reasons[package] = str(error)

    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for task in TASKS:
            rows += run_task(task, pythons, 10**4 if quick else 10**7, Path(folder))

    versions = []
    for package in ("truecal", *REQUIREMENTS):
        done = next((row for row in rows if row["package"] == package and row["outcome"] == "done"), {})
        absent = reasons.get(package, "no case succeeded")
        versions.append(
            {"package": package, **{key: done.get(key, absent) for key in ("version", "python", "numpy")}}
        )

    page = f"""# truecal and other packages

Every package is installed from PyPI into its own environment, and each case runs in its own process, on the same
float64 scores in random order with int64 labels. Scores are uniform, and the event has probability s^1.2 at score s,
so the true error is 0.0455 (l1) or 0.0495 (l2). Times are CPU times, the best of up to {_worker.ROUNDS} calls;
the ratio to `np.sort` of the same scores is in parentheses.
Each process is limited to {_worker.TIME_LIMIT} s and {_worker.MEMORY_LIMIT // 2**30} GiB of address space;
after a failure larger sizes are skipped.

{markdown(versions)}
"""
    for task in TASKS:
        mine = [row for row in rows if row["task"] == task.title]
        page += f"""
## {task.title}

{task.about}

Time, and its ratio to sorting:

{grid(mine, "{time} ({ratio:.3g})")}

Value returned:

{grid(mine, "{value:.6f}")}
"""
    page += f"""
## Where truecal is not the fastest

All cases in which another package took less time, whether or not it computes the same number. Functions that neither
check their input nor build a result are quicker on a thousand rows.

{where_others_are_faster(rows)}
"""
    return Page(page, {"": rows})
