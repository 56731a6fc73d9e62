"""Figure 5: probability that a test at level 0.05 misses a miscalibration, by its size and the sample size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from truecal.display import MissRateDisplay
from truecal.reproduce._contract import Outcome, PaperComparison, Settings, part
from truecal.reproduce._draw import BLACK, new_figure
from truecal.simulation import BetaScores, MissRates, Power, miss_rates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAIR = ("ew_bin", "em_sweep")


@part("Figure 5", "Probability of missing a miscalibration")
def fig5(settings: Settings) -> Outcome:
    """Simulate the miss rates for scores from Beta(1, 1) and the curves c^d."""
    errors = settings.of(
        (0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15), (0.02, 0.03, 0.05, 0.1), (0.02, 0.1)
    )
    sizes = settings.of((200, 500, 1000, 2000, 5000, 10000, 20000), (200, 500, 2000, 5000, 10000), (200, 500))
    result = miss_rates(
        errors,
        sizes,
        methods=PAIR,
        scores=BetaScores(1, 1),
        repeats=settings.of(4000, 150, 25),
        rng=settings.seed,
        n_jobs=settings.n_jobs,
    )
    rows = result.rows
    rate = {(round(row.true_error, 6), row.n, row.method): row for row in rows}
    figure = _draw(result)
    comparisons = [_fewer_misses(rows), *_thresholds(rate)]
    return Outcome({"": [row.to_dict() for row in rows]}, {"": figure}, comparisons)


def _fewer_misses(rows: tuple[Power, ...]) -> PaperComparison:
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    clear = [
        math.copysign(1, wide.miss_rate - mass.miss_rate)
        for wide, mass in pairs
        if abs(wide.miss_rate - mass.miss_rate) > 2 * math.hypot(wide.standard_error, mass.standard_error)
    ]
    return PaperComparison(
        "EM sweep misses less than EW bin",
        "significantly less",
        f"in {clear.count(1)} of {len(pairs)} settings; more in {clear.count(-1)}; the rest within 2 se",
        agrees=clear.count(-1) == 0 and clear.count(1) > 0,
    )


def _thresholds(rate: dict[tuple[float, int, str], Power]) -> list[PaperComparison]:
    """Compare the two rules of thumb of section 7.2."""
    rules = (
        ("n to detect 2% reliably", "over 10,000", 0.02, 10000, "at 10,000"),
        ("error detected reliably with under 500 samples", "greater than 10%", 0.1, 200, "of 10% at 200"),
    )
    return [
        PaperComparison(
            quantity,
            published,
            f"EM sweep still misses {rate[error, n, 'em_sweep'].miss_rate:.0%} {where}, "
            f"EW bin {rate[error, n, 'ew_bin'].miss_rate:.0%}",
            agrees=rate[error, n, "em_sweep"].miss_rate > 0.05,
        )
        for quantity, published, error, n, where in rules
        if (error, n, "em_sweep") in rate
    ]


def _draw(result: MissRates) -> Figure:
    sizes = sorted({row.n for row in result.rows})
    columns = min(len(sizes), 4)
    lines = -(-len(sizes) // columns)
    figure, axes = new_figure(lines, columns, size=(2.9 * columns, 2.7 * lines + 0.6), sharey=True)
    MissRateDisplay.from_miss_rates(result, ax=list(axes.flat[: len(sizes)]), x="true_error")
    for ax in axes.flat:
        ax.axhline(0.05, color=BLACK, linestyle=":", linewidth=0.8, zorder=1)
    for ax in axes.flat[len(sizes) :]:
        ax.set_visible(False)
    return figure
