"""How often the confidence interval holds the truth, and how wide it is."""

from __future__ import annotations

import zlib

import numpy as np
from joblib import Parallel, delayed
from truecal.estimators._curves import average_curves

import truecal
from benchmarks._tables import machine, markdown, write
from truecal.data.sample import Sample
from truecal.inference.interval import interval_of
from truecal.simulation.alternatives import population_with_error

SIZES = (200, 1000, 5000)
LEVEL = 0.95


def populations() -> dict[str, truecal.Population]:
    """Return truths of 0, 0.02 and 0.05 on four kinds of scores, the paper's ten and their calibrated twins."""
    kinds = {
        "uniform": truecal.simulation.UniformScores(),
        "skewed": truecal.simulation.BetaScores(2.8, 0.3),
        "tenths": truecal.simulation.RoundedScores(truecal.simulation.UniformScores(), decimals=1),
        "skewed float32": truecal.simulation.RoundedScores(
            truecal.simulation.BetaScores(2.8, 0.1), dtype="float32"
        ),
    }
    grid = {}
    for name, scores in kinds.items():
        for truth in (0.0, 0.02, 0.05):
            grid[f"{name}, {truth:g}"] = (
                population_with_error(truth, scores)
                if truth
                else truecal.Population(scores, truecal.simulation.IdentityCurve())
            )
    for name in truecal.paper.NAMES:
        grid[name] = truecal.paper.population(name)
        grid[f"{name} calibrated"] = truecal.paper.population(name, calibrated=True)
    return grid


def main(*, quick: bool = False) -> None:
    """Draw from each population at each size, and count."""
    repeats = 20 if quick else 1000
    cells = [(name, population, n) for name, population in populations().items() for n in SIZES]
    if quick:
        cells = cells[:6]
    rows = Parallel(n_jobs=2)(delayed(_cell)(name, population, n, repeats) for name, population, n in cells)
    lines = [
        {
            "population": row["population"],
            "n": row["n"],
            "true l2": f"{row['truth_2']:.4f}",
            "covers l2": f"{row['coverage_2']:.3f}",
            "width l2": f"{row['width_2']:.3f}",
            "covers l1": f"{row['coverage_1']:.3f}",
            "width l1": f"{row['width_1']:.3f}",
        }
        for row in rows
    ]
    worst = {
        norm: (min(r[f"coverage_{norm}"] for r in rows), max(r[f"coverage_{norm}"] for r in rows))
        for norm in (1, 2)
    }
    page = f"""# Coverage of the confidence interval

Nominal level {LEVEL:g}; {repeats} draws of each (standard error about {(0.95 * 0.05 / repeats) ** 0.5:.3f}).
l2: from {worst[2][0]:.3f} to {worst[2][1]:.3f}; l1: from {worst[1][0]:.3f} to {worst[1][1]:.3f}.
Made by `python benchmarks/run.py coverage` on {machine()}.

{markdown(lines)}
"""
    print(page)
    if not quick:
        write("coverage", page, rows)


def _cell(name: str, population: truecal.Population, n: int, repeats: int) -> dict[str, object]:
    rngs = [
        np.random.default_rng([7, zlib.crc32(name.encode()), n, repetition]) for repetition in range(repeats)
    ]
    truths = {norm: population.true_error(norm) for norm in (1, 2)}
    found: dict[int, list[truecal.results.Interval]] = {1: [], 2: []}
    for first in range(0, repeats, 50):
        for sample in Sample.from_blocks(*population.sample_many(n, rngs[first : first + 50])):
            curves = average_curves(sample)
            for norm in (1, 2):
                found[norm].append(interval_of(curves, norm, LEVEL))
    row: dict[str, object] = {"population": name, "n": n}
    for norm in (2, 1):
        row[f"truth_{norm}"] = truths[norm]
        row[f"coverage_{norm}"] = float(np.mean([truths[norm] in one for one in found[norm]]))
        row[f"width_{norm}"] = float(np.mean([one.high - one.low for one in found[norm]]))
    return row
