"""Lee, Huang, Hassani, Dobriban (2023), T-Cal: power against their bumps, their detection rate, their scores.

Scores are uniform, and the curve is the score plus m bumps of alternating sign between 1/4 and 3/4, of height rho m^-s.
T-Cal is implemented here from the paper: the debiased error over equal-width bins, n^(2/(4s+1)) of them if the
smoothness s is known, or 2, 4, 8, ... with Bonferroni's correction ("adaptive"). Critical values are quantiles of
simulated calibrated samples of the same scores; their program resamples the scores with replacement.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from experiments._comparison import experiment, hit_sets, rows_in_parallel
from truecal._lib.numeric import keyed_generator
from truecal._lib.types import FloatArray
from truecal.inference.calibration_test import calibration_test
from truecal.inference.estimate import estimate
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings
from truecal.reproduce._draw import BLUE, GREEN, ORANGE, RED, legend_below, line, new_figure, tidy
from truecal.reproduce._studies import pick
from truecal.simulation import FunctionCurve, Population, UniformScores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.05
#: Smoothness and height of the bumps in their comparison of tests, and in their detection rates.
COMPARISON = (0.6, 100.0)
RATES = ((0.3, 25.0), (0.5, 50.0))
STYLES = {
    "truecal": {"color": BLUE, "marker": "o", "label": "multiscale (truecal)"},
    "tcal": {"color": ORANGE, "marker": "s", "label": "T-Cal, smoothness known"},
    "adaptive": {"color": RED, "marker": "^", "label": "T-Cal, adaptive"},
    "fixed": {"color": GREEN, "marker": "v", "label": "15 equal-width bins"},
}


@experiment("Lee et al. 2023", "T-Cal: power against bumps, the detection rate, and three image classifiers")
def main(settings: Settings) -> Outcome:
    """Compare the multiscale test with T-Cal where the truth is known, and on their scores."""
    s, rho = COMPARISON
    repeats = settings.of(100, 40, 3)
    sizes = settings.of((2000, 5000, 10_000), (2000, 10_000), (500,))
    counts = settings.of(range(40, 200, 50), range(40, 200, 50), (2,))
    jobs: list[tuple[Any, ...]] = [(n, s, rho, tuple(counts), repeats, settings) for n in sizes]
    power = rows_in_parallel(settings, "bumps", _power, jobs)
    sizes = settings.of((1000, 2000, 5000, 10_000, 20_000), (1000, 5000), (300, 600))
    jobs = [
        (n, s, rho, method, trial, settings.of(40, 20, 3), settings)
        for s, rho in RATES
        for n in sizes
        for method in ("truecal", "tcal")
        for trial in range(settings.of(2, 1, 1))
    ]
    rates = rows_in_parallel(settings, "detection", _detectable, jobs)
    scores = [_on_scores(name, label, score, settings) for name, (label, score) in hit_sets(settings).items()]
    tables = {"": power, "rate": rates, **({"scores": scores} if scores else {})}
    comparisons = [*_compare_power(power), *_compare_rates(rates), *(_compare_scores(row) for row in scores)]
    return Outcome(tables, {"": _draw(power, rates)}, comparisons)


def bumps(m: int, s: float, rho: float) -> Population:
    """Return uniform scores with m bumps of alternating sign between 1/4 and 3/4."""
    edges = np.linspace(0.25, 0.75, m + 1).tolist()
    return Population(
        UniformScores(), FunctionCurve(partial(_bumpy, m=m, height=rho * m**-s), breakpoints=edges)
    )


def _bumpy(score: FloatArray, m: int, height: float) -> FloatArray:
    place = 2 * m * (score - 0.25)
    within = place - np.floor(place)
    inner = (score > 0.25) & (score < 0.75) & (within > 0)
    x = np.where(inner, within, 0.5)
    bump = np.where(inner, height * np.exp(-1 / (x * (1 - x))), 0.0)
    return np.clip(score + np.where(np.floor(place) % 2 == 0, bump, -bump), 0.0, 1.0)


def tcal_statistics(label: NDArray[Any], score: NDArray[Any], bins: list[int]) -> FloatArray:
    """Return T-Cal's debiased squared error over each number of equal-width bins."""
    order = np.argsort(score)
    score = score[order]
    gap = (label[order] - score).astype(np.float64)
    sums, squares = (np.concatenate([[0.0], np.cumsum(value)]) for value in (gap, gap**2))
    found = []
    for count in bins:
        place = np.floor(count * score)
        first = np.flatnonzero(np.concatenate([[True], place[1:] != place[:-1]]))
        ends = np.append(first[1:], len(score))
        total, square = sums[ends] - sums[first], squares[ends] - squares[first]
        found.append(float(np.sum((total**2 - square) / (ends - first))) / len(score))
    return np.array(found)


def binnings(n: int, s: float) -> dict[str, list[int]]:
    """Return the numbers of bins of each version of the test."""
    finest = int(2 * math.log2(n / math.sqrt(math.log(n))))
    return {
        "tcal": [int(n ** (2 / (4 * s + 1)))],
        "adaptive": [2**b for b in range(1, finest + 1)],
        "fixed": [15],
    }


def _critical(n: int, bins: dict[str, list[int]], draws: int, seed: int) -> dict[str, FloatArray]:
    """Return critical values for calibrated samples of uniform scores."""
    every = [count for counts in bins.values() for count in counts]
    null = Population(UniformScores(), FunctionCurve(partial(_bumpy, m=1, height=0.0)))
    drawn = np.array(
        [tcal_statistics(*null.sample(n, rng=keyed_generator(seed, 1, n, r)), every) for r in range(draws)]
    )
    found, start = {}, 0
    for name, counts in bins.items():
        found[name] = np.quantile(drawn[:, start : start + len(counts)], 1 - LEVEL / len(counts), axis=0)
        start += len(counts)
    return found


def _power(
    n: int, s: float, rho: float, counts: tuple[int, ...], repeats: int, settings: Settings
) -> Records:
    bins = binnings(n, s)
    critical = _critical(n, bins, settings.of(2000, 400, 20), settings.seed)
    rows: Records = []
    for m in (0, *counts):  # without bumps the model is calibrated
        population = bumps(max(m, 1), s, rho if m else 0.0)
        rejected: dict[str, list[bool]] = {name: [] for name in STYLES}
        for repetition in range(repeats):
            rng = keyed_generator(settings.seed, 2, n, m, repetition)
            label, score = population.sample(n, rng=rng)
            pvalue = calibration_test(label, score, n_resamples=199, rng=rng).pvalue
            rejected["truecal"].append(pvalue <= LEVEL)
            for name in bins:
                statistic = tcal_statistics(label, score, bins[name])
                rejected[name].append(bool((statistic > critical[name]).any()))
        truth = population.true_error()
        for name, values in rejected.items():
            share = float(np.mean(values))
            error = math.sqrt(share * (1 - share) / repeats)
            rows.append(
                {"n": n, "bumps": m, "true_error": truth, "test": name, "power": share, "power_se": error}
                | {"repeats": repeats}
            )
    return rows


def _detectable(
    n: int, s: float, rho: float, method: str, trial: int, repeats: int, settings: Settings
) -> Records:
    """Return the smallest error that a test rejects in 95% of samples, by bisection of the number of bumps."""
    bins = {"tcal": binnings(n, s)["tcal"]}
    critical = (
        _critical(n, bins, settings.of(400, 100, 20), settings.seed + trial)["tcal"]
        if method == "tcal"
        else None
    )

    def detected(m: int) -> bool:
        population, count = bumps(m, s, rho), 0
        for repetition in range(repeats):
            rng = keyed_generator(settings.seed, 3, n, m, trial, repetition)
            label, score = population.sample(n, rng=rng)
            if critical is None:
                count += calibration_test(label, score, n_resamples=199, rng=rng).pvalue <= LEVEL
            else:
                count += bool(tcal_statistics(label, score, bins["tcal"])[0] > critical[0])
        return count >= (1 - LEVEL) * repeats

    low, high = 1, max(bins["tcal"][0], 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if detected(middle) else (low, middle)
    error = bumps(low, s, rho).true_error()
    return [{"smoothness": s, "n": n, "test": method, "trial": trial, "bumps": low, "error": error}]


def _slope(rates: Records, s: float, method: str) -> tuple[float, float]:
    """Return the slope of log error on log n, and its standard error from the scatter."""
    mine = list(pick(rates, smoothness=s, test=method))
    x, y = np.log10([row["n"] for row in mine]), np.log10([row["error"] for row in mine])
    x = x - x.mean()
    slope = float(x @ y / (x @ x))
    scatter = float(np.sum((y - y.mean() - slope * x) ** 2)) / max(len(mine) - 2, 1)
    return slope, math.sqrt(scatter / float(x @ x))


def _compare_power(power: Records) -> list[PaperComparison]:
    found = []
    for n in sorted({row["n"] for row in power}):
        alternatives = [row for row in power if row["n"] == n and row["bumps"]]
        mean = {name: np.mean([row["power"] for row in pick(alternatives, test=name)]) for name in STYLES}
        level = {name: next(pick(power, n=n, test=name, bumps=0))["power"] for name in STYLES}
        others = ", ".join(
            f"{style['label']} {mean[name]:.2f}" for name, style in STYLES.items() if name != "truecal"
        )
        found.append(
            PaperComparison(
                f"mean power against bumps at level {LEVEL}, n = {n:,}",
                others,
                f"{mean['truecal']:.2f}",
                agrees=None,
                error=max(row["power_se"] for row in pick(alternatives, test="truecal")),
                note="Rejected if calibrated: "
                + ", ".join(f"{style['label']} {level[name]:.3f}" for name, style in STYLES.items())
                + ".",
            )
        )
    return found


def _compare_rates(rates: Records) -> list[PaperComparison]:
    found = []
    for s, _ in RATES:
        slope, error = _slope(rates, s, "truecal")
        theirs, their_error = _slope(rates, s, "tcal")
        found.append(
            PaperComparison(
                f"detection rate: exponent of n in the smallest detected error, smoothness {s:g}",
                f"{-2 * s / (4 * s + 1):.3f}",
                f"{slope:.3f}",
                agrees=None,
                error=error,
                note=f"-2s/(4s + 1) is the best possible rate. T-Cal here: {theirs:.3f} ± {their_error:.2g}. "
                "Errors are from the scatter of a few trials.",
            )
        )
    return found


def _on_scores(name: str, label: FloatArray, score: FloatArray, settings: Settings) -> dict[str, Any]:
    bins = binnings(len(score), 1.0)["adaptive"]
    critical = np.quantile(
        [
            tcal_statistics(rng.random(len(score)) < score, score, bins)
            for rng in (keyed_generator(settings.seed, 4, r) for r in range(settings.of(1000, 400, 20)))
        ],
        1 - LEVEL / len(bins),
        axis=0,
    )
    ours = estimate(label, score, confidence_level=0.95)
    interval = ours.interval
    assert interval is not None
    return {
        "scores": name,
        "n": len(score),
        "ece_15_bins_l1": estimate(label, score, estimator="ew_bin", norm=1, n_bins=15).value,
        "tcal_rejects": bool((tcal_statistics(label, score, bins) > critical).any()),
        "truecal_pvalue": calibration_test(label, score, rng=settings.seed).pvalue,
        "multiscale_l2": ours.value,
        "low": interval.low,
        "high": interval.high,
    }


def _compare_scores(row: dict[str, Any]) -> PaperComparison:
    return PaperComparison(
        f"test of calibration of {row['scores']}, n = {row['n']:,}",
        f"adaptive T-Cal {'rejects' if row['tcal_rejects'] else 'does not reject'}",
        f"p = {row['truecal_pvalue']:.3g}; l2 error {100 * row['multiscale_l2']:.1f}% "
        f"({100 * row['low']:.1f}% to {100 * row['high']:.1f}%), l1 over 15 bins {100 * row['ece_15_bins_l1']:.2f}%",
        agrees=row["tcal_rejects"] == (row["truecal_pvalue"] <= LEVEL),
        note="Their scores; T-Cal as implemented here.",
    )


def _draw(power: Records, rates: Records) -> Figure:
    sizes = sorted({row["n"] for row in power})
    figure, axes = new_figure(1, len(sizes) + 1, size=(4 * len(sizes) + 4, 3.9))
    for ax, n in zip(axes[0], sizes, strict=False):
        for name, style in STYLES.items():
            mine = [row for row in pick(power, n=n, test=name) if row["bumps"]]
            x = [100 * row["true_error"] for row in mine]
            line(ax, x, [row["power"] for row in mine], [row["power_se"] for row in mine], **style)
        ax.set_ylim(-0.03, 1.03)
        tidy(
            ax,
            x="true l2 error (%)",
            y="power" if n == sizes[0] else "",
            title=f"n = {n:,}, smoothness {COMPARISON[0]:g}",
        )
    ax = axes[0, -1]
    for (s, _), line_style in zip(RATES, ("-", "--"), strict=True):
        for name in ("truecal", "tcal"):
            ns = sorted({row["n"] for row in rates})
            mean = [
                100 * np.mean([row["error"] for row in pick(rates, smoothness=s, test=name, n=n)]) for n in ns
            ]
            style = {key: STYLES[name][key] for key in ("color", "marker")}
            ax.plot(ns, mean, linestyle=line_style, **style)
        reference = [mean[0] * (n / ns[0]) ** (-2 * s / (4 * s + 1)) for n in ns]
        ax.plot(ns, reference, color="#999999", linestyle=line_style, label=f"rate of smoothness {s:g}")
    ax.set(xscale="log", yscale="log")
    ticks = [3, 4, 5, 7, 10, 15]
    ax.set_yticks(ticks, [f"{tick}" for tick in ticks])
    ax.set_yticks([], minor=True)
    ax.legend(frameon=False, fontsize="small")
    tidy(ax, x="number of samples", y="smallest detected error (%)", title="Detected in 95% of samples")
    legend_below(figure, axes[0, 0], columns=4)
    return figure
