"""Section 2: two cited observations, on models with known truth.

Nixon et al. (2019): equal-mass bins rank recalibration methods more stably. Kumar et al. (2019): ECE_bin grows with the
number of bins.
"""

from __future__ import annotations

import itertools
import math
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from truecal import paper
from truecal._lib.numeric import keyed_generator
from truecal.data import as_sample
from truecal.inference.estimate import estimate
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce._draw import label_of, new_figure, style_of, tidy
from truecal.reproduce._studies import kept_in_parallel
from truecal.reproduce.table1 import RECALIBRATORS, true_error_after

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    return Outcome({"": rows}, {"": _draw(rows)}, [_stability(rows), _growth(rows)])


def ece_by_bins(name: str, repeat: int, calibration: int, test: int, seed: int) -> dict[str, Any]:
    """Return ECE_bin of each recalibrated model for each number of bins, and its true error."""
    rng = keyed_generator(seed, zlib.crc32(name.encode()), repeat)
    population = paper.population(name)
    y_fit, p_fit = population.sample(calibration, rng=rng)
    y_test, p_test = population.sample(test, rng=rng)
    row: dict[str, Any] = {"model": name, "repeat": repeat}
    for title, recalibrator_class in RECALIBRATORS.items():
        recalibrator = recalibrator_class(input="probabilities").fit(p_fit, y_fit)
        sample = as_sample(y_test, recalibrator.transform(p_test))
        row[f"true_error_{title}"] = true_error_after(recalibrator, population)
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
    shown = ", ".join(f"{label_of(kind)} {same[kind].mean():.0%}" for kind in KINDS)
    truly = ", ".join(f"{label_of(kind)} {right[kind]:.0%}" for kind in KINDS)
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
        ", ".join(f"{label_of(kind)} {share:.0%}" for kind, share in shares.items()),
        agrees=shares["ew_bin"] == 1.0,
        note="Bins of equal width that are halved are nested, so that ECE_bin cannot fall (Jensen). Equal-mass bins "
        "are not nested where scores are tied or n is not a multiple of the number of bins.",
    )


def _draw(rows: Records) -> Figure:
    figure, axes = new_figure(1, len(RECALIBRATORS), size=(10, 3.8), sharey=True)
    for ax, title in zip(axes[0], RECALIBRATORS, strict=True):
        for kind in KINDS:
            mean = [100 * np.mean([row[f"{kind}_{n}_{title}"] for row in rows]) for n in BINS]
            ax.plot(BINS, mean, **{"markersize": 4, "linewidth": 1.3, **style_of(kind)})
        truth = 100 * np.mean([row[f"true_error_{title}"] for row in rows])
        ax.axhline(truth, color="black", linewidth=0.9, linestyle=":", label="true error")
        ax.set_xscale("log")
        ax.set_xticks(BINS, [str(n) for n in BINS])
        ax.set_xticks([], minor=True)
        ax.set_ylim(bottom=0)
        tidy(ax, x="number of bins", y="" if ax is not axes[0, 0] else "mean ECE$_{BIN}$ (%)", title=title)
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure
