"""Statements of the text that no figure shows: data set and architecture, skew, few samples, spread."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import spearmanr

from truecal import paper
from truecal._lib.types import FloatArray
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce._draw import (
    IMAGE_SET_COLOURS,
    label_of,
    legend_below,
    new_figure,
    size_axis,
    style_of,
    tidy,
)
from truecal.reproduce._studies import (
    IMAGE_SETS,
    KDE_WITHOUT_ROOT,
    SEVEN,
    image_set_of,
    paper_study,
    pick,
    quantile_grid,
    with_kde_without_root,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Scores above this count as near 1.
NEAR_ONE = 0.99


@part("Sections 4 to 7", "Statements about data sets, skew, few samples and spread")
def statements(settings: Settings) -> Outcome:
    """Check them on the study of Figure 4 and on the printed populations."""
    study = paper_study(settings)
    with_both = with_kde_without_root(study)
    names = list(dict.fromkeys(row["population"] for row in study))
    models = [_model(name) for name in names]
    shares = _between_image_sets(with_both)
    gains = _gains(study)
    spreads = _spreads(study)
    comparisons = [
        _data_set_over_architecture(shares),
        _curves_of_image_sets(names),
        *_skew(models),
        _few_samples(gains),
        _less_pronounced(gains),
        _spread(spreads),
    ]
    tables = {"": models, "between_image_sets": shares, "gains": gains, "spreads": spreads}
    return Outcome(tables, {"": _draw(models, shares, gains, spreads)}, comparisons)


def sums_of_squares(values: Iterable[float], groups: Iterable[str]) -> tuple[float, float]:
    """Return the sum of squares between groups, and the total.

    Examples
    --------
    >>> sums_of_squares([1.0, 1.0, 3.0, 3.0], "aabb"), sums_of_squares([1.0, 3.0, 1.0, 3.0], "aabb")
    ((4.0, 4.0), (0.0, 4.0))
    """
    value, group = np.asarray(list(values)), np.asarray(list(groups))
    fitted = np.array([value[group == name].mean() for name in group])
    return float(((fitted - value.mean()) ** 2).sum()), float(((value - value.mean()) ** 2).sum())


def _model(name: str) -> dict[str, Any]:
    """Return accuracy and skew of a printed population."""
    population = paper.population(name)
    score, _, accuracy = quantile_grid(population, 20_000)
    return {
        "population": name,
        "image_set": image_set_of(name),
        "accuracy": float(accuracy.mean()),
        "mean_score": float(score.mean()),
        "near_one": float(np.mean(score > NEAR_ONE)),
    }


def _between_image_sets(study: Records) -> Records:
    """Return how much of the variance of the bias lies between image sets, by estimator and n."""
    rows = []
    for name in (*SEVEN, KDE_WITHOUT_ROOT):
        for n in sorted({row["n"] for row in study}):
            mine = list(pick(study, estimator=name, n=n))
            sets = (image_set_of(row["population"]) for row in mine)
            between, total = sums_of_squares((row["bias"] for row in mine), sets)
            rows.append(
                {"estimator": name, "n": n, "between": between, "total": total, "share": between / total}
            )
    return rows


def _data_set_over_architecture(shares: Records) -> PaperComparison:
    share = sum(row["between"] for row in shares) / sum(row["total"] for row in shares)
    larger = sum(row["share"] > 0.5 for row in shares)
    return PaperComparison(
        "share of the variance of the bias that lies between image sets",
        "the data set has a greater influence than the architecture (Figure 4)",
        f"{share:.0%}; more than half in {larger} of {len(shares)} settings",
        agrees=share > 0.5,
    )


def _curves_of_image_sets(names: list[str]) -> PaperComparison:
    grid = np.linspace(0.01, 0.99, 99)
    curves = np.array([paper.population(name).curve(grid, 1 - grid) for name in names])
    sums = np.array([sums_of_squares(column, map(image_set_of, names)) for column in curves.T])
    share = float(sums[:, 0].sum() / sums[:, 1].sum())
    return PaperComparison(
        "share of the variance of the curves that lies between image sets",
        "the data set has a greater influence than the architecture (Figure 3)",
        f"{share:.0%} over scores from 0.01 to 0.99",
        agrees=share > 0.5,
        note="The printed curves. Few scores are below 0.5, where the curves are extrapolated.",
    )


def _skew(models: Records) -> list[PaperComparison]:
    mean = {
        name: float(np.mean([model["near_one"] for model in pick(models, image_set=name)]))
        for name in IMAGE_SETS
        if any(pick(models, image_set=name))
    }
    order = sorted(mean, key=lambda name: -mean[name])
    ranks = spearmanr([model["accuracy"] for model in models], [model["near_one"] for model in models])
    return [
        PaperComparison(
            f"share of scores above {NEAR_ONE}",
            "ImageNet is least skewed, CIFAR-10 most",
            ", ".join(f"{name} {mean[name]:.0%}" for name in order),
            agrees=order == [name for name in IMAGE_SETS if name in mean],
        ),
        PaperComparison(
            "rank correlation of skew and accuracy",
            "skew correlates with accuracy",
            f"{ranks.statistic:.2f} over {len(models)} populations (p = {ranks.pvalue:.2g})",
            agrees=bool(ranks.statistic > 0 and ranks.pvalue < 0.05),
            note="Skew is the share of scores above 0.99, accuracy the mean of the curve.",
        ),
    ]


def _gains(study: Records) -> Records:
    """Return by how much a change of the estimator reduces the absolute bias, by population and n."""
    bias = {(row["population"], row["n"], row["estimator"]): row for row in study}
    changes = [("em_bin", "em_sweep"), *((f"ew_{kind}", f"em_{kind}") for kind in ("bin", "debias", "sweep"))]
    return [
        {
            "population": name,
            "image_set": image_set_of(name),
            "n": n,
            "from": before,
            "to": after,
            "gain": abs(bias[name, n, before]["bias"]) - abs(bias[name, n, after]["bias"]),
            "gain_se": math.hypot(bias[name, n, before]["bias_se"], bias[name, n, after]["bias_se"]),
        }
        for name, n in dict.fromkeys((row["population"], row["n"]) for row in study)
        for before, after in changes
    ]


def _mean_gain(gains: Records, **values: Any) -> float:
    return 100 * float(np.mean([row["gain"] for row in pick(gains, **values)]))


def _few_samples(gains: Records) -> PaperComparison:
    sizes = sorted({row["n"] for row in gains})
    mean = {n: _mean_gain(gains, n=n, to="em_sweep", **{"from": "em_bin"}) for n in sizes}
    best = max(mean, key=lambda n: mean[n])
    return PaperComparison(
        "reduction of the absolute bias by EM sweep, from EM bin (%)",
        "helps the most at small sample sizes",
        ", ".join(f"{value:.2f} at {n:,}" for n, value in mean.items()),
        agrees=best == sizes[0],
    )


def _less_pronounced(gains: Records) -> PaperComparison:
    present = [name for name in IMAGE_SETS if any(pick(gains, image_set=name))]
    rows = [row for row in gains if row["from"].startswith("ew")]
    mean = {name: _mean_gain(rows, image_set=name) for name in present}
    return PaperComparison(
        "reduction of the absolute bias by equal mass (%)",
        "less pronounced on ImageNet",
        ", ".join(f"{name} {value:.2f}" for name, value in mean.items()),
        agrees=min(mean, key=lambda name: mean[name]) == "ImageNet",
    )


def _spreads(study: Records) -> Records:
    """Return the standard deviation of each estimator over the median of the seven, by population and n."""
    rows = []
    for name, n in dict.fromkeys((row["population"], row["n"]) for row in study):
        mine = {row["estimator"]: row["sd"] for row in pick(study, population=name, n=n)}
        middle = float(np.median(list(mine.values())))
        rows += [
            {"population": name, "n": n, "estimator": key, "sd": sd, "ratio": sd / middle}
            for key, sd in mine.items()
        ]
    return rows


def _spread(spreads: Records) -> PaperComparison:
    settings = dict.fromkeys((row["population"], row["n"]) for row in spreads)
    ratios: FloatArray = np.array(
        [
            max(values) / min(values)
            for name, n in settings
            if (values := [row["sd"] for row in pick(spreads, population=name, n=n)])
        ]
    )
    return PaperComparison(
        "largest over smallest standard deviation of the seven estimators, same population and n",
        "the variance is relatively insensitive to the estimation technique",
        f"{np.median(ratios):.2f} in the median, {ratios.max():.2f} at most",
        agrees=bool(np.median(ratios) < 1.5),
        note="'Agrees' means below 1.5 in the median: standard deviations, of which variances are the squares.",
    )


def _draw(models: Records, shares: Records, gains: Records, spreads: Records) -> Figure:
    figure, axes = new_figure(2, 2, size=(9.6, 7))
    (data_set, skew), (few, spread) = axes
    sizes = sorted({row["n"] for row in shares})
    for name in SEVEN:
        values = [100 * row["share"] for row in pick(shares, estimator=name)]
        data_set.plot(sizes, values, **{"markersize": 4, "linewidth": 1.3, **style_of(name)})
        ratio = [np.median([row["ratio"] for row in pick(spreads, estimator=name, n=n)]) for n in sizes]
        spread.plot(sizes, ratio, **{"markersize": 4, "linewidth": 1.3, **style_of(name)})
    for image_set, colour in IMAGE_SET_COLOURS.items():
        mine = list(pick(models, image_set=image_set))
        skew.scatter(
            [100 * row["near_one"] for row in mine],
            [100 * row["accuracy"] for row in mine],
            color=colour,
            label=image_set,
        )
        if any(pick(gains, image_set=image_set)):
            values = [
                _mean_gain(gains, image_set=image_set, n=n, to="em_sweep", **{"from": "em_bin"})
                for n in sizes
            ]
            few.plot(sizes, values, color=colour, marker="o", markersize=4, linewidth=1.3, label=image_set)
    for ax in (data_set, few, spread):
        size_axis(ax, sizes)
    data_set.set_ylim(0, 103)
    skew.legend(frameon=False, fontsize="small")
    few.legend(frameon=False, fontsize="small")
    tidy(
        data_set,
        x="number of samples",
        y="between image sets (%)",
        title="(a) variance of the bias over ten models",
    )
    tidy(skew, x=f"scores above {NEAR_ONE} (%)", y="accuracy (%)", title="(b) skew and accuracy")
    change = f"{label_of('em_bin')} to {label_of('em_sweep')}"
    tidy(few, x="number of samples", y="reduction of |bias| (%)", title=f"(c) {change}")
    tidy(spread, x="number of samples", y="sd over the median", title="(d) standard deviation")
    legend_below(figure, data_set, columns=7)
    return figure
