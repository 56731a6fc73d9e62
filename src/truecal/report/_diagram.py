"""Pictures of the report as SVG, drawn with style sheet classes so that they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from truecal._lib.text import level, percent
from truecal._lib.types import FloatArray
from truecal.assessment._plotdata import ScoreHistogram, axis_top
from truecal.assessment._sections import OverTime
from truecal.data.sample import Sample
from truecal.inference.reliability import Reliability
from truecal.inference.thresholds import NetBenefit

#: The square of the diagram within the drawing, and the strip of the histogram below it.
_LEFT, _TOP, _SIDE, _STRIP = 46.0, 10.0, 340.0, 60.0
_WIDTH, _BOTTOM = _LEFT + _SIDE + 14, _TOP + _SIDE
#: Points of a curve beyond which nothing can be seen.
_POINTS = 240
_TIP_WIDTH, _TIP_LINE = 196.0, 14.5
#: Width and height of the small diagrams.
_SMALL = 88.0


@dataclass(frozen=True)
class _Frame:
    """A rectangle of the drawing, with a vertical axis from `low` to `high`."""

    left: float
    top: float
    width: float
    height: float
    low: float
    high: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def box(self) -> str:
        return f'x="{self.left:g}" y="{self.top:g}" width="{self.width:g}" height="{self.height:g}"'

    def x(self, share: float) -> str:
        return f"{self.left + self.width * share:.1f}"

    def y(self, value: float) -> str:
        return f"{self.bottom - self.height * (value - self.low) / (self.high - self.low):.1f}"

    def x_tick(self, x: str, shown: str, anchor: str = "middle") -> list[str]:
        return [
            f'<path class="grid" d="M{x} {self.top:g}V{self.bottom:g}"/>',
            f'<text class="tick" x="{x}" y="{self.bottom + 14:g}" text-anchor="{anchor}">{shown}</text>',
        ]

    def y_tick(self, value: float, shown: str) -> list[str]:
        y, end = self.y(value), 'text-anchor="end"'
        return [
            f'<path class="grid" d="M{self.left:g} {y}H{self.right:g}"/>',
            f'<text class="tick" x="{self.left - 6:g}" y="{float(y) + 4:.1f}" {end}>{shown}</text>',
        ]

    def x_title(self, text: str, below: float) -> str:
        middle = f'x="{self.left + self.width / 2:g}" y="{self.bottom + below:g}"'
        return f'<text class="axis" {middle} text-anchor="middle">{text}</text>'

    def y_title(self, text: str) -> str:
        turned = f'transform="translate(11 {self.top + self.height / 2:g}) rotate(-90)"'
        return f'<text class="axis" {turned} text-anchor="middle">{text}</text>'


#: The square of a reliability diagram, from 0 to 1.
_SQUARE = _Frame(_LEFT, _TOP, _SIDE, _SIDE, 0.0, 1.0)


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
    layout = _Diagram(
        **{**vars(_SQUARE), "high": top},
        name=name,
        title="score" if name == "score" else f"{name} score",
        step_edges=np.concatenate([score[:1], (score[:-1] + score[1:]) / 2, score[-1:]]),
        step_middles=score,
        bin_middles=curve.bins.mean_score / top,
        ticks=tuple((tick, f"{round(tick * top, 9):g}") for tick in _parts(top)),
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
    layout = _Diagram(
        **{**vars(_SQUARE), "low": math.floor(10 * lowest) / 10 if lowest < 0.9 else 0.9},
        name="rank",
        title="rows, from the lowest score to the highest",
        step_edges=edges,
        step_middles=(edges[:-1] + edges[1:]) / 2,
        bin_middles=(ends[:-1] + ends[1:]) / 2,
        ticks=tuple((tick, f"{100 * tick:g}%") for tick in (0, 0.2, 0.4, 0.6, 0.8, 1)),
    )
    return _svg(curve, layout, [], height=_BOTTOM + 36)


def _svg(curve: Reliability, draw: _Diagram, below: list[str], height: float) -> Markup:
    name = f"by-{draw.name}"
    inside = f'x="{_LEFT:g}" y="{_TOP - 2:g}" width="{_SIDE + 2:g}" height="{_SIDE + 4:g}"'
    parts = [
        f'<svg class="diagram" viewBox="0 0 {_WIDTH:g} {height:g}" role="group" aria-labelledby="{name}-t {name}-d">',
        f'<title id="{name}-t">Reliability diagram by {draw.name}</title>',
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


@dataclass(frozen=True)
class _Diagram(_Frame):
    """A reliability diagram: horizontal positions, all from 0 to 1."""

    name: str
    title: str
    #: Edges of the steps of the curve, and their middles.
    step_edges: FloatArray
    step_middles: FloatArray
    bin_middles: FloatArray
    ticks: tuple[tuple[float, str], ...]

    def frame(self) -> list[str]:
        lines = [f'<rect class="frame" {self.box}/>']
        for tick, shown in self.ticks:
            long = len(shown) > 3  # a long one would stick out at the right
            anchor = {0.0: "start", 1.0: "end"}.get(tick, "middle") if long else "middle"
            lines += self.x_tick(self.x(tick), shown, anchor)
        step = 0.2 if self.low < 0.35 else 0.1 if self.low < 0.75 else 0.02
        levels = np.arange(math.ceil(self.low / step - 1e-9), round(1 / step) + 1) * step
        if self.high < 1:
            levels = self.high * np.array(_parts(self.high))
        for tick in np.round(levels, 9):
            lines += self.y_tick(tick, f"{tick:g}")
        return [*lines, self.x_title(self.title, 30), self.y_title("observed frequency")]

    def ideal(self, curve: Reliability) -> str:
        """Return the path of perfect calibration: the score itself."""
        if self.name != "rank":
            return f"M{self.x(0)} {self.y(0)}L{self.x(1)} {self.y(self.high)}"
        visible = self._visible()
        return "M" + "L".join(f"{self.x(self.step_middles[k])} {self.y(curve.score[k])}" for k in visible)

    def steps(self, label: FloatArray) -> str:
        """Return the path of a step curve, with a corner only where the step changes."""
        change = np.flatnonzero(np.diff(label, prepend=np.nan) != 0)
        edges = self.step_edges[np.append(change, len(label))]
        moves = [f"M{self.x(edges[0])} {self.y(label[0])}"]
        moves += [f"V{self.y(label[k])}H{self.x(end)}" for k, end in zip(change, edges[1:], strict=True)]
        return "".join(moves)

    def band(self, curve: Reliability) -> str:
        visible = self._visible()
        there = [f"{self.x(self.step_middles[k])} {self.y(curve.upper[k])}" for k in visible]
        back = [f"{self.x(self.step_middles[k])} {self.y(curve.lower[k])}" for k in visible[::-1]]
        return "M" + "L".join(there + back) + "Z"

    def _visible(self) -> NDArray[np.intp]:
        """Return as many steps as can be distinguished, with the first and the last."""
        first = np.unique(np.round(self.step_middles * _POINTS), return_index=True)[1]
        return np.unique(np.append(first, len(self.step_middles) - 1))

    def bins(self, curve: Reliability) -> list[str]:
        """Return the bins, and above all of them the strips that show the numbers of each."""
        middles = self.bin_middles.tolist()
        edges = [0.0, *((a + b) / 2 for a, b in pairwise(middles)), 1.0]
        marks, strips = [], []
        for k, row in enumerate(curve.bin_rows()):
            x, y = self.x(middles[k]), self.y(row["mean_label"])
            low, high = row["interval_lower"], row["interval_upper"]
            end = self.y(min(high, self.high))
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


# --- The decision curve and calibration over time ---------------------------------------------------------

#: Left end and width of all curves; top, height and distance of the panels over time.
_CURVE_LEFT, _CURVE_WIDTH = 58.0, 328.0
_TIME_TOP, _TIME_HEIGHT, _BETWEEN = 18.0, 120.0, 20.0
#: The largest logarithm to base 10 of an e-value within its panel; on a longer scale the alarm would not be seen.
_MOST = 12.0


def decision_curve(curve: NetBenefit) -> Markup:
    """Return the net benefit against the threshold, with its band, treating all and treating none."""
    t = curve.thresholds
    # Beyond the largest threshold at which someone would be treated there is nothing to see.
    acted = np.flatnonzero(curve.net_benefit != 0)
    end = min(int(acted[-1]) + 2 if len(acted) else len(t), len(t))
    last = float(t[end - 1])
    top = 1.05 * max(float(curve.high[:end].max()), float(curve.treat_all[:end].max()), 0.01)
    bottom = min(-0.12 * top, max(1.1 * float(curve.low[:end].min()), -0.5 * top))
    frame = _Frame(_CURVE_LEFT, 10.0, _CURVE_WIDTH, 230.0, bottom, top)

    def at(x: float, y: float) -> str:
        return f"{frame.left + frame.width * x / last:.1f} {frame.y(y)}"

    def line(values: FloatArray) -> str:
        return "L".join(at(x, max(y, bottom - top)) for x, y in zip(t[:end], values[:end], strict=True))

    band = "M" + line(curve.high) + "L" + "L".join(line(curve.low).split("L")[::-1]) + "Z"
    best = int(np.argmax(curve.gain[:end]))
    words = (
        f"Net benefit at thresholds from {percent(float(t[0]), 0)} to {percent(last, 0)}. The gain over treating all "
        f"or none is largest at {percent(float(t[best]), 0)}, where the net benefit is {curve.net_benefit[best]:.4f}."
    )
    size = f'viewBox="0 0 {frame.right + 14:g} {frame.bottom + 38:g}"'
    parts = [
        f'<svg class="diagram" {size} role="img" aria-labelledby="decision-t decision-d">',
        '<title id="decision-t">Decision curve</title>',
        f'<desc id="decision-d">{escape(words)}</desc>',
        f'<clipPath id="decision-c"><rect {frame.box}/></clipPath>',
        f'<rect class="frame" {frame.box}/>',
    ]
    for tick in _round_numbers(0.0, last, 5):
        parts += frame.x_tick(at(tick, bottom).split()[0], percent(tick, 0))
    for tick in _round_numbers(bottom, top, 5):
        parts += frame.y_tick(tick, f"{round(tick, 6) + 0.0:g}".replace("-", "−"))
    parts += [
        '<g clip-path="url(#decision-c)">',
        f'<path class="band" d="{band}"/>',
        f'<path class="all" d="M{line(curve.treat_all)}"/>',
        f'<path class="none" d="M{at(0, 0)}L{at(last, 0)}"/>',
        f'<path class="isotonic" d="M{line(curve.net_benefit)}"/>',
        "</g>",
        frame.x_title("threshold probability", 31),
        frame.y_title("net benefit"),
        "</svg>",
    ]
    return Markup("\n".join(parts))


def timeline(part: OverTime) -> Markup:
    """Return the e-value, and observed less predicted in each window and in all rows so far, one below another."""
    looks = part.history
    times = [_number(look.time) for look in looks]
    length = times[-1] - times[0]

    def x(time: Any) -> float:
        share = (_number(time) - times[0]) / length if length else 0.5
        return _CURVE_LEFT + _CURVE_WIDTH * min(max(share, 0.0), 1.0)

    at = [x(look.time) for look in looks]
    drawn = [_evidence(part, at), _of_windows(part, at), _so_far(part, at)]
    parts = []
    for panel, content, above in drawn:
        clip = f'<g clip-path="url(#time-{panel.place})">'
        parts += [*panel.frame(), clip, *_change(part, panel, x), *content, "</g>", above]
    last = drawn[-1][0]
    parts += _time_labels([look.time for look in looks], at, last)
    head = (
        f'viewBox="0 0 {last.right + 14:g} {last.bottom + 22:g}" role="img" aria-labelledby="time-t time-d"'
    )
    words = f'<title id="time-t">Calibration over time</title><desc id="time-d">{escape(part.verdict)}</desc>'
    return Markup("\n".join([f'<svg class="diagram" {head}>', words, *parts, "</svg>"]))


#: A panel, what is drawn inside it, and what is written above it.
_Drawn = tuple["_Panel", list[str], str]


def _evidence(part: OverTime, at: Sequence[float]) -> _Drawn:
    logs = [max(look.log_evalue / math.log(10), -_MOST) for look in part.history]
    alarm, largest = math.log10(part.threshold), max(logs)
    low, high = math.floor(min(*logs, alarm)), math.ceil(max(min(largest, _MOST), alarm + 0.3))
    panel = _panel("e-value", 0, low, high)
    lines = [panel.level("alarm", alarm), panel.line(at, logs)]
    return panel, lines, panel.above(largest) if largest > panel.high else ""


def _of_windows(part: OverTime, at: Sequence[float]) -> _Drawn:
    gaps = [look.batch_gap for look in part.history]
    widest = 1.15 * max(*map(abs, gaps), 1e-3)
    panel = _panel("each window", 1, -widest, widest)
    stems = "".join(f"M{a:.1f} {panel.y(0)}V{panel.y(gap)}" for a, gap in zip(at, gaps, strict=True))
    width = min(max(0.7 * panel.width / len(gaps), 0.8), 8.0)
    return (
        panel,
        [f'<path class="stem" d="{stems}" stroke-width="{width:.1f}"/>', panel.level("ideal", 0)],
        "",
    )


def _so_far(part: OverTime, at: Sequence[float]) -> _Drawn:
    looks = part.history
    # Early bounds are wide; the scale is that of the second half.
    ends = [abs(end) for look in looks[len(looks) // 2 :] for end in (look.gap_low, look.gap_high)]
    widest = 1.15 * max(*ends, 1e-3)
    panel = _panel("all rows so far", 2, -widest, widest)
    band = panel.band(at, [look.gap_low for look in looks], [look.gap_high for look in looks])
    return panel, [band, panel.level("ideal", 0), panel.line(at, [look.gap for look in looks])], ""


def _change(part: OverTime, panel: _Panel, x: Callable[[Any], float]) -> list[str]:
    """Return the beginning of the change, and its interval."""
    if part.change is None:
        return []
    start, end = x(part.change.low_time), x(part.change.high_time)
    size = f'width="{max(end - start, 1):.1f}" height="{_TIME_HEIGHT:g}"'
    line = f"M{x(part.change.time):.1f} {panel.top:g}v{_TIME_HEIGHT:g}"
    box = f'<rect class="since" x="{start:.1f}" y="{panel.top:g}" {size}/>'
    return [box, f'<path class="alarm solid" d="{line}"/>']


def _time_labels(times: Sequence[Any], at: Sequence[float], panel: _Panel) -> list[str]:
    """Return the first and the last time below the panels, and one in the middle if there is room."""
    anchors = {0: "start", len(times) - 1: "end"} if len(times) > 1 else {0: "middle"}
    middle = (panel.left + panel.right) / 2
    centre = min(range(len(times)), key=lambda number: abs(at[number] - middle))
    if abs(at[centre] - middle) < panel.width / 6:  # nearer to an end, the labels would collide
        anchors.setdefault(centre, "middle")
    texts = [escape(str(time)[:10]) for time in times]
    return [panel.x_tick(f"{at[k]:.1f}", texts[k], anchor)[1] for k, anchor in anchors.items()]


@dataclass(frozen=True)
class _Panel(_Frame):
    """One of the diagrams over time: its title, and its place from the top."""

    title: str
    place: int

    def frame(self) -> list[str]:
        # About four round numbers; of exponents, whole ones.
        ticks = _round_numbers(self.low, self.high, 4, at_least=1.0 if self.place == 0 else 0.0)
        return [
            f'<clipPath id="time-{self.place}"><rect {self.box}/></clipPath><rect class="frame" {self.box}/>',
            self.y_title(self.title),
            *("".join(self.y_tick(tick, self._shown(tick))) for tick in ticks),
        ]

    def _shown(self, tick: float) -> str:
        if self.place:
            return f"{round(100 * tick, 6) + 0.0:g}%".replace("-", "−")
        if -3 <= tick <= 3:
            return f"{10.0**tick:,g}"
        return f'10<tspan dy="-4" font-size="80%">{tick:g}</tspan>'.replace(">-", ">−")

    def above(self, largest: float) -> str:
        """Return the largest value of a curve that leaves the panel, written above its right end."""
        shown = self._shown(math.floor(largest)) if math.isfinite(largest) else "infinity"
        place = f'x="{self.right:g}" y="{self.top - 5:g}"'
        return f'<text class="tick" {place} text-anchor="end">↑ up to {shown}</text>'

    def level(self, kind: str, value: float) -> str:
        return f'<path class="{kind}" d="M{self.left:g} {self.y(value)}H{self.right:g}"/>'

    def line(self, at: Sequence[float], values: Sequence[float]) -> str:
        return f'<path class="isotonic" d="M{self._points(at, values)}"/>'

    def band(self, at: Sequence[float], low: Sequence[float], high: Sequence[float]) -> str:
        return f'<path class="band" d="M{self._points(at, high)}L{self._points(at[::-1], low[::-1])}Z"/>'

    def _points(self, at: Sequence[float], values: Sequence[float]) -> str:
        # Far outside the panel is as good as at infinity, which a path cannot have.
        far = 3 * (self.high - self.low)
        inside = (min(max(value, self.low - far), self.high + far) for value in values)
        return "L".join(f"{a:.1f} {self.y(value)}" for a, value in zip(at, inside, strict=True))


def _panel(title: str, place: int, low: float, high: float) -> _Panel:
    top = _TIME_TOP + place * (_TIME_HEIGHT + _BETWEEN)
    return _Panel(_CURVE_LEFT, top, _CURVE_WIDTH, _TIME_HEIGHT, low, high, title, place)


def _number(time: Any) -> float:
    """Return a time as a number: dates as seconds."""
    return float(np.datetime64(time, "s").astype(np.int64)) if isinstance(time, str) else float(time)


def _round_numbers(low: float, high: float, about: int, at_least: float = 0.0) -> list[float]:
    """Return about so many round numbers between two others; their steps are at least `at_least`."""
    raw = (high - low) / about
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if raw <= size * factor * 1.0001)
    step = max(step, at_least)
    return [step * k for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
