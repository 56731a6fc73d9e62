"""The Monte Carlo engine: draw samples of a population, apply estimators to them, in parallel.

Every repetition has a generator of its own, seeded by a key and the number of the repetition. Results therefore
do not depend on how the work is split, on the number of workers, or on which other estimators take part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed

from truecal._lib.progress import Progress
from truecal._lib.types import FloatArray
from truecal.data.block import Block
from truecal.estimators._registry import Choice
from truecal.simulation._population import Population

Outcome = TypeVar("Outcome")

#: Rows drawn at once: many repetitions of a small size, or few of a large one.
_BLOCK_ROWS = 1 << 18


def keyed_generator(seed: int, *key: int) -> np.random.Generator:
    """Return the generator of the child of `seed` with this spawn key."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def blocks_of(repetitions: range, n: int) -> Iterator[range]:
    """Split repetitions of samples of size `n` into blocks that are drawn at once."""
    step = max(1, _BLOCK_ROWS // n)
    return (repetitions[first : first + step] for first in range(0, len(repetitions), step))


def draw_blocks(
    population: Population, n: int, repetitions: range, *, seed: int, key: Sequence[int]
) -> Iterator[Block]:
    """Yield blocks of samples of size `n`, one sample for each repetition.

    Parameters
    ----------
    population : Population
        Population to draw from.
    n : int
        Sample size.
    repetitions : range
        Numbers of the repetitions.
    seed : int
        Random seed.
    key : sequence of int
        Spawn key; the number of the repetition is appended to it.

    Yields
    ------
    Block

    Examples
    --------
    >>> from truecal import paper
    >>> population = paper.population("resnet110_c10")
    >>> [sample.n for block in draw_blocks(population, 50, range(2), seed=0, key=(1,)) for sample in block]
    [50, 50]
    """
    for numbers in blocks_of(repetitions, n):
        generators = [keyed_generator(seed, *key, number) for number in numbers]
        yield Block.from_rows(*population.sample_many(n, generators))


def draw_estimates(
    population: Population,
    n: int,
    repetitions: range,
    choices: Sequence[Choice],
    norm: float,
    seed: int,
    key: Sequence[int],
) -> FloatArray:
    """Return estimates and numbers of bins, of shape (estimators, 2, repetitions); NaN where there are no bins.

    The parameters are those of `draw_blocks`, with the estimators and the order of the norm.
    """
    values = np.full((len(choices), 2, len(repetitions)), np.nan)
    first = 0
    for block in draw_blocks(population, n, repetitions, seed=seed, key=key):
        columns = slice(first, first := first + len(block))
        for row, choice in enumerate(choices):
            estimates = choice.many(block, norm=norm)
            values[row, 0, columns] = estimates.value
            if estimates.n_bins is not None:
                values[row, 1, columns] = estimates.n_bins
    return values


def in_parallel(
    function: Callable[..., Outcome],
    jobs: Sequence[tuple[Any, ...]],
    *,
    name: str,
    costs: Sequence[float] | None = None,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> Iterator[Outcome]:
    """Yield the outcome of ``function(*job)`` for each job, in order, and show progress.

    Parameters
    ----------
    function : callable
        The work.
    jobs : sequence of tuple
        Arguments of each call.
    name : str
        Name of the work on the progress line.
    costs : sequence of float, optional
        Relative cost of each job; equal by default.
    n_jobs : int
        Number of workers, as in joblib.
    progress : bool, optional
        Whether to show progress; by default if standard error is a terminal.

    Yields
    ------
    object
    """
    costs = [1.0] * len(jobs) if costs is None else costs
    outcomes = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(function)(*job) for job in jobs)
    with Progress(name, total=sum(costs), show=progress) as bar:
        for cost, outcome in zip(costs, outcomes, strict=True):
            bar.advance(cost)
            yield outcome
