"""Bias and RMSE of the default estimator on every suite, beside the efficiency limit, and the cost of one estimate."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import truecal
from experiments._page import Page, markdown
from truecal.data.sample import Block
from truecal.estimators._registry import DEFAULT_ESTIMATOR, get_estimator
from truecal.simulation.suites import SIZES, suite

SUITES = ("A", "B", "C1", "C2", "D1", "D2")
#: Sizes at which the hard populations of D are judged.
HARD_SIZES = (2000, 20_000)
#: The l1 error, which takes longer, is estimated on every fifth sample.
L1_STEP = 5
Row = dict[str, Any]


def main(*, quick: bool = False, draws: int = 1000) -> Page:
    """Draw from each population at each size; write bias and RMSE by population, and their means by suite."""
    repeats = 4 if quick else draws
    rows = Parallel(n_jobs=2)(delayed(_cell)(*cell, repeats) for cell in _cells(quick))
    page = report(rows)
    return Page(page, {"": rows})


def report(rows: list[Row]) -> str:
    """Return the page for the rows of all cells."""
    used = [name for name in SUITES if any(row["suite"] == name for row in rows)]
    sizes = [
        _line(name, n, [row for row in rows if row["suite"] == name and row["n"] == n])
        for name in used
        for n in sorted({row["n"] for row in rows if row["suite"] == name})
    ]
    whole = [_line(name, "all", [row for row in rows if row["suite"] == name]) for name in used]
    hard = [
        {
            "suite": row["suite"],
            "population": row["population"],
            "truth": f"{100 * row['truth']:.2f}",
            "bias": f"{100 * row['bias']:+.2f} ± {100 * row['bias_se']:.2f}",
            "RMSE": f"{100 * row['rmse']:.2f}",
            "l1: bias": f"{100 * row['bias_1']:+.2f}",
        }
        for row in rows
        if row["suite"].startswith("D") and row["n"] == max(HARD_SIZES)
    ]
    repeats = sorted({(row["n"], row["repeats"]) for row in rows})
    return f"""# Accuracy of `{DEFAULT_ESTIMATOR}`

Percentage points, l2 unless l1 is stated; means over the populations of a suite. Draws of each population:
{", ".join(f"{count:,} of {n:,} rows" for n, count in repeats)}; a fifth of these for l1.
Monte Carlo noise alone makes the mean of absolute biases larger; the column "without noise" has means of
root(bias² - s.e.²), with 0 for negative squares. The limit is the smallest asymptotic standard deviation that any
regular estimator can have, and the ratio is the median over populations. The constants were chosen on A, B and C1 and
looked at on D1; **C2 and D2 were set aside** (see [the theory](../theory/multiscale.md) for when C2 was looked at).

## By suite

{markdown(whole)}

## By number of rows

{markdown(sizes)}
{_hard(hard)}"""


def _hard(lines: list[dict[str, object]]) -> str:
    if not lines:
        return ""
    return f"""
## Hard populations with {max(HARD_SIZES):,} rows

{markdown(lines)}
"""


def _line(name: str, n: object, part: list[Row]) -> dict[str, object]:
    """Summarise rows; every number of rows counts alike."""
    sizes = [row["n"] for row in part]
    share = np.array([1 / sizes.count(size) for size in sizes]) / len(set(sizes))
    bias, error, rmse, bias_1, rmse_1 = (
        np.array([100 * row[key] for row in part]) for key in ("bias", "bias_se", "rmse", "bias_1", "rmse_1")
    )
    ratios = [row["rmse"] / row["limit"] for row in part if np.isfinite(row["limit"])]
    return {
        "suite": name,
        "n": n,
        "mean absolute bias": f"{share @ np.abs(bias):.3f} ± {np.sqrt(share**2 @ error**2):.3f}",
        "without noise": f"{share @ np.sqrt(np.maximum(bias**2 - error**2, 0)):.3f}",
        "largest": f"{np.abs(bias).max():.2f}",
        "RMSE": f"{share @ rmse:.3f}",
        "RMSE / limit": f"{np.median(ratios):.2f}" if ratios else "-",
        "l1: mean absolute bias": f"{share @ np.abs(bias_1):.3f}",
        "l1: RMSE": f"{share @ rmse_1:.3f}",
    }


def _cells(quick: bool) -> Iterator[tuple[str, str, truecal.Population, int]]:
    for name in SUITES:
        populations = list(suite(name).items())
        for key, population in populations[:2] if quick else populations:
            for n in HARD_SIZES if name.startswith("D") else SIZES:
                yield name, key, population, n


def _cell(name: str, key: str, population: truecal.Population, n: int, repeats: int) -> Row:
    spec = get_estimator(DEFAULT_ESTIMATOR)
    rngs = [np.random.default_rng([3, zlib.crc32(key.encode()), n, r]) for r in range(repeats)]
    found: dict[int, list[float]] = {1: [], 2: []}
    for first in range(0, repeats, 50):
        block = Block.from_rows(*population.sample_many(n, rngs[first : first + 50]))
        found[2].extend(spec.many(block, norm=2).value)
        found[1].extend(spec(sample, norm=1).value for sample in block.samples[::L1_STEP])
    error, error_1 = (np.array(found[norm]) - population.true_error(norm) for norm in (2, 1))
    return {
        "suite": name,
        "population": key,
        "n": n,
        "repeats": repeats,
        "truth": population.true_error(2),
        "bias": float(error.mean()),
        "bias_se": float(error.std() / repeats**0.5),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "limit": population.efficiency_limit(n),
        "bias_1": float(error_1.mean()),
        "rmse_1": float(np.sqrt(np.mean(error_1**2))),
    }
