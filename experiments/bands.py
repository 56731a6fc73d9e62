"""Confidence bands of a rising curve: coverage and width, with weights and clusters, beside all intervals of scores."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit, logit

from experiments._page import Page, markdown
from truecal.inference.reliability import KINDS, confidence_band
from truecal.multiscale import clopper_pearson

LEVEL = 0.95
Array = NDArray[Any]
Row = dict[str, Any]
Curve = Callable[[Any], Any]
#: Labels, scores, options, and the true curve.
Draw = Callable[[np.random.Generator], tuple[Array, Array, dict[str, Any], Curve]]


def main(*, quick: bool = False, draws: int = 400) -> Page:
    """Draw, and count how often the band contains the curve."""
    repeats = 6 if quick else draws
    rows = Parallel(n_jobs=1)(delayed(_case)(name, repeats) for name in CASES)
    sharpness = [_sharpness(n, 3 if quick else 20) for n in (1000, 10_000)]
    error = (LEVEL * (1 - LEVEL) / repeats) ** 0.5
    text = f"""# Confidence bands

How often `confidence_band` contains the true curve at a nominal level of {LEVEL:g}, in {repeats} draws of each case;
the Monte Carlo standard error at the nominal level is {error:.3f}. "pointwise" is at the score nearest to the median,
"simultaneous" at all scores. "ignored" are the same bands of the same rows without their weights or clusters. For
independent rows the level is guaranteed. With weights and clusters it rests on estimated variances, and the table is
the evidence. Widths are means over the rows.

{markdown(rows)}

## Beside all intervals of rounded scores

The example of R's calibrationband: uniform scores, true log odds 1.8 times those of the score. Its method "round"
takes all intervals between 1,000 rounded scores, each with the same share of the error probability; the columns "all
intervals" are that method, computed here on the same data. "outside" is the share of the scores at which the band
excludes perfect calibration. Means of {3 if quick else 20} draws with their standard errors.

{markdown(sharpness)}
"""
    return Page(text, {"": rows})


def _case(name: str, repeats: int) -> Row:
    row: Row = {"case": name}
    found: dict[str, list[float]] = {}
    for r in range(repeats):
        label, score, options, curve = CASES[name](np.random.default_rng([17, zlib.crc32(name.encode()), r]))
        for kind in KINDS:
            for what, more in (("", options), (", ignored", {})) if options else (("", options),):
                band = confidence_band(label, score, kind=kind, confidence_level=LEVEL, **more)
                truth = curve(band.score)
                inside = (band.lower <= truth + 1e-12) & (truth <= band.upper + 1e-12)
                middle = np.abs(band.score - np.median(score)).argmin()
                found.setdefault(f"{kind}{what}", []).append(
                    inside.all() if kind == "simultaneous" else inside[middle]
                )
                if not what:
                    width = np.interp(score, band.score, band.upper - band.lower).mean()
                    found.setdefault(f"width, {kind}", []).append(width)
    for what in [f"{kind}{end}" for end in ("", ", ignored") for kind in KINDS] + [
        f"width, {kind}" for kind in KINDS
    ]:
        values = found.get(what)
        row[what] = "" if values is None else f"{np.mean(values):.3f}"
    return row


def _sharpness(n: int, repeats: int) -> Row:
    width: dict[str, list[float]] = {"truecal": [], "all intervals": []}
    outside: dict[str, list[float]] = {"truecal": [], "all intervals": []}
    for r in range(repeats):
        rng = np.random.default_rng([19, n, r])
        score = np.sort(rng.random(n))
        label = (rng.random(n) < expit(1.8 * logit(score))).astype(int)
        band = confidence_band(label, score, confidence_level=LEVEL)
        bands = {
            "truecal": tuple(np.interp(score, band.score, side) for side in (band.lower, band.upper)),
            "all intervals": _all_intervals(label, score, 1 - LEVEL),
        }
        for name, (low, high) in bands.items():
            width[name].append(float(np.mean(high - low)))
            outside[name].append(float(np.mean((score < low) | (score > high))))
    return {
        "n": f"{n:,}",
        **{f"width, {name}": _mean(values, 4) for name, values in width.items()},
        **{f"outside, {name}": _mean(values, 3) for name, values in outside.items()},
    }


def _mean(values: list[float], digits: int) -> str:
    return f"{np.mean(values):.{digits}f} ± {np.std(values) / len(values) ** 0.5:.{digits}f}"


def _all_intervals(label: Array, score: Array, tail: float) -> tuple[Array, Array]:
    """Return the band by all intervals of scores that are rounded to three digits."""
    value, place = np.unique(np.round(score, 3), return_inverse=True)
    first, last = np.triu_indices(len(value))
    rows, ones = (np.concatenate([[0.0], np.cumsum(np.bincount(place, w))]) for w in (None, label))
    lower, upper = clopper_pearson(
        ones[last + 1] - ones[first], rows[last + 1] - rows[first], tail / (2 * len(first))
    )
    low, high = np.zeros(len(value)), np.ones(len(value))
    np.maximum.at(low, last, lower)
    np.minimum.at(high, first, upper)
    return np.maximum.accumulate(low)[place], np.minimum.accumulate(high[::-1])[::-1][place]


# --- Cases -----------------------------------------------------------------------------------------


def _independent(n: int, curve: Curve, decimals: int = 9) -> Draw:
    def draw(rng: np.random.Generator) -> Any:
        score = rng.random(n).round(decimals)
        return (rng.random(n) < curve(score)).astype(int), score, {}, curve

    return draw


def _weighted(n: int, weight: Callable[[np.random.Generator, Array], Array], curve: Curve) -> Draw:
    def draw(rng: np.random.Generator) -> Any:
        score = rng.random(n)
        return (rng.random(n) < curve(score)).astype(int), score, {"sample_weight": weight(rng, score)}, curve

    return draw


def _fewer_negatives(n: int, share: float, curve: Curve, low: bool = False) -> Draw:
    def draw(rng: np.random.Generator) -> Any:
        score = rng.beta(1, 12, n) if low else rng.random(n)
        label = (rng.random(n) < curve(score)).astype(int)
        kept = (label == 1) | (rng.random(n) < share)
        label, score = label[kept], score[kept]
        return label, score, {"sample_weight": np.where(label == 1, 1.0, 1 / share)}, curve

    return draw


def _hospitals(n: int, size: int, sd: float, weights: bool = False) -> Draw:
    point, mass = np.polynomial.hermite_e.hermegauss(61)
    grid = np.linspace(-9, 9, 400)
    marginal = expit(grid[:, np.newaxis] + sd * point) @ mass / mass.sum()

    def draw(rng: np.random.Generator) -> Any:
        cluster = np.repeat(np.arange(n), size)
        score = rng.beta(2, 3, n * size)
        eta = np.interp(score, marginal, grid) + rng.normal(0, sd, n)[cluster]
        options = {"clusters": cluster}
        if weights:
            options["sample_weight"] = rng.lognormal(0, 0.7, n * size)
        return (rng.random(n * size) < expit(eta)).astype(int), score, options, lambda score: score

    return draw


def _questions(n: int, size: int, icc: float) -> Draw:
    def draw(rng: np.random.Generator) -> Any:
        score, rest = rng.beta(3, 2, n), (1 - icc) / icc
        chance = np.repeat(rng.beta(score * rest, (1 - score) * rest), size)
        label = (rng.random(n * size) < chance).astype(int)
        return label, np.repeat(score, size), {"clusters": np.repeat(np.arange(n), size)}, lambda score: score

    return draw


CASES: dict[str, Draw] = {
    "independent, n = 300, power 2": _independent(300, lambda f: f**2),
    "independent, n = 3,000, calibrated": _independent(3000, lambda f: f),
    "independent, n = 3,000, step": _independent(3000, lambda f: np.where(f < 0.5, 0.25, 0.75)),
    "independent, n = 3,000, 11 scores": _independent(3000, lambda f: f**2, 1),
    "weights lognormal(0, 0.8), n = 1,500": _weighted(
        1500, lambda rng, f: rng.lognormal(0, 0.8, len(f)), lambda f: f**2
    ),
    "weights lognormal(0, 1.2), n = 1,500": _weighted(
        1500, lambda rng, f: rng.lognormal(0, 1.2, len(f)), lambda f: f**2
    ),
    "weights 0.2 to 1.8 by score, n = 1,500": _weighted(1500, lambda rng, f: 0.2 + 1.6 * f, lambda f: f),
    "1 of 5 negatives, n = 2,000": _fewer_negatives(2000, 0.2, lambda f: f**2),
    "1 of 20 negatives, rare, n = 20,000": _fewer_negatives(20_000, 0.05, lambda f: 0.8 * f, low=True),
    "200 questions x 5, ICC 0.3": _questions(200, 5, 0.3),
    "200 questions x 20, ICC 0.3": _questions(200, 20, 0.3),
    "200 patients x 10, sd 0.8": _hospitals(200, 10, 0.8),
    "30 hospitals x 100, sd 0.4": _hospitals(30, 100, 0.4),
    "30 hospitals x 200, sd 0.8": _hospitals(30, 200, 0.8),
    "60 hospitals x 50, sd 0.8, weights": _hospitals(60, 50, 0.8, weights=True),
}
