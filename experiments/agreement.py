"""Laws that connect estimate, interval and test, on awkward samples; and the level of the closed-form p-value."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

import truecal
from experiments._page import Page, markdown

Array = NDArray[Any]
Law = tuple[str, bool]

#: What may be rounding in a difference of two errors.
_ROUNDING = 1e-7
_LEVELS = {None: (0.8, 0.9, 0.95, 0.99), "monotone": (0.95,), "none": (0.95,)}
_ROWS = (1, 2, 3, 4, 5, 7, 8, 10, 12, 15, 20, 24, 30, 48, 50, 80, 100, 150, 200, 300)
_EXTREMES = [0.0, np.nextafter(0, 1), 1e-300, 1e-12, 0.5, 1 - 2.0**-53, 1.0]

#: Draw n scores.
SCORES: tuple[Callable[[np.random.Generator, int], Array], ...] = (
    lambda rng, n: rng.random(n),
    lambda rng, n: rng.random(n).round(1),
    lambda rng, n: rng.random(n).round(2),
    lambda rng, n: rng.choice([0.0, 0.3, 0.5, 1.0], n),
    lambda rng, n: rng.beta(0.3, 0.3, n),
    lambda rng, n: rng.beta(1, 40, n),
    lambda rng, n: rng.beta(9, 0.2, n),
    lambda rng, n: np.full(n, rng.random()),
    lambda rng, n: rng.choice(_EXTREMES, n),
    lambda rng, n: rng.uniform(0.4, 0.6, n),
    lambda rng, n: rng.choice([0.0, 1.0], n),
    lambda rng, n: rng.random(n) * (np.arange(n) < n // 2),
)
#: The chance of a positive label at a score.
CURVES: tuple[Callable[[Array], Array], ...] = (
    lambda p: p,
    lambda p: 1 - p,
    np.zeros_like,
    np.ones_like,
    lambda p: np.full_like(p, 0.5),
    lambda p: p**1.5,
    lambda p: np.minimum(p + 0.15, 1),
    lambda p: (p > 0.5).astype(float),
    lambda p: np.where(p < 0.5, 0.2, 0.8),
)


@dataclass(frozen=True)
class Awkward:
    """A sample that is hard to measure.

    Attributes
    ----------
    label, score : ndarray of shape (n,)
        The rows.
    by_row : dict
        Weights or clusters, by the name of the argument.
    counts : bool
        Whether weights are counts.
    """

    label: Array
    score: Array
    by_row: dict[str, Array] = field(default_factory=dict)
    counts: bool = False

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Awkward:
        """Draw rows, and whether they have weights, counts or clusters."""
        n = int(rng.choice(_ROWS))
        score = SCORES[rng.integers(len(SCORES))](rng, n)
        label = (rng.random(n) < CURVES[rng.integers(len(CURVES))](score)).astype(int)
        if rng.random() < 0.15:
            score = score.astype(np.float32)
        kind, by_row = rng.choice(["plain", "plain", "weights", "counts", "clusters"]), {}
        if kind == "weights":
            by_row["sample_weight"] = rng.lognormal(0, rng.choice([0.3, 1, 2]), n)
        elif kind == "counts":
            by_row["sample_weight"] = rng.integers(1, 6, n)
        elif kind == "clusters":
            by_row["clusters"] = rng.integers(0, rng.choice([2, 5, 16, 30, 100]), n)
            if rng.random() < 0.3:
                by_row["sample_weight"] = rng.lognormal(0, 0.7, n)
        return cls(label, score, by_row, kind == "counts")

    @property
    def arguments(self) -> dict[str, Any]:
        """What `truecal.estimate` and others are given."""
        meaning = {"weighting": "counts"} if self.counts else {}
        return {"y_true": self.label, "y_proba": self.score, **self.by_row, **meaning}

    @property
    def plain(self) -> bool:
        """Whether there are neither weights nor clusters."""
        return not self.by_row

    def rows(self, place: Array) -> Awkward:
        """Return some rows, or all in another order."""
        by_row = {name: values[place] for name, values in self.by_row.items()}
        return Awkward(self.label[place], self.score[place], by_row, self.counts)

    def repeated(self) -> Awkward:
        """Return each row as often as its count says."""
        place = np.arange(len(self.label)).repeat(self.by_row["sample_weight"])
        return Awkward(self.label[place], self.score[place])

    def scaled(self, factor: float) -> Awkward:
        """Return the sample with all weights multiplied by a factor."""
        by_row = {**self.by_row, "sample_weight": self.by_row["sample_weight"] * factor}
        return Awkward(self.label, self.score, by_row)

    def exchanged(self) -> Awkward:
        """Return the sample with the two classes exchanged."""
        return Awkward(1 - self.label, 1 - self.score, self.by_row, self.counts)

    def largest(self, norm: float) -> float:
        """Return the error if every label were on the far side of its score."""
        score = self.score.astype(float)
        far = np.maximum(score, 1 - score) ** norm
        return float(np.average(far, weights=self.by_row.get("sample_weight")) ** (1 / norm))


def laws(sample: Awkward, rng: np.random.Generator) -> Iterator[Law]:
    """Yield laws, and whether they hold for a sample."""
    values = {norm: truecal.calibration_error(**sample.arguments, norm=norm) for norm in (1, 1.5, 2, 3, 10)}
    yield "errors rise with the norm", all(low <= high + _ROUNDING for low, high in pairwise(values.values()))
    for norm, value in values.items():
        possible = 0 <= value <= sample.largest(norm) + _ROUNDING
        yield "an error is not larger than the scores allow", possible
    for norm in (1, 2):
        for assume, levels in _LEVELS.items():
            for level in levels:
                yield from _laws_of_interval(sample, rng, values[norm], norm, assume, level)
    yield from _laws_of_routes(sample, rng)


def _laws_of_interval(
    sample: Awkward, rng: np.random.Generator, value: float, norm: float, assume: str | None, level: float
) -> Iterator[Law]:
    try:
        found = truecal.confidence_interval(
            **sample.arguments, norm=norm, confidence_level=level, assume=assume
        )
    except truecal.InputError:
        if assume is None or sample.plain:
            raise
        return  # no interval is known with weights or clusters and the assumption
    yield "the value is inside the interval", found.low <= value <= found.high
    yield "an interval has only possible errors", 0 <= found.low <= found.high <= sample.largest(norm) + 1e-9
    if found.low > 0:
        test = truecal.calibration_test(**sample.arguments, rng=rng)
        yield "a positive lower end means that the test rejects", test.pvalue <= 1 - level + 1e-12
    if assume is None:
        alpha = (1 - level) / 2
        near = found.high * (1 + 1e-6) + 1e-12, max(found.high * (1 - 1e-6), 1e-12)
        inside = max(rng.random() * sample.largest(norm), 1e-12)
        for most in (one for one in (*near, inside) if one < 1):
            test = truecal.calibration_test(**sample.arguments, at_most=most, norm=norm)
            rejected = test.pvalue <= alpha * (1 + 1e-9)
            yield (
                "the test of at most e rejects if the upper end is below e",
                rejected == (found.high <= most),
            )


def _laws_of_routes(sample: Awkward, rng: np.random.Generator) -> Iterator[Law]:
    own = _measured(sample.arguments)
    yield from _laws_of_ends(sample, own[1:3])
    shuffled = sample.rows(rng.permutation(len(sample.label)))
    yield "the order of the rows does not matter", _equal(own, _measured(shuffled.arguments))
    if sample.counts:
        yield "a count is as many rows", _equal(own, _measured(sample.repeated().arguments))
    elif "sample_weight" in sample.by_row:
        scaled = sample.scaled(float(rng.choice([1e-6, 0.37, 1e5])))
        yield "the scale of the weights does not matter", _equal(own, _measured(scaled.arguments))
    if sample.plain:
        whole = truecal.Sample.from_predictions(sample.label, sample.score)
        yield "a Sample is as good as its rows", own == _measured({"y_true": whole})
        if (1 - (1 - sample.score) == sample.score).all():  # no other score has this complement
            other = truecal.calibration_error(**sample.exchanged().arguments)
            yield "exchanging the classes does not change the error", abs(own[0] - other) < _ROUNDING


def _laws_of_ends(sample: Awkward, ends: tuple[float, ...]) -> Iterator[Law]:
    arguments = {**sample.arguments, "confidence_level": 0.95}
    direct = truecal.confidence_interval(**arguments)
    yield "an estimate has the interval of its rows", (direct.low, direct.high) == ends
    compared = truecal.compare(**arguments, y_proba_b=sample.score).intervals[0]
    yield "a comparison has the interval of its rows", _equal((compared.low, compared.high), ends)
    if len(sample.label) > 1:
        assessed = truecal.assess(**arguments, recalibration=False, n_resamples=19).interval
        yield "an assessment has the interval of its rows", _equal((assessed.low, assessed.high), ends)
    stream = truecal.CalibrationStream()
    stream.update(sample.label, sample.score)
    if sample.plain and len(stream.cells.score) == len(np.unique(sample.score)):  # no cell holds two scores
        found = truecal.confidence_interval(stream.cells)
        yield "cells have the interval of their rows", _equal((found.low, found.high), ends)


def _measured(arguments: dict[str, Any]) -> tuple[float, float, float, float]:
    """Return value, interval and p-value."""
    found = truecal.estimate(**arguments, confidence_level=0.95)
    assert found.interval is not None
    test = truecal.calibration_test(**arguments, n_resamples=199, rng=3)
    return found.value, found.interval.low, found.interval.high, test.pvalue


def _equal(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return bool(np.abs(np.subtract(one, other)).max() < _ROUNDING)


def check(first: int, samples: int) -> tuple[Counter[str], Counter[str]]:
    """Return how often each law was checked, and how often it was broken."""
    checked: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(first, first + samples):
            rng = np.random.default_rng([29, number])
            for law, holds in laws(Awkward.draw(rng), rng):
                checked[law] += 1
                broken[law] += not holds
    return checked, broken


#: Scores of calibrated samples for the level of the closed-form p-value.
_NULL: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "uniform": lambda rng, shape: rng.random(shape),
    "skewed, Beta(2.8, 0.1)": lambda rng, shape: rng.beta(2.8, 0.1, shape),
    "rare, Beta(0.5, 50)": lambda rng, shape: rng.beta(0.5, 50, shape),
    "central, Beta(20, 20)": lambda rng, shape: rng.beta(20, 20, shape),
    "U-shaped, Beta(0.3, 0.3)": lambda rng, shape: rng.beta(0.3, 0.3, shape),
    "tenths": lambda rng, shape: rng.random(shape).round(1),
    "hundredths": lambda rng, shape: rng.random(shape).round(2),
}
_SIZES = (30, 100, 400, 2000)
_ALPHAS = (0.1, 0.05, 0.01)


def closed_form_level(scores: str, n: int, draws: int) -> dict[str, Any]:
    """Return how often the closed-form p-value of calibrated samples is at most each level."""
    from truecal.multiscale import analyse, analyse_many, pvalue_of_evidence

    rng = np.random.default_rng([31, list(_NULL).index(scores), n])
    evidence: list[float] = []
    for first in range(0, draws, 50):
        score = np.sort(_NULL[scores](rng, (min(50, draws - first), n)), axis=1)
        label = (rng.random(score.shape) < score).astype(float)
        found = analyse_many(score, label)
        if found is not None:
            evidence += [*found.posterior.log_evidence]
        else:
            rows = zip(label, score, strict=True)
            evidence += [analyse(truecal.Sample.from_predictions(*one)).log_evidence for one in rows]
    pvalue = np.array([pvalue_of_evidence(float(one)) for one in evidence])
    shares = {f"p <= {alpha:g}": float(np.mean(pvalue <= alpha)) for alpha in _ALPHAS}
    return {"scores": scores, "n": n, "draws": draws, **shares}


#: Kinds of rows for the lower ends of intervals beside the test.
_KINDS = ("plain", "weights", "clusters")


def _ordinary(kind: str, rng: np.random.Generator) -> dict[str, Any]:
    """Draw rows as users have them: calibrated, or with an error that is about as large as can be seen."""
    n = int(np.exp(rng.uniform(np.log(50), np.log(5000))))
    scores = list(_NULL.values())[rng.integers(len(_NULL))]
    sizes = np.full(n, 1)
    if kind == "clusters":
        sizes = np.maximum(rng.lognormal(1.5, rng.choice([0.0, 0.7, 1.2]), rng.integers(15, 100)), 1).astype(
            int
        )
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    score = scores(rng, (len(cluster), 1))[:, 0]
    if kind == "clusters" and rng.random() < 0.5:  # one score for each cluster
        score = score[np.unique(cluster, return_index=True)[1]][cluster]
    size = rng.choice([0.0, 2.0, 4.0, 6.0]) / np.sqrt(len(score))
    wave = np.sin(2 * np.pi * rng.integers(1, 5) * (score + rng.random()))
    error = size * np.sqrt(score * (1 - score)) * (wave if rng.random() < 0.5 else rng.choice([-1, 1]) * 1.0)
    same = rng.random(len(score)) < rng.choice([0.05, 0.3]) * (kind == "clusters")
    level = np.where(same, rng.random(len(sizes))[cluster], rng.random(len(score)))
    rows: dict[str, Any] = {"y_true": (level < np.clip(score + error, 0, 1)).astype(int), "y_proba": score}
    if kind == "weights":
        rows["sample_weight"] = rng.lognormal(0, rng.choice([0.5, 1.0]), len(score))
    if kind == "clusters":
        rows["clusters"] = cluster
    return rows


def lower_ends(kind: str, first: int, samples: int) -> tuple[int, int]:
    """Return how many intervals have a positive lower end, and beside how many of these the test does not reject."""
    positive, apart = 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(first, first + samples):
            rows = _ordinary(kind, np.random.default_rng([37, _KINDS.index(kind), number]))
            if truecal.confidence_interval(**rows).low > 0:
                positive += 1
                apart += truecal.calibration_test(**rows, rng=number).pvalue > 0.05
    return positive, apart


def main(*, quick: bool = False, draws: int = 4000) -> Page:
    """Check the laws, and draw calibrated samples."""
    samples, draws, part = (40, 50, 20) if quick else (700, draws, 25)
    many = 40 if quick else 10_000
    parallel = Parallel(n_jobs=2, batch_size=1)
    checked: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    for one, other in parallel(delayed(check)(first, part) for first in range(0, samples, part)):
        checked += one
        broken += other
    found = [{"law": law, "checked": checked[law], "broken": broken[law]} for law in checked]
    level = parallel(delayed(closed_form_level)(name, n, draws) for n in _SIZES for name in _NULL)
    ends = []
    for kind in _KINDS:
        number = many if kind == "plain" else many // 4
        parts = parallel(delayed(lower_ends)(kind, first, part) for first in range(0, number, part))
        positive, apart = np.sum(parts, axis=0)
        ends.append(
            {"rows": kind, "samples": number, "lower end above 0": int(positive), "and p > 0.05": int(apart)}
        )
    text = page(samples, found, ends, level)
    return Page(text, {"": [*found, *ends, *level]})


def page(
    samples: int, found: list[dict[str, Any]], ends: list[dict[str, Any]], level: list[dict[str, Any]]
) -> str:
    """Return the page of the documentation."""
    draws = level[0]["draws"]
    shown = [
        {key: f"{value:.3f}" if isinstance(value, float) else value for key, value in row.items()}
        for row in level
    ]
    return f"""# Agreement

## Laws

Two routes to the same number or decision must agree, for any data. The laws were checked on {samples} awkward samples
of 1 to 300 rows: ties, scores of 0 and 1 and floats next to them, reversed and constant labels, weights, counts and
clusters. Intervals are those of l1 and l2, with four levels and three assumptions. Numbers agree if they differ by less
than {_ROUNDING:g}.

{markdown(found)}

## Lower ends beside the test

The lower end is a closed form, the p-value of the test comes from draws, so that a lower end above 0 can stand beside a
test that does not reject; both are printed then. How often, in samples of 50 to 5,000 rows with seven kinds of scores
(those below): a quarter are calibrated, the others have a shift or waves of 2 to 6 standard errors of a mean. Weights
are lognormal; there are 15 to 100 clusters of even or uneven sizes, with an intraclass correlation of 0.05 or 0.3.

{markdown(ends)}

## The closed-form p-value

How often min(1, 0.13 / Z), from the [evidence against calibration](../theory/multiscale.md), is at most each level if
the model is calibrated; {draws:,} draws of each. Shares of 0.05 have a Monte Carlo standard error of
{(0.05 * 0.95 / draws) ** 0.5:.3f}. That this is a p-value is a measurement, not a theorem.

{markdown(shown)}
"""
