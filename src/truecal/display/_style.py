"""Colours, axes and legends that all displays share. Nothing here touches matplotlib's global settings."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from truecal._lib.checks import require
from truecal._lib.text import short_count
from truecal._lib.types import FloatArray
from truecal.exceptions import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from truecal.assessment._plotdata import ScoreHistogram

#: Okabe and Ito's palette, which colour-blind people can tell apart, with orange and sky darkened: every one has
#: a contrast of 3 to 1 or more with white and with near-black paper, so that transparent figures suit both.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072B2", "#C98200", "#009E73", "#C8402C", "#C66FA1", "#4A98D0"
CYCLE = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY)

#: Text and axes, and lines to compare with: a contrast of 4 to 1 or more with both.
INK = "#747474"

#: Colour and marker of each family of estimators. Equal width is dashed and hollow, equal mass solid and filled.
FAMILIES = {
    "bin": (RED, "s"), "label": (SKY, "P"), "debias": (GREEN, "^"), "sweep": (BLUE, "o"), "kde": (PURPLE, "D"),
    "mce": (ORANGE, "X"), "neighbor": (SKY, "v"), "multiscale": (ORANGE, "*"),
}  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P")


def ink() -> Any:
    """Return the colour of text: the user's if one is set, else a grey that is legible on light and dark."""
    matplotlib = require("matplotlib", extra="app", purpose="Drawing")
    chosen = matplotlib.rcParams["text.color"]
    return INK if chosen == matplotlib.rcParamsDefault["text.color"] else chosen


def axes_or_new(ax: Axes | None, *, figsize: tuple[float, float] = (4.2, 3.2)) -> Axes:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", extra="app", purpose="Drawing")
    new: Axes = pyplot.subplots(figsize=figsize, layout="constrained")[1]
    return new


def split_below(ax: Axes, ratio: float) -> Axes:
    """Split off the lower part of axes into new ones that share their horizontal axis.

    `ratio` is the height of the new axes in units of what the old ones keep.
    """
    (below,) = stack_below(ax, ratio)
    return below


def stack_below(ax: Axes, *ratios: float) -> list[Axes]:
    """Split off the lower part of axes into several new ones, one below another, as `split_below` does."""
    place, figure = ax.get_subplotspec(), ax.figure
    if place is None:  # axes placed by hand: no layout makes room for them, so take it from inside
        left, bottom, width, height = ax.get_position().bounds
        unit, new = height / (1 + sum(ratios)), []
        for number, ratio in enumerate(ratios):
            under = bottom + unit * sum(ratios[number + 1 :])
            new.append(figure.add_axes((left, under, width, 0.7 * unit * ratio), sharex=ax))
        ax.set_position((left, bottom + unit * sum(ratios), width, unit))
        return new
    parts = place.subgridspec(1 + len(ratios), 1, height_ratios=(1, *ratios), hspace=0.06)
    ax.set_subplotspec(parts[0])
    return [figure.add_subplot(parts[number], sharex=ax) for number in range(1, len(ratios) + 1)]


def panels(ax: Any, count: int, *, width: float = 2.1, height: float = 2.4, columns: int = 3) -> list[Axes]:
    """Return `count` axes that share both scales: `ax` itself if there is one only, or a grid in its place.

    `ax` may also be that many axes already.
    """
    if isinstance(ax, Sequence | np.ndarray):
        given = [one for one in np.ravel(np.asarray(ax, dtype=object)) if one is not None]
        if len(given) < count:
            raise InputError(
                f"must be None, axes, or at least {count} axes. Got {len(given)} axes instead", argument="ax"
            )
        return given[:count]
    if count == 1:
        return [axes_or_new(ax)]
    if ax is None:
        columns = min(columns, count)
        rows = -(-count // columns)
        pyplot = require("matplotlib.pyplot", extra="app", purpose="Drawing")
        figure = pyplot.figure(figsize=(width * columns + 0.6, height * rows + 0.5), layout="constrained")
        grid = figure.add_gridspec(rows, columns)
    else:
        place, figure = ax.get_subplotspec(), ax.figure
        if place is None:
            raise InputError(
                f"must be made by subplots, or be {count} axes, for {count} panels", argument="ax"
            )
        # Minimum width in inches of axes side by side.
        columns = max(1, min(columns, count, int(width_of(ax) / 1.5)))
        grid = place.subgridspec(-(-count // columns), columns)
        ax.set_axis_off()
    made: list[Axes] = []
    for k in range(count):
        share = made[0] if made else None
        made.append(figure.add_subplot(grid[k // columns, k % columns], sharex=share, sharey=share))
    for k, one in enumerate(made):
        one.tick_params(labelleft=k % columns == 0, labelbottom=k + columns >= count)
    return made


def width_of(ax: Axes) -> float:
    """Return the width of axes in inches, including the space for labels."""
    return float(ax.get_position(original=True).width * ax.figure.bbox.width / ax.figure.dpi)


def wrapped(text: str, ax: Axes) -> str:
    """Return a name broken into lines that fit the width of the axes; a long word is broken, too."""
    # A letter is about half as wide as the font is high.
    letters = int(width_of(ax) * 72 / (0.55 * _font_size()))
    return "\n".join(textwrap.wrap(text, max(letters, 12))) or text


def _font_size() -> float:
    matplotlib = require("matplotlib", extra="app", purpose="Drawing")
    return float(matplotlib.rcParams["font.size"])


def tidy(ax: Axes, *, xlabel: str = "", ylabel: str = "", title: str = "") -> None:
    """Label the axes, drop the frame at the top and the right, and draw a faint grid behind."""
    colour = ink()
    ax.set_xlabel(xlabel, color=colour)
    ax.set_ylabel(ylabel, color=colour)
    if title:
        ax.set_title(title, fontsize="medium", loc="left", color=colour)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(colour)
    ax.tick_params(colors=colour, labelsize="small")
    ax.tick_params(which="minor", colors=colour)
    ax.grid(True, color=INK, alpha=0.2, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.patch.set_alpha(0)


def label_outer(axes: Sequence[Axes], xlabel: str, ylabel: str) -> None:
    """Label those axes that have tick labels: in a grid the left ones and the lowest."""
    colour = ink()
    for ax in axes:
        if ax.xaxis.get_tick_params().get("labelbottom", True):
            ax.set_xlabel(xlabel, color=colour)
        if ax.yaxis.get_tick_params().get("labelleft", True):
            ax.set_ylabel(ylabel, color=colour)


def text_handle(text: str) -> Any:
    """Return a legend entry that is only text."""
    lines = require("matplotlib.lines", extra="app", purpose="Drawing")
    return lines.Line2D([], [], linestyle="none", label=text or " ")


def legend_below(
    axes: Sequence[Axes], *, columns: int = 2, title: str = "", handles: Any = None, **more: Any
) -> None:
    """Put one legend under all panels, or under the last one where no layout makes room; it covers nothing.

    It has fewer columns if it is too wide, and in narrow axes small labels in several lines.
    """
    ax, colour, size = axes[-1], ink(), _font_size()
    root: Any = ax.figure.figure
    if root.get_layout_engine() is None and ax.get_subplotspec() is not None:
        root.set_layout_engine("constrained")  # else nobody makes room for it, and a saved figure lacks it
    options: dict[str, Any] = {
        "handles": axes[0].get_legend_handles_labels()[0] if handles is None else handles,
        "frameon": False, "fontsize": "small", "labelcolor": colour, "title": title or None,
        "title_fontsize": "small", "handlelength": 2.6, "columnspacing": 1.4, **more,
    }  # fmt: skip
    if len(axes) > 1 and root.get_constrained_layout():
        owner: Any = ax.figure
        room = float(owner.bbox.width)
        options["loc"] = "outside lower center"
    else:
        # Some lines of text below the axes, so that tick labels and axis label have their room at any size.
        owner, room = ax, 1.18 * width_of(ax) * ax.figure.dpi
        transforms = require("matplotlib.transforms", extra="app", purpose="Drawing")
        lines = 6 if any(label.get_rotation() for label in ax.get_xticklabels()) else 3.7
        down = transforms.ScaledTranslation(0, -lines * size / 72, ax.figure.dpi_scale_trans)
        options |= {"bbox_to_anchor": (0.5, 0), "bbox_transform": ax.transAxes + down, "borderaxespad": 0}
        options["loc"] = "upper center"
    for ncols in range(columns, 0, -1):
        legend = owner.legend(ncols=ncols, **options)
        if legend.get_window_extent().width <= room:
            break
        legend.remove()
    else:
        # What is left beside the handles; a letter is less than half as wide as the font is high.
        letters = max(int((72 * width_of(ax) - 30) / (0.4 * size)), 10)
        labels = [str(handle.get_label()) for handle in options["handles"]]
        options["labels"] = ["\n".join(textwrap.wrap(label, letters)) or label for label in labels]
        legend = owner.legend(**{**options, "fontsize": "x-small", "handlelength": 1.6})
    legend.get_title().set_color(colour)


def estimator_legend(axes: Sequence[Axes], title: str = "") -> None:
    """Put a legend of estimators under the axes."""
    handles, labels = axes[0].get_legend_handles_labels()
    order, columns = legend_table(
        labels, wide=len(axes) > 1 and axes[0].figure.bbox.width > 5 * axes[0].figure.dpi
    )
    legend_below(
        axes,
        columns=columns,
        title=title,
        handles=[handles[labels.index(n)] if n else text_handle(n) for n in order],
    )


def estimator_style(name: str, place: int = 0) -> dict[str, Any]:
    """Return colour, line and marker of an estimator: its family's, or the next of the cycle."""
    binning, family = family_of(name)
    equal_width = binning == "ew"
    colour, marker = FAMILIES.get(family, (CYCLE[place % len(CYCLE)], MARKERS[place % len(MARKERS)]))
    return {
        "color": colour,
        "linestyle": (0, (4, 1.6)) if equal_width else "-",
        "marker": marker,
        "markerfacecolor": "none" if equal_width else colour,
    }


def family_of(name: str) -> tuple[str, str]:
    """Return how an estimator bins, and what it does.

    Examples
    --------
    >>> family_of("ew_bin(n_bins=4)"), family_of("kde")
    (('ew', 'bin'), ('', 'kde'))
    """
    base = name.partition("(")[0]
    return (base[:2], base[3:]) if base[:3] in ("ew_", "em_") else ("", base)


def legend_table(names: Sequence[str], *, wide: bool) -> tuple[list[str], int]:
    """Return names in the order of a legend, "" for a gap, and its number of columns.

    Equal width and equal mass of a family of estimators stand side by side, or in a wide legend one above the
    other. Legends are filled column by column.

    Examples
    --------
    >>> legend_table(["em_sweep", "kde", "ew_bin", "em_bin"], wide=False)
    (['', '', 'ew_bin', 'em_sweep', 'kde', 'em_bin'], 2)
    >>> legend_table(["em_sweep", "kde", "ew_bin", "em_bin"], wide=True)
    (['', 'em_sweep', '', 'kde', 'ew_bin', 'em_bin'], 3)
    >>> legend_table(["em_sweep", "kde", "em_bin"], wide=False)
    (['em_sweep', 'kde', 'em_bin'], 2)
    """
    families: dict[str, tuple[list[str], list[str]]] = {}
    for name in names:
        binning, family = family_of(name)
        families.setdefault(family, ([], []))[binning != "ew"].append(name)
    pairs = [pair for members in families.values() for pair in zip_longest(*members, fillvalue="")]
    if not any(left and right for left, right in pairs):
        return sorted(names, key=lambda name: family_of(name)[0] != "ew"), min(len(names), 4 if wide else 2)
    if wide:
        return [name for pair in pairs for name in pair], len(pairs)
    return [left for left, _ in pairs] + [right for _, right in pairs], 2


def size_axis(ax: Axes, sizes: Sequence[float]) -> None:
    """Format the horizontal axis for sample sizes: logarithmic, with a tick at each, labelled where there is room."""
    ordered = sorted(set(sizes))
    ax.set_xscale("log")
    gap = np.log(ordered[-1] / ordered[0]) / max(1, min(5, int(width_of(ax) / 0.55)))
    texts, last = [], -np.inf
    for n in ordered:
        room = np.log(n) - last >= gap * 0.999
        texts.append(short_count(n) if room else "")
        last = np.log(n) if room else last
    ax.set_xticks(ordered, texts)
    ax.set_xticks([], minor=True)


def percent_axis(axis: Any, *, sign: bool = False) -> None:
    """Show the fractions of an axis as percent; the data stay fractions."""
    ticker = require("matplotlib.ticker", extra="app", purpose="Drawing")

    def text(value: float, _: int) -> str:
        shown = f"{100 * value:+.6g}" if sign and round(value, 12) else f"{100 * value + 0.0:.6g}"
        return shown.replace("-", "\N{MINUS SIGN}")

    axis.set_major_formatter(ticker.FuncFormatter(text))


def count_axis(axis: Any) -> None:
    """Show few ticks on an axis of counts, with short labels."""
    ticker = require("matplotlib.ticker", extra="app", purpose="Drawing")
    if axis.get_scale() == "log":
        axis.set_major_locator(ticker.LogLocator(numticks=3))
        axis.set_minor_locator(ticker.NullLocator())
    else:
        axis.set_major_locator(ticker.MaxNLocator(2, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: short_count(value)))


def scaled(score: FloatArray, scale: str, floor: float) -> FloatArray:
    """Return where scores lie on an axis, in powers of ten; nearer to an end than `floor` counts as `floor`."""
    high = -np.log10(np.maximum(1 - np.asarray(score, dtype=np.float64), floor))
    if scale == "complement":
        return np.asarray(high)
    return np.asarray(high + np.log10(np.maximum(score, floor)))


def score_axis(ax: Axes, scale: str, floor: float, which: str = "x", *, top: float = 1.0) -> None:
    """Turn an axis into one of probabilities: linear up to `top`, or stretched towards 1 or towards both ends."""
    set_scale, set_ticks, set_limits = (
        getattr(ax, f"set_{which}{what}") for what in ("scale", "ticks", "lim")
    )
    if scale == "linear":
        set_limits(0, top)
        ticks = [round(part * top, 9) for part in (0.0, 0.25, 0.5, 0.75, 1.0)]
        set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        return

    def back(place: FloatArray) -> FloatArray:
        ten = 10.0 ** -np.asarray(place, dtype=np.float64)
        return np.asarray(1 - ten if scale == "complement" else 1 / (1 + ten))

    set_scale("function", functions=(lambda score: scaled(score, scale, floor), back))
    set_ticks([], minor=True)
    marks = _marks(scale, floor, room=0.13 if which == "x" else 0.08)
    set_ticks([place for place, _ in marks], [text for _, text in marks])
    set_limits(0, 1)


def _marks(scale: str, floor: float, room: float) -> list[tuple[float, str]]:
    """Return ticks and their labels; a tick closer than `room` to a more important one has none."""
    depth = round(-np.log10(floor))
    step, both = -(-depth // 4), scale != "complement"
    marks = [(1.0, "1"), (0.0, "0"), *[(0.5, "0.5")] * both]
    # Those that divide the depth evenly come first; of the others only short ones have a label.
    for k in sorted(range(1, depth), key=lambda k: k % step != 0):
        named = k % step == 0 or k <= 3
        marks.append((1 - 10.0**-k, _power_of_ten(k, "1\N{MINUS SIGN}", 1 - 10.0**-k) if named else ""))
        marks += [(10.0**-k, _power_of_ten(k, "", 10.0**-k) if named else "")] * both
    ends = scaled(np.array([0.0, 1.0]), scale, floor)
    taken: list[tuple[float, float]] = []
    shown = []
    for value, text in marks:
        place = float((scaled(np.array(value), scale, floor) - ends[0]) / (ends[1] - ends[0]))
        half = room * (0.7 if "$" in text else 0.5)
        free = bool(text) and all(abs(place - other) >= half + width for other, width in taken)
        if free:
            taken.append((place, half))
        shown.append((value, text if free else ""))
    return sorted(shown)


def _power_of_ten(k: int, before: str, value: float) -> str:
    """Return 10^-k, or its complement, as a number if that is short."""
    return f"{value:.{k}f}" if k <= 3 else f"{before}$10^{{-{k}}}$"


def draw_diagonal(ax: Axes) -> None:
    """Draw the line of perfect calibration, on any scale of the scores."""
    ends = np.logspace(-16, -1, 61)
    grid = np.concatenate([[0.0], ends, np.linspace(0.11, 0.89, 40), 1 - ends[::-1], [1.0]])
    ax.plot(grid, grid, color=INK, linewidth=1, linestyle=(0, (1, 1.5)), zorder=1)


def axis_floor(histogram: ScoreHistogram | None) -> float:
    """Return how close to its ends a stretched axis extends: to the last bin, and beyond for scores of 0 or 1."""
    if histogram is None or histogram.scale == "linear":
        return 0.0
    low, high = float(histogram.edges[0]), float(histogram.complement_edges[-1])
    nearest = high if histogram.scale == "complement" else min(low, high)
    power = round(-math.log10(nearest))
    exact = histogram.at_one or histogram.expected_at_one or histogram.at_zero or histogram.expected_at_zero
    return 10.0 ** -(power + bool(exact))
