"""The paper's main study and each estimator alone, as ratios to merely drawing scores and labels on one core."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from joblib.externals.loky import get_reusable_executor

import truecal
from experiments._page import Page, markdown
from truecal._lib.types import FloatArray
from truecal.estimators._registry import DEFAULT_ESTIMATOR

ESTIMATORS = ("ew_bin", "em_bin", "ew_debias", "em_debias", "ew_sweep", "em_sweep", "kde")
SIZES = (200, 400, 800, 1600, 3200, 6400, 12800)

#: Size of the samples of single estimators, and populations: scores without ties, and with a fifth of them equal to 1.
N = 1000
ALONE = ("resnet152_imgnet", "resnet110_c10")
ROUNDS = 3

Populations = dict[str, truecal.Population]
Row = dict[str, object]


def main(*, quick: bool = False) -> Page:
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
        {
            "what": row["what"],
            "seconds": f"{row['seconds']:.1f}",
            "ratio": f"{row['ratio']:.2f}",
            "processor time, ratio": f"{row['processor_ratio']:.2f}",
        }
        for row in whole
    ]
    predictions = len(populations) * sum(SIZES) * repeats
    page = f"""# The paper's main study

{len(populations)} populations x {len(SIZES)} sizes x {repeats} repeats x {len(ESTIMATORS)} estimators:
{predictions:.3g} simulated predictions.

{markdown(seconds)}

Seconds by the clock and their ratio to drawing, and the ratio of the processor time of all workers, which depends less
on what else the machine is doing. A study takes samples in blocks of about 2^18 rows; the sums over all bins of a
block, for example, are one call.

## Each estimator alone

`bias_study` with one estimator, {repeats:,} samples of n = {N:,}: processor time on one core as a ratio to drawing the
same samples with NumPy, best of {ROUNDS} rounds. Scores of {ALONE[0]} hardly ever tie; a fifth of those of {ALONE[1]}
are equal to 1 in floating point.

{markdown(list(ratios.values()))}
"""
    return Page(page, {"": [*whole, *alone]})


def _whole_study(populations: Populations, repeats: int) -> list[Row]:
    few = repeats // 10  # for the slow loop; its time grows in proportion
    drawing = _times(partial(_draw, populations, SIZES, repeats))
    times = {"drawing scores and labels with NumPy, one core": drawing}
    for n_jobs in (1, 2):
        times[f"bias_study, all seven estimators, n_jobs={n_jobs}"] = _times(
            partial(_study, populations, ESTIMATORS, SIZES, repeats, n_jobs)
        )
    loop = _times(partial(_loop, populations, few))
    times["ew_bin alone, row by row in Python (extrapolated)"] = loop * (repeats / few)
    return [
        {
            "what": what,
            "seconds": taken[0],
            **dict(zip(("ratio", "processor_ratio"), taken / drawing, strict=True)),
        }
        for what, taken in times.items()
    ]


def _alone(name: str, repeats: int) -> list[Row]:
    """Time each estimator on one population."""
    populations = {name: truecal.paper.population(name)}
    others = [spec.name for spec in truecal.list_estimators() if spec.name != DEFAULT_ESTIMATOR]
    calls: dict[str, Callable[[], object]] = {"drawing": partial(_draw, populations, (N,), repeats)}
    for estimator in (DEFAULT_ESTIMATOR, *others):
        calls[estimator] = partial(_study, populations, (estimator,), (N,), repeats, 1)
    times = {what: min(_times(call)[1] for _ in range(ROUNDS)) for what, call in calls.items()}
    return [
        {"what": what, "seconds": taken, "ratio": taken / times["drawing"], "population": name, "n": N}
        for what, taken in times.items()
    ]


def _times(call: Callable[[], object]) -> FloatArray:
    """Return the seconds by the clock and the processor time, of workers too, that a call takes."""
    clocks = time.perf_counter, time.process_time
    began, of_workers = [clock() for clock in clocks], sum(os.times()[2:4])
    call()
    ended = [clock() for clock in clocks]
    get_reusable_executor().shutdown(wait=True)  # the time of workers is known when they have ended
    ended[1] += sum(os.times()[2:4]) - of_workers
    return np.subtract(ended, began)


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
