"""Section 2: whether the calibration curves of real models are monotone.

The paper fits twelve curves to each model and chooses one by AIC. All twelve are monotone by construction, so the fits
cannot show that a curve is not. Here the observed rates of equal-mass bins are compared with their best monotone fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import isotonic_regression

from truecal import datasets
from truecal._lib.types import FloatArray
from truecal.data import as_sample
from truecal.data.sample import Sample
from truecal.estimators._binning import EqualMass, partition, summarize_bins
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce._data import drawn_sets, top_label_sets
from truecal.reproduce._draw import BLUE, GREY, RED, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_BINS, LEVEL = 20, 0.05


@part("Section 2", "Are calibration curves monotone?")
def monotone(settings: Settings) -> Outcome:
    """Test every real set at hand, the bundled ones too, and samples of the paper's monotone populations."""
    real = {f"{name} (bundled)": _bundled(name) for name in datasets.NAMES}
    real |= top_label_sets(settings)
    rows = [
        {"set": name, "kind": kind, **test_monotone(sample, settings.of(2000, 300, 20), settings.seed)}
        for kind, sets in (("real", real), ("drawn", drawn_sets(settings)))
        for name, sample in sets.items()
    ]
    return Outcome({"": rows}, {"": _draw(rows)}, _compare(rows))


def _bundled(name: str) -> Sample:
    data = datasets.load(name)
    return as_sample(data.y_true, data.y_proba, labels=data.labels)


def test_monotone(sample: Sample, repeats: int, seed: int) -> dict[str, Any]:
    r"""Test that the observed rates of bins are those of a nondecreasing curve.

    .. math:: T = \sum_k n_k (\bar y_k - \hat\mu_k)^2,

    where :math:`\hat\mu` is the isotonic fit. The p-value is that of samples with rates :math:`\hat\mu_k`.
    """
    bins = summarize_bins(sample, partition(EqualMass(sample), N_BINS)).to_rows()
    count = np.array([row["count"] for row in bins])
    rate = np.array([row["mean_label"] for row in bins])
    fit = _fit(rate, count)
    drawn = np.random.default_rng(seed).binomial(count.astype(int), fit, size=(repeats, len(fit))) / count
    extreme = sum(_distance(row, count) >= _distance(rate, count) - 1e-12 for row in drawn)
    return {
        "rows": int(count.sum()),
        "bins": len(bins),
        "falls": int((np.diff(rate) < 0).sum()),
        "largest_fall": float(max(0.0, *(-np.diff(rate)))) if len(rate) > 1 else 0.0,
        "statistic": _distance(rate, count),
        "p_value": (1 + extreme) / (1 + repeats),
    }


def _fit(rate: FloatArray, count: FloatArray) -> FloatArray:
    return np.asarray(isotonic_regression(rate, weights=count).x).clip(0, 1)


def _distance(rate: FloatArray, count: FloatArray) -> float:
    return float(count @ (rate - _fit(rate, count)) ** 2)


def _compare(rows: Records) -> list[PaperComparison]:
    rejected = {
        kind: [row for row in rows if row["kind"] == kind and row["p_value"] <= LEVEL]
        for kind in ("real", "drawn")
    }
    total = {kind: sum(row["kind"] == kind for row in rows) for kind in rejected}
    names = ", ".join(f"{row['set']} (p = {row['p_value']:.3f})" for row in rejected["real"])
    return [
        PaperComparison(
            "real sets whose calibration curve is significantly not monotone (5%)",
            "extensive empirical evidence that curves are monotone",
            f"{len(rejected['real'])} of {total['real']}; on samples of the paper's monotone populations "
            f"{len(rejected['drawn'])} of {total['drawn']}",
            agrees=None,
            note="The paper's evidence is circular: its twelve curves are all monotone by construction. "
            f"Tested here with {N_BINS} equal-mass bins, which cannot show finer structure."
            + (f" Rejected: {names}." if names else ""),
        )
    ]


def _draw(rows: Records) -> Figure:
    figure, axes = new_figure(1, 1, size=(8, 0.26 * len(rows) + 1.2))
    ax = axes[0, 0]
    height = np.arange(len(rows))[::-1]
    colours = [BLUE if row["kind"] == "real" else GREY for row in rows]
    ax.scatter([row["p_value"] for row in rows], height, color=colours, s=28, zorder=3)
    ax.axvline(LEVEL, color=RED, linewidth=1, linestyle="--")
    ax.set_xscale("log")
    ax.set_yticks(
        height, [row["set"] + ("" if row["kind"] == "real" else " (drawn)") for row in rows], fontsize=7
    )
    tidy(ax, x="p-value of a monotone curve", y="", title=f"{N_BINS} equal-mass bins; dashed: {LEVEL:.0%}")
    return figure
