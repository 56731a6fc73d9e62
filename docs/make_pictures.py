"""Make the pictures of the README and the start page: ``python docs/make_pictures.py``, half a minute.

Figures are transparent, with colours that are legible on light and dark pages. The picture of the report is taken with
Chromium (selenium and chromedriver).
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

import truecal

ROOT = Path(__file__).parents[1]
HERE = ROOT / "docs" / "_static"
GREY = "#747474"
SIZES = (200, 400, 800, 1600, 3200, 6400, 12800)
STYLES = {
    "ew_bin": ("#C8402C", "s", "usual ECE (15 equal-width bins)"),
    "em_sweep": ("#0072B2", "o", "em_sweep (Roelofs et al.)"),
    "em_debias": ("#009E73", "^", "em_debias"),
    "multiscale": ("#C98200", "*", "multiscale (default)"),
}


def reliability() -> None:
    """Draw the diagram of the flights data, alone."""
    data = truecal.datasets.load("flights")
    display = truecal.display.ReliabilityDisplay.from_predictions(
        data.y_true, data.y_proba, rng=0, name="P(late)"
    )
    display.figure_.savefig(HERE / "reliability.png", dpi=160, transparent=True)


def overview() -> None:
    """Draw the diagram beside the bias of estimators, which is why the package exists."""
    data = truecal.datasets.load("flights")
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(11, 3.9), layout="constrained", width_ratios=[1.15, 1, 1]
    )
    truecal.display.ReliabilityDisplay.from_predictions(
        data.y_true, data.y_proba, rng=0, ax=left, name="P(late)"
    )
    fitted = truecal.paper.population("resnet110_c100")
    study = truecal.bias_study(
        {"overconfident": fitted, "calibrated": fitted.calibrated()},
        estimators=list(STYLES),
        sizes=SIZES,
        repeats=200,
        rng=0,
        n_jobs=1,
    )
    for ax, name in ((middle, "overconfident"), (right, "calibrated")):
        truth = 100 * (fitted if ax is middle else fitted.calibrated()).true_error()
        ax.axhline(0, color=GREY, linewidth=1, linestyle=(0, (1, 1.5)))
        for estimator, (color, marker, label) in STYLES.items():
            rows = [row for row in study.rows if row["population"] == name and row["estimator"] == estimator]
            bias, error = ([100 * row[key] for row in rows] for key in ("bias", "bias_se"))
            ax.errorbar(
                SIZES, bias, error, color=color, marker=marker, markersize=5, linewidth=1.4, label=label
            )
        ax.set_xscale("log")
        ax.set_xticks(SIZES, ["200", "", "800", "", "3,200", "", "12.8k"])
        ax.set_xticks([], minor=True)
        ax.set_title(f"{name}: true error {truth:.3g}%", fontsize="medium", loc="left", color=GREY)
        ax.set_xlabel("rows", color=GREY)
        _tidy(ax)
    middle.set_ylabel("bias of the estimate, percentage points", color=GREY)
    right.legend(frameon=False, fontsize="small", labelcolor=GREY)
    figure.savefig(HERE / "overview.png", dpi=150, transparent=True)


def report() -> None:
    """Take a picture of the top of the report on the flights data."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.chromium import open_browser

    data = truecal.datasets.load("flights")
    assessment = truecal.assess(data.y_true, data.y_proba, rng=0)
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        page = Path(folder, "report.html")
        assessment.to_html(page, source="flights")
        browser.view(920, height=1165)
        browser.open(page)
        (HERE / "report.png").write_bytes(base64.b64decode(browser.screenshot(full=False)))


def _tidy(ax: plt.Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(colors=GREY, labelsize="small")
    ax.grid(True, color=GREY, alpha=0.2, linewidth=0.6)
    ax.patch.set_alpha(0)


if __name__ == "__main__":
    reliability()
    overview()
    report()
