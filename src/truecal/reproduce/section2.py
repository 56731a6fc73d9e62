"""Section 2: whether curves are monotone, whether rankings by equal-mass bins are stable, ECE_bin by number of bins."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import isotonic_regression

from truecal import datasets, paper
from truecal._lib.types import FloatArray
from truecal.data import as_sample
from truecal.data.sample import Sample
from truecal.estimators._binning import EqualMass, cut
from truecal.inference.estimate import estimate
from truecal.reproduce import _draw as draw
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce._data import drawn_sets, top_label_sets
from truecal.reproduce._studies import kept_in_parallel, pick
from truecal.reproduce.table1 import RECALIBRATORS, recalibrated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# --- Are calibration curves monotone? -----------------------------------------------------------------
#
# The paper fits twelve curves to each model and chooses one by AIC. All twelve are monotone by construction, so the
# fits cannot show that a curve is not. Here the observed rates of equal-mass bins are compared with their best monotone
# fit.

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
    return Outcome({"": rows}, {"": _draw_pvalues(rows)}, [_compare(rows)])


def _bundled(name: str) -> Sample:
    data = datasets.load(name)
    return as_sample(data.y_true, data.y_proba, labels=data.labels)


def test_monotone(sample: Sample, repeats: int, seed: int) -> dict[str, Any]:
    r"""Test that the observed rates of bins are those of a nondecreasing curve.

    .. math:: T = \sum_k n_k (\bar y_k - \hat\mu_k)^2,

    where :math:`\hat\mu` is the isotonic fit. The p-value is that of samples with rates :math:`\hat\mu_k`.
    """
    _, bins = cut(EqualMass(sample), N_BINS)
    count, rate = bins.count, bins.mean_label
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


def _compare(rows: Records) -> PaperComparison:
    of_kind = {kind: list(pick(rows, kind=kind)) for kind in ("real", "drawn")}
    rejected = {kind: [row for row in tested if row["p_value"] <= LEVEL] for kind, tested in of_kind.items()}
    names = ", ".join(f"{row['set']} (p = {row['p_value']:.3f})" for row in rejected["real"])
    return PaperComparison(
        "real sets whose calibration curve is significantly not monotone (5%)",
        "extensive empirical evidence that curves are monotone",
        f"{len(rejected['real'])} of {len(of_kind['real'])}; on samples of the paper's monotone populations "
        f"{len(rejected['drawn'])} of {len(of_kind['drawn'])}",
        agrees=None,
        note="The paper's evidence is circular: its twelve curves are all monotone by construction. "
        f"Tested here with {N_BINS} equal-mass bins, which cannot show finer structure."
        + (f" Rejected: {names}." if names else ""),
    )


def _draw_pvalues(rows: Records) -> Figure:
    figure, axes = draw.new_figure(1, 1, size=(8, 0.26 * len(rows) + 1.2))
    ax = axes[0, 0]
    height = np.arange(len(rows))[::-1]
    colours = [draw.BLUE if row["kind"] == "real" else draw.GREY for row in rows]
    ax.scatter([row["p_value"] for row in rows], height, color=colours, s=28, zorder=3)
    ax.axvline(LEVEL, color=draw.RED, linewidth=1, linestyle="--")
    ax.set_xscale("log")
    ax.set_yticks(
        height, [row["set"] + ("" if row["kind"] == "real" else " (drawn)") for row in rows], fontsize=7
    )
    draw.tidy(
        ax, x="p-value of a monotone curve", y="", title=f"{N_BINS} equal-mass bins; dashed: {LEVEL:.0%}"
    )
    return figure


# --- Two cited observations, on models with known truth ------------------------------------------------
#
# Nixon et al. (2019): equal-mass bins rank recalibration methods more stably. Kumar et al. (2019): ECE_bin grows with
# the number of bins.

BINS = (5, 10, 20, 40, 80)
KINDS = ("ew_bin", "em_bin")


@part("Section 2", "Rankings of recalibrators and ECE_bin by number of bins")
def rankings(settings: Settings) -> Outcome:
    """Rank three recalibrators with five numbers of bins on samples of the paper's populations."""
    names = settings.of(paper.NAMES, paper.NAMES, paper.NAMES[::5])
    repeats = settings.of(40, 4, 2)
    sizes = settings.of((5000, 10_000), (2000, 4000), (300, 500))
    jobs = [(name, repeat, *sizes, settings.seed) for name in names for repeat in range(repeats)]
    rows = kept_in_parallel(settings, "rankings", ece_by_bins, jobs)
    return Outcome({"": rows}, {"": _draw_by_bins(rows)}, [_stability(rows), _growth(rows)])


def ece_by_bins(name: str, repeat: int, calibration: int, test: int, seed: int) -> dict[str, Any]:
    """Return ECE_bin of each recalibrated model for each number of bins, and its true error."""
    row: dict[str, Any] = {"model": name, "repeat": repeat}
    for title, sample, true_error in recalibrated(name, repeat, calibration, test, seed):
        row[f"true_error_{title}"] = true_error
        for kind, n_bins in itertools.product(KINDS, BINS):
            row[f"{kind}_{n_bins}_{title}"] = estimate(sample, estimator=kind, n_bins=n_bins).value
    return row


def order(row: dict[str, Any], key: str) -> tuple[str, ...]:
    """Return the recalibrators from the smallest value to the largest.

    Examples
    --------
    >>> order({"e_histogram": 0.2, "e_isotonic": 0.1, "e_temperature": 0.3}, "e")
    ('isotonic', 'histogram', 'temperature')
    """
    return tuple(sorted(RECALIBRATORS, key=lambda title: row[f"{key}_{title}"]))


def _same(row: dict[str, Any], kind: str) -> float:
    """Return the share of pairs of numbers of bins that give the same order."""
    orders = [order(row, f"{kind}_{n_bins}") for n_bins in BINS]
    return float(np.mean([one == other for one, other in itertools.combinations(orders, 2)]))


def _stability(rows: Records) -> PaperComparison:
    same = {kind: np.array([_same(row, kind) for row in rows]) for kind in KINDS}
    right = {
        kind: np.mean([order(row, f"{kind}_{n}") == order(row, "true_error") for row in rows for n in BINS])
        for kind in KINDS
    }
    gain = same["em_bin"] - same["ew_bin"]
    error = float(gain.std() / math.sqrt(len(gain)))
    shown = ", ".join(f"{draw.label_of(kind)} {same[kind].mean():.0%}" for kind in KINDS)
    truly = ", ".join(f"{draw.label_of(kind)} {right[kind]:.0%}" for kind in KINDS)
    return PaperComparison(
        "pairs of numbers of bins, from 5 to 80, that rank three recalibrators in the same way",
        "equal mass is more stable (Nixon et al.)",
        f"{shown}; difference {100 * gain.mean():+.1f} ± {100 * error:.1f}; the true order: {truly}",
        agrees=bool(gain.mean() > 2 * error),
    )


def _growth(rows: Records) -> PaperComparison:
    """Count the samples on which doubling the bins never lowers ECE_bin: nested bins cannot, by Jensen."""
    shares = {}
    for kind in KINDS:
        values = np.array(
            [[row[f"{kind}_{n}_{title}"] for n in BINS] for row in rows for title in RECALIBRATORS]
        )
        shares[kind] = float(np.mean((np.diff(values, axis=1) >= -1e-12).all(axis=1)))
    return PaperComparison(
        "samples on which ECE_bin does not fall as bins are doubled, from 5 to 80",
        "ECE_bin grows with the number of bins (Kumar et al.)",
        ", ".join(f"{draw.label_of(kind)} {share:.0%}" for kind, share in shares.items()),
        agrees=shares["ew_bin"] == 1.0,
        note="Bins of equal width that are halved are nested, so that ECE_bin cannot fall (Jensen). Equal-mass bins "
        "are not nested where scores are tied or n is not a multiple of the number of bins.",
    )


def _draw_by_bins(rows: Records) -> Figure:
    figure, axes = draw.new_figure(1, len(RECALIBRATORS), size=(10, 3.8), sharey=True)
    for ax, title in zip(axes[0], RECALIBRATORS, strict=True):
        for kind in KINDS:
            mean = [100 * np.mean([row[f"{kind}_{n}_{title}"] for row in rows]) for n in BINS]
            ax.plot(BINS, mean, **{"markersize": 4, "linewidth": 1.3, **draw.style_of(kind)})
        truth = 100 * np.mean([row[f"true_error_{title}"] for row in rows])
        ax.axhline(truth, color="black", linewidth=0.9, linestyle=":", label="true error")
        draw.log_axis(ax, BINS)
        ax.set_ylim(bottom=0)
        draw.tidy(
            ax, x="number of bins", y="" if ax is not axes[0, 0] else "mean ECE$_{BIN}$ (%)", title=title
        )
    draw.legend(axes[0, 0])
    return figure
