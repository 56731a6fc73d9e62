"""Open question: less skewed scores, and how far the advantage of equal mass depends on skew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments._comparison import experiment
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings
from truecal.reproduce._draw import legend_below, line, new_figure, style_of, tidy, zero_line
from truecal.reproduce._studies import SEVEN, pick, run_study
from truecal.simulation import BetaScores, population_with_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: From very skewed, as on CIFAR-10, to concentrated around 1/2.
SCORES = ((2.8, 0.05), (1.1, 0.1), (1.1, 0.2), (2, 0.5), (2, 1), (1, 1), (2, 2), (5, 5))
SIX = SEVEN[:6]
#: Two true errors; each distribution gets the curve c^d with that error.
ERRORS = (0.05, 0.0)


@experiment("Discussion", "Less skewed scores: is equal mass still better?")
def main(settings: Settings) -> Outcome:
    """Keep the true error fixed, and move the scores away from 1."""
    chosen = settings.of(SCORES, SCORES, SCORES[::4])
    sizes = settings.of((500, 5000), (500, 5000), (100, 200))
    rows: Records = []
    for error in ERRORS:
        populations = {
            f"Beta({a:g}, {b:g})": population_with_error(error, BetaScores(a, b)) for a, b in chosen
        }
        study = run_study(
            settings,
            f"skew_{error:g}",
            populations,
            estimators=SIX,
            sizes=sizes,
            repeats=settings.of(1000, 80, 4),
        )
        rows += [{**row, "top_bin_share": _top_bin_share(row["population"], chosen)} for row in study]
    figure = _draw(rows, sizes)
    return Outcome({"": rows}, {"": figure}, [_advantage(rows, n) for n in sizes])


def _top_bin_share(name: str, chosen: tuple[tuple[float, float], ...]) -> float:
    """Return the share of scores in the last of fifteen equal-width bins: 1/15 for uniform scores."""
    a, b = next(pair for pair in chosen if f"Beta({pair[0]:g}, {pair[1]:g})" == name)
    return 1 - float(BetaScores(a, b).cdf(14 / 15))


def _advantage(rows: Records, n: int) -> PaperComparison:
    """Compare the bias of EW and EM for the most and the least skewed scores."""
    mine = [row for row in rows if row["n"] == n and row["true_error"] > 0]
    share = sorted({row["top_bin_share"] for row in mine})
    shown = []
    for level, title in ((share[-1], "most skewed"), (share[0], "least skewed")):
        by_estimator = {row["estimator"]: row for row in pick(mine, top_bin_share=level)}
        pairs = [
            f"{idea} {100 * by_estimator[f'ew_{idea}']['bias']:+.2f} / {100 * by_estimator[f'em_{idea}']['bias']:+.2f}"
            for idea in ("bin", "debias", "sweep")
        ]
        shown.append(f"{title}: {', '.join(pairs)}")
    return PaperComparison(
        f"bias (%) of EW / EM at true error 5%, n = {n}",
        "left open",
        "; ".join(shown),
        agrees=None,
        error=100 * max(row["bias_se"] for row in mine),
    )


def _draw(rows: Records, sizes: tuple[int, ...]) -> Figure:
    figure, axes = new_figure(2, 2, size=(11, 7.2), sharex=True)
    names = list(dict.fromkeys(row["population"] for row in rows))
    ticks = [f"{name[5:-1]}\n{next(pick(rows, population=name))['top_bin_share']:.0%}" for name in names]
    for column, n in enumerate(sizes):
        for line_number, error in enumerate(ERRORS):
            ax = axes[line_number, column]
            for estimator in SIX:
                mine = [
                    row
                    for row in rows
                    if row["n"] == n
                    and row["estimator"] == estimator
                    and (row["true_error"] > 0) == (error > 0)
                ]
                line(
                    ax,
                    range(len(mine)),
                    [100 * row["bias"] for row in mine],
                    [100 * row["bias_se"] for row in mine],
                    **style_of(estimator),
                )
            zero_line(ax)
            ax.set_xticks(range(len(names)), ticks, fontsize="x-small")
            tidy(
                ax,
                x="Beta(a, b) of the scores; share of scores above 14/15" if line_number else "",
                y="" if column else "bias (%)",
                title=f"true error {error:.0%}, n = {n:,}",
            )
    legend_below(figure, axes[0, 0], columns=6)
    return figure
