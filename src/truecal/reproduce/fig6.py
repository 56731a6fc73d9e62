"""Figure 6: Figure 4 for perfectly calibrated populations, whose true error is 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truecal.reproduce.contract import Outcome, PaperComparison, Settings, compare_with_paper, part
from truecal.reproduce.draw import label_of, legend_below, new_figure, tidy
from truecal.reproduce.fig4 import Means, as_rows, bias_by_image_set, draw_bias
from truecal.reproduce.populations import (
    IMAGE_SETS,
    KDE_WITHOUT_ROOT,
    SEVEN,
    mean_absolute_bias,
    paper_study,
    with_kde_without_root,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@part("Figure 6", "Bias against sample size when the model is perfectly calibrated")
def fig6(settings: Settings) -> Outcome:
    """Average the bias over the architectures of each image set."""
    rows = with_kde_without_root(paper_study(settings, calibrated=True))
    means = bias_by_image_set(rows)
    size = {
        name: [100 * value for value in mean_absolute_bias(rows, name)] for name in (*SEVEN, KDE_WITHOUT_ROOT)
    }
    binned = sorted(SEVEN[:6], key=lambda name: size[name][0])
    independent = {"em_debias": 0.59, "em_sweep": 1.90, "ew_bin": 4.38, "kde": 4.37}
    comparisons = [
        *(
            compare_with_paper(
                f"mean bias of {label_of(name)} (%)",
                theirs,
                *size[name],
                published_error=size[name][1],
                source="independent",
            )
            for name, theirs in independent.items()
        ),
        PaperComparison(
            "binned estimator with the smallest bias",
            "EM debias",
            label_of(binned[0]),
            agrees=binned[0] == "em_debias",
        ),
        PaperComparison(
            "estimator with the smallest bias",
            "KDE",
            f"EM debias {size['em_debias'][0]:.2f}%; KDE {size['kde'][0]:.2f}% with its root, "
            f"{size[KDE_WITHOUT_ROOT][0]:.2f}% without",
            agrees=min(SEVEN, key=lambda name: size[name][0]) == "kde",
            note="KDE without its root is the square of a small number and therefore always near 0. With the root, "
            "as in the definition of the true error, it is among the most biased.",
        ),
    ]
    return Outcome({"": as_rows(means), "populations": rows}, {"": _draw(means)}, comparisons)


def _draw(means: Means) -> Figure:
    figure, axes = new_figure(1, 3, size=(11, 4.4), sharey=True)
    present = {image_set for image_set, _, _ in means}
    for column, image_set in enumerate(IMAGE_SETS):
        if image_set in present:
            draw_bias(axes[0, column], means, image_set, (*SEVEN, KDE_WITHOUT_ROOT))
            tidy(
                axes[0, column],
                x="number of samples",
                y="" if column else "bias (%), true error 0",
                title=image_set,
            )
    legend_below(figure, axes[0, 0], columns=8)
    return figure
