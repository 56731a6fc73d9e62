"""Table 2: the parameters of the Beta distributions of scores."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from truecal import paper
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce._data import beta_by_recipe, drawn_sets, fit_sample, paper_sets, real_fits
from truecal.reproduce._data import printed_table2 as printed
from truecal.reproduce._draw import BLACK, BLUE, GREEN, ORANGE, legend, log_axis, new_figure, tidy
from truecal.reproduce._studies import pick
from truecal.simulation import BetaScores, PopulationFit
from truecal.simulation._likelihood import fit_beta_as_paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WAYS = {
    "printed": ("printed in the paper", BLACK, "o"),
    "recipe_coarse": ("paper's recipe, scores rounded as in the paper", BLUE, "s"),
    "recipe": ("paper's recipe, original scores", ORANGE, "^"),
    "mle": ("maximum likelihood, rounded scores as intervals", GREEN, "D"),
}
#: Offsets of labels from their points, if not below to the right.
LABEL_SHIFTS = {
    "densenet40_c10": (-56, -3),
    "resnet110_SD_c10": (6, 5),
    "resnet110_SD_c100": (-14, 8),
    "densenet161_imgnet": (8, 2),
}


@part("Table 2", "Parameters of the Beta distributions of scores")
def table2(settings: Settings) -> Outcome:
    """Fit real scores by three methods, and samples of the printed distributions, whose truth is known."""
    rows: Records = []
    for name, (a, b) in printed().items():
        rows.append({"set": name, "scores": "real", "way": "printed", "a": a, "b": b})
    for name, sample in paper_sets(settings).items():
        own = {"set": name, "scores": "real"}
        rows.append({**own, "ks_distance": None, **_likelihood(real_fits(settings)[name])})
        for way in ("recipe", "recipe_coarse"):
            a, b = beta_by_recipe(sample, coarse=way == "recipe_coarse")
            rows.append({**own, "way": way, "a": a, "b": b, "ks_distance": None})
    for name, sample in drawn_sets(settings).items():
        own = {"set": name, "scores": "drawn"}
        rows.append({**own, **_likelihood(fit_sample(sample))})
        a, b = beta_by_recipe(sample, coarse=False)
        rows.append({"set": name, "scores": "drawn", "way": "recipe", "a": a, "b": b})
    return Outcome({"": rows}, {"": _draw(rows)}, [*_real(rows), _known_truth(rows), _grids(settings)])


def _likelihood(fit: PopulationFit) -> dict[str, Any]:
    """Return the parameters by maximum likelihood, with their standard errors and the distance of the fit."""
    a_se, b_se = fit.beta.information_se or (None, None)
    fitted = {"way": "mle", "a": fit.beta.a, "b": fit.beta.b, "a_se": a_se, "b_se": b_se}
    return fitted | {"ks_distance": fit.goodness.ks_distance}


def _real(rows: Records) -> list[PaperComparison]:
    parameters = {(row["set"], row["way"]): (row["a"], row["b"]) for row in rows if row["scores"] == "real"}
    return [
        PaperComparison(
            f"Beta parameters of {name}",
            "{:.4f}, {:.4f}".format(*parameters[name, "printed"]),
            "recipe {:.4f}, {:.4f}; on rounded scores {:.4f}, {:.4f}; maximum likelihood {:.4f}, {:.4f}".format(
                *parameters[name, "recipe"], *parameters[name, "recipe_coarse"], *parameters[name, "mle"]
            ),
            # The same scores and the same recipe: the only error is that of printing four digits.
            agrees=bool(
                np.allclose(parameters[name, "recipe"], parameters[name, "printed"], rtol=0, atol=5e-5)
            ),
            note="If scores within 1e-6 of 1 are set to 1, as a softmax by logarithms in float32 would, the recipe "
            f"comes within {_farthest(parameters[name, 'recipe_coarse'], parameters[name, 'printed']):.1%}. "
            "It treats a score of 1 as the point 1 - 1.1e-16, not as a rounded score.",
        )
        for name in printed()
        if (name, "mle") in parameters
    ]


def _farthest(ours: tuple[float, float], printed: tuple[float, float]) -> float:
    return float(np.max(np.abs(np.array(ours) / np.array(printed) - 1)))


def _known_truth(rows: Records) -> PaperComparison:
    """Compare each method with the truth on samples of the printed distributions."""
    off = {}
    for way in ("mle", "recipe"):
        ratios = []
        for row in rows:
            if row["scores"] == "drawn" and row["way"] == way:
                scores = paper.population(row["set"]).scores
                assert isinstance(scores, BetaScores)
                ratios.append(math.log(row["b"] / scores.b))
        off[way] = math.exp(np.mean(np.abs(ratios))) - 1
    return PaperComparison(
        "relative error of b on samples with known truth",
        "not studied",
        f"recipe {off['recipe']:.1%}, maximum likelihood {off['mle']:.1%} on average",
        agrees=None,
        note="Samples of 10,000 from each of the ten printed distributions, in float64.",
    )


def _grids(settings: Settings) -> PaperComparison:
    """Fit the same scores with other grids than the paper's N = 11 and factor 0.5."""
    samples = (paper_sets(settings) or drawn_sets(settings)).values()
    off = 0.0
    for sample in samples:
        paper_fit = fit_beta_as_paper(sample.score, sample.count)
        for points, contraction in itertools.product((7, 11, 21, 41), (0.3, 0.5, 0.8)):
            fit = fit_beta_as_paper(sample.score, sample.count, points=points, contraction=contraction)
            off = max(off, _farthest((fit.a, fit.b), (paper_fit.a, paper_fit.b)))
    return PaperComparison(
        "largest relative change of a and b with N from 7 to 41 and a factor from 0.3 to 0.8",
        "optima are robust to N and gamma",
        f"{off:.2g} on {len(samples)} sets",
        agrees=off < 0.01,
    )


def _draw(rows: Records) -> Figure:
    figure, axes = new_figure(1, 2, size=(10.5, 4.6))
    titles = {"real": "(a) real scores", "drawn": "(b) samples of the printed distributions: truth known"}
    for ax, (source, title) in zip(axes[0], titles.items(), strict=True):
        _draw_names(ax, [row for row in rows if row["scores"] == source])
        _draw_fits(ax, [row for row in rows if row["scores"] == source or row["way"] == "printed"])
        tidy(ax, x="a", y="b", title=title)
    legend(axes[0, 0], fontsize="x-small", loc="upper right")
    return figure


def _draw_names(ax: Axes, rows: Records) -> None:
    """Name the printed points, and connect each with the fits to that set."""
    for name, (a, b) in printed().items():
        shift = LABEL_SHIFTS.get(name, (5, -10))
        ax.annotate(name, (a, b), xytext=shift, textcoords="offset points", fontsize=6, color="#555555")
        points = [(a, b), *((row["a"], row["b"]) for row in pick(rows, set=name))]
        ax.plot(*zip(*points, strict=True), color="#cccccc", linewidth=0.7)


def _draw_fits(ax: Axes, rows: Records) -> None:
    """Draw the parameters by each method, with two standard errors."""
    for way, (label, colour, marker) in WAYS.items():
        chosen = list(pick(rows, way=way))
        if not chosen:
            continue
        a, b = ([row[key] for row in chosen] for key in ("a", "b"))
        xerr, yerr = ([2 * (row.get(key) or 0) for row in chosen] for key in ("a_se", "b_se"))
        style: dict[str, Any] = {"fmt": marker, "color": colour, "markersize": 5, "elinewidth": 0.8}
        style |= {"markerfacecolor": "none" if way == "printed" else colour, "label": label}
        ax.errorbar(a, b, xerr=xerr, yerr=yerr, **style)
    ax.set_yscale("log")
    log_axis(ax, [1, 1.5, 2, 3, 4])
    ax.set_yticks([0.04, 0.06, 0.1, 0.15, 0.2], ["0.04", "0.06", "0.1", "0.15", "0.2"])
    ax.set_yticks([], minor=True)
