"""The samples of the paper's published program, which share one sequence of seeds.

Its simulations (google-research/caltrain, ``simulation/true_dataset.py``) give sample r a seed below 10^7 that is
the first draw of sample r - 1; the first seed is 47. Each row takes a uniform number, a Beta score and the uniform
number that decides its label. The sequence is the same for every population and every size, and a smaller sample
is the beginning of the larger ones, so that all results of a study are dependent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from truecal import paper
from truecal._lib.files import whole_file
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.estimators._registry import get_estimator
from truecal.reproduce._contract import Settings
from truecal.reproduce._studies import in_parallel
from truecal.simulation import BetaScores, Population

FIRST_SEED = 47


def seeds() -> Iterator[int]:
    """Yield the seeds of the samples, indefinitely."""
    seed = FIRST_SEED
    while True:
        yield seed
        seed = int(10**7 * np.random.RandomState(seed).random_sample())


def walk() -> tuple[list[int], int]:
    """Return all distinct seeds in order, and the index at which the sequence continues after the last.

    Examples
    --------
    >>> distinct, start = walk()
    >>> len(distinct), len(distinct) - start  # distinct samples, and how many of them repeat
    (4744, 1302)
    """
    index_of: dict[int, int] = {}
    for seed in seeds():
        if seed in index_of:
            return list(index_of), index_of[seed]
        index_of[seed] = len(index_of)
    raise AssertionError("the sequence of seeds does not repeat")


def draw(population: Population, seed: int, n: int) -> tuple[NDArray[np.bool_], FloatArray]:
    """Return labels and scores of one sample from a population with Beta scores."""
    assert isinstance(population.scores, BetaScores)
    a, b = population.scores.a, population.scores.b
    generator = np.random.RandomState(seed)
    uniform, beta = generator.random_sample, generator.beta
    uniform()  # the seed of the next sample
    rows = np.array([(uniform(), beta(a, b), uniform()) for _ in range(n)])
    score = np.ascontiguousarray(rows[:, 1])
    return rows[:, 2] < population.curve(score), score


def published_estimates(
    settings: Settings, names: Sequence[str], sizes: Sequence[int], estimators: Sequence[str], repeats: int
) -> FloatArray:
    """Return estimates on these samples, of shape (names, estimators, sizes, repeats); kept in ``work``."""
    estimates = []
    first = list(islice(seeds(), repeats))
    for name in names:
        path = settings.work / f"published_{name}_{repeats}_repeats.npy"
        if not path.exists():
            jobs = [(name, seed, tuple(sizes), tuple(estimators)) for seed in first]
            values = in_parallel(settings, f"published draws of {name}", _estimates, jobs)
            with whole_file(path, "wb") as file:
                np.save(file, np.stack(list(values), axis=2))
        estimates.append(np.load(path))
    return np.stack(estimates)


def _estimates(name: str, seed: int, sizes: tuple[int, ...], estimators: tuple[str, ...]) -> FloatArray:
    label, score = draw(paper.population(name), seed, max(sizes))
    samples = [Sample.from_rows(label[:n], score[:n]) for n in sizes]
    return np.array(
        [[get_estimator(estimator)(sample).value for sample in samples] for estimator in estimators]
    )
