"""The paper's main study, as a ratio to merely drawing its scores and labels once on one core."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import truecal
from benchmarks._tables import machine, markdown, write

ESTIMATORS = ("ew_bin", "em_bin", "ew_debias", "em_debias", "ew_sweep", "em_sweep", "kde")
SIZES = (200, 400, 800, 1600, 3200, 6400, 12800)

Populations = dict[str, truecal.Population]


def main(*, quick: bool = False) -> None:
    """Time drawing, the study on one and two workers, and a textbook loop over rows in Python."""
    repeats = 20 if quick else 1000
    small = repeats // 10  # of the slow loop; its time grows in proportion
    populations = {
        name: truecal.paper.population(name) for name in truecal.paper.NAMES[: 2 if quick else None]
    }

    def study(n_jobs: int) -> None:
        truecal.bias_study(
            populations,
            estimators=ESTIMATORS,
            sizes=SIZES,
            repeats=repeats,
            rng=0,
            n_jobs=n_jobs,
            progress=False,
        )

    drawing = _seconds(lambda: _draw(populations, repeats))
    times = {
        "drawing scores and labels with NumPy, one core": drawing,
        "bias_study, all seven estimators, n_jobs=1": _seconds(lambda: study(1)),
        "bias_study, all seven estimators, n_jobs=2": _seconds(lambda: study(2)),
        "ew_bin alone, row by row in Python (extrapolated)": _seconds(lambda: _loop(populations, small))
        * (repeats / small),
    }
    rows = [{"what": what, "seconds": seconds, "ratio": seconds / drawing} for what, seconds in times.items()]
    table = markdown(
        [{"what": r["what"], "seconds": f"{r['seconds']:.1f}", "ratio": f"{r['ratio']:.2f}"} for r in rows]
    )
    predictions = len(populations) * sum(SIZES) * repeats
    page = f"""# The paper's main study

{len(populations)} populations x {len(SIZES)} sizes x {repeats} repeats x {len(ESTIMATORS)} estimators:
{predictions:.3g} simulated predictions. Made by `python benchmarks/run.py study` on {machine()}.

{table}
"""
    print(page)
    if not quick:
        write("study", page, rows)


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _draw(populations: Populations, repeats: int) -> None:
    rng = np.random.default_rng(0)
    for population in populations.values():
        a, b = population.scores.a, population.scores.b
        for n in SIZES:
            for _ in range(repeats):
                complement = rng.beta(b, a, n)
                _ = rng.random(n) < population.curve(1 - complement, complement)


def _loop(populations: Populations, repeats: int) -> None:
    """Bin by equal width as a textbook would, one row after the other."""
    for population in populations.values():
        for n in SIZES:
            for repetition in range(repeats):
                y, p = population.sample(n, rng=repetition)
                count, scores, labels = [0] * 15, [0.0] * 15, [0.0] * 15
                for label, score in zip(y.tolist(), p.tolist(), strict=True):
                    k = min(int(score * 15), 14)
                    count[k] += 1
                    scores[k] += score
                    labels[k] += label
                _ = sum((s - t) ** 2 / c for c, s, t in zip(count, scores, labels, strict=True) if c)
