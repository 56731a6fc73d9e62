"""Sun, Chaudhari, Barnett, Dobriban (2024), a confidence interval for the l2 error: their settings 1 and 2.

Two classes, top labels, n = 1,000, nominal level 90%, 21 curves each. Their paper's interval is implemented here from
its formulas. Their program has an intercept of 1 in the curve and of 0 in the truth; 0 is used here, because only with
it one of the curves is calibrated and the errors end at 0.29 and 0.42, as in their figures. Setting 3 (the two largest
of ten probabilities as one vector) is another quantity and is left out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm as normal

from experiments._comparison import experiment, rows_in_parallel
from truecal._lib.numeric import keyed_generator
from truecal._lib.types import FloatArray
from truecal.inference.interval import confidence_interval
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings
from truecal.reproduce._draw import BLUE, ORANGE, legend_below, line, new_figure, tidy
from truecal.reproduce._studies import pick
from truecal.simulation import BetaScores, GLMCurve, Population, ScoreDistribution, UniformScores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N, LEVEL, BINS = 1000, 0.9, 50
#: Scores of one class; the top label has the larger of the score and its complement.
SETTINGS: dict[int, ScoreDistribution] = {1: UniformScores(), 2: BetaScores(5, 0.5)}
METHODS = {"truecal": BLUE, "Sun et al.": ORANGE}


@experiment(
    "Sun et al. 2024", "Coverage and length of the interval of the l2 error, on their settings 1 and 2"
)
def main(settings: Settings) -> Outcome:
    """Draw samples of each curve, and record whether the intervals contain the true error, and how long they are."""
    slopes = settings.of(np.arange(21) / 20, np.arange(0, 21, 4) / 20, np.array([0.5, 1.0]))
    repeats = settings.of(1000, 100, 4)
    jobs = [(setting, float(slope), repeats, settings.seed) for setting in SETTINGS for slope in slopes]
    rows = rows_in_parallel(settings, "interval", _cell, jobs)
    rows.sort(key=lambda row: (row["setting"], row["true_error"]))
    return Outcome({"": rows}, {"": _draw(rows)}, [_compare(rows, *limits) for limits in _RANGES])


def sun_interval(correct: NDArray[Any], score: NDArray[Any], level: float = LEVEL) -> tuple[float, float]:
    """Return Sun et al.'s interval of the l2 error: the roots of the ends of their interval of its square.

    The debiased estimator over equal-width bins is asymptotically normal if the model is miscalibrated. Near 0 its
    lower end is that of a one-sided interval, so that it reaches 0.
    """
    place = np.minimum((BINS * score).astype(int), BINS - 1)
    count = np.bincount(place, minlength=BINS)
    kept = count > 0
    count = count[kept]
    gap = correct - score
    mean = np.bincount(place, gap, BINS)[kept] / count
    square = np.bincount(place, gap**2, BINS)[kept] / count
    n = len(score)
    estimate = float(np.sum((count * mean**2 - square) * count / np.maximum(count - 1, 1))) / n
    share = count / n
    variance = float(share @ (4 * mean**2 * square - 3 * mean**4) - (share @ mean**2) ** 2)
    error = math.sqrt(max(variance, 0.0) / n)
    two_sided, one_sided = normal.ppf(0.5 + level / 2) * error, normal.ppf(level) * error
    estimate = max(estimate, 0.0)
    if estimate >= 2 * two_sided:
        low = estimate - two_sided
    elif estimate >= 2 * one_sided:
        low = estimate / 2
    else:
        low = max(estimate - one_sided, 0.0)
    return math.sqrt(low), math.sqrt(estimate + two_sided)


def _cell(setting: int, slope: float, repeats: int, seed: int) -> Records:
    # The gap at a score is minus the gap at its complement, so that the top label has the error of the class.
    population = Population(SETTINGS[setting], GLMCurve("logit", "logit", None, slope))
    truth = population.true_error()
    ends: dict[str, list[tuple[float, float]]] = {name: [] for name in METHODS}
    for repetition in range(repeats):
        rng = keyed_generator(seed, setting, round(1000 * slope), repetition)
        label, score = population.sample(N, rng=rng)
        top = np.maximum(score, 1 - score)
        correct = (label == (score >= 0.5)).astype(np.float64)
        ours = confidence_interval(correct, top, confidence_level=LEVEL)
        ends["truecal"].append((ours.low, ours.high))
        ends["Sun et al."].append(sun_interval(correct, top))
    return [_row(setting, slope, truth, name, np.array(pairs)) for name, pairs in ends.items()]


def _row(setting: int, slope: float, truth: float, name: str, ends: FloatArray) -> dict[str, object]:
    coverage = float(np.mean((ends[:, 0] <= truth + 1e-12) & (truth <= ends[:, 1] + 1e-12)))
    length = ends[:, 1] - ends[:, 0]
    return {
        "setting": setting,
        "slope": slope,
        "true_error": truth,
        "interval": name,
        "repeats": len(ends),
        "coverage": coverage,
        "coverage_se": math.sqrt(coverage * (1 - coverage) / len(ends)),
        "length": float(length.mean()),
        "length_se": float(length.std() / math.sqrt(len(ends))),
    }


_RANGES = ((0.0, 0.1), (0.1, 1.0))


def _compare(rows: Records, above: float, below: float) -> PaperComparison:
    chosen = [row for row in rows if above <= row["true_error"] < below]
    mean = {
        (name, key): float(np.mean([row[key] for row in pick(chosen, interval=name)] or [math.nan]))
        for name in METHODS
        for key in ("length", "coverage")
    }
    lowest = {
        name: min((row["coverage"] for row in pick(chosen, interval=name)), default=math.nan)
        for name in METHODS
    }

    def text(name: str) -> str:
        return (
            f"length {100 * mean[name, 'length']:.2f}, coverage {100 * mean[name, 'coverage']:.1f}% "
            f"(lowest {100 * lowest[name]:.1f}%)"
        )

    return PaperComparison(
        f"interval of the l2 error, mean over true errors from {100 * above:g}% to {100 * below:g}% (points)",
        f"their interval: {text('Sun et al.')}",
        text("truecal"),
        agrees=None,
        error=100 * max((row["coverage_se"] for row in chosen), default=math.nan),
        note=f"n = {N:,}, nominal {100 * LEVEL:g}%. At an error of 0 their figures count a test with the known null "
        "variance; here the interval itself is counted.",
    )


def _draw(rows: Records) -> Figure:
    figure, axes = new_figure(2, 2, size=(10, 6), sharex="col")
    for column, setting in enumerate(SETTINGS):
        for name, colour in METHODS.items():
            mine = list(pick(rows, setting=setting, interval=name))
            for ax, key in zip(axes[:, column], ("coverage", "length"), strict=True):
                line(
                    ax,
                    [100 * row["true_error"] for row in mine],
                    [100 * row[key] for row in mine],
                    [100 * row[f"{key}_se"] for row in mine],
                    color=colour,
                    marker="o",
                    label=name,
                )
        axes[0, column].axhline(100 * LEVEL, color="#999999", linewidth=0.9)
        axes[1, column].set_ylim(bottom=0)
        tidy(axes[0, column], x="", y="coverage (%)", title=f"Setting {setting}")
        tidy(axes[1, column], x="true l2 error (%)", y="mean length (points)")
    legend_below(figure, axes[0, 0], columns=2)
    return figure
