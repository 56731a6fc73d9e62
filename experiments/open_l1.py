"""Open question: the l1 true error. Figures 4 and 6 for the mean gap instead of its root mean square."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments._comparison import experiment
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings
from truecal.reproduce._draw import label_of, legend_below, new_figure, tidy
from truecal.reproduce._studies import IMAGE_SETS, SEVEN, mean_absolute_bias, paper_study
from truecal.reproduce.main_study import bias_by_image_set, draw_bias

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@experiment("Discussion", "The l1 true error: is the ranking of the estimators the same?")
def main(settings: Settings) -> Outcome:
    """Repeat the studies of Figures 4 and 6 with the l1 norm."""
    studies = {
        (model, norm): paper_study(settings, calibrated=model == "calibrated", norm=norm)
        for model in ("fitted", "calibrated")
        for norm in (1, 2)
    }
    table = [{"curve": model, **row} for (model, norm), rows in studies.items() if norm == 1 for row in rows]
    comparisons = [
        _ranking(model, studies[model, 1], studies[model, 2]) for model in ("fitted", "calibrated")
    ]
    return Outcome({"": table}, {"": _draw(studies["fitted", 1], studies["calibrated", 1])}, comparisons)


def _ranking(model: str, l1: Records, l2: Records) -> PaperComparison:
    size = {name: mean_absolute_bias(l1, name) for name in SEVEN}
    before = {name: mean_absolute_bias(l2, name)[0] for name in SEVEN}
    order = sorted(SEVEN, key=lambda name: size[name][0])
    return PaperComparison(
        f"mean absolute bias of l1 (%), {model}",
        "left open",
        "; ".join(
            f"{label_of(name)} {100 * size[name][0]:.2f} (l2: {100 * before[name]:.2f})" for name in order
        ),
        agrees=None,
        error=100 * max(error for _, error in size.values()),
    )


def _draw(fitted: Records, calibrated: Records) -> Figure:
    figure, axes = new_figure(2, 3, size=(11, 7), sharex=True, sharey="row")
    for line, (title, rows) in enumerate((("fitted", fitted), ("calibrated", calibrated))):
        means = bias_by_image_set(rows)
        for column, image_set in enumerate(IMAGE_SETS):
            ax = axes[line, column]
            draw_bias(ax, means, image_set, SEVEN)
            tidy(
                ax,
                x="number of samples" if line else "",
                y="" if column else "bias of the l1 error (%)",
                title=f"{image_set}, {title}",
            )
    legend_below(figure, axes[0, 0], columns=7)
    return figure
