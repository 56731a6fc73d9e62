"""The very samples that the paper's published program draws: one walk of seeds for everything.

Its simulations (google-research/caltrain, ``simulation/true_dataset.py``) give sample r a seed below 10^7 that
sample r - 1 drew first; the first is 47. Each row takes a uniform number, a Beta score and the uniform number
that decides its label. The walk is the same for every population and every size, and a smaller sample is the
beginning of the larger ones: all cells of a study share their luck.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from truecal._lib.files import whole_file
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.estimators._registry import get_estimator
from truecal.reproduce.contract import Settings
from truecal.reproduce.simulate import in_parallel
from truecal.simulation import paper
from truecal.simulation.population import Population
from truecal.simulation.scores.beta import BetaScores

FIRST_SEED = 47


def seeds() -> Iterator[int]:
    """Yield the seeds of the samples, one after the other, without end."""
    seed = FIRST_SEED
    while True:
        yield seed
        seed = int(10**7 * np.random.RandomState(seed).random_sample())


def walk() -> tuple[list[int], int]:
    """Return all different seeds in their order, and the place that the walk comes back to after the last.

    Examples
    --------
    >>> found, start = walk()
    >>> len(found), len(found) - start  # different samples, and how many of them come again and again
    (4744, 1302)
    """
    places: dict[int, int] = {}
    for seed in seeds():
        if seed in places:
            return list(places), places[seed]
        places[seed] = len(places)
    raise AssertionError("the walk does not end")


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
    found = []
    first = list(islice(seeds(), repeats))
    for name in names:
        path = settings.work / f"published_{name}_{repeats}_repeats.npy"
        if not path.exists():
            jobs = [(name, seed, tuple(sizes), tuple(estimators)) for seed in first]
            values = in_parallel(settings, f"published draws of {name}", _estimates, jobs)
            with whole_file(path, "wb") as file:
                np.save(file, np.stack(list(values), axis=2))
        found.append(np.load(path))
    return np.stack(found)


def _estimates(name: str, seed: int, sizes: tuple[int, ...], estimators: tuple[str, ...]) -> FloatArray:
    label, score = draw(paper.population(name), seed, max(sizes))
    samples = [Sample.from_rows(label[:n], score[:n]) for n in sizes]
    return np.array(
        [[get_estimator(estimator)(sample).value for sample in samples] for estimator in estimators]
    )
