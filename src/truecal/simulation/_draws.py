"""Test statistics on data of a population and of its calibrated twin: the engine of power and planning."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count as count_from
from typing import Any

import numpy as np

from truecal._lib.checks import as_generator, check_choice, check_count, check_fraction, check_norm
from truecal._lib.types import FloatArray, RNGLike
from truecal.data.sample import Sample
from truecal.data.score_groups import ScoreGroups
from truecal.estimators._registry import MULTISCALE, Choice, choose_estimators
from truecal.inference.calibration_test import method_names
from truecal.multiscale.null import LabelNull, Trials
from truecal.multiscale.omnibus import Omnibus
from truecal.simulation.monte_carlo import draw_blocks, keyed_generator
from truecal.simulation.population import Population

#: Up to this number of rows every score is drawn. Beyond, blocks of scores give the same power at a fixed cost.
_DRAWN_ROWS = 1 << 13
#: Number of blocks by mass and by width: a block has at most 1/2048 of the scores and a width of at most 1/512.
_BLOCKS_BY_MASS, _BLOCKS_BY_WIDTH = 1 << 11, 1 << 9
#: Number of scores from which the blocks are made.
_BLOCK_DRAWS = 1 << 18

#: Data sets that share their scores, for the multiscale test.
_LABELS_PER_SCORES = 20

# Streams of random numbers, one for each purpose, so that none depends on how much another draws.
_NULL, _ALTERNATIVE, _SCORES = range(3)


@dataclass(frozen=True)
class Detection:
    """Share of data sets on which a statistic exceeds its critical value, and the error of this share."""

    share: float
    standard_error: float
    critical_value: float


@dataclass(frozen=True)
class Simulator:
    """Draws data sets, applies statistics to them, and compares these with the calibrated twin's.

    Every data set has a generator of its own, seeded by its purpose, its size and its number. Populations
    with the same scores therefore share the scores and the randomness of each data set, and differ by their curves.
    For the multiscale test several data sets share their scores, which saves most of the time.
    """

    statistics: tuple[Choice | None, ...]
    alpha: float
    norm: float
    repeats: int
    seed: int

    @classmethod
    def checked(
        cls,
        methods: Iterable[str | Mapping[str, Any]],
        *,
        alpha: float,
        norm: float,
        repeats: int,
        rng: RNGLike,
    ) -> Simulator:
        """Return a simulator for tests as users name them."""
        alpha = check_fraction("alpha", alpha)
        # With fewer, no draw of the calibrated twin lies above the critical value.
        repeats = check_count("repeats", repeats, at_least=math.ceil(1 / alpha))
        return cls(
            statistics=tuple({_label(one): one for one in map(choose_method, methods)}.values()),
            alpha=alpha,
            norm=check_norm(norm),
            repeats=repeats,
            seed=int(as_generator(rng).integers(2**63)),
        )

    @property
    def labels(self) -> list[str]:
        """Names of the tests, with their options."""
        return [_label(one) for one in self.statistics]

    def null(self, population: Population, n: int, repeats: int | None = None) -> FloatArray:
        """Return the statistics on data of the calibrated twin, of shape (statistics, repeats), sorted."""
        return np.sort(self._ranks(population.calibrated(), n, repeats or self.repeats, _NULL), axis=1)

    def detections(self, population: Population, n: int, null: FloatArray) -> list[Detection]:
        """Return for each statistic how often it exceeds its critical value, on as many data sets."""
        ranks = self._ranks(population, n, null.shape[1], _ALTERNATIVE)
        return [detection(own, twin, self.alpha) for own, twin in zip(ranks, null, strict=True)]

    def _ranks(self, population: Population, n: int, repeats: int, stream: int) -> FloatArray:
        ranks = np.empty((len(self.statistics), repeats))
        choices = [(row, choice) for row, choice in enumerate(self.statistics) if choice is not None]
        if choices:
            draw = self._drawn if n <= _DRAWN_ROWS else self._from_blocks
            first = 0
            for samples in draw(population, n, repeats, stream):
                columns = slice(first, first := first + len(samples.sizes))
                for row, choice in choices:
                    ranks[row, columns] = choice.many(samples, norm=self.norm).rank_value
        if len(choices) < len(self.statistics):
            ranks[self.statistics.index(None)] = self._multiscale(population, n, repeats, stream)
        return ranks

    def _multiscale(self, population: Population, n: int, repeats: int, stream: int) -> FloatArray:
        """Return the multiscale statistic on data sets that share scores in groups."""
        draw = self._rows if n <= _DRAWN_ROWS else self._blocks
        found: list[FloatArray] = []
        for first, (score, count, chance) in zip(
            range(0, repeats, _LABELS_PER_SCORES), draw(population, n), strict=False
        ):
            shown = score.astype(population.scores.output_dtype).astype(np.float64)
            null = LabelNull(Trials(shown, count, np.zeros(len(count))))
            omnibus, rng = Omnibus(null), self._generator(stream, n, first)
            size = min(_LABELS_PER_SCORES, repeats - first)
            found.extend(omnibus.statistic(block) for block in null.draws(size, rng, chance))
        return np.concatenate(found)

    def _rows(self, population: Population, n: int) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield scores, counts of 1 and chances of a positive label, for one set of scores after another."""
        for number in count_from(0):
            score, complement = population.draw(n, self._generator(_SCORES, n, number))
            order = np.argsort(score, kind="stable")
            yield score[order], np.ones(n), population.curve(score[order], complement[order])

    def _blocks(self, population: Population, n: int) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield the same for scores that are rounded to blocks."""
        score, mass, chance = _blocks_of(population, self._generator(_SCORES))
        for number in count_from(0):
            drawn = self._generator(_SCORES, n, number).multinomial(n, mass)
            seen = drawn > 0
            yield score[seen], drawn[seen].astype(np.float64), chance[seen]

    def _drawn(self, population: Population, n: int, repeats: int, stream: int) -> Iterator[ScoreGroups]:
        return draw_blocks(population, n, range(repeats), seed=self.seed, key=(stream, n))

    def _from_blocks(
        self, population: Population, n: int, repeats: int, stream: int
    ) -> Iterator[ScoreGroups]:
        """Yield data sets of a population whose scores are rounded to blocks: binomials, whatever n is."""
        score, mass, chance = _blocks_of(population, self._generator(_SCORES))
        dtype = population.scores.output_dtype
        for number in range(repeats):
            rng = self._generator(stream, n, number)
            count = rng.multinomial(n, mass)
            positives = rng.binomial(count, chance).astype(np.float64)
            seen = count > 0
            yield Sample(score[seen], count[seen].astype(np.float64), positives[seen], dtype)

    def _generator(self, *key: int) -> np.random.Generator:
        return keyed_generator(self.seed, *key)


def _label(choice: Choice | None) -> str:
    return MULTISCALE if choice is None else choice.label


def choose_method(method: str | Mapping[str, Any]) -> Choice | None:
    """Return the estimator that is a test statistic, with its options; None for the multiscale test."""
    options = {"method": method} if isinstance(method, str) else dict(method)
    name = options.pop("method", None)
    if name == MULTISCALE and not options:
        return None
    check_choice("method", name, method_names())
    return choose_estimators([{"estimator": name, **options}])[0]


def _blocks_of(population: Population, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return score, probability and chance of a positive label of blocks that are small in mass and width."""
    score, complement = population.draw(_BLOCK_DRAWS, rng)
    order = np.lexsort((-complement, score))
    score, complement = score[order], complement[order]
    by_mass = np.arange(_BLOCK_DRAWS) * _BLOCKS_BY_MASS // _BLOCK_DRAWS
    by_width = np.floor(score * _BLOCKS_BY_WIDTH)
    start = np.flatnonzero(np.diff(by_mass, prepend=-1) + np.diff(by_width, prepend=-1))
    size = np.diff(start, append=_BLOCK_DRAWS)
    # Its middle score stands for a block: an atom keeps its value, and a calibrated model stays calibrated.
    middle = start + size // 2
    chance = population.curve(score[middle], complement[middle])
    # Scores that the model's own type cannot tell apart are one group.
    shown = score[middle].astype(population.scores.output_dtype).astype(np.float64)
    distinct, group = np.unique(shown, return_inverse=True)
    mass = np.bincount(group, size)
    return distinct, mass / _BLOCK_DRAWS, np.clip(np.bincount(group, size * chance) / mass, 0.0, 1.0)


def detection(ranks: FloatArray, null: FloatArray, alpha: float) -> Detection:
    """Compare statistics with those of the calibrated twin, which are sorted."""
    repeats = len(null)
    place = math.ceil((1 - alpha) * (repeats + 1)) - 1

    def share_above(place: int) -> float:
        critical = null[min(max(place, 0), repeats - 1)]
        return float(np.mean(ranks > critical + 1e-12 * abs(critical)))

    share = share_above(place)
    # The draws are binomial. So is the place of the true critical value among the sorted draws of the twin:
    # it is moved by one standard deviation in both directions.
    kept = (share * repeats + 0.5) / (repeats + 1)
    off = math.ceil(math.sqrt(repeats * alpha * (1 - alpha)))
    by_critical = (share_above(place - off) - share_above(place + off)) / 2
    error = math.hypot(math.sqrt(kept * (1 - kept) / repeats), by_critical)
    return Detection(share, error, float(null[min(place, repeats - 1)]))
