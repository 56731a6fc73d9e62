"""Coverage for the l1 error, several classes, weights and clusters; size and power of comparisons."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit, logit

import truecal
from experiments._page import Page, markdown
from truecal.data import Question
from truecal.data.sample import Block
from truecal.inference.interval import interval_of
from truecal.multiscale import analyse
from truecal.simulation.suites import suite

SIZES = (200, 1000, 5000)
LEVEL = 0.95
SUITES = ("A", "B", "C1", "C2", "D1", "D2")
Row = dict[str, Any]


def main(*, quick: bool = False, draws: int = 200) -> Page:
    """Draw, and count how often the interval contains the truth."""
    repeats = 10 if quick else draws
    cells = [
        (name, key, population, n)
        for name in SUITES
        for key, population in list(suite(name).items())[: 1 if quick else None]
        for n in SIZES
    ]
    rows = Parallel(n_jobs=2)(delayed(_cell)(*cell, repeats) for cell in cells)
    special = Parallel(n_jobs=2)(delayed(_special)(name, 2 * repeats) for name in SPECIAL)
    pairs = Parallel(n_jobs=2)(delayed(_pair)(name, n, 2 * repeats) for name in PAIRS for n in (200, 2000))
    page = report(rows, special, pairs, repeats)
    return Page(page, {"": rows})


def report(rows: list[Row], special: list[Row], pairs: list[Row], repeats: int) -> str:
    """Return the page for all cells."""
    lines = []
    for name in SUITES:
        for n in SIZES:
            part = [row for row in rows if row["suite"] == name and row["n"] == n]
            if not part:
                continue
            covered = [row["covered"] for row in part]
            error = np.sqrt(np.sum([value * (1 - value) for value in covered]) / repeats) / len(part)
            lines.append(
                {
                    "suite": name,
                    "n": n,
                    "covered": f"{np.mean(covered):.3f} ± {error:.3f}",
                    "lowest": f"{min(covered):.2f}",
                    "width": f"{np.mean([row['width'] for row in part]):.4f}",
                    "any curve: limit above the truth": f"{max(row['any_curve_above'] for row in part):.3f}",
                }
            )
    return f"""# Coverage

Nominal level {LEVEL:g}. For the l2 error see [the gate and the upper limit](honest.md).

## The l1 error

{repeats} draws of each population (Monte Carlo standard error of one population about
{(0.95 * 0.05 / repeats) ** 0.5:.3f}; those of means are given). "lowest" is the lowest of the populations, which is
below the mean by chance alone. C2 and D2 were set aside when the constants were chosen; much of the structure in D is
finer than the stated resolution of the interval at these sizes. The last column is how often the lower limit for any
curve lies above the true l2 error, for the population where that is most often.

{markdown(lines)}

## Classes, weights and clusters

{markdown(special)}

## Comparisons of two models on the same rows

"rejected" is the share of p-values of at most 0.05 among {2 * repeats} draws: the size where the errors are equal,
else the power. Waves are two of 8 points. "Other orders" are two models that each know one of two causes.

{markdown(pairs)}
"""


def _cell(name: str, key: str, population: truecal.Population, n: int, repeats: int) -> Row:
    rngs = [np.random.default_rng([7, zlib.crc32(key.encode()), n, r]) for r in range(repeats)]
    truth, squared = population.true_error(1), population.true_error(2)
    covered, width, above = [], [], []
    for first in range(0, repeats, 50):
        for sample in Block.from_rows(*population.sample_many(n, rngs[first : first + 50])):
            interval = interval_of(Question((sample,)), 1, LEVEL)
            covered.append(interval.low - 1e-12 <= truth <= interval.high + 1e-12)
            width.append(interval.high - interval.low)
            above.append(analyse(sample).lower_limit(1 - LEVEL) > squared + 1e-12)
    return {
        "suite": name,
        "population": key,
        "n": n,
        "truth": truth,
        "covered": float(np.mean(covered)),
        "width": float(np.mean(width)),
        "any_curve_above": float(np.mean(above)),
    }


# --- Classes, weights and clusters -----------------------------------------------------------------


def _classes(rng: np.random.Generator, k: int, n: int, power: float) -> tuple[Any, float]:
    proba = rng.dirichlet(np.ones(k), n)
    truth = proba**power / (proba**power).sum(axis=1, keepdims=True)
    label = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1)
    found = truecal.confidence_interval(label, proba, multiclass="classwise")
    large = rng.dirichlet(np.ones(k), 20_000)
    sharp = large**power / (large**power).sum(axis=1, keepdims=True)
    return found, float(np.sqrt(np.mean((large - sharp) ** 2)))


def _weighted(rng: np.random.Generator, kind: str, power: float) -> tuple[Any, float]:
    score = rng.random(1000)
    label = (rng.random(1000) < score**power).astype(int)
    weight = {
        "lognormal": rng.lognormal(0, 1, 1000),
        "uniform": rng.uniform(0.1, 1.9, 1000),
        "by score": 0.2 + 1.6 * score,
    }[kind]
    grid = (np.arange(100_000) + 0.5) / 100_000
    share = 0.2 + 1.6 * grid if kind == "by score" else np.ones(100_000)
    truth = float(np.sqrt(np.average((grid - grid**power) ** 2, weights=share)))
    return truecal.confidence_interval(label, score, sample_weight=weight), truth


def _questions(
    rng: np.random.Generator, n: int, size: int, icc: float, slope: float = 1.0
) -> tuple[Any, float]:
    score = rng.beta(3, 2, n)
    curve = expit(slope * logit(score))
    rest = (1 - icc) / icc
    chance = np.repeat(rng.beta(curve * rest, (1 - curve) * rest), size)
    label = (rng.random(n * size) < chance).astype(int)
    found = truecal.confidence_interval(label, np.repeat(score, size), clusters=np.repeat(np.arange(n), size))
    large = rng.beta(3, 2, 100_000)
    return found, float(np.sqrt(np.mean((large - expit(slope * logit(large))) ** 2)))


def _effects(rng: np.random.Generator, n: int, size: int, sd: float) -> tuple[Any, float]:
    score = rng.beta(2, 3, n * size)
    cluster = np.repeat(np.arange(n), size)
    nodes, grid = rng.normal(0, sd, 4000), np.linspace(-9, 9, 400)
    marginal = expit(grid[:, np.newaxis] + nodes).mean(axis=1)  # so that the scores are calibrated
    eta = np.interp(score, marginal, grid) + rng.normal(0, sd, n)[cluster]
    label = (rng.random(n * size) < expit(eta)).astype(int)
    return truecal.confidence_interval(label, score, clusters=cluster), 0.0


SPECIAL: dict[str, Callable[[np.random.Generator], tuple[Any, float]]] = {
    **{f"{k} classes, calibrated": (lambda rng, k=k: _classes(rng, k, 2000, 1.0)) for k in (3, 10, 30, 100)},
    **{f"{k} classes, sharpened": (lambda rng, k=k: _classes(rng, k, 2000, 1.3)) for k in (3, 10)},
    **{
        f"{kind} weights, truth {'0' if power == 1 else '> 0'}": (
            lambda rng, kind=kind, power=power: _weighted(rng, kind, power)
        )
        for kind in ("lognormal", "uniform", "by score")
        for power in (1.0, 1.5)
    },
    "200 questions x 5, ICC 0.3": lambda rng: _questions(rng, 200, 5, 0.3),
    "200 questions x 10, ICC 0.1": lambda rng: _questions(rng, 200, 10, 0.1),
    "1,000 questions x 5, ICC 0.3": lambda rng: _questions(rng, 1000, 5, 0.3),
    "200 questions x 5, slope 0.7": lambda rng: _questions(rng, 200, 5, 0.3, 0.7),
    "200 patients x 5 visits": lambda rng: _effects(rng, 200, 5, 0.8),
    "200 patients x 20 visits": lambda rng: _effects(rng, 200, 20, 0.8),
    "20 hospitals x 500": lambda rng: _effects(rng, 20, 500, 0.4),
    "60 hospitals x 100": lambda rng: _effects(rng, 60, 100, 0.4),
}


def _special(name: str, repeats: int) -> Row:
    covered, positive, widths = [], [], []
    if name.startswith("100 classes"):
        repeats = max(repeats // 4, 4)
    for r in range(repeats):
        interval, truth = SPECIAL[name](np.random.default_rng([11, zlib.crc32(name.encode()), r]))
        covered.append(interval.low - 1e-9 <= truth <= interval.high + 1e-9)
        positive.append(interval.low > 0)
        widths.append(interval.high - interval.low)
    return {
        "case": name,
        "draws": repeats,
        "covered": f"{np.mean(covered):.3f} ± {(np.var(covered) / repeats) ** 0.5:.3f}",
        "lower end above 0": f"{np.mean(positive):.3f}",
        "width": f"{np.mean(widths):.4f}",
    }


# --- Comparisons -----------------------------------------------------------------------------------


def _nested(rng: np.random.Generator, n: int) -> tuple[Any, Any, Any]:
    one, two = rng.random(n), rng.random(n)
    return rng.random(n) < (one + two) / 2, (one + 0.5) / 2, (two + 0.5) / 2


def _of_curves(
    first: Callable[[Any], Any], second: Callable[[Any], Any]
) -> Callable[[np.random.Generator, int], tuple[Any, Any, Any]]:
    def draw(rng: np.random.Generator, n: int) -> tuple[Any, Any, Any]:
        mu = rng.random(n)
        return rng.random(n) < mu, first(mu), second(mu)

    return draw


def _causes(shift: float, other: float) -> Callable[[np.random.Generator, int], tuple[Any, Any, Any]]:
    def draw(rng: np.random.Generator, n: int) -> tuple[Any, Any, Any]:
        base, one, two = 0.2 + 0.6 * rng.random(n), rng.normal(0, 0.05, n), rng.normal(0, 0.05, n)
        return (
            rng.random(n) < base + one + two,
            np.clip(base + one + shift, 0, 1),
            np.clip(base + two + other, 0, 1),
        )

    return draw


def _rare(rng: np.random.Generator, n: int) -> tuple[Any, Any, Any]:
    mu = rng.beta(1, 15, n)
    return rng.random(n) < mu, np.minimum(1.4 * mu, 1), 0.6 * mu


def _wave(mu: Any) -> Any:
    return 0.08 * np.sin(4 * np.pi * mu) * 4 * mu * (1 - mu)


PAIRS: dict[str, Callable[[np.random.Generator, int], tuple[Any, Any, Any]]] = {
    "equal: both calibrated, nested": _nested,
    "equal: over- and under-confident": _of_curves(
        lambda mu: expit(1.5 * logit(mu)), lambda mu: expit(logit(mu) / 1.5)
    ),
    "equal: mirror images": _of_curves(lambda mu: mu**1.3, lambda mu: 1 - (1 - mu) ** 1.3),
    "equal: 5 points up and down": _of_curves(
        lambda mu: 0.05 + 0.9 * mu + 0.05, lambda mu: 0.05 + 0.9 * mu - 0.05
    ),
    "equal: the same, cut at 0 and 1": _of_curves(
        lambda mu: np.minimum(mu + 0.05, 1), lambda mu: np.maximum(mu - 0.05, 0)
    ),
    "equal: opposite waves": _of_curves(lambda mu: mu + _wave(mu), lambda mu: mu - _wave(mu)),
    "equal: other orders, 6 points up and down": _causes(0.06, -0.06),
    "equal: other orders, both 6 points up": _causes(0.06, 0.06),
    "equal: rare events, 0.4 too much and too little": _rare,
    "different: 7.5 against 0": _of_curves(lambda mu: expit(1.6056 * logit(mu)), lambda mu: mu),
}


def _pair(name: str, n: int, repeats: int) -> Row:
    rejected: dict[int, list[bool]] = {1: [], 2: []}
    covered = []
    for r in range(repeats):
        label, first, second = PAIRS[name](np.random.default_rng([13, zlib.crc32(name.encode()), n, r]), n)
        for norm in (1, 2):
            found = truecal.compare(label.astype(int), first, second, norm=norm)
            rejected[norm].append(found.pvalue <= 0.05)
        covered.append(0 in found.interval)
    return {
        "models": name,
        "n": n,
        **{
            f"rejected, l{norm}": f"{np.mean(each):.3f} ± {(np.var(each) / repeats) ** 0.5:.3f}"
            for norm, each in sorted(rejected.items(), reverse=True)
        },
        "interval of l2 contains 0": f"{np.mean(covered):.3f}",
    }
