"""What the paper's main study shows: Figures 4 and 6, statements of the text, and the t-test of section 7.1.

Populations are fitted to real models in Figure 4 and perfectly calibrated, with a true error of 0, in Figure 6.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr, ttest_rel

from truecal import paper
from truecal._lib.types import FloatArray
from truecal.reproduce import _draw as draw
from truecal.reproduce import _studies as studies
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, compare_with_paper, part
from truecal.reproduce._studies import SEVEN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# --- Figures 4 and 6: bias against sample size, seven estimators, three image sets ------------------------


@part("Figure 4", "Bias against sample size on populations fitted to real models")
def fig4(settings: Settings) -> Outcome:
    """Average the bias over the architectures of each image set."""
    rows = studies.with_kde_without_root(studies.paper_study(settings))
    means = bias_by_image_set(rows)
    size = _sizes_of_bias(rows)
    order = sorted(SEVEN, key=size.__getitem__)
    comparisons = [
        equal_mass_against_equal_width(means),
        PaperComparison(
            "estimator with the smallest mean absolute bias",
            "EM sweep, then EM debias",
            ", ".join(map(draw.label_of, order[:3])),
            agrees=order[:2] == ["em_sweep", "em_debias"],
        ),
        PaperComparison(
            "KDE has by far the largest bias",
            "stated",
            f"{size['kde']:.2f}% with its root, {size[studies.KDE_WITHOUT_ROOT]:.2f}% without; "
            f"EW sweep {size['ew_sweep']:.2f}%",
            agrees=order[-1] == "kde",
            note="Only the integral without its root, which the published KDE code returns, has such a bias. It "
            "estimates the square of the error, and is compared with the error itself.",
        ),
    ]
    figure = _draw(means, "bias (%)", SEVEN, ("kde", studies.KDE_WITHOUT_ROOT))
    return Outcome({"": means, "populations": rows}, {"": figure}, comparisons)


def _sizes_of_bias(rows: Records) -> dict[str, float]:
    """Return the mean absolute bias of each estimator, in percent."""
    return {
        name: 100 * studies.mean_absolute_bias(rows, name)[0] for name in (*SEVEN, studies.KDE_WITHOUT_ROOT)
    }


def bias_by_image_set(rows: Records) -> Records:
    """Return the mean bias over architectures and its error, by image set, size and estimator."""
    groups: dict[tuple[str, int, str], Records] = {}
    for row in rows:
        key = studies.image_set_of(row["population"]), row["n"], row["estimator"]
        groups.setdefault(key, []).append(row)
    return [
        {
            "image_set": image_set,
            "n": n,
            "estimator": estimator,
            "bias": float(np.mean([row["bias"] for row in group])),
            "bias_se": math.hypot(*(row["bias_se"] for row in group)) / len(group),
        }
        for (image_set, n, estimator), group in groups.items()
    ]


def equal_mass_against_equal_width(means: Records) -> PaperComparison:
    """Count the settings in which equal mass has a significantly smaller bias, and a significantly larger one."""
    better, worse = 0, []
    settings = [row for row in means if row["estimator"] in ("ew_bin", "ew_debias", "ew_sweep")]
    for wide in settings:
        image_set, n, binning = wide["image_set"], wide["n"], wide["estimator"].removeprefix("ew_")
        mass = next(studies.pick(means, image_set=image_set, n=n, estimator=f"em_{binning}"))
        gain, error = abs(wide["bias"]) - abs(mass["bias"]), math.hypot(wide["bias_se"], mass["bias_se"])
        if gain > 2 * error:
            better += 1
        elif gain < -2 * error:
            worse.append(f"{binning} at n = {n} on {image_set}")
    return PaperComparison(
        "settings in which EM has the smaller bias",
        "consistently",
        f"{better} of {len(settings)}, larger in {len(worse)}, the rest within 2 se",
        agrees=not worse,
        note=f"EW is less biased for {', '.join(worse)}: its bias changes sign with n and is near 0 there."
        if worse
        else "",
    )


def draw_bias(ax: Axes, means: Records, image_set: str, estimators: tuple[str, ...]) -> None:
    """Draw bias in percent against n."""
    for name in estimators:
        mine = list(studies.pick(means, image_set=image_set, estimator=name))
        draw.line_of(ax, mine, "n", "bias", **{"markersize": 4, **draw.style_of(name)})
    draw.zero_line(ax)
    draw.size_axis(ax, studies.sizes_in(means))


def _draw(means: Records, y: str, *groups: tuple[str, ...]) -> Figure:
    """Draw a column for each image set, and a row for each group of estimators; the first row is the main one."""
    lines = len(groups)
    figure, axes = draw.new_figure(
        lines, 3, size=(11, 2.4 + 2 * lines), sharex=True, sharey="row", height_ratios=[2.6, 1][:lines]
    )
    for column, image_set in enumerate(studies.IMAGE_SETS):
        for ax, estimators in zip(axes[:, column], groups, strict=True):
            draw_bias(ax, means, image_set, estimators)
            draw.tidy(ax, x="", y="" if column else y)
        axes[0, column].set_title(image_set, fontsize="medium", loc="left")
        axes[-1, column].set_xlabel("number of samples")
    draw.legend_below(figure, *axes[:, 0], columns=8)
    return figure


@part("Figure 6", "Bias against sample size when the model is perfectly calibrated")
def fig6(settings: Settings) -> Outcome:
    """Average the bias over the architectures of each image set."""
    rows = studies.with_kde_without_root(studies.paper_study(settings, calibrated=True))
    means = bias_by_image_set(rows)
    size = _sizes_of_bias(rows)
    binned = sorted(SEVEN[:6], key=size.__getitem__)
    comparisons = [
        PaperComparison(
            "binned estimator with the smallest bias",
            "EM debias",
            draw.label_of(binned[0]),
            agrees=binned[0] == "em_debias",
        ),
        PaperComparison(
            "estimator with the smallest bias",
            "KDE",
            f"EM debias {size['em_debias']:.2f}%; KDE {size['kde']:.2f}% with its root, "
            f"{size[studies.KDE_WITHOUT_ROOT]:.2f}% without",
            agrees=min(SEVEN, key=size.__getitem__) == "kde",
            note="KDE without its root is the square of a small number and therefore always near 0. With the root, "
            "as in the definition of the true error, it is among the most biased.",
        ),
    ]
    figure = _draw(means, "bias (%), true error 0", (*SEVEN, studies.KDE_WITHOUT_ROOT))
    return Outcome({"": means, "populations": rows}, {"": figure}, comparisons)


# --- Statements of the text that no figure shows: data set and architecture, skew, few samples, spread -----

#: Scores above this count as near 1.
NEAR_ONE = 0.99


@part("Sections 4 to 7", "Statements about data sets, skew, few samples and spread")
def statements(settings: Settings) -> Outcome:
    """Check them on the study of Figure 4 and on the printed populations."""
    study = studies.paper_study(settings)
    with_both = studies.with_kde_without_root(study)
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
    return Outcome(tables, {"": _draw_statements(models, shares, gains, spreads)}, comparisons)


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
    score, _, accuracy = studies.quantile_grid(population, 20_000)
    return {
        "population": name,
        "image_set": studies.image_set_of(name),
        "accuracy": float(accuracy.mean()),
        "mean_score": float(score.mean()),
        "near_one": float(np.mean(score > NEAR_ONE)),
    }


def _between_image_sets(study: Records) -> Records:
    """Return how much of the variance of the bias lies between image sets, by estimator and n."""
    rows = []
    for name in (*SEVEN, studies.KDE_WITHOUT_ROOT):
        for n in studies.sizes_in(study):
            mine = list(studies.pick(study, estimator=name, n=n))
            sets = (studies.image_set_of(row["population"]) for row in mine)
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
    sums = np.array([sums_of_squares(column, map(studies.image_set_of, names)) for column in curves.T])
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
        name: float(np.mean([model["near_one"] for model in studies.pick(models, image_set=name)]))
        for name in studies.IMAGE_SETS
    }
    order = sorted(mean, key=lambda name: -mean[name])
    ranks = spearmanr([model["accuracy"] for model in models], [model["near_one"] for model in models])
    return [
        PaperComparison(
            f"share of scores above {NEAR_ONE}",
            "ImageNet is least skewed, CIFAR-10 most",
            ", ".join(f"{name} {mean[name]:.0%}" for name in order),
            agrees=order == list(studies.IMAGE_SETS),
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
            "image_set": studies.image_set_of(name),
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
    return 100 * float(np.mean([row["gain"] for row in studies.pick(gains, **values)]))


def _few_samples(gains: Records) -> PaperComparison:
    sizes = studies.sizes_in(gains)
    mean = {n: _mean_gain(gains, n=n, to="em_sweep", **{"from": "em_bin"}) for n in sizes}
    best = max(mean, key=lambda n: mean[n])
    return PaperComparison(
        "reduction of the absolute bias by EM sweep, from EM bin (%)",
        "helps the most at small sample sizes",
        ", ".join(f"{value:.2f} at {n:,}" for n, value in mean.items()),
        agrees=best == sizes[0],
    )


def _less_pronounced(gains: Records) -> PaperComparison:
    rows = [row for row in gains if row["from"].startswith("ew")]
    mean = {name: _mean_gain(rows, image_set=name) for name in studies.IMAGE_SETS}
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
        mine = {row["estimator"]: row["sd"] for row in studies.pick(study, population=name, n=n)}
        middle = float(np.median(list(mine.values())))
        rows += [
            {"population": name, "n": n, "estimator": key, "sd": sd, "ratio": sd / middle}
            for key, sd in mine.items()
        ]
    return rows


def _spread(spreads: Records) -> PaperComparison:
    settings = dict.fromkeys((row["population"], row["n"]) for row in spreads)
    sds = [[row["sd"] for row in studies.pick(spreads, population=name, n=n)] for name, n in settings]
    ratios: FloatArray = np.array([max(values) / min(values) for values in sds])
    return PaperComparison(
        "largest over smallest standard deviation of the seven estimators, same population and n",
        "the variance is relatively insensitive to the estimation technique",
        f"{np.median(ratios):.2f} in the median, {ratios.max():.2f} at most",
        agrees=bool(np.median(ratios) < 1.5),
        note="'Agrees' means below 1.5 in the median: standard deviations, of which variances are the squares.",
    )


def _draw_statements(models: Records, shares: Records, gains: Records, spreads: Records) -> Figure:
    figure, axes = draw.new_figure(2, 2, size=(9.6, 7))
    (data_set, skew), (few, spread) = axes
    sizes, line = studies.sizes_in(shares), {"markersize": 4, "linewidth": 1.3}
    for name in SEVEN:
        values = [100 * row["share"] for row in studies.pick(shares, estimator=name)]
        data_set.plot(sizes, values, **{**line, **draw.style_of(name)})
        ratio = [
            np.median([row["ratio"] for row in studies.pick(spreads, estimator=name, n=n)]) for n in sizes
        ]
        spread.plot(sizes, ratio, **{**line, **draw.style_of(name)})
    for image_set, colour in draw.IMAGE_SET_COLOURS.items():
        mine = list(studies.pick(models, image_set=image_set))
        x, y = ([100 * row[key] for row in mine] for key in ("near_one", "accuracy"))
        skew.scatter(x, y, color=colour, label=image_set)
        values = [
            _mean_gain(gains, image_set=image_set, n=n, to="em_sweep", **{"from": "em_bin"}) for n in sizes
        ]
        few.plot(sizes, values, color=colour, marker="o", label=image_set, **line)
    for ax in (data_set, few, spread):
        draw.size_axis(ax, sizes)
    data_set.set_ylim(0, 103)
    draw.legend(skew)
    draw.legend(few)
    title = "(a) variance of the bias over ten models"
    draw.tidy(data_set, x="number of samples", y="between image sets (%)", title=title)
    draw.tidy(skew, x=f"scores above {NEAR_ONE} (%)", y="accuracy (%)", title="(b) skew and accuracy")
    change = f"{draw.label_of('em_bin')} to {draw.label_of('em_sweep')}"
    draw.tidy(few, x="number of samples", y="reduction of |bias| (%)", title=f"(c) {change}")
    draw.tidy(spread, x="number of samples", y="sd over the median", title="(d) standard deviation")
    draw.legend_below(figure, data_set, columns=7)
    return figure


# --- The paired t-test of section 7.1: whether the bias of EM sweep is smaller than that of EM debias -------

PAIR = ("em_debias", "em_sweep")
#: Mean absolute bias (%) of the two, and t, in the paper.
PRINTED = (0.504, 0.347, 5.10)
#: Standard errors of the printed ones, from resampling the 1,000 samples that all settings share.
PRINTED_ERRORS = (0.022, 0.017, 0.23)
QUANTITIES = ("mean absolute bias of EM debias (%)", "mean absolute bias of EM sweep (%)", "paired t")


@part("Section 7.1", "Paired t-test on absolute bias, EM debias against EM sweep")
def ttest(settings: Settings) -> Outcome:
    """Compare the absolute bias over populations and sizes, in percent."""
    study = studies.paper_study(settings)
    by_estimator = [list(studies.pick(study, estimator=name)) for name in PAIR]
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
    return Outcome({"": table}, {"": _draw_ttest(population, bias, error, ours[2])}, comparisons)


_NOTE = (
    "The paper's 70 settings share the same 1,000 samples, so that their errors do not average out: the standard "
    "error of its numbers is 0.02, not the 0.007 of independent samples."
)


def summary(bias: FloatArray) -> tuple[float, float, float]:
    """Return the mean absolute bias of both estimators, and the paired t."""
    size = np.abs(bias)
    return float(size[0].mean()), float(size[1].mean()), float(ttest_rel(*size).statistic)


def _monte_carlo(bias: FloatArray, error: FloatArray, seed: int) -> FloatArray:
    """Return the Monte Carlo standard errors of the summary."""
    noise = np.random.default_rng(seed).standard_normal((400, *bias.shape))
    return np.asarray(np.std([summary(bias + error * drawn) for drawn in noise], axis=0))


def _with_published_draws(settings: Settings) -> list[PaperComparison]:
    """Repeat the test on the samples of the published program, which should reproduce its numbers."""
    if settings.effort == "quick":
        return []  # scores are drawn one at a time, which takes minutes
    names = settings.of(paper.NAMES, paper.NAMES, paper.NAMES[:2])
    sizes = settings.of((200, 400, 800, 1600, 3200, 6400, 12800), (200,), (100, 200))
    values = studies.published_estimates(settings, names, sizes, PAIR, settings.of(1000, 10, 3))
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


def _draw_ttest(population: NDArray[Any], bias: FloatArray, error: FloatArray, t: float) -> Figure:
    figure, axes = draw.new_figure(1, 1, size=(5.4, 5))
    ax = axes[0, 0]
    size = np.abs(bias)
    image_set = np.array([studies.image_set_of(name) for name in population])
    for name, colour in draw.IMAGE_SET_COLOURS.items():
        chosen = image_set == name
        bars: dict[str, Any] = {"xerr": error[0, chosen], "yerr": error[1, chosen], "elinewidth": 0.7}
        draw.points(ax, size[0, chosen], size[1, chosen], colour, label=name, markersize=4, alpha=0.8, **bars)
    top = 1.05 * float(size.max())
    ax.plot([0, top], [0, top], color=draw.BLACK, linewidth=0.9, linestyle=":")
    ax.text(0.97 * top, 1.0 * top, "EM sweep worse", ha="right", va="bottom", fontsize="small")
    ax.text(0.97 * top, 0.66 * top, "EM debias worse", ha="right", fontsize="small")
    ax.set(xlim=(0, top), ylim=(0, 1.08 * top))
    draw.legend(ax, loc="upper left", title=f"t = {t:.2f}; bars: 1 se")
    x, y = "absolute bias of EM debias (%)", "absolute bias of EM sweep (%)"
    draw.tidy(ax, x=x, y=y, title="Each point: one population at one size")
    return figure
