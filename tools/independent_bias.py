"""Compute the biases of Figures 4 and 6 of the paper a second time, with NumPy and SciPy and nothing of truecal.

    python tools/independent_bias.py --repeats 1000 --jobs 2 --out bias.csv
    python tools/independent_bias.py --repeats 200 --check docs/reproduction

Every formula is written out in the plainest way that is fast enough, so that a reader can compare it with the paper:
Roelofs, Cain, Shlens, Mozer (2022), Mitigating bias in calibration error estimation. With ``--check``, the biases are
compared with those of `truecal reproduce --only fig4 --only fig6`, and the exit code is 1 if any of them is more than
`LIMIT` joint standard errors away.
"""

from __future__ import annotations

import argparse
import csv
import sys
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import betaincinv

#: Tables 2 and 3 of the paper: Beta parameters, then link, transform, intercept and slope of the curve of smallest AIC.
POPULATIONS = {
    "resnet110_c10": (2.7752, 0.0478, "logflip", "logflip", -0.24, 0.30),
    "resnet110_SD_c10": (2.1714, 0.0394, "logit", "logflip", -0.27, -0.35),
    "resnet_wide32_c10": (2.3806, 0.0379, "logit", "logit", 0.0, 0.26),
    "densenet40_c10": (1.9824, 0.0397, "logit", "logflip", 0.0, -0.26),
    "resnet110_c100": (1.1823, 0.1081, "logflip", "logflip", -0.11, 0.28),
    "resnet110_SD_c100": (1.1233, 0.1147, "logit", "logit", -0.88, 0.49),
    "resnet_wide32_c100": (1.0611, 0.0650, "logflip", "logflip", -0.13, 0.21),
    "densenet40_c100": (1.0805, 0.0808, "logit", "logit", -0.97, 0.34),
    "resnet152_imgnet": (1.1359, 0.2069, "logflip", "logflip", -0.12, 0.58),
    "densenet161_imgnet": (1.1928, 0.2206, "log", "log", -0.03, 1.27),
}
SIZES = (200, 400, 800, 1600, 3200, 6400, 12800)
ESTIMATORS = ("ew_bin", "em_bin", "ew_debias", "em_debias", "ew_sweep", "em_sweep", "kde")
BINS = 15
LIMIT = 4.0


def curve(t, link, transform, b0, b1):
    """Return P(event | score 1 - t). The complement t keeps its digits where the score rounds to 1."""
    with np.errstate(divide="ignore"):
        x = {"log": np.log1p(-t), "logflip": np.log(t), "logit": np.log1p(-t) - np.log(t)}[transform]
    eta = b0 + b1 * x
    if link == "logit":
        return 1 / (1 + np.exp(-eta))
    return np.minimum(np.exp(eta), 1) if link == "log" else 1 - np.minimum(np.exp(eta), 1)


def bin_sums(index, s, y, b):
    """Return the number of rows, mean score and mean label of the bins that have rows."""
    count = np.bincount(index, minlength=b)
    full = count > 0
    return count[full], *(np.bincount(index, v, b)[full] / count[full] for v in (s, y))


def error_of_bins(index, s, y, b, *, debias=False):
    """Return the binned l2 error, or with `debias` the one of which the variance of each mean label is subtracted."""
    count, score, label = bin_sums(index, s, y, b)
    square = (score - label) ** 2
    if debias:
        square -= np.where(count > 1, label * (1 - label) / np.maximum(count - 1, 1), 0)
    return np.sqrt(max(np.sum(count * square) / len(s), 0))


def sweep(index_of, s, y):
    """Return the binned error for the last number of bins before the mean labels first fall."""
    b = 1
    while b < len(s):
        label = bin_sums(index_of(b + 1), s, y, b + 1)[2]
        if np.any(label[1:] < label[:-1]):
            break
        b += 1
    return error_of_bins(index_of(b), s, y, b)


def kde(s, y):
    """Return the root of the integral of the squared gap under mirrored triweight densities.

    The grid is that of the authors of the estimator, 2^14 points from -0.6 to 1.6; a finer one would give slightly
    smaller values, by 0.0005 for the most skewed scores.
    """
    grid = np.linspace(-0.6, 1.6, 2**14)
    step = grid[1] - grid[0]
    edges = np.append(grid - step / 2, grid[-1] + step / 2)
    reach = 3 * np.std(s[y > 0]) * (2 * len(s)) ** -0.2
    u = np.arange(-int(reach / step) - 1, int(reach / step) + 2) * step / reach
    kernel = np.maximum(1 - u**2, 0) ** 3
    inside = (grid > 0) & (grid < 1)
    densities = []
    for weight in (np.ones_like(y), y):
        mirrored = sum(np.histogram(x, edges, weights=weight)[0] for x in (s, -s, 2 - s))
        densities.append(np.maximum(fftconvolve(mirrored, kernel, mode="same")[inside], 0))
    everything, hits = densities
    known = everything > 1e-9 * everything.max()
    gap = grid[inside][known] - np.minimum(hits[known] / everything[known], 1)
    return np.sqrt(np.sum(gap**2 * everything[known]) / np.sum(everything[known]))


def estimates(s, y):
    """Return the seven estimates of one sample."""
    order = np.argsort(s, kind="stable")
    s, y = s[order], y[order].astype(float)
    # Tied scores belong to the bin of their middle row.
    middle = (np.searchsorted(s, s, "left") + np.searchsorted(s, s, "right") - 1) / 2

    def width(b):
        return np.minimum(np.searchsorted(np.arange(1, b + 1) / b, s, "right"), b - 1)

    def mass(b):
        return np.minimum((middle * b / len(s) + 1e-12).astype(int), b - 1)

    return [
        error_of_bins(width(BINS), s, y, BINS),
        error_of_bins(mass(BINS), s, y, BINS),
        error_of_bins(width(BINS), s, y, BINS, debias=True),
        error_of_bins(mass(BINS), s, y, BINS, debias=True),
        sweep(width, s, y),
        sweep(mass, s, y),
        kde(s, y),
    ]


def biases(name, calibrated, n, repeats, seed):
    """Return a row for each estimator: true error, bias and the standard error of the bias."""
    a, b, *glm = POPULATIONS[name]

    def truth(t):
        return 1 - t if calibrated else curve(t, *glm)

    grid = betaincinv(b, a, (np.arange(200_000) + 0.5) / 200_000)
    true_error = float(np.sqrt(np.mean((1 - grid - truth(grid)) ** 2)))
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), calibrated, n])
    found = []
    for _ in range(repeats):
        t = rng.beta(b, a, n)
        found.append(estimates(1 - t, rng.random(n) < truth(t)))
    mean, se = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(repeats)
    return [
        {"population": name, "calibrated": int(calibrated), "n": n, "estimator": key}
        | {"true_error": true_error, "bias": float(m - true_error), "bias_se": float(e)}
        for key, m, e in zip(ESTIMATORS, mean, se, strict=True)
    ]


def main():
    """Compute the biases, write them, and compare them where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", help="name of one population")
    parser.add_argument("--out", help="CSV file to write")
    parser.add_argument("--check", help="folder of the results of truecal reproduce, to compare with")
    options = parser.parse_args()
    settings = [
        (name, calibrated, n, options.repeats, options.seed)
        for name in POPULATIONS
        if options.only in (None, name)
        for calibrated in (False, True)
        for n in SIZES
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = [row for group in pool.map(biases, *zip(*settings, strict=True)) for row in group]
    if options.out:
        with Path(options.out).open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    if not options.check:
        return 0
    theirs = {}
    for calibrated, name in enumerate(("fig4", "fig6")):
        with (Path(options.check) / f"{name}_populations.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                theirs[row["population"], calibrated, int(row["n"]), row["estimator"]] = row
    distance = {}
    for row in rows:
        key = row["population"], row["calibrated"], row["n"], row["estimator"]
        joint = np.hypot(row["bias_se"], float(theirs[key]["bias_se"]))
        distance[key] = abs(row["bias"] - float(theirs[key]["bias"])) / joint
    worst = max(distance, key=distance.get)
    print(
        f"{len(distance)} biases compared; the largest is {distance[worst]:.2f} joint standard errors, {worst}"
    )
    return int(distance[worst] > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
