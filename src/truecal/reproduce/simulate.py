"""Draws from populations: studies of bias whose results are kept, and single estimates for distributions."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed

from truecal._lib.files import whole_file
from truecal._lib.progress import Progress
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.estimators._registry import get_estimator
from truecal.reproduce.contract import Rows, Settings
from truecal.simulation.population import Population
from truecal.simulation.study import bias_study

Result = TypeVar("Result")

#: Rows that one job draws at once.
_BLOCK_ROWS = 1 << 18


def run_study(
    settings: Settings,
    name: str,
    populations: Mapping[str, Population],
    *,
    estimators: Iterable[str | Mapping[str, Any]],
    sizes: Iterable[int],
    repeats: int,
    norm: float = 2,
) -> Rows:
    """Return the rows of a bias study whose results are kept in ``work``, to go on after an interruption.

    Parts that ask for the same study under the same name share it.
    """
    return bias_study(
        populations,
        estimators=estimators,
        sizes=sizes,
        repeats=repeats,
        norm=norm,
        rng=settings.seed,
        n_jobs=settings.n_jobs,
        path=settings.work / f"{name}_{repeats}_repeats_seed_{settings.seed}.csv",
        progress=settings.progress,
    ).rows


def draw_estimates(
    settings: Settings,
    name: str,
    population: Population,
    *,
    n: int,
    estimators: Sequence[str],
    repeats: int,
    norm: float = 2,
) -> dict[str, FloatArray]:
    """Return `repeats` estimates by each estimator: where a mean is not enough, the whole distribution.

    Each block of repetitions has a generator of its own, seeded by `name`, n and its number, so that results
    do not depend on the number of workers. They are kept in ``work``.
    """
    path = settings.work / f"{name}_n{n}_{repeats}_repeats_seed_{settings.seed}.npz"
    if path.exists():
        with np.load(path) as kept:
            if set(estimators) <= set(kept.files):
                return {estimator: kept[estimator] for estimator in estimators}
    step = max(1, _BLOCK_ROWS // n)
    blocks = [(k, min(step, repeats - first)) for k, first in enumerate(range(0, repeats, step))]
    key = zlib.crc32(name.encode())
    jobs = [(population, n, list(estimators), size, norm, (settings.seed, key, n, k)) for k, size in blocks]
    values = np.concatenate(list(in_parallel(settings, name, _block, jobs)), axis=1)
    result = dict(zip(estimators, values, strict=True))
    with whole_file(path, "wb") as file:
        np.savez(file, **result)
    return result


def in_parallel(
    settings: Settings, name: str, function: Callable[..., Result], jobs: Sequence[tuple[Any, ...]]
) -> Iterator[Result]:
    """Yield the results of a function for each tuple of arguments, in order, with progress."""
    parallel = Parallel(n_jobs=settings.n_jobs, return_as="generator")
    with Progress(name, total=len(jobs), show=settings.progress) as bar:
        for result in parallel(delayed(function)(*job) for job in jobs):
            bar.advance(1)
            yield result


def _block(
    population: Population, n: int, estimators: list[str], size: int, norm: float, seed: tuple[int, ...]
) -> FloatArray:
    rng = np.random.default_rng(np.random.SeedSequence(seed[0], spawn_key=seed[1:]))
    # The same generator for every data set of the block: they follow one another in its stream.
    label, score = population.sample_many(n, [rng] * size)
    specs = [get_estimator(name) for name in estimators]
    values = np.empty((len(specs), size))
    for place, sample in enumerate(Sample.from_blocks(label, score)):
        for row, spec in enumerate(specs):
            values[row, place] = spec(sample, norm=norm).value
    return values
