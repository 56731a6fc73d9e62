"""Simulations whose results are kept in the work folder, the paper's main study, its own samples, and summaries."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from truecal import paper
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.estimators._registry import choose_estimators, get_estimator
from truecal.reproduce._contract import Records, Settings
from truecal.simulation import BetaScores, Population, _study, bias_study

Outcome = TypeVar("Outcome")

#: The estimators of the paper's Figures 4 and 6.
SEVEN: Final = ("ew_bin", "em_bin", "ew_debias", "em_debias", "ew_sweep", "em_sweep", "kde")
KDE_WITHOUT_ROOT: Final = "kde_without_root"

#: Suffixes of the names of data sets.
IMAGE_SETS: Final = {"CIFAR-10": "_c10", "CIFAR-100": "_c100", "ImageNet": "_imgnet"}


def run_study(
    settings: Settings,
    name: str,
    populations: Mapping[str, Population],
    *,
    estimators: Iterable[str | Mapping[str, Any]],
    sizes: Iterable[int],
    repeats: int,
    norm: float = 2,
) -> Records:
    """Return the rows of a bias study; an interrupted study is resumed.

    Parts that request the same study under the same name share it.
    """
    study = bias_study(
        populations,
        estimators=estimators,
        sizes=sizes,
        repeats=repeats,
        norm=norm,
        rng=settings.seed,
        n_jobs=settings.n_jobs,
        path=settings.work / f"{name}_{repeats}_repeats_seed_{settings.seed}.csv",
        progress=settings.progress,
    )
    return [{key: value for key, value in row.items() if key != "fingerprint"} for row in study.rows]


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
    """Return `repeats` estimates by each estimator, for parts that need the whole distribution."""
    blocks = _study.blocks_of(range(repeats), n)
    jobs = [((population, name, n, block), tuple(estimators), norm, settings.seed) for block in blocks]
    values = kept_in_parallel(settings, f"{name}_n{n}", _draw_block, jobs)
    return dict(zip(estimators, np.concatenate(values, axis=1), strict=True))


def _draw_block(
    drawn: tuple[Population, str, int, range], estimators: Sequence[str], norm: float, seed: int
) -> FloatArray:
    return _study.draw_estimates(*drawn, choose_estimators(estimators), norm, seed)[:, 0]


def kept_in_parallel(
    settings: Settings, name: str, function: Callable[..., Outcome], jobs: Sequence[tuple[Any, ...]]
) -> list[Outcome]:
    """Return the outcome of each job, in order; those of finished jobs are read from the work folder, as JSON.

    An array that was kept is a list.
    """
    path = settings.work / f"{name}_seed_{settings.seed}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    lines = [line for line in lines if line.endswith("\n")]  # without one that was interrupted
    done: dict[str, Outcome] = dict(json.loads(line) for line in lines)
    missing = [job for job in jobs if repr(job) not in done]
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines)
        file.flush()
        outcomes = _study.in_parallel(
            function, missing, name=name, n_jobs=settings.n_jobs, progress=settings.progress
        )
        for job, outcome in zip(missing, outcomes, strict=True):
            done[repr(job)] = outcome
            file.write(json.dumps([repr(job), outcome], default=np.ndarray.tolist) + "\n")
            file.flush()
    return [done[repr(job)] for job in jobs]


def paper_study(settings: Settings, *, calibrated: bool = False, norm: float = 2) -> Records:
    """Return the study behind Figures 4 and 6: ten populations, seven sizes, seven estimators."""
    names = settings.of(paper.NAMES, paper.NAMES, paper.NAMES[::4])
    return run_study(
        settings,
        f"{'calibrated' if calibrated else 'fitted'}_l{norm:g}",
        {name: paper.population(name, calibrated) for name in names},
        estimators=SEVEN,
        sizes=sizes(settings),
        repeats=settings.of(1000 if norm == 2 else 500, 60, 4),
        norm=norm,
    )


def sizes(settings: Settings) -> tuple[int, ...]:
    """Return the paper's sample sizes, or a few of them."""
    every = (200, 400, 800, 1600, 3200, 6400, 12800)
    return settings.of(every, every, (200, 800))


def with_kde_without_root(rows: Records) -> Records:
    """Return the rows of an l2 study with additional ones for KDE without its root, as in its authors' code.

    The mean of the squares follows from mean and sd. Its standard error assumes normal estimates.
    """
    added: Records = []
    for row in rows:
        if row["estimator"] == "kde" and row["norm"] == 2:
            variance = row["sd"] ** 2
            mean = row["mean"] ** 2 + variance * (row["repeats"] - 1) / row["repeats"]
            sd = math.sqrt(4 * row["mean"] ** 2 * variance + 2 * variance**2)
            bias = mean - row["true_error"]
            own = {"estimator": KDE_WITHOUT_ROOT, "mean": mean, "bias": bias, "sd": sd}
            unknown = {"median_bias": None, "mean_bins": None}
            spread = {"bias_se": sd / math.sqrt(row["repeats"]), "rmse": math.hypot(bias, sd)}
            added.append({**row, **own, **spread, **unknown})
    return rows + added


def image_set_of(name: str) -> str:
    """Return the image set of a data set.

    Examples
    --------
    >>> image_set_of("resnet110_SD_c100")
    'CIFAR-100'
    """
    return next(image_set for image_set, ending in IMAGE_SETS.items() if name.endswith(ending))


def mean_absolute_bias(rows: Iterable[Mapping[str, Any]], estimator: str) -> tuple[float, float]:
    """Return the mean over populations and sizes of the absolute bias, and its Monte Carlo error."""
    size, error = zip(
        *((abs(row["bias"]), row["bias_se"]) for row in pick(rows, estimator=estimator)), strict=True
    )
    return float(np.mean(size)), math.hypot(*error) / len(error)


def beta_of(population: Population) -> BetaScores:
    """Return the scores of a population, which must be a Beta."""
    assert isinstance(population.scores, BetaScores)
    return population.scores


def quantile_grid(population: Population, points: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return scores of equal weight, their complements, and the conditional probability of the event at each.

    The scores are the quantiles (i + 1/2) / points of the distribution, which must be a Beta. Means over them
    approximate integrals over the population.
    """
    scores = beta_of(population)
    level = (np.arange(points) + 0.5) / points
    score = np.asarray(betaincinv(scores.a, scores.b, level))
    complement = np.asarray(betaincinv(scores.b, scores.a, level[::-1]))
    return score, complement, np.asarray(population.curve(score, complement))


def sizes_in(rows: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return the sample sizes of a study."""
    return sorted({row["n"] for row in rows})


def bins_of(estimator: str) -> int | None:
    """Return the number of bins that an estimator of a study was given, or None.

    Examples
    --------
    >>> bins_of("ew_bin(n_bins=8)"), bins_of("em_sweep")
    (8, None)
    """
    option = estimator.partition("n_bins=")[2].rstrip(")")
    return int(option) if option else None


def best_bins(rows: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """Return for each n the number of bins with the smallest absolute bias."""
    known = [row for row in rows if row["n_bins"] is not None]
    return {n: min(pick(known, n=n), key=lambda row: abs(row["bias"]))["n_bins"] for n in sizes_in(known)}


def pick(rows: Iterable[Mapping[str, Any]], **values: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the rows with these values."""
    return (row for row in rows if all(row[key] == value for key, value in values.items()))


# --- The samples of the paper's published program ----------------------------------------------------
#
# Its simulations (google-research/caltrain, ``simulation/true_dataset.py``) give sample r a seed below 10^7 that is
# the first draw of sample r - 1; the first seed is 47. Each row takes a uniform number, a Beta score and the uniform
# number that decides its label. The sequence is the same for every population and every size, and a smaller sample
# is the beginning of the larger ones, so that all results of a study are dependent.

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


def published_draw(population: Population, seed: int, n: int) -> tuple[NDArray[np.bool_], FloatArray]:
    """Return labels and scores of one sample from a population with Beta scores."""
    scores = beta_of(population)
    generator = np.random.RandomState(seed)
    uniform, beta = generator.random_sample, generator.beta
    uniform()  # the seed of the next sample
    rows = np.array([(uniform(), beta(scores.a, scores.b), uniform()) for _ in range(n)])
    score = np.ascontiguousarray(rows[:, 1])
    return rows[:, 2] < population.curve(score), score


def published_estimates(
    settings: Settings, names: Sequence[str], sizes: Sequence[int], estimators: Sequence[str], repeats: int
) -> FloatArray:
    """Return estimates on these samples, of shape (names, estimators, sizes, repeats)."""
    first = islice(seeds(), repeats)
    jobs = [(name, seed, tuple(sizes), tuple(estimators)) for name, seed in itertools.product(names, first)]
    estimates = np.array(kept_in_parallel(settings, "published_draws", _estimates, jobs))
    by_name = estimates.reshape(len(names), repeats, len(estimators), len(sizes))
    return np.moveaxis(by_name, 1, -1)


def _estimates(name: str, seed: int, sizes: Sequence[int], estimators: Sequence[str]) -> FloatArray:
    label, score = published_draw(paper.population(name), seed, max(sizes))
    samples = [Sample.from_rows(label[:n], score[:n]) for n in sizes]
    return np.array(
        [[get_estimator(estimator)(sample).value for sample in samples] for estimator in estimators]
    )
