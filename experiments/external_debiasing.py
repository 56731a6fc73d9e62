"""Kumar, Liang, Ma (2019) and Gruber, Buettner (2022): what removing the bias of a binned estimate gains.

**Kumar et al.** recalibrate a network to 15 or 100 values with 3,000 rows, draw samples with replacement from the other
rows, and compare the squared plug-in error and its debiased version with the error of all those rows. Their networks'
outputs are not used here: the scores are those of another VGG network on CIFAR-10 (``tcal_cifar10_vgg19_bn.npz`` in the
data folder), or a sample of a population of the paper.

**Gruber and Buettner** simulate normal logits of 100 classes with random covariances and draw labels from their
softmax, so that the model is calibrated; multiplied by 1.5 or 2.5 it is not. Estimates of the top label's error are
drawn against the sample size. The true errors follow from the known probabilities.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax
from scipy.stats import invwishart

from experiments._comparison import experiment, hit_sets
from truecal import paper
from truecal._lib.numeric import keyed_generator
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.estimators._registry import DEFAULT_ESTIMATOR, get_estimator
from truecal.recalibration import PlattScaling
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings
from truecal.reproduce._draw import BLUE, RED, legend_below, line, new_figure, size_axis, style_of, tidy
from truecal.reproduce._studies import pick

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KUMAR_SCORES = "tcal_cifar10_vgg19_bn"
CALIBRATION_ROWS = 3000
#: Factors of the logits, with Gruber and Buettner's names.
MODELS = {"perfect": 1.0, "mediocre": 1.5, "bad": 2.5}
ESTIMATORS = ("ew_bin", "em_debias", "em_sweep", DEFAULT_ESTIMATOR)
SQUARED = {"plug-in": RED, "debiased": BLUE, DEFAULT_ESTIMATOR: style_of(DEFAULT_ESTIMATOR)["color"]}


@experiment(
    "Kumar et al. 2019, Gruber, Buettner 2022", "The gain of debiasing, by number of bins and of samples"
)
def main(settings: Settings) -> Outcome:
    """Repeat both experiments, with truecal's estimator beside theirs."""
    squared = [row for bins in settings.of((15, 100), (15, 100), (15,)) for row in _kumar(settings, bins)]
    simulated = _gruber(settings)
    comparisons = [*_compare_kumar(squared), *_compare_gruber(simulated)]
    return Outcome({"kumar": squared, "gruber": simulated}, {"": _draw(squared, simulated)}, comparisons)


# --- Kumar et al. -----------------------------------------------------------------------------------


def squared_errors(label: FloatArray, place: Any, value: FloatArray) -> tuple[float, float]:
    """Return the plug-in and the debiased squared l2 error of scores that take few values, one bin for each.

    Examples
    --------
    >>> squared_errors(np.array([0.0, 1.0, 1.0]), np.array([0, 0, 1]), np.array([0.25, 1.0]))
    (0.04166..., -0.125)
    """
    count = np.bincount(place, minlength=len(value))
    used = count > 0
    count, mean = count[used], (np.bincount(place, label, len(value))[used] / count[used])
    square = (mean - value[used]) ** 2
    variance = mean * (1 - mean) / np.maximum(count - 1, 1)
    share = count / count.sum()
    return float(share @ square), float(share @ (square - variance))


def _kumar(settings: Settings, bins: int) -> Records:
    sets = hit_sets(settings)
    if KUMAR_SCORES in sets:
        label, score = sets[KUMAR_SCORES]
        order = keyed_generator(settings.seed, 5).permutation(len(label))
        label, score = label[order], score[order]
    else:
        drawn = paper.population("resnet_wide32_c10").sample(10_000, rng=settings.seed)
        label, score = (array.astype(np.float64) for array in drawn)
    score = np.clip(score, 1e-12, 1 - 1e-12)
    fit = slice(0, CALIBRATION_ROWS)
    platt = np.asarray(
        PlattScaling(targets="labels").fit(score[fit], label[fit].astype(int)).transform(score)
    )
    edges = np.quantile(platt[fit], np.arange(1, bins) / bins)
    cell = np.searchsorted(edges, platt)
    value = np.bincount(cell[fit], platt[fit], bins) / np.maximum(np.bincount(cell[fit], minlength=bins), 1)
    cell, label = cell[CALIBRATION_ROWS:], label[CALIBRATION_ROWS:]
    truth = squared_errors(label, cell, value)[
        0
    ]  # samples are drawn from these rows, so that this is the truth
    spec = get_estimator(DEFAULT_ESTIMATOR)
    rows: Records = []
    for n in settings.of(range(2000, 8000, 1000), (2000, 4000, 7000), (500, 1000)):
        errors: dict[str, list[float]] = {name: [] for name in SQUARED}
        for repetition in range(settings.of(400, 100, 4)):
            chosen = keyed_generator(settings.seed, 6, bins, n, repetition).integers(0, len(label), n)
            estimates = squared_errors(label[chosen], cell[chosen], value)
            sample = Sample.from_predictions(label[chosen].astype(int), value[cell[chosen]])
            own = spec(sample, norm=2).value ** 2
            for name, found in zip(SQUARED, (*estimates, own), strict=True):
                errors[name].append((found - truth) ** 2)
        rows += [
            {
                "bins": bins,
                "n": n,
                "estimator": name,
                "truth": truth,
                "mse": float(np.mean(values)),
                "mse_se": float(np.std(values) / math.sqrt(len(values))),
                "repeats": len(values),
            }
            for name, values in errors.items()
        ]
    return rows


def _compare_kumar(rows: Records) -> list[PaperComparison]:
    found = []
    for bins in sorted({row["bins"] for row in rows}):
        mse = {
            name: float(np.mean([row["mse"] for row in pick(rows, bins=bins, estimator=name)]))
            for name in SQUARED
        }
        worst = max(row["mse_se"] / row["mse"] for row in pick(rows, bins=bins))
        found.append(
            PaperComparison(
                f"mean square error of the squared error, divided by the plug-in's, {bins} values (Kumar et al.)",
                "debiasing helps, the more the more bins",
                f"debiased {mse['debiased'] / mse['plug-in']:.2f}, "
                f"multiscale {mse[DEFAULT_ESTIMATOR] / mse['plug-in']:.2f}",
                agrees=bool(mse["debiased"] < mse["plug-in"]),
                error=worst,
                note="Not their networks, but another one on the same images.",
            )
        )
    return found


# --- Gruber and Buettner ----------------------------------------------------------------------------


def _pool(settings: Settings) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return (score, probability that the top label is right) of many rows, for each model."""
    classes = settings.of(100, 100, 8)
    rng = keyed_generator(settings.seed, 7)
    scatter = invwishart(df=classes, scale=100 * np.eye(classes))
    covariance = np.asarray(scatter.rvs(classes, random_state=rng))
    rows = settings.of(4000, 1000, 200)
    parts: dict[str, list[tuple[FloatArray, FloatArray]]] = {name: [] for name in MODELS}
    for k in range(classes):
        root = np.linalg.cholesky(covariance[k])
        logits = rng.standard_normal((rows, classes)) @ root.T
        logits[:, k] += 1
        chance = softmax(logits, axis=1).max(axis=1)  # a factor does not change which label is the top one
        for name, factor in MODELS.items():
            parts[name].append((softmax(factor * logits, axis=1).max(axis=1), chance))
    order = rng.permutation(rows * classes)
    return {
        name: tuple(np.concatenate(arrays)[order] for arrays in zip(*pieces, strict=True))  # type: ignore[misc]
        for name, pieces in parts.items()
    }


def known_l1_error(score: FloatArray, probability: FloatArray, n_bins: int = 200) -> float:
    """Return the l1 error of scores whose rows have known probabilities of the event, over bins of equal mass.

    Examples
    --------
    >>> score = np.linspace(0, 1, 100_000)
    >>> round(known_l1_error(score, score**2), 4)  # 1/6
    0.1667
    """
    gaps = np.array_split((score - probability)[np.argsort(score, kind="stable")], n_bins)
    return float(sum(len(gap) * abs(gap.mean()) for gap in gaps) / len(score))


def _gruber(settings: Settings) -> Records:
    rows: Records = []
    sizes = [round(n) for n in np.geomspace(100, 10_000, 10)][:: settings.of(1, 3, 5)]
    specs = {key: get_estimator(key) for key in ESTIMATORS}
    for name, (score, chance) in _pool(settings).items():
        truth = known_l1_error(score, chance)
        for n in sizes:
            values: dict[str, list[float]] = {key: [] for key in ESTIMATORS}
            for repetition in range(settings.of(200, 40, 3)):
                rng = keyed_generator(settings.seed, 8, n, repetition)
                chosen = rng.integers(0, len(score), n)
                label = (rng.random(n) < chance[chosen]).astype(int)
                sample = Sample.from_predictions(label, score[chosen])
                for key, spec in specs.items():
                    values[key].append(spec(sample, norm=1).value)
            rows += [
                {
                    "model": name,
                    "n": n,
                    "estimator": key,
                    "true_error": truth,
                    "mean": float(np.mean(found)),
                    "mean_se": float(np.std(found) / math.sqrt(len(found))),
                    "repeats": len(found),
                }
                for key, found in values.items()
            ]
    return rows


def _compare_gruber(rows: Records) -> list[PaperComparison]:
    found = []
    n = min(row["n"] for row in rows)
    for name in MODELS:
        mine = {row["estimator"]: row for row in pick(rows, model=name, n=n)}
        truth = mine["ew_bin"]["true_error"]
        found.append(
            PaperComparison(
                f"mean l1 estimate for the {name} model at n = {n} (%), true error {100 * truth:.1f}",
                "the binned estimate is too large, most of all for a calibrated model",
                ", ".join(f"{key} {100 * row['mean']:.1f}" for key, row in mine.items()),
                agrees=bool(mine["ew_bin"]["mean"] > truth),
                error=100 * max(row["mean_se"] for row in mine.values()),
                note="Gruber and Buettner show the binned estimate without the truth.",
            )
        )
    return found


def _draw(squared: Records, simulated: Records) -> Figure:
    counts = sorted({row["bins"] for row in squared})
    figure, axes = new_figure(1, len(counts) + len(MODELS), size=(3.4 * (len(counts) + len(MODELS)), 3.9))
    for ax, bins in zip(axes[0], counts, strict=False):
        for name, colour in SQUARED.items():
            mine = list(pick(squared, bins=bins, estimator=name))
            x, y = [row["n"] for row in mine], [1e8 * row["mse"] for row in mine]
            line(ax, x, y, [1e8 * row["mse_se"] for row in mine], color=colour, marker="o", label=name)
        ax.set_ylim(bottom=0)
        y_label = "mean square error of\nthe squared error (points⁴)" if bins == counts[0] else ""
        tidy(ax, x="number of samples", y=y_label, title=f"Kumar et al.: {bins} values")
    axes[0, 0].legend(frameon=False, fontsize="small")
    sizes = sorted({row["n"] for row in simulated})
    for ax, name in zip(axes[0, len(counts) :], MODELS, strict=True):
        for key in ESTIMATORS:
            mine = list(pick(simulated, model=name, estimator=key))
            x, y = [row["n"] for row in mine], [100 * row["mean"] for row in mine]
            line(ax, x, y, [100 * row["mean_se"] for row in mine], **style_of(key))
        ax.axhline(100 * mine[0]["true_error"], color="#999999", linewidth=1.2)
        size_axis(ax, sizes[::3])
        ax.set_ylim(bottom=0)
        y_label = "mean l1 estimate (%); grey: truth" if name == "perfect" else ""
        tidy(ax, x="number of samples", y=y_label, title=f"Gruber, Buettner: {name}")
    legend_below(figure, axes[0, -1], columns=4)
    return figure
