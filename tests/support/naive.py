"""The estimators once more, row by row from their formulas: slow, plain, and independent of truecal.

Scores, labels and weights become fractions, so that sums, bins and comparisons are exact and only the
last step, a power or a root, rounds. Weights are frequencies: a row of weight 2 stands for two rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.integrate import quad

Row = tuple[Fraction, Fraction, Fraction]  # score, label, weight
Bin = list[Row]


def rows_of(y, p, weight=None) -> list[Row]:
    weight = [1] * len(y) if weight is None else weight
    return [
        (Fraction(float(score)), Fraction(int(label)), Fraction(float(w)))
        for label, score, w in zip(y, p, weight, strict=True)
    ]


def total(rows: Bin) -> Fraction:
    return sum((w for _, _, w in rows), Fraction(0))


def mean_score(rows: Bin) -> Fraction:
    return sum((f * w for f, _, w in rows), Fraction(0)) / total(rows)


def mean_label(rows: Bin) -> Fraction:
    return sum((y * w for _, y, w in rows), Fraction(0)) / total(rows)


# --- Bins ------------------------------------------------------------------------------------------


def equal_width(rows: list[Row], b: int, dtype=np.float64) -> list[Bin]:
    """Bins [k/b, (k+1)/b), edges rounded to `dtype`, 1 in the last; empty ones are left out."""
    edges = [Fraction(float(dtype(k / b))) for k in range(b)]
    bins: list[Bin] = [[] for _ in range(b)]
    for row in rows:
        bins[max(k for k in range(b) if edges[k] <= row[0])].append(row)
    return [content for content in bins if content]


def equal_mass(rows: list[Row], b: int) -> list[Bin]:
    """Rank r of n goes to bin floor(r b / n); equal scores go together where their middle row goes.

    The lightest group of equal scores counts as one row, so the middle row of a group of weight m is
    (m - lightest)/2 behind its first.
    """
    scores = sorted({f for f, _, _ in rows})
    groups = [[row for row in rows if row[0] == score] for score in scores]
    lightest = min(total(group) for group in groups)
    bins: list[Bin] = [[] for _ in range(b)]
    before = Fraction(0)
    for group in groups:
        rank = before + (total(group) - lightest) / 2
        bins[math.floor(rank * b / total(rows))] += group
        before += total(group)
    return [content for content in bins if content]


def is_monotone(bins: list[Bin]) -> bool:
    heights = [mean_label(content) for content in bins]
    return all(low <= high for low, high in itertools.pairwise(heights))


def sweep(rows: list[Row], cut, most: int | None = None) -> tuple[int, list[Bin]]:
    """Algorithm 1 of the paper: b = 2, 3, ..., n until the mean labels are not monotone."""
    most = math.floor(total(rows)) if most is None else most
    for b in range(2, most + 1):
        if not is_monotone(cut(rows, b)):
            return b - 1, cut(rows, b - 1)
    return most, cut(rows, most)


# --- Estimators ------------------------------------------------------------------------------------


def root_of_mean(terms: Iterator[tuple[Fraction, float]], p: float) -> float:
    """(sum of weight times term / sum of weights)^(1/p)."""
    terms = list(terms)
    n = float(sum(w for w, _ in terms))
    return (math.fsum(float(w) * term for w, term in terms) / n) ** (1 / p)


def binned(bins: list[Bin], p: float) -> float:
    return root_of_mean(((total(k), float(abs(mean_score(k) - mean_label(k))) ** p) for k in bins), p)


def label_binned(bins: list[Bin], p: float) -> float:
    return root_of_mean(((w, float(abs(f - mean_label(k))) ** p) for k in bins for f, _, w in k), p)


def largest(bins: list[Bin]) -> float:
    return float(max(abs(mean_score(k) - mean_label(k)) for k in bins))


def debiased_square(bins: list[Bin]) -> float:
    """For p = 2, before clipping and rooting; a bin of one row keeps its gap."""
    signed = Fraction(0)
    for k in bins:
        height, m = mean_label(k), total(k)
        noise = height * (1 - height) / (m - 1) if m > 1 else Fraction(0)
        signed += m * ((mean_score(k) - height) ** 2 - noise)
    return float(signed / sum(total(k) for k in bins))


def debiased(bins: list[Bin], p: float) -> float:
    """For p = 2 as above; for others less E|Z|^p - |gap|^p, Z normal around the gap, by quadrature."""
    if p == 2:
        return math.sqrt(max(debiased_square(bins), 0.0))
    n = float(sum(total(k) for k in bins))
    signed = 0.0
    for k in bins:
        height, gap = mean_label(k), float(mean_score(k) - mean_label(k))
        sd = math.sqrt(height * (1 - height) / total(k)) if total(k) > 1 else 0.0
        signed += float(total(k)) / n * (2 * abs(gap) ** p - folded_moment(gap, sd, p))
    return max(signed, 0.0) ** (1 / p)


def folded_moment(mean: float, sd: float, p: float) -> float:
    """E|Z|^p of a normal Z."""
    if sd == 0:
        return abs(mean) ** p

    def integrand(z: float) -> float:
        return abs(mean + sd * z) ** p * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    kink = min(max(-mean / sd, -12.0), 12.0)
    pieces = (quad(integrand, -12, kink, epsabs=1e-14), quad(integrand, kink, 12, epsabs=1e-14))
    return sum(piece[0] for piece in pieces)


def cumulative(rows: list[Row]) -> float:
    """The largest |sum over scores up to c of (score - label)| / n, for any c."""
    sums = (sum(w * (f - y) for f, y, w in rows if f <= c) for c, _, _ in rows)
    return float(max(abs(s) for s in sums) / total(rows))


def kernel_calibration(y, p, bandwidth: float = 0.2) -> float:
    """The mean of (f - y)(f' - y') exp(-|f - f'| / bandwidth) over all pairs of different rows."""
    n = len(y)
    terms = (
        (p[i] - y[i]) * (p[j] - y[j]) * math.exp(-abs(p[i] - p[j]) / bandwidth)
        for i in range(n)
        for j in range(n)
        if i != j
    )
    return math.fsum(terms) / (n * (n - 1))


def neighbors(rows: list[Row], k: int, p: float) -> float:
    """Each score against the mean label of all rows within the least distance that takes in k of them."""

    def term(f: Fraction) -> float:
        for radius in sorted({abs(g - f) for g, _, _ in rows}):
            near = [row for row in rows if abs(row[0] - f) <= radius * (1 + Fraction(1, 10**12))]
            if total(near) >= min(k, total(rows)):
                return float(abs(f - mean_label(near))) ** p
        raise AssertionError

    return root_of_mean(((w, term(f)) for f, _, w in rows), p)


def kernel_density(y, p, norm: float, bandwidth: float | None = None) -> float:
    """Zhang et al. (2020) as in `kde`, but every density a plain sum over rows, at every grid point."""
    y, p = np.asarray(y), np.asarray(p, dtype=float)
    if bandwidth is None:
        bandwidth = float(p[y == 1].std()) * (2 * len(y)) ** -0.2
    grid = np.linspace(-0.6, 1.6, 2**14)
    grid = grid[(grid > 0) & (grid < 1)]

    def density(scores: np.ndarray) -> np.ndarray:
        value = np.zeros_like(grid)
        for score in scores:
            for place in (score, -score if score < 0.5 else 2 - score):
                inside = np.maximum(1 - ((grid - place) / (3 * bandwidth)) ** 2, 0.0)
                value += 35 / 32 * inside * inside * inside / (3 * bandwidth)  # a power would be far slower
        return value / max(len(scores), 1)

    everything, hits = density(p), density(p[y == 1])
    curve = np.minimum(y.mean() * hits / np.where(everything > 0, everything, 1.0), 1.0)
    integrand = np.abs(grid - curve) ** norm * everything
    return float(np.trapezoid(integrand) / np.trapezoid(everything)) ** (1 / norm)
