"""Reliability diagrams as SVG, drawn with style sheet classes so that they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from truecal._lib.text import level
from truecal._lib.types import FloatArray
from truecal.assessment._plotdata import ScoreHistogram, axis_top
from truecal.data.sample import Sample
from truecal.inference.reliability import Reliability

#: The square of the diagram within the drawing, and the strip of the histogram below it.
_LEFT, _TOP, _SIDE, _STRIP = 46.0, 10.0, 340.0, 60.0
_WIDTH, _BOTTOM = _LEFT + _SIDE + 14, _TOP + _SIDE
#: Points of a curve beyond which nothing can be seen.
_POINTS = 240
_TIP_WIDTH, _TIP_LINE = 196.0, 14.5
#: Width and height of the small diagrams.
_SMALL = 88.0


@dataclass(frozen=True)
class _Layout:
    """Horizontal positions, all from 0 to 1, and which part of the vertical axis is shown."""

    name: str
    title: str
    #: Edges of the steps of the curve, and their middles.
    step_edges: FloatArray
    steps: FloatArray
    bins: FloatArray
    ticks: tuple[tuple[float, str], ...]
    low: float = 0.0
    high: float = 1.0


def by_score(
    curve: Reliability,
    histogram: ScoreHistogram | None = None,
    name: str = "score",
    notes: Sequence[str] = (),
) -> Markup:
    """Return the usual diagram: the observed frequency against the score, with a histogram of the scores.

    Both axes end where low scores and frequencies end; `notes` are written into the lower right corner.
    """
    top = axis_top(float(max(curve.score.max(), curve.bins.upper.max(), curve.bins.mean_label.max())))
    score = curve.score / top
    layout = _Layout(
        name=name,
        title="score" if name == "score" else f"{name} score",
        step_edges=np.concatenate([score[:1], (score[:-1] + score[1:]) / 2, score[-1:]]),
        steps=score,
        bins=curve.bins.mean_score / top,
        ticks=tuple((tick, f"{round(tick * top, 9):g}") for tick in _parts(top)),
        high=top,
    )
    place = f'class="axis" x="{_LEFT + _SIDE - 8:g}" text-anchor="end"'
    written = [
        f'<text {place} y="{_BOTTOM - 10 - 16 * k:g}">{escape(note)}</text>'
        for k, note in enumerate(reversed(notes))
    ]
    if histogram is None:
        return _svg(curve, layout, written, height=_BOTTOM + 36)
    return _svg(curve, layout, [*written, *_histogram(histogram, top)], height=_BOTTOM + 40 + _STRIP + 28)


def _parts(top: float) -> tuple[float, ...]:
    """Return the positions of the ticks of an axis up to `top`, as fractions of it: at round numbers."""
    return (0, 0.2, 0.4, 0.6, 0.8, 1) if top == 1 else (0, 0.25, 0.5, 0.75, 1)


def by_rank(curve: Reliability, sample: Sample) -> Markup:
    """Return the diagram for skewed scores: the observed frequency against the rank of the score.

    Every row has the same width, so that bins with similar scores stay apart, and the area between the score and
    the curve is the l1 calibration error.
    """
    between = (curve.score[:-1] + curve.score[1:]) / 2
    below = sample.cumulative_count[np.searchsorted(sample.score, between, side="right")] / sample.n
    edges = np.concatenate([[0.0], below, [1.0]])
    ends = np.concatenate([[0.0], np.cumsum(curve.bins.count) / curve.bins.count.sum()])
    lowest = min(float(curve.interval_lower.min()), float(curve.bins.mean_score.min()))
    layout = _Layout(
        name="rank",
        title="rows, from the lowest score to the highest",
        step_edges=edges,
        steps=(edges[:-1] + edges[1:]) / 2,
        bins=(ends[:-1] + ends[1:]) / 2,
        ticks=tuple((tick, f"{100 * tick:g}%") for tick in (0, 0.2, 0.4, 0.6, 0.8, 1)),
        low=math.floor(10 * lowest) / 10 if lowest < 0.9 else 0.9,
    )
    return _svg(curve, layout, [], height=_BOTTOM + 36)


def _svg(curve: Reliability, layout: _Layout, below: list[str], height: float) -> Markup:
    draw = _Drawing(layout)
    name = f"by-{layout.name}"
    inside = f'x="{_LEFT:g}" y="{_TOP - 2:g}" width="{_SIDE + 2:g}" height="{_SIDE + 4:g}"'
    parts = [
        f'<svg class="diagram" viewBox="0 0 {_WIDTH:g} {height:g}" role="group" aria-labelledby="{name}-t {name}-d">',
        f'<title id="{name}-t">Reliability diagram by {layout.name}</title>',
        f'<desc id="{name}-d">{escape(_in_words(curve))}</desc>',
        f'<clipPath id="{name}-c"><rect {inside}/></clipPath>',
        *draw.frame(),
        f'<g clip-path="url(#{name}-c)">',
        *([f'<path class="band" d="{draw.band(curve)}"/>'] if curve.has_band else []),
        f'<path class="ideal" d="{draw.ideal(curve)}"/>',
        f'<path class="isotonic" d="{draw.steps(curve.label)}"/>',
        "</g>",
        *below,
        *draw.bins(curve),
        "</svg>",
    ]
    return Markup("\n".join(parts))


class _Drawing:
    """The parts of a diagram."""

    def __init__(self, layout: _Layout) -> None:
        self.layout = layout

    def x(self, position: float) -> str:
        return f"{_LEFT + _SIDE * position:.1f}"

    def y(self, label: float) -> str:
        return f"{_BOTTOM - _SIDE * (label - self.layout.low) / (self.layout.high - self.layout.low):.1f}"

    def frame(self) -> list[str]:
        lines = [f'<rect class="frame" x="{_LEFT:g}" y="{_TOP:g}" width="{_SIDE:g}" height="{_SIDE:g}"/>']
        for tick, shown in self.layout.ticks:
            x, anchor = self.x(tick), "middle"
            if len(shown) > 3:  # a long one would stick out at the right
                anchor = "end" if tick == 1 else "start" if tick == 0 else "middle"
            lines += [
                f'<path class="grid" d="M{x} {_TOP:g}V{_BOTTOM:g}"/>',
                f'<text class="tick" x="{x}" y="{_BOTTOM + 14:g}" text-anchor="{anchor}">{shown}</text>',
            ]
        step = 0.2 if self.layout.low < 0.35 else 0.1 if self.layout.low < 0.75 else 0.02
        levels = np.arange(math.ceil(self.layout.low / step - 1e-9), round(1 / step) + 1) * step
        if self.layout.high < 1:
            levels = self.layout.high * np.array(_parts(self.layout.high))
        for tick in np.round(levels, 9):
            y = self.y(tick)
            lines += [
                f'<path class="grid" d="M{_LEFT:g} {y}H{_LEFT + _SIDE:g}"/>',
                f'<text class="tick" x="{_LEFT - 6:g}" y="{float(y) + 4:.1f}" text-anchor="end">{tick:g}</text>',
            ]
        turned = f'transform="translate(11 {_TOP + _SIDE / 2:g}) rotate(-90)"'
        middle = _LEFT + _SIDE / 2
        return [
            *lines,
            f'<text class="axis" x="{middle:g}" y="{_BOTTOM + 30:g}" text-anchor="middle">{self.layout.title}</text>',
            f'<text class="axis" {turned} text-anchor="middle">observed frequency</text>',
        ]

    def ideal(self, curve: Reliability) -> str:
        """Return the path of perfect calibration: the score itself."""
        if self.layout.name != "rank":
            return f"M{self.x(0)} {self.y(0)}L{self.x(1)} {self.y(self.layout.high)}"
        visible = self._visible()
        return "M" + "L".join(f"{self.x(self.layout.steps[k])} {self.y(curve.score[k])}" for k in visible)

    def steps(self, label: FloatArray) -> str:
        """Return the path of a step curve, with a corner only where the step changes."""
        change = np.flatnonzero(np.diff(label, prepend=np.nan) != 0)
        edges = self.layout.step_edges[np.append(change, len(label))]
        moves = [f"M{self.x(edges[0])} {self.y(label[0])}"]
        moves += [f"V{self.y(label[k])}H{self.x(end)}" for k, end in zip(change, edges[1:], strict=True)]
        return "".join(moves)

    def band(self, curve: Reliability) -> str:
        visible = self._visible()
        there = [f"{self.x(self.layout.steps[k])} {self.y(curve.upper[k])}" for k in visible]
        back = [f"{self.x(self.layout.steps[k])} {self.y(curve.lower[k])}" for k in visible[::-1]]
        return "M" + "L".join(there + back) + "Z"

    def _visible(self) -> NDArray[np.intp]:
        """Return as many steps as can be distinguished, with the first and the last."""
        first = np.unique(np.round(self.layout.steps * _POINTS), return_index=True)[1]
        return np.unique(np.append(first, len(self.layout.steps) - 1))

    def bins(self, curve: Reliability) -> list[str]:
        """Return the bins, and above all of them the strips that show the numbers of each."""
        middles = self.layout.bins.tolist()
        edges = [0.0, *((a + b) / 2 for a, b in pairwise(middles)), 1.0]
        marks, strips = [], []
        for k, row in enumerate(curve.bin_rows()):
            x, y = self.x(middles[k]), self.y(row["mean_label"])
            low, high = row["interval_lower"], row["interval_upper"]
            end = self.y(min(high, self.layout.high))
            marks.append(
                f'<path class="whisker" d="M{x} {self.y(low)}V{end}"/>'
                f'<circle class="dot" cx="{x}" cy="{y}" r="4"/>'
            )
            lines = [
                f"{row['count']:,.10g} row{'' if row['count'] == 1 else 's'}",
                f"scores {_score(row['lower'])} to {_score(row['upper'])}",
                f"mean score {_score(row['mean_score'])}",
                f"observed {row['mean_label']:.3f}",
                f"{level(curve.confidence_level)} interval {low:.3f} to {high:.3f}",
            ]
            if curve.has_band:
                lines.append(f"if calibrated {row['bins_lower']:.3f} to {row['bins_upper']:.3f}")
            width = max(_SIDE * (edges[k + 1] - edges[k]), 0.5)
            strips.append(
                f'<g class="bin" tabindex="0" role="img" aria-label="{escape("; ".join(lines))}">'
                f'<rect class="reach" x="{self.x(edges[k])}" y="{_TOP:g}" width="{width:.1f}" height="{_SIDE:g}"/>'
                f'<circle class="mark" cx="{x}" cy="{y}" r="5.5"/>{_tip(float(x), float(y), lines)}</g>'
            )
        return [*marks, *strips]


def thumbnail(curve: Reliability, name: str) -> Markup:
    """Return a small diagram of the bins, for one row of a table."""

    def at(x: float, y: float) -> str:
        return f"{1 + _SMALL * x:.1f} {1 + _SMALL * (1 - y):.1f}"

    rows = curve.bin_rows()
    side = f"{_SMALL + 2:g}"
    whiskers = "".join(
        f"M{at(row['mean_score'], row['interval_lower'])}L{at(row['mean_score'], row['interval_upper'])}"
        for row in rows
    )
    line = "L".join(at(row["mean_score"], row["mean_label"]) for row in rows)
    dots = "".join(
        f'<circle class="dot" cx="{1 + _SMALL * row["mean_score"]:.1f}" '
        f'cy="{1 + _SMALL * (1 - row["mean_label"]):.1f}" r="2"/>'
        for row in rows
    )
    return Markup(
        f'<svg class="thumbnail" viewBox="0 0 {side} {side}" role="img" aria-label="Reliability of {escape(name)}">'
        f'<rect class="frame" x="1" y="1" width="{_SMALL:g}" height="{_SMALL:g}"/>'
        f'<path class="ideal" d="M{at(0, 0)}L{at(1, 1)}"/><path class="whisker" d="{whiskers}"/>'
        f'<path class="isotonic" d="M{line}"/>{dots}</svg>'
    )


def _histogram(histogram: ScoreHistogram, largest: float) -> list[str]:
    top = _BOTTOM + 40
    base, middle = top + _STRIP, _LEFT + _SIDE / 2
    rows, edges = histogram.rows.tolist(), histogram.edges.tolist()
    most = max(rows)
    bars = []
    for count, (low, high) in zip(rows, pairwise(edge / largest for edge in edges), strict=True):
        if count:
            height = max(_STRIP * count / most, 0.7)  # a single row must be visible
            bars.append(
                f'<rect class="bar" x="{_LEFT + _SIDE * low:.1f}" y="{base - height:.1f}" '
                f'width="{max(_SIDE * (high - low) - 0.6, 0.6):.1f}" height="{height:.1f}"/>'
            )
    return [
        *bars,
        f'<path class="base" d="M{_LEFT:g} {base:g}H{_LEFT + _SIDE:g}"/>',
        f'<text class="tick" x="{_LEFT - 6:g}" y="{top + 8:g}" text-anchor="end">{_short(most)}</text>',
        f'<text class="tick" x="{_LEFT - 6:g}" y="{base:g}" text-anchor="end">0</text>',
        f'<text class="axis" x="{middle:g}" y="{base + 18:g}" text-anchor="middle">number of rows by score</text>',
    ]


def _tip(x: float, y: float, lines: Sequence[str]) -> str:
    """Return a box beside a bin, visible while the pointer or the focus is there."""
    height = _TIP_LINE * len(lines) + 9
    left = x + 12 if x + 12 + _TIP_WIDTH <= _WIDTH - 2 else x - 12 - _TIP_WIDTH
    left = min(max(left, 2), _WIDTH - _TIP_WIDTH - 2)
    top = min(max(y - height / 2, 2), _BOTTOM - height)
    text = "".join(
        f'<text x="{left + 8:.1f}" y="{top + 15 + _TIP_LINE * number:.1f}">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return (
        f'<g class="tip" aria-hidden="true"><rect x="{left:.1f}" y="{top:.1f}" width="{_TIP_WIDTH:g}" '
        f'height="{height:g}" rx="4"/>{text}</g>'
    )


def _in_words(curve: Reliability) -> str:
    worst = int(np.abs(curve.bins.gap).argmax())
    score, label = curve.bins.mean_score[worst], curve.bins.mean_label[worst]
    band = ", with the band of a calibrated model" if curve.has_band else ""
    return (
        f"Observed frequency against score in {len(curve.bins)} bins{band}. The largest gap is at a mean score of "
        f"{score:.2f}, where the observed frequency is {label:.2f}."
    )


def _score(value: float) -> str:
    """Return a score with three digits; near 1, where that is too coarse, its distance from 1."""
    if 0.9995 <= value < 1:
        return f"1 − {1 - value:.1e}"
    return f"{value:.3f}" if value >= 0.001 or value == 0 else f"{value:.1e}"


def _short(count: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if count >= size:
            return f"{count / (1e3 if unit == 'k' else size):.3g}{unit}"
    return f"{count:.4g}"
