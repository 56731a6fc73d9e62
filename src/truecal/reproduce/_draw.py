"""Style of the figures, as in the displays, without changes to matplotlib's global settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truecal._lib.checks import require
from truecal.display import _style
from truecal.display._style import size_axis as size_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLACK, GREY = "#000000", "#777777"
BLUE, GREEN, ORANGE = _style.BLUE, _style.GREEN, _style.ORANGE
PURPLE, RED, SKY = _style.PURPLE, _style.RED, _style.SKY
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
    style = {**_style.estimator_style(estimator), "label": label_of(estimator)}
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
    _style.tidy(ax, xlabel=x, ylabel=y, title=title)


def line(ax: Axes, x: Sequence[float], y: Any, error: Any, **style: Any) -> None:
    """Draw a line through points with bars of two standard errors."""
    options = {"markersize": 4, "linewidth": 1.3, "capsize": 1.5, "elinewidth": 0.8, **style}
    ax.errorbar(x, y, yerr=2 * np.asarray(error), **options)


def points(
    ax: Axes, x: Any, y: Any, color: str, marker: str = "o", face: str | None = None, **style: Any
) -> None:
    """Draw points with the bars of `xerr` and `yerr`; `face` is their inside if it has another colour."""
    ax.errorbar(x, y, fmt=marker, color=color, markerfacecolor=face or color, **style)


def line_of(
    ax: Axes, rows: Sequence[Mapping[str, Any]], x: str, y: str, *, scale: float = 1, **style: Any
) -> None:
    """Draw a column of a study in percent against another one, which is multiplied by `scale`."""
    values, error = ([100 * row[key] for row in rows] for key in (y, "bias_se"))
    line(ax, [scale * row[x] for row in rows], values, error, **{"marker": "o", "markersize": 3, **style})


def log_axis(ax: Axes, ticks: Sequence[float]) -> None:
    """Use a logarithmic axis with these ticks only, all of them labelled."""
    ax.set_xscale("log")
    ax.set_xticks(list(ticks), [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)


def zero_line(ax: Axes) -> None:
    """Draw the line of zero bias."""
    ax.axhline(0, color=BLACK, linewidth=0.9, linestyle=":", zorder=1)


def legend(ax: Axes, **options: Any) -> None:
    """Draw a small legend without a frame."""
    ax.legend(**{"frameon": False, "fontsize": "small", **options})


def legend_below(figure: Figure, *axes: Axes, columns: int) -> None:
    """Draw one legend of some axes below the figure; equal labels occur once."""
    drawn = [ax.get_legend_handles_labels() for ax in axes]
    entries = {label: handle for entry in drawn for handle, label in zip(*entry, strict=True)}
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": columns, "columnspacing": 1.2}
    figure.legend(list(entries.values()), list(entries), frameon=False, fontsize="small", **place)


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write the figure as SVG and PNG; the SVG is reproducible."""
    matplotlib = require("matplotlib", extra="app", purpose="Drawing")
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in ("svg", "png")]
    with matplotlib.rc_context({"svg.hashsalt": stem.name, "svg.fonttype": "path"}):
        figure.savefig(paths[0], metadata={"Date": None})
        figure.savefig(paths[1], dpi=100)
    return paths
