"""Samples of a population by key, in blocks, and estimates on them, in parallel.

Every repetition has a generator of its own, seeded by a key and the number of the repetition. Results therefore
do not depend on how the work is split, on the number of workers, or on which other estimators take part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed

from truecal._lib.numeric import keyed_generator
from truecal._lib.progress import Progress
from truecal._lib.types import FloatArray
from truecal.data.sample import Block, ScoreGroups
from truecal.estimators._registry import Choice
from truecal.results import Estimates
from truecal.simulation._population import Population

Outcome = TypeVar("Outcome")

#: Rows drawn at once: many repetitions of a small size, or few of a large one.
_BLOCK_ROWS = 1 << 18


def blocks_of(repetitions: range, n: int) -> Iterator[range]:
    """Split repetitions of samples of size `n` into blocks that are drawn at once."""
    step = max(1, _BLOCK_ROWS // n)
    return (repetitions[first : first + step] for first in range(0, len(repetitions), step))


def draw_blocks(
    population: Population, n: int, repetitions: range, *, seed: int, key: Sequence[int]
) -> Iterator[Block]:
    """Yield blocks of samples of size `n`; the spawn key of a sample is `key` and the number of its repetition."""
    for numbers in blocks_of(repetitions, n):
        generators = [keyed_generator(seed, *key, number) for number in numbers]
        yield Block.from_rows(*population.sample_many(n, generators))


def apply(
    choices: Sequence[Choice],
    samples: Iterable[ScoreGroups],
    norm: float,
    take: Callable[[Estimates], FloatArray],
) -> FloatArray:
    """Return what `take` returns of the estimates, of shape (estimators, ..., samples)."""
    return np.concatenate(
        [np.stack([take(choice.many(block, norm=norm)) for choice in choices]) for block in samples], axis=-1
    )


def draw_estimates(
    population: Population,
    n: int,
    repetitions: range,
    choices: Sequence[Choice],
    norm: float,
    seed: int,
    key: Sequence[int],
) -> FloatArray:
    """Return estimates and numbers of bins, of shape (estimators, 2, repetitions); NaN where there are no bins."""
    return apply(choices, draw_blocks(population, n, repetitions, seed=seed, key=key), norm, _values_and_bins)


def _values_and_bins(estimates: Estimates) -> FloatArray:
    n_bins = np.nan if estimates.n_bins is None else estimates.n_bins
    return np.stack(np.broadcast_arrays(estimates.value, n_bins))


def in_parallel(
    function: Callable[..., Outcome],
    jobs: Sequence[tuple[Any, ...]],
    *,
    name: str,
    costs: Sequence[float] | None = None,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> Iterator[Outcome]:
    """Yield the outcome of ``function(*job)`` for each job, in order, with progress under `name` by relative cost."""
    costs = [1.0] * len(jobs) if costs is None else costs
    outcomes = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(function)(*job) for job in jobs)
    with Progress(name, total=sum(costs), show=progress) as bar:
        for cost, outcome in zip(costs, outcomes, strict=True):
            bar.advance(cost)
            yield outcome
