"""Table 3: the twelve calibration curves of each data set, and the one that AIC selects."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from truecal import paper
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.inference.resample import bootstrap
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce._data import PrintedGLM, drawn_sets, fit_sample, paper_sets, real_fits
from truecal.reproduce._data import printed_table3 as printed
from truecal.reproduce._draw import BLACK, BLUE, legend_below, new_figure, tidy
from truecal.reproduce._studies import pick
from truecal.simulation import GLMCurve
from truecal.simulation._likelihood import PAIRS, TERMS, fit_glms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Number of resamples per model in the published program.
RESAMPLES = 10
MODELS = [
    "_".join([*pair, *(["b0"] * has_b0), *(["b1"] * has_b1)]) for pair in PAIRS for has_b0, has_b1 in TERMS
]
#: Heights of the models in the figure.
HEIGHT = np.arange(len(MODELS))[::-1]


@part("Table 3", "Coefficients and AIC of the twelve calibration curves")
def table3(settings: Settings) -> Outcome:
    """Fit the curves to real data sets, and to samples with known truth, where AIC should select the true curve."""
    rows: Records = []
    comparisons: list[PaperComparison] = []
    for number, (name, sample) in enumerate(paper_sets(settings).items()):
        spread = resampled_aic(sample, settings.of(200, 20, 3), settings.seed + number)
        rows += _rows(settings, name, spread)
        comparisons += _compare(name, [row for row in rows if row["set"] == name])
    if rows:
        comparisons.append(_constant_models())
    known = known_truth(settings)
    comparisons.append(_recovered(known))
    tables = {"known_truth": known, **({"": rows} if rows else {})}
    return Outcome(tables, {"": _draw(rows, known)}, comparisons)


def resampled_aic(sample: Sample, resamples: int, seed: int) -> FloatArray:
    """Return the standard deviation of each model's AIC over bootstrap resamples, in the order of `MODELS`."""
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(resamples):
        drawn = bootstrap(sample, rng)
        inside = (drawn.score > 0) & (drawn.score < 1)
        fits = fit_glms(drawn.score[inside], drawn.count[inside], drawn.positives[inside])
        values.append([model.aic for model in fits])
    return np.asarray(np.std(values, axis=0, ddof=1))


def _rows(settings: Settings, name: str, spread: FloatArray) -> Records:
    theirs = {model.name: model for model in printed()[name]}
    ours = {row["name"]: row for row in real_fits(settings)[name].glm_table}
    return [
        {
            "set": name,
            "model": model,
            **_beside("b0", ours[model], theirs[model]),
            **_beside("b1", ours[model], theirs[model]),
            **_beside("aic", ours[model], theirs[model]),
            "aic_noise_of_printed": sd / math.sqrt(RESAMPLES),
            **_beside("selected", ours[model], theirs[model]),
        }
        for model, sd in zip(MODELS, spread, strict=True)
    ]


def _beside(key: str, ours: Mapping[str, Any], theirs: PrintedGLM) -> dict[str, Any]:
    return {key: ours[key], f"{key}_printed": getattr(theirs, key)}


def _compare(name: str, rows: Records) -> list[PaperComparison]:
    """Compare the coefficients of the models that fit, and the selected model."""
    steep = [row for row in rows if not row["model"].startswith("log_") and row["b1"] is not None]
    off = {
        key: max(abs(row[key] - row[f"{key}_printed"]) for row in steep if row[key] is not None)
        for key in ("b0", "b1")
    }
    ours, theirs = (next(row for row in rows if row[key]) for key in ("selected", "selected_printed"))
    gap = np.ptp(sorted(row["aic_printed"] for row in rows)[:2])
    noise = float(np.median([row["aic_noise_of_printed"] for row in rows]))
    note = (
        f"Printed AICs are means over separate resamples for each model, with a standard deviation of about "
        f"{noise:.0f}; the first two are printed {gap:.0f} apart. On the same rows the AIC of the printed choice is "
        f"{theirs['aic'] - ours['aic']:.0f} above the best."
    )
    return [
        PaperComparison(
            f"coefficients of the curves of {name} with a slope and without a log link",
            "printed",
            f"within {off['b0']:.2f} (b0) and {off['b1']:.2f} (b1) of that",
            agrees=off["b0"] <= 0.075 and off["b1"] <= 0.035,
        ),
        PaperComparison(
            f"curve selected for {name}",
            theirs["model"],
            ours["model"],
            agrees=ours is theirs,
            note="" if ours is theirs else note,
        ),
    ]


def _constant_models() -> PaperComparison:
    """Compare the printed AICs of the models with b0 alone, which have the same likelihood."""
    spread = {name: [model.aic for model in models if model.b1 is None] for name, models in printed().items()}
    widest = max(spread, key=lambda name: np.ptp(spread[name]))
    return PaperComparison(
        "AIC of the four models with b0 alone, which are the same model",
        f"up to {np.ptp(spread[widest]):.0f} apart ({widest})",
        "equal",
        agrees=False,
        note="Each printed AIC uses separate resamples.",
    )


def known_truth(settings: Settings) -> Records:
    """Return for a sample of each population how far the AIC of the true curve is above the smallest."""
    rows: Records = []
    for name, sample in drawn_sets(settings).items():
        curve = paper.population(name).curve
        assert isinstance(curve, GLMCurve)
        terms = ["b0"] * (curve.b0 is not None) + ["b1"] * (curve.b1 is not None)
        true_model = "_".join([curve.link, curve.transform, *terms])
        fitted = fit_sample(sample)
        aic = {row["name"]: row["aic"] for row in fitted.glm_table}
        rows += [
            {
                "set": name,
                "model": model,
                "true_model": true_model,
                "selected": fitted.selected["name"],
                "aic_above_best": aic[model] - min(aic.values()),
            }
            for model in MODELS
        ]
    return rows


def _recovered(known: Records) -> PaperComparison:
    truths = [row for row in known if row["model"] == row["true_model"]]
    right = sum(row["selected"] == row["true_model"] for row in truths)
    near = sum(row["aic_above_best"] < 3 for row in truths)
    return PaperComparison(
        "AIC selects the true curve, on samples with known truth",
        "not asked",
        f"{right} of {len(truths)}; within 3 of the smallest AIC in {near}",
        agrees=None,
        note="Samples of 10,000 from each printed population; all twelve models use the same rows.",
    )


def _draw(rows: Records, known: Records) -> Figure:
    real = list(dict.fromkeys(row["set"] for row in rows))
    figure, axes = new_figure(1, len(real) + 1, size=(3.2 + 2.2 * (len(real) + 1), 4.6), sharey=True)
    for ax, name in zip(axes[0], real, strict=False):
        _draw_real(ax, {row["model"]: row for row in pick(rows, set=name)})
        _aic_axis(ax, name)
    _draw_known(axes[0, -1], known)
    _aic_axis(axes[0, -1], "samples of all ten\n(star: the true curve)")
    axes[0, 0].set_yticks(HEIGHT, MODELS)
    axes[0, 0].tick_params(axis="y", labelsize="small")
    if real:
        legend_below(figure, axes[0, 0], columns=2)
    return figure


def _draw_real(ax: Axes, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw the AIC of each model above the smallest, as printed and on the same rows for all."""
    for key, colour, marker, shift in (("aic_printed", BLACK, "o", 0.13), ("aic", BLUE, "D", -0.13)):
        printed_here = key == "aic_printed"
        best = min(row[key] for row in rows.values())
        error = [2 * rows[model]["aic_noise_of_printed"] if printed_here else 0 for model in MODELS]
        style: dict[str, Any] = {"fmt": marker, "color": colour, "markersize": 4, "elinewidth": 0.8}
        style["markerfacecolor"] = "none" if printed_here else colour
        style["label"] = "printed, ± 2 se of its resampling" if printed_here else "same rows for all"
        ax.errorbar([rows[model][key] - best for model in MODELS], HEIGHT + shift, xerr=error, **style)


def _draw_known(ax: Axes, rows: Records) -> None:
    """Draw the AIC of each model above the smallest, with a star for the true one."""
    star: dict[str, Any] = {"marker": "*", "markersize": 9, "color": BLUE, "zorder": 3}
    dot: dict[str, Any] = {"marker": "o", "markersize": 3, "color": "#bbbbbb", "zorder": 2}
    for row in rows:
        style = star if row["model"] == row["true_model"] else dot
        ax.plot(row["aic_above_best"], HEIGHT[MODELS.index(row["model"])], **style)


def _aic_axis(ax: Axes, title: str) -> None:
    ax.set_xscale("symlog", linthresh=10)
    ax.set_xticks([0, 10, 100, 1000], ["0", "10", "100", "1000"])
    ax.set_xticks([], minor=True)
    ax.set_xlim(-25, 6000)
    tidy(ax, x="AIC minus the smallest", y="", title=title)
