"""Rows in clusters: coverage of the interval, size and power of the test, with and without ``clusters=``.

Draws are made in parts of 50. If the environment variable TRUECAL_BENCHMARK_CACHE names a folder, finished parts are
kept there, and a run that was stopped continues where it was; use a new folder after a change of the package.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Memory, Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

import truecal
from experiments._page import Page, markdown

LEVEL = 0.95
Array = NDArray[Any]
Row = dict[str, Any]

#: Draws of a part, and the share of parts that also treat the rows as independent.
_PART, _PLAIN_SHARE = 50, 0.2
_cached = Memory(os.environ.get("TRUECAL_BENCHMARK_CACHE"), verbose=0).cache


@dataclass(frozen=True)
class Effects:
    """A distribution of effects of clusters on the logit, by points and their probabilities.

    Attributes
    ----------
    point, probability : ndarray
        Points of mean 0 and variance 1, and their probabilities.
    """

    point: Array
    probability: Array

    @classmethod
    def normal(cls) -> Effects:
        """Return the normal distribution, by 61 points."""
        point, weight = np.polynomial.hermite_e.hermegauss(61)
        return cls(point, weight / weight.sum())

    @classmethod
    def skewed(cls) -> Effects:
        """Return one cluster in ten that is three standard deviations above the mean."""
        return cls(np.array([-1 / 3, 3.0]), np.array([0.9, 0.1]))

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return the effects of `n` clusters."""
        return rng.choice(self.point, n, p=self.probability)


NORMAL, SKEWED = Effects.normal(), Effects.skewed()


@dataclass(frozen=True)
class Design:
    """How rows depend on each other.

    Attributes
    ----------
    sizes : function of a Generator
        Draws the number of rows of each cluster.
    beta : pair of float
        Parameters of the beta distribution of the scores.
    icc : float
        One score for each cluster, whose chance is drawn around the curve with this intraclass correlation; 0 for
        a score for each row.
    sd : float
        Standard deviation of a random effect of the cluster on the logit, where each row has its own score.
    effects : Effects
        Distribution of that effect.
    larger : int
        How many times more rows a cluster has if its effect is positive.
    """

    sizes: Callable[[np.random.Generator], Array]
    beta: tuple[float, float] = (3.0, 2.0)
    icc: float = 0.0
    sd: float = 0.0
    effects: Effects = NORMAL
    larger: int = 1

    def draw(self, rng: np.random.Generator, slope: float) -> tuple[Array, Array, Array]:
        """Return labels, scores and clusters; the observed frequency at a score is ``expit(slope * logit(score))``."""
        sizes = self.sizes(rng)
        effect = self.effects.draw(rng, len(sizes))
        cluster = np.repeat(np.arange(len(sizes)), np.where(effect > 0, self.larger, 1) * sizes)
        if self.icc:
            score = rng.beta(*self.beta, len(sizes))
            curve, rest = expit(slope * logit(score)), (1 - self.icc) / self.icc
            chance = rng.beta(curve * rest, (1 - curve) * rest)[cluster]
            score = score[cluster]
        else:
            score = rng.beta(*self.beta, len(cluster))
            chance = expit(self._conditional(expit(slope * logit(score))) + self.sd * effect[cluster])
        return (rng.random(len(cluster)) < chance).astype(int), score, cluster

    def _conditional(self, chance: Array) -> Array:
        """Return the logit to which effects are added, such that the mean over rows is `chance`."""
        point, rows = self.effects.point, self.effects.probability
        rows = rows * np.where(point > 0, self.larger, 1)
        grid = np.linspace(-14, 14, 800)
        return np.interp(chance, expit(grid[:, np.newaxis] + self.sd * point) @ rows / rows.sum(), grid)

    def true_error(self, slope: float) -> float:
        """Return the l2 error by quadrature over the scores."""
        grid = (np.arange(20_000) + 0.5) / 20_000
        density = grid ** (self.beta[0] - 1) * (1 - grid) ** (self.beta[1] - 1)
        return float(np.sqrt(np.average((grid - expit(slope * logit(grid))) ** 2, weights=density)))

    def slope_of(self, error: float) -> float:
        """Return the slope below 1 whose l2 error is `error`."""
        return 1.0 if error == 0 else float(brentq(lambda slope: self.true_error(slope) - error, 0.05, 1.0))


def _equal(n: int, size: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: np.full(n, size)


def _zipf(n: int, exponent: float, largest: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: np.minimum(rng.zipf(exponent, n), largest)


def _two_large(n: int, size: int, large: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: np.array([large, large, *[size] * n])


_HOSPITALS = Design(_equal(15, 100), beta=(2, 3), sd=0.6)
DESIGNS: dict[str, Design] = {
    "200 questions x 5, ICC 0.1": Design(_equal(200, 5), icc=0.1),
    "200 questions x 5, ICC 0.3": Design(_equal(200, 5), icc=0.3),
    "200 questions x 10, ICC 0.1": Design(_equal(200, 10), icc=0.1),
    "200 questions x 10, ICC 0.3": Design(_equal(200, 10), icc=0.3),
    "1,000 questions x 5, ICC 0.3": Design(_equal(1000, 5), icc=0.3),
    "200 patients x 5 visits": Design(_equal(200, 5), beta=(2, 3), sd=0.8),
    "200 patients x 20 visits": Design(_equal(200, 20), beta=(2, 3), sd=0.8),
    "20 hospitals x 500": Design(_equal(20, 500), beta=(2, 3), sd=0.4),
    "60 hospitals x 100": Design(_equal(60, 100), beta=(2, 3), sd=0.4),
    "400 questions, Zipf sizes, ICC 0.3": Design(_zipf(400, 2.0, 100), icc=0.3),
    "400 patients, Zipf sizes": Design(_zipf(400, 2.0, 100), beta=(2, 3), sd=0.8),
    "1,000 clusters of one row": Design(_equal(1000, 1), sd=0.0),
}
#: Designs at the limit of what clusters can tell.
FURTHER: dict[str, Design] = {
    "15 hospitals x 100": _HOSPITALS,
    "30 questions x 10, ICC 0.3": Design(_equal(30, 10), icc=0.3),
    "two of 102 clusters with half of the rows": replace(_HOSPITALS, sizes=_two_large(100, 5, 300), sd=0.8),
    "100 clusters, Zipf sizes, exponent 1.5": replace(_HOSPITALS, sizes=_zipf(100, 1.5, 1000), sd=0.8),
    "100 clusters, larger where risks are higher": replace(
        _HOSPITALS, sizes=_equal(100, 5), sd=0.8, larger=10
    ),
    "rare events, 30 hospitals x 200": Design(_equal(30, 200), beta=(0.5, 20), sd=0.8),
    "20 documents x 10, ICC 0.99": Design(_equal(20, 10), beta=(0.4, 0.4), icc=0.99),
    "one cluster in ten far off, 40 x 50": replace(_HOSPITALS, sizes=_equal(40, 50), sd=1.0, effects=SKEWED),
}
#: Name of the design, true error and slope. In the last ones it is the slope that was chosen.
CASES: list[tuple[str, float, float]] = [
    *(
        (name, error, one.slope_of(error))
        for name, one in (DESIGNS | FURTHER).items()
        for error in (0.0, 0.06)
    ),
    *(
        (name, DESIGNS[name].true_error(0.7), 0.7)
        for name in (
            "200 questions x 5, ICC 0.1",
            "200 questions x 5, ICC 0.3",
            "1,000 questions x 5, ICC 0.3",
        )
    ),
]


def main(*, quick: bool = False, draws: int = 1000) -> Page:
    """Draw, and count how often the interval contains the truth and the test rejects."""
    draws, size = (10, 10) if quick else (draws, _PART)
    # One part of every case after the other, so that a run that was stopped has something of each.
    parts = [(*case, first, min(size, draws - first)) for first in range(0, draws, size) for case in CASES]
    rows = merge(Parallel(n_jobs=2, batch_size=1)(delayed(count)(*part) for part in parts))
    text = page(rows)
    return Page(text, {"": rows})


@_cached
def count(name: str, error: float, slope: float, first: int, draws: int) -> Row:
    """Return counts over draws `first` to ``first + draws`` of one design; those of several parts can be added."""
    design = (DESIGNS | FURTHER)[name]
    row: Row = {"design": name, "true_error": error, "slope": slope, "draws": draws}
    counts = dict.fromkeys(("covered", "rejected", "plain_draws", "plain_covered", "plain_rejected"), 0)
    width = value = 0.0
    for number in range(first, first + draws):
        rng = np.random.default_rng([17, zlib.crc32(f"{name} {slope:.6f}".encode()), number])
        label, score, cluster = design.draw(rng, slope)
        sample = truecal.Sample.from_predictions(label, score, clusters=cluster)
        found = truecal.estimate(sample, confidence_level=LEVEL)
        assert found.interval is not None
        counts["covered"] += _holds(error, found.interval)
        counts["rejected"] += truecal.calibration_test(sample, n_resamples=199, rng=rng).pvalue <= 1 - LEVEL
        width += found.interval.high - found.interval.low
        value += found.value
        if number % round(1 / _PLAIN_SHARE) == 0:
            plain = truecal.Sample.from_predictions(label, score)
            counts["plain_draws"] += 1
            counts["plain_covered"] += _holds(error, truecal.confidence_interval(plain))
            test = truecal.calibration_test(plain, n_resamples=199, rng=rng)
            counts["plain_rejected"] += test.pvalue <= 1 - LEVEL
    return {**row, **counts, "width": width, "value": value}


def _holds(truth: float, interval: Any) -> bool:
    return bool(interval.low - 1e-9 <= truth <= interval.high + 1e-9)


def merge(rows: Sequence[Row]) -> list[Row]:
    """Add the counts of rows of the same design and truth."""
    found: dict[tuple[str, float], Row] = {}
    fixed = ("design", "true_error", "slope")
    for row in rows:
        key = (row["design"], row["slope"])
        seen = found.get(key)
        found[key] = (
            dict(row) if seen is None else {k: row[k] if k in fixed else seen[k] + row[k] for k in row}
        )
    return list(found.values())


def page(rows: Sequence[Row]) -> str:
    """Return the page of the documentation."""

    def share(row: Row, key: str, of: str = "draws") -> str:
        return f"{row[key] / row[of]:.3f}"

    def table(chosen: Sequence[Row]) -> str:
        lines = [
            {
                "design": row["design"],
                "true error": f"{row['true_error']:.3f}",
                "mean estimate": f"{row['value'] / row['draws']:.3f}",
                "interval covers": share(row, "covered"),
                "width": f"{row['width'] / row['draws']:.3f}",
                "test rejects": share(row, "rejected"),
                "covers, rows as independent": share(row, "plain_covered", "plain_draws"),
                "rejects, rows as independent": share(row, "plain_rejected", "plain_draws"),
            }
            for row in chosen
        ]
        return markdown(lines)

    draws = min(row["draws"] for row in rows)
    plain = min(row["plain_draws"] for row in rows)
    return f"""# Clusters

Nominal level {LEVEL:g}; {draws} draws of each design, 199 resamples for each test. A share of 0.95 (or 0.05) has a
Monte Carlo standard error of {(0.95 * 0.05 / draws) ** 0.5:.3f}. The last two columns treat the rows of {plain} of the
draws as independent, which is what leaving out `clusters=` does.

Questions have one score each; the chance of a correct answer is drawn from a beta distribution around the calibration
curve with the given intraclass correlation. Patients and hospitals have a score for each row and a normal random
effect on the logit (standard deviation 0.8 and 0.4) that averages to the calibration curve. The curve is a slope on
the logit: 1 for a true error of 0, the slope that gives 0.06, and 0.7 in the last rows, where "test rejects" is the
power. Zipf sizes have exponent 2 and are cut at 100 rows.

{table([row for row in rows if row["design"] in DESIGNS])}

## At the limit

Few clusters, clusters of very unequal sizes, and effects that are not symmetric. The first hospitals have effects of
standard deviation 0.6. Of 102 clusters two have 300 rows and the others 5, with a standard deviation of 0.8; sizes of
exponent 1.5 are cut at 1,000 rows. Where risks are higher than the scores, clusters have 50 rows instead of 5, and the
true error is that of a row. Scores of rare events have a mean of 0.024. The rows of a document share a score, near 0 or
1, and nearly always a label. In the last design one cluster in ten is 3 standard deviations (of 1.0) above the mean.
The test multiplies whole clusters by random signs, which is exact if effects upwards and downwards are equally likely;
there they are not.

{table([row for row in rows if row["design"] in FURTHER])}
"""
