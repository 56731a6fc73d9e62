"""The paper's main study and each estimator alone, as ratios to merely drawing scores and labels on one core."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

import truecal
from benchmarks._tables import machine, markdown, write
from truecal.estimators._registry import DEFAULT_ESTIMATOR

ESTIMATORS = ("ew_bin", "em_bin", "ew_debias", "em_debias", "ew_sweep", "em_sweep", "kde")
SIZES = (200, 400, 800, 1600, 3200, 6400, 12800)

#: Size of the samples of single estimators, and populations: scores without ties, and with a fifth of them equal to 1.
N = 1000
ALONE = ("resnet152_imgnet", "resnet110_c10")
ROUNDS = 3

Populations = dict[str, truecal.Population]
Row = dict[str, object]


def main(*, quick: bool = False) -> None:
    """Time drawing, the study on one and two workers, a textbook loop in Python, and each estimator alone."""
    repeats = 20 if quick else 1000
    populations = {
        name: truecal.paper.population(name) for name in truecal.paper.NAMES[: 2 if quick else None]
    }
    whole = _whole_study(populations, repeats)
    alone = [row for name in ALONE for row in _alone(name, repeats)]
    ratios: dict[object, Row] = {}
    for row in alone:
        ratios.setdefault(row["what"], {"estimator": row["what"]})[f"{row['population']}"] = (
            f"{row['ratio']:.2f}"
        )
    seconds = [
        {"what": row["what"], "seconds": f"{row['seconds']:.1f}", "ratio": f"{row['ratio']:.2f}"}
        for row in whole
    ]
    predictions = len(populations) * sum(SIZES) * repeats
    page = f"""# The paper's main study

{len(populations)} populations x {len(SIZES)} sizes x {repeats} repeats x {len(ESTIMATORS)} estimators:
{predictions:.3g} simulated predictions. Made by `python benchmarks/run.py study` on {machine()}.

{markdown(seconds)}

Seconds by the clock, and their ratio to drawing. A study takes samples in blocks of about 2^18 rows; the sum over the
rows of a bin, for example, is one call for all samples of a block.

## Each estimator alone

`bias_study` with one estimator, {repeats:,} samples of n = {N:,}: processor time on one core as a ratio to drawing the
same samples with NumPy, best of {ROUNDS} rounds. Scores of {ALONE[0]} hardly ever tie; a fifth of those of {ALONE[1]}
are equal to 1 in floating point.

{markdown(list(ratios.values()))}
"""
    print(page)
    if not quick:
        write("study", page, [*whole, *alone])


def _whole_study(populations: Populations, repeats: int) -> list[Row]:
    small = repeats // 10  # of the slow loop; its time grows in proportion
    drawing = _seconds(lambda: _draw(populations, SIZES, repeats))
    times = {"drawing scores and labels with NumPy, one core": drawing}
    for n_jobs in (1, 2):
        times[f"bias_study, all seven estimators, n_jobs={n_jobs}"] = _seconds(
            partial(_study, populations, ESTIMATORS, SIZES, repeats, n_jobs)
        )
    loop = _seconds(lambda: _loop(populations, small))
    times["ew_bin alone, row by row in Python (extrapolated)"] = loop * (repeats / small)
    return [{"what": what, "seconds": taken, "ratio": taken / drawing} for what, taken in times.items()]


def _alone(name: str, repeats: int) -> list[Row]:
    """Time each estimator on one population."""
    populations = {name: truecal.paper.population(name)}
    others = [spec.name for spec in truecal.list_estimators() if spec.name != DEFAULT_ESTIMATOR]
    calls: dict[str, Callable[[], object]] = {"drawing": partial(_draw, populations, (N,), repeats)}
    for estimator in (DEFAULT_ESTIMATOR, *others):
        calls[estimator] = partial(_study, populations, (estimator,), (N,), repeats, 1)
    times = {
        what: min(_seconds(call, time.process_time) for _ in range(ROUNDS)) for what, call in calls.items()
    }
    return [
        {"what": what, "seconds": taken, "ratio": taken / times["drawing"], "population": name, "n": N}
        for what, taken in times.items()
    ]


def _seconds(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    began = clock()
    call()
    return clock() - began


def _study(
    populations: Populations, estimators: Iterable[str], sizes: Iterable[int], repeats: int, n_jobs: int
) -> None:
    truecal.bias_study(
        populations,
        estimators=estimators,
        sizes=sizes,
        repeats=repeats,
        rng=0,
        n_jobs=n_jobs,
        progress=False,
    )


def _draw(populations: Populations, sizes: Iterable[int], repeats: int) -> None:
    rng = np.random.default_rng(0)
    for population in populations.values():
        a, b = population.scores.a, population.scores.b
        for n in sizes:
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
