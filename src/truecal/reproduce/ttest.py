"""The paired t-test of section 7.1: whether the bias of EM sweep is smaller than that of EM debias."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_rel

from truecal import paper
from truecal._lib.types import FloatArray
from truecal.reproduce._contract import Outcome, PaperComparison, Settings, compare_with_paper, part
from truecal.reproduce._draw import BLACK, IMAGE_SET_COLOURS, legend, new_figure, tidy
from truecal.reproduce._studies import image_set_of, paper_study, pick, published_estimates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAIR = ("em_debias", "em_sweep")
#: Mean absolute bias (%) of the two, and t, in the paper.
PRINTED = (0.504, 0.347, 5.10)
#: Standard errors of the printed ones, from resampling the 1,000 samples that all settings share.
PRINTED_ERRORS = (0.022, 0.017, 0.23)
QUANTITIES = ("mean absolute bias of EM debias (%)", "mean absolute bias of EM sweep (%)", "paired t")


@part("Section 7.1", "Paired t-test on absolute bias, EM debias against EM sweep")
def ttest(settings: Settings) -> Outcome:
    """Compare the absolute bias over populations and sizes, in percent."""
    study = paper_study(settings)
    by_estimator = [list(pick(study, estimator=name)) for name in PAIR]
    bias = 100 * np.array([[row["bias"] for row in rows] for rows in by_estimator])
    error = 100 * np.array([[row["bias_se"] for row in rows] for rows in by_estimator])
    population = np.array([row["population"] for row in by_estimator[0]])
    ours, errors = summary(bias), _monte_carlo(bias, error, settings.seed)
    comparisons = [
        compare_with_paper(
            quantity, theirs, value, own_error, published_error=their_error, digits=3, note=_NOTE
        )
        for quantity, theirs, value, own_error, their_error in zip(
            QUANTITIES, PRINTED, ours, errors, PRINTED_ERRORS, strict=True
        )
    ]
    if settings.effort != "full":  # with few repetitions, noise dominates the absolute bias
        comparisons = [replace(comparison, agrees=None) for comparison in comparisons]
    comparisons += [*_with_published_draws(settings), _by_population(population, bias)]
    table = [
        {
            "population": a["population"],
            "n": a["n"],
            "em_debias": a["bias"],
            "em_debias_se": a["bias_se"],
            "em_sweep": b["bias"],
            "em_sweep_se": b["bias_se"],
        }
        for a, b in zip(*by_estimator, strict=True)
    ]
    return Outcome({"": table}, {"": _draw(population, bias, error, ours[2])}, comparisons)


_NOTE = (
    "The paper's 70 settings share the same 1,000 samples, so that their errors do not average out: the standard "
    "error of its numbers is 0.02, not the 0.007 of independent samples."
)


def summary(bias: FloatArray) -> tuple[float, float, float]:
    """Return the mean absolute bias of both estimators, and the paired t."""
    size = np.abs(bias)
    return float(size[0].mean()), float(size[1].mean()), float(ttest_rel(*size).statistic)


def _monte_carlo(bias: FloatArray, error: FloatArray, seed: int) -> tuple[float, float, float]:
    """Return the Monte Carlo standard errors of the summary."""
    noise = np.random.default_rng(seed).standard_normal((400, *bias.shape))
    first, second, t = np.std([summary(bias + error * draw) for draw in noise], axis=0)
    return float(first), float(second), float(t)


def _with_published_draws(settings: Settings) -> list[PaperComparison]:
    """Repeat the test on the samples of the published program, which should reproduce its numbers."""
    if settings.effort == "quick":
        return []  # scores are drawn one at a time, which takes minutes
    names = settings.of(paper.NAMES, paper.NAMES, paper.NAMES[:2])
    sizes = settings.of((200, 400, 800, 1600, 3200, 6400, 12800), (200,), (100, 200))
    values = published_estimates(settings, names, sizes, PAIR, settings.of(1000, 10, 3))
    truth = np.array([paper.population(name).true_error() for name in names])
    bias = 100 * (values.mean(axis=3) - truth[:, np.newaxis, np.newaxis])
    ours = summary(bias.transpose(1, 0, 2).reshape(len(PAIR), -1))
    return [
        PaperComparison(
            f"{quantity}, on the published program's own samples",
            f"{theirs:.3f}",
            f"{value:.3f}",
            agrees=abs(value - theirs) < 0.006 if quantity == QUANTITIES[2] else abs(value - theirs) < 0.002,
            note="The same samples, and the printed, rounded parameters.",
        )
        for quantity, theirs, value in zip(QUANTITIES, PRINTED, ours, strict=True)
    ]


def _by_population(population: NDArray[Any], bias: FloatArray) -> PaperComparison:
    means = [np.abs(bias[:, population == name]).mean(axis=1) for name in dict.fromkeys(population)]
    result = ttest_rel(*np.array(means).T)
    return PaperComparison(
        "t over the populations, one mean each",
        "not reported",
        f"{result.statistic:.2f}, p = {result.pvalue:.2g}",
        agrees=None,
        note="The 70 settings are not independent: the seven sizes of a population share its curve.",
    )


def _draw(population: NDArray[Any], bias: FloatArray, error: FloatArray, t: float) -> Figure:
    figure, axes = new_figure(1, 1, size=(5.4, 5))
    ax = axes[0, 0]
    size = np.abs(bias)
    image_set = np.array([image_set_of(name) for name in population])
    for name, colour in IMAGE_SET_COLOURS.items():
        chosen = image_set == name
        style: dict[str, Any] = {"fmt": "o", "markersize": 4, "elinewidth": 0.7, "alpha": 0.8}
        style |= {"color": colour, "label": name, "xerr": error[0, chosen], "yerr": error[1, chosen]}
        ax.errorbar(size[0, chosen], size[1, chosen], **style)
    top = 1.05 * float(size.max())
    ax.plot([0, top], [0, top], color=BLACK, linewidth=0.9, linestyle=":")
    ax.text(0.97 * top, 1.0 * top, "EM sweep worse", ha="right", va="bottom", fontsize="small")
    ax.text(0.97 * top, 0.66 * top, "EM debias worse", ha="right", fontsize="small")
    ax.set(xlim=(0, top), ylim=(0, 1.08 * top))
    legend(ax, loc="upper left", title=f"t = {t:.2f}; bars: 1 se")
    x, y = "absolute bias of EM debias (%)", "absolute bias of EM sweep (%)"
    tidy(ax, x=x, y=y, title="Each point: one population at one size")
    return figure
