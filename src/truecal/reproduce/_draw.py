"""Style of the figures, as in the displays, without changes to matplotlib's global settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truecal._lib.checks import require
from truecal.display._style import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, estimator_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BLACK", "BLUE", "CYCLE", "GREEN", "GREY", "IMAGE_SET_COLOURS", "ORANGE", "PURPLE", "RED", "SKY",
    "label_of", "legend_below", "line", "new_figure", "save", "size_axis", "style_of", "tidy", "zero_line",
]  # fmt: skip

BLACK, GREY = "#000000", "#777777"
#: Colours of lines without a fixed meaning.
CYCLE = (PURPLE, RED, ORANGE, GREEN, SKY, BLUE, BLACK)
IMAGE_SET_COLOURS = {"CIFAR-10": BLUE, "CIFAR-100": RED, "ImageNet": GREEN}

LABELS = {
    "kde": "KDE, with root",
    "kde_without_root": "KDE, without root",
    "multiscale": "multiscale (truecal)",
    "ks": "KS",
}


def label_of(estimator: str) -> str:
    """Return the name of an estimator as the paper writes it.

    Examples
    --------
    >>> label_of("em_sweep"), label_of("kde")
    ('EM sweep', 'KDE, with root')
    """
    binning, _, method = estimator.partition("_")
    return LABELS.get(estimator) or f"{binning.upper()} {'MCE' if method == 'mce' else method}"


def style_of(estimator: str) -> dict[str, Any]:
    """Return colour, line and marker of an estimator; equal width is dashed and hollow."""
    style = {**estimator_style(estimator), "label": label_of(estimator)}
    if estimator == "kde_without_root":
        style |= {"color": ORANGE, "marker": "X", "markerfacecolor": ORANGE}
    if style["markerfacecolor"] == "none":
        style["markerfacecolor"] = "white"
    return style


def new_figure(
    rows: int, columns: int, *, size: tuple[float, float], **options: Any
) -> tuple[Figure, np.ndarray[Any, Any]]:
    """Return a figure without a window, and its axes as a (rows, columns) array."""
    require("matplotlib", extra="app", purpose="Drawing")
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def tidy(ax: Axes, *, x: str, y: str, title: str = "") -> None:
    """Label the axes, remove the frame at the top and the right, and draw a light grid."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.set_title(title, fontsize="medium", loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#e8e8e8", linewidth=0.6)
    ax.set_axisbelow(True)


def line(ax: Axes, x: Sequence[float], y: Any, error: Any, **style: Any) -> None:
    """Draw a line through points with bars of two standard errors."""
    options = {"markersize": 4, "linewidth": 1.3, "capsize": 1.5, "elinewidth": 0.8, **style}
    ax.errorbar(x, y, yerr=2 * np.asarray(error), **options)


def size_axis(ax: Axes, sizes: Sequence[int]) -> None:
    """Use a logarithmic axis of sample sizes, all of them labelled."""
    ax.set_xscale("log")
    ax.set_xticks(list(sizes), [f"{n:,}" if n < 10_000 else f"{n / 1000:g}k" for n in sizes])
    ax.set_xticks([], minor=True)
    ax.tick_params(axis="x", labelsize="small")


def zero_line(ax: Axes) -> None:
    """Draw the line of zero bias."""
    ax.axhline(0, color=BLACK, linewidth=0.9, linestyle=":", zorder=1)


def legend_below(figure: Figure, ax: Axes, columns: int) -> None:
    """Draw one legend for all axes below the figure."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize="small")


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write the figure as SVG and PNG; the SVG is reproducible."""
    matplotlib = require("matplotlib", extra="app", purpose="Drawing")
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in ("svg", "png")]
    with matplotlib.rc_context({"svg.hashsalt": stem.name, "svg.fonttype": "path"}):
        figure.savefig(paths[0], metadata={"Date": None})
        figure.savefig(paths[1], dpi=100)
    return paths
