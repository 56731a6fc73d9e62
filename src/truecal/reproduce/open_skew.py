"""Open question: less skewed scores, and how much of equal mass's advantage is owed to skew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truecal.reproduce.contract import Comparison, Outcome, Rows, Settings, part
from truecal.reproduce.draw import legend_below, line, new_figure, style_of, tidy, zero_line
from truecal.reproduce.populations import SEVEN, pick
from truecal.reproduce.simulate import run_study
from truecal.simulation.power import population_with_error
from truecal.simulation.scores.beta import BetaScores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: From very skewed, as on CIFAR-10, to scores around 1/2.
SCORES = ((2.8, 0.05), (1.1, 0.1), (1.1, 0.2), (2, 0.5), (2, 1), (1, 1), (2, 2), (5, 5))
SIX = SEVEN[:6]
#: Two true errors; a curve c^d is found for each distribution that has it.
ERRORS = (0.05, 0.0)


@part("Discussion", "Less skewed scores: is equal mass still better?")
def open_skew(settings: Settings) -> Outcome:
    """Keep the true error fixed, and move the scores away from 1."""
    chosen = settings.of(SCORES, SCORES, SCORES[::4])
    sizes = settings.of((500, 5000), (500, 5000), (100, 200))
    rows: Rows = []
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
    """Return the share of scores in the last of fifteen equal-width bins: 1/15 would be even."""
    a, b = next(pair for pair in chosen if f"Beta({pair[0]:g}, {pair[1]:g})" == name)
    return 1 - float(BetaScores(a, b).cdf(14 / 15))


def _advantage(rows: Rows, n: int) -> Comparison:
    """Return the bias of EW bin and EM bin at both ends of skew."""
    mine = [row for row in rows if row["n"] == n and row["true_error"] > 0]
    share = sorted({row["top_bin_share"] for row in mine})
    shown = []
    for place, title in ((share[-1], "most skewed"), (share[0], "least skewed")):
        found = {row["estimator"]: row for row in pick(mine, top_bin_share=place)}
        pairs = [
            f"{idea} {100 * found[f'ew_{idea}']['bias']:+.2f} / {100 * found[f'em_{idea}']['bias']:+.2f}"
            for idea in ("bin", "debias", "sweep")
        ]
        shown.append(f"{title}: {', '.join(pairs)}")
    return Comparison(
        f"bias (%) of EW / EM at true error 5 %, n = {n}",
        "left open",
        "; ".join(shown),
        within=None,
        error=100 * max(row["bias_se"] for row in mine),
    )


def _draw(rows: Rows, sizes: tuple[int, ...]) -> Figure:
    figure, axes = new_figure(2, 2, size=(11, 7.2), sharex=True)
    names = list(dict.fromkeys(row["population"] for row in rows))
    ticks = [f"{name[5:-1]}\n{next(pick(rows, population=name))['top_bin_share']:.0%}" for name in names]
    for column, n in enumerate(sizes):
        for place, error in enumerate(ERRORS):
            ax = axes[place, column]
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
                x="Beta(a, b) of the scores; share of scores above 14/15" if place else "",
                y="" if column else "bias (%)",
                title=f"true error {error:.0%}, n = {n:,}",
            )
    legend_below(figure, axes[0, 0], columns=6)
    return figure
