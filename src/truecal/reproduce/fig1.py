"""Figure 1: ECE_bin of a perfectly calibrated model.

Left: the reliability diagram of one sample of 200. Right: ECE_bin of 10^6 such samples; the true error is 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from truecal._lib.types import FloatArray
from truecal.data import as_sample
from truecal.data.sample import Sample
from truecal.estimators._registry import get_estimator
from truecal.inference.estimate import estimate
from truecal.inference.reliability import reliability_curve
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce._draw import BLACK, BLUE, RED, SKY, legend, new_figure, tidy
from truecal.reproduce._studies import draw_estimates, published_draw, walk
from truecal.simulation import BetaScores, IdentityCurve, Population

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N, N_BINS = 200, 15
CALIBRATED = Population(BetaScores(2.8, 0.05), IdentityCurve())


@part("Figure 1", "ECE_bin of a perfectly calibrated model")
def fig1(settings: Settings) -> Outcome:
    """Draw one sample and the distribution of ECE_bin over many."""
    repeats = settings.of(1_000_000, 20_000, 300)
    drawn = draw_estimates(settings, "fig1", CALIBRATED, n=N, estimators=["ew_bin"], repeats=repeats)
    values = drawn["ew_bin"]
    diagram, shown = reliability_diagram(settings.seed)
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    error = sd / math.sqrt(repeats)
    comparisons = [
        PaperComparison(
            "mean ECE_bin (%), true error 0",
            "not printed",
            f"{100 * mean:.2f}",
            agrees=None,
            error=100 * error,
        ),
        PaperComparison(
            "ECE_bin systematically predicts large errors",
            "stated",
            f"95% of samples are above {100 * np.quantile(values, 0.05):.2f}%",
            agrees=bool(np.quantile(values, 0.05) > 0.01),
        ),
    ]
    comparisons += _published(settings, repeats)
    histogram = np.histogram(values, bins=np.arange(0, 0.2001, 0.002))
    table = [
        {"ece_from": low, "ece_to": high, "samples": int(count), "share": count / repeats}
        for count, low, high in zip(histogram[0], histogram[1][:-1], histogram[1][1:], strict=True)
    ]
    figure = _draw(values, diagram, shown)
    return Outcome({"": table, "diagram": diagram}, {"": figure}, comparisons)


def _published(settings: Settings, repeats: int) -> list[PaperComparison]:
    """Draw the samples of the published program: their number, their mean, and the one that it marks."""
    seeds, start = walk()
    rounds = len(seeds) - start
    spec = get_estimator("ew_bin")
    chosen = seeds[: settings.of(len(seeds), 100, 2)]
    values = [100 * spec(Sample.from_rows(*published_draw(CALIBRATED, seed, N))).value for seed in chosen]
    # Nearly all of 10^6 samples are in the part that repeats.
    mean = f", with a mean of {np.mean(values[start:]):.2f}%" if len(values) > start else ""
    return [
        PaperComparison(
            "number of distinct samples",
            "1,000,000 independent",
            f"{len(seeds):,} in the published program, {repeats:,} here",
            agrees=False,
            note="The published program seeds each sample with a number below 10^7 drawn by the previous sample. From "
            f"its first seed, 47, the sequence returns to an earlier seed after {len(seeds):,} samples and then "
            f"repeats the same {rounds:,}{mean}. This does not affect the conclusion of the figure.",
        ),
        PaperComparison(
            "ECE_bin of the marked sample (%)",
            "5.08, by the published program",
            f"{values[1]:.2f}",
            agrees=abs(values[1] - 5.08) < 0.005,
            note=f"This is the program's second sample. The diagram beside it shows the first, with {values[0]:.2f}%.",
        ),
    ]


def reliability_diagram(seed: int) -> tuple[Records, float]:
    """Return the bins of one sample with their range under perfect calibration, and its ECE_bin."""
    sample = as_sample(*CALIBRATED.sample(N, rng=seed))
    options: dict[str, Any] = {"confidence_level": 0.9, "n_resamples": 2000, "rng": seed}
    curve = reliability_curve(sample, n_bins=N_BINS, binning="ew", **options)
    band = zip(curve.bins.to_rows(), curve.bins_lower, curve.bins_upper, strict=True)
    rows = [{**row, "band_lower": below, "band_upper": above} for row, below, above in band]
    return rows, estimate(sample, estimator="ew_bin", n_bins=N_BINS).value


def _draw(values: FloatArray, diagram: Records, shown: float) -> Figure:
    figure, axes = new_figure(1, 2, size=(9, 4))
    _draw_diagram(axes[0, 0], diagram, shown)
    ax = axes[0, 1]
    ax.hist(100 * values, bins=np.arange(0, 18, 0.2), density=True, color=SKY)
    mean = 100 * float(values.mean())
    ax.axvline(0, color=BLACK, linewidth=2, label="true error: 0%")
    error = 200 * values.std() / math.sqrt(len(values))
    ax.axvline(mean, color=BLUE, linewidth=1.5, label=f"mean: {mean:.2f} ± {error:.2g}%")
    here = f"the sample on the left: {100 * shown:.2f}%"
    ax.axvline(100 * shown, color=RED, linestyle="--", linewidth=1.5, label=here)
    ax.set_ylim(0, 1.4 * ax.get_ylim()[1])
    legend(ax, loc="upper right")
    tidy(ax, x="ECE$_{BIN}$, equal width (%)", y="density", title=f"(b) {len(values):,} samples of 200")
    return figure


def _draw_diagram(ax: Axes, diagram: Records, shown: float) -> None:
    score = [row["mean_score"] for row in diagram]
    low, high = (np.array([row[key] for row in diagram]) for key in ("band_lower", "band_upper"))
    ax.plot([0, 1], [0, 1], color=BLACK, linewidth=1, label="perfect calibration (true curve)")
    middle = [(row["lower"] + row["upper"]) / 2 for row in diagram]
    style: dict[str, Any] = {"width": 0.055, "color": SKY, "alpha": 0.5, "label": "90% of calibrated samples"}
    ax.bar(middle, high - low, bottom=low, **style)
    ax.scatter(score, [row["mean_label"] for row in diagram], color=RED, zorder=3, s=22, label="this sample")
    above: dict[str, Any] = {"textcoords": "offset points", "xytext": (0, 6), "ha": "center", "fontsize": 6.5}
    for row in diagram:
        ax.annotate(f"{row['count']:.0f}", (row["mean_score"], row["mean_label"]), **above)
    legend(ax, loc="upper left")
    ax.set(xlim=(0, 1.03), ylim=(-0.03, 1.3), yticks=np.arange(0, 1.1, 0.2))
    title = f"(a) one sample of 200: ECE$_{{BIN}}$ = {100 * shown:.2f}%; rows per bin"
    tidy(ax, x="mean score of the bin", y="observed frequency", title=title)
