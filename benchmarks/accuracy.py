"""Bias and RMSE of the default estimator on every suite, beside the efficiency limit, and the cost of one estimate."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
from joblib import Parallel, delayed

import truecal
from benchmarks._tables import machine, markdown, write
from truecal.data.sample import Sample
from truecal.estimators._registry import DEFAULT_ESTIMATOR, get_estimator
from truecal.simulation.suites import SIZES, suite

SUITES = ("A", "B", "C1", "C2", "D1", "D2")
#: Sizes at which the hard populations of D are judged.
HARD_SIZES = (2000, 20_000)
#: Rows of the large sample that stands for a population in the efficiency limit.
_LARGE = 400_000


def efficiency_limit(population: truecal.Population, n: int) -> float:
    r"""Return the smallest asymptotic standard deviation of a regular estimator of the l2 error.

    .. math:: \frac{\sqrt{\mathrm{Var}(d^2) + 4 E[d^2 \mu(1 - \mu)]}}{2\sqrt{\theta n}}, \qquad d = f - \mu(f)
    """
    _, score = population.sample(_LARGE, rng=0)
    curve = population.curve(score)
    square = (score - curve) ** 2
    theta = float(square.mean())
    if theta < 1e-12:
        return float("nan")
    variance = float(square.var()) + 4 * float(np.mean(square * curve * (1 - curve)))
    return (variance / (4 * theta * n)) ** 0.5


def main(*, quick: bool = False, draws: int = 1000) -> None:
    """Draw from each population at each size; write bias and RMSE by population, and their means by suite."""
    repeats = 4 if quick else draws
    rows = Parallel(n_jobs=2)(delayed(_cell)(*cell, repeats) for cell in _cells(quick))
    lines = []
    for name in SUITES:
        for n in sorted({row["n"] for row in rows if row["suite"] == name}):
            part = [row for row in rows if row["suite"] == name and row["n"] == n]
            ratios = [row["rmse"] / row["limit"] for row in part if np.isfinite(row["limit"])]
            lines.append(
                {
                    "suite": name,
                    "n": n,
                    "mean absolute bias": f"{100 * np.mean([abs(row['bias']) for row in part]):.3f}",
                    "largest absolute bias": f"{100 * max(abs(row['bias']) for row in part):.2f}",
                    "Monte Carlo s.e.": f"{100 * np.mean([row['bias_se'] for row in part]):.3f}",
                    "RMSE": f"{100 * np.mean([row['rmse'] for row in part]):.3f}",
                    "RMSE / limit": f"{np.median(ratios):.2f}" if ratios else "-",
                    "l1: mean absolute bias": f"{100 * np.mean([abs(row['bias_1']) for row in part]):.3f}",
                }
            )
    page = f"""# Accuracy of `{DEFAULT_ESTIMATOR}`

Percentage points; means over the populations of a suite; {repeats} draws of each ({repeats // 4} from 10,000 rows
on). The limit is the smallest asymptotic standard deviation that any regular estimator can have; the ratio is the
median over populations. C2 and D2 were set aside when the constants were chosen.
Made by `python benchmarks/run.py accuracy` on {machine()}.

{markdown(lines)}
"""
    print(page)
    if not quick:
        write("accuracy", page, rows)


def _cells(quick: bool) -> Iterator[tuple[str, str, truecal.Population, int]]:
    for name in SUITES:
        populations = list(suite(name).items())
        for key, population in populations[:2] if quick else populations:
            for n in HARD_SIZES if name.startswith("D") else SIZES:
                yield name, key, population, n


def _cell(name: str, key: str, population: truecal.Population, n: int, repeats: int) -> dict[str, object]:
    if n >= 10_000:
        repeats = max(repeats // 4, 2)
    spec = get_estimator(DEFAULT_ESTIMATOR)
    rngs = [np.random.default_rng([3, zlib.crc32(key.encode()), n, r]) for r in range(repeats)]
    values = np.array(
        [
            [spec(sample, norm=norm).value for norm in (2, 1)]
            for first in range(0, repeats, 50)
            for sample in Sample.from_blocks(*population.sample_many(n, rngs[first : first + 50]))
        ]
    )
    error = values - [population.true_error(2), population.true_error(1)]
    return {
        "suite": name,
        "population": key,
        "n": n,
        "repeats": repeats,
        "truth": population.true_error(2),
        "bias": float(error[:, 0].mean()),
        "bias_se": float(error[:, 0].std() / repeats**0.5),
        "rmse": float(np.sqrt(np.mean(error[:, 0] ** 2))),
        "limit": efficiency_limit(population, n),
        "bias_1": float(error[:, 1].mean()),
        "rmse_1": float(np.sqrt(np.mean(error[:, 1] ** 2))),
    }
