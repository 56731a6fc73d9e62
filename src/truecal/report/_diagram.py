"""Pictures of the report as SVG, drawn with style sheet classes so that they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from truecal._lib.text import level, percent, short_count
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
#: Values are drawn up to so many heights outside of a frame: as good as at infinity, which a path cannot have.
_FAR = 100

_Values = Sequence[float] | FloatArray


@dataclass(frozen=True)
class _Frame:
    """A rectangle of the drawing, with values from `first` to `last` across and from `low` to `high` upwards."""

    left: float
    top: float
    width: float
    height: float
    first: float
    last: float
    low: float
    high: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def box(self, margin: float = 0) -> str:
        place = f'x="{self.left - margin:g}" y="{self.top - margin:g}"'
        return f'{place} width="{self.width + 2 * margin:g}" height="{self.height + 2 * margin:g}"'

    def across(self, value: float) -> float:
        return self.left + self.width * ((value - self.first) / (self.last - self.first))

    def x(self, value: float) -> str:
        return f"{self.across(value):.1f}"

    def y(self, value: float) -> str:
        far = _FAR * (self.high - self.low)
        value = min(max(value, self.low - far), self.high + far)
        return f"{self.bottom - self.height * (value - self.low) / (self.high - self.low):.1f}"

    def x_tick(self, value: float, shown: str, anchor: str = "middle") -> list[str]:
        x = self.x(value)
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

    def points(self, x: _Values, y: _Values) -> str:
        return "L".join(f"{self.x(a)} {self.y(b)}" for a, b in zip(x, y, strict=True))

    def line(self, kind: str, x: _Values, y: _Values) -> str:
        return f'<path class="{kind}" d="M{self.points(x, y)}"/>'

    def level(self, kind: str, value: float) -> str:
        return f'<path class="{kind}" d="M{self.left:g} {self.y(value)}H{self.right:g}"/>'

    def band(self, x: _Values, low: _Values, high: _Values) -> str:
        return f'<path class="band" d="M{self.points(x, high)}L{self.points(x[::-1], low[::-1])}Z"/>'

    def clipped(self, name: str, content: Sequence[str], margin: float = 0) -> list[str]:
        """Return what is drawn inside of the frame only."""
        clip = f'<clipPath id="{name}"><rect {self.box(margin)}/></clipPath>'
        return [clip, f'<g clip-path="url(#{name})">', *content, "</g>"]


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
    score = curve.score
    layout = _Diagram(
        *(_LEFT, _TOP, _SIDE, _SIDE, 0.0, top, 0.0, top),
        title="score" if name == "score" else f"{name} score",
        step_edges=np.concatenate([score[:1], (score[:-1] + score[1:]) / 2, score[-1:]]),
        step_middles=score,
        bin_middles=curve.bins.mean_score,
        ticks=tuple((tick, f"{tick:g}") for tick in _parts(top)),
    )
    place = f'class="axis" x="{_LEFT + _SIDE - 8:g}" text-anchor="end"'
    below = [
        f'<text {place} y="{_BOTTOM - 10 - 16 * k:g}">{escape(note)}</text>'
        for k, note in enumerate(reversed(notes))
    ]
    height = _BOTTOM + 36
    if histogram is not None:
        below += _histogram(histogram, top)
        height = _BOTTOM + 40 + _STRIP + 28
    ideal = layout.line("ideal", [0, top], [0, top])
    return layout.draw(curve, name, ideal, below, height)


def _parts(top: float) -> list[float]:
    """Return the ticks of an axis from 0 up to `top`."""
    shares = (0, 0.2, 0.4, 0.6, 0.8, 1) if top == 1 else (0, 0.25, 0.5, 0.75, 1)
    return [round(share * top, 9) for share in shares]


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
    low = math.floor(10 * lowest) / 10 if lowest < 0.9 else 0.9
    layout = _Diagram(
        *(_LEFT, _TOP, _SIDE, _SIDE, 0.0, 1.0, low, 1.0),
        title="rows, from the lowest score to the highest",
        step_edges=edges,
        step_middles=(edges[:-1] + edges[1:]) / 2,
        bin_middles=(ends[:-1] + ends[1:]) / 2,
        ticks=tuple((tick, f"{100 * tick:g}%") for tick in _parts(1)),
    )
    visible = layout.visible()
    ideal = layout.line("ideal", layout.step_middles[visible], curve.score[visible])
    return layout.draw(curve, "rank", ideal, [], height=_BOTTOM + 36)


def _svg(
    name: str, size: tuple[float, float], words: tuple[str, str], parts: Sequence[str], role: str = "img"
) -> Markup:
    """Return a picture of this width and height, with a title and a description in words."""
    head = f'viewBox="0 0 {size[0]:g} {size[1]:g}" role="{role}" aria-labelledby="{name}-t {name}-d"'
    title, description = words
    named = [
        f'<title id="{name}-t">{title}</title>',
        f'<desc id="{name}-d">{escape(description)}</desc>',
    ]
    return Markup("\n".join([f'<svg class="diagram" {head}>', *named, *parts, "</svg>"]))


@dataclass(frozen=True)
class _Diagram(_Frame):
    """A reliability diagram: what lies where on its horizontal axis."""

    title: str
    #: Edges of the steps of the curve, and their middles.
    step_edges: FloatArray
    step_middles: FloatArray
    bin_middles: FloatArray
    ticks: tuple[tuple[float, str], ...]

    def draw(self, curve: Reliability, name: str, ideal: str, below: Sequence[str], height: float) -> Markup:
        """Return the drawing: frame, band, perfect calibration, curve, what is `below`, and bins."""
        visible, inside = self.visible(), [ideal, self._steps(curve.label)]
        if curve.has_band:
            bounds = (curve.lower[visible], curve.upper[visible])
            inside.insert(0, self.band(self.step_middles[visible], *bounds))
        parts = [
            *self._axes(),
            *self.clipped(f"by-{name}-c", inside, margin=2),
            *below,
            *self._bins(curve),
        ]
        words = (f"Reliability diagram by {name}", _in_words(curve))
        return _svg(f"by-{name}", (_WIDTH, height), words, parts, role="group")

    def _axes(self) -> list[str]:
        lines = [f'<rect class="frame" {self.box()}/>']
        for tick, shown in self.ticks:
            long = len(shown) > 3  # a long one would stick out at the right
            anchor = {self.first: "start", self.last: "end"}.get(tick, "middle") if long else "middle"
            lines += self.x_tick(tick, shown, anchor)
        step = 0.2 if self.low < 0.35 else 0.1 if self.low < 0.75 else 0.02
        levels = np.arange(math.ceil(self.low / step - 1e-9), round(1 / step) + 1) * step
        for tick in _parts(self.high) if self.high < 1 else np.round(levels, 9):
            lines += self.y_tick(tick, f"{tick:g}")
        return [*lines, self.x_title(self.title, 30), self.y_title("observed frequency")]

    def _steps(self, label: FloatArray) -> str:
        """Return the path of a step curve, with a corner only where the step changes."""
        change = np.flatnonzero(np.diff(label, prepend=np.nan) != 0)
        edges = self.step_edges[np.append(change, len(label))]
        moves = [f"M{self.x(edges[0])} {self.y(label[0])}"]
        moves += [f"V{self.y(label[k])}H{self.x(end)}" for k, end in zip(change, edges[1:], strict=True)]
        return f'<path class="isotonic" d="{"".join(moves)}"/>'

    def visible(self) -> NDArray[np.intp]:
        """Return as many steps as can be distinguished, with the first and the last."""
        first = np.unique(np.round(self.step_middles / self.last * _POINTS), return_index=True)[1]
        return np.unique(np.append(first, len(self.step_middles) - 1))

    def _bins(self, curve: Reliability) -> list[str]:
        """Return the bins, and above all of them the strips that show the numbers of each."""
        middles = self.bin_middles.tolist()
        edges = [self.first, *((a + b) / 2 for a, b in pairwise(middles)), self.last]
        marks, strips = [], []
        for middle, reach, row in zip(middles, pairwise(edges), curve.bin_rows(), strict=True):
            x, y = self.x(middle), self.y(row["mean_label"])
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
            start, stop = map(self.across, reach)
            size = f'width="{max(stop - start, 0.5):.1f}" height="{self.height:g}"'
            strips.append(
                f'<g class="bin" tabindex="0" role="img" aria-label="{escape("; ".join(lines))}">'
                f'<rect class="reach" x="{start:.1f}" y="{self.top:g}" {size}/>'
                f'<circle class="mark" cx="{x}" cy="{y}" r="5.5"/>{_tip(float(x), float(y), lines)}</g>'
            )
        return [*marks, *strips]


def thumbnail(curve: Reliability, name: str) -> Markup:
    """Return a small diagram of the bins, for one row of a table."""
    frame = _Frame(1, 1, _SMALL, _SMALL, 0, 1, 0, 1)
    score, rows = curve.bins.mean_score.tolist(), curve.bin_rows()
    ends = [(row["interval_lower"], row["interval_upper"]) for row in rows]
    whiskers = "".join(f"M{frame.points((x, x), pair)}" for x, pair in zip(score, ends, strict=True))
    dots = "".join(
        f'<circle class="dot" cx="{frame.x(row["mean_score"])}" cy="{frame.y(row["mean_label"])}" r="2"/>'
        for row in rows
    )
    side = f"{_SMALL + 2:g}"
    return Markup(
        f'<svg class="thumbnail" viewBox="0 0 {side} {side}" role="img" aria-label="Reliability of {escape(name)}">'
        f'<rect class="frame" {frame.box()}/>{frame.line("ideal", (0, 1), (0, 1))}'
        f'<path class="whisker" d="{whiskers}"/>{frame.line("isotonic", score, curve.bins.mean_label)}{dots}</svg>'
    )


def _histogram(histogram: ScoreHistogram, largest: float) -> list[str]:
    rows, edges = histogram.rows.tolist(), histogram.edges.tolist()
    most = max(rows)
    strip = _Frame(_LEFT, _BOTTOM + 40, _SIDE, _STRIP, 0, largest, 0, most)
    bars = []
    for count, (low, high) in zip(rows, pairwise(map(strip.across, edges)), strict=True):
        if count:
            height = max(_STRIP * count / most, 0.7)  # a single row must be visible
            bars.append(
                f'<rect class="bar" x="{low:.1f}" y="{strip.bottom - height:.1f}" '
                f'width="{max(high - low - 0.6, 0.6):.1f}" height="{height:.1f}"/>'
            )
    return [
        *bars,
        strip.level("base", 0),
        f'<text class="tick" x="{_LEFT - 6:g}" y="{strip.top + 8:g}" text-anchor="end">{short_count(most)}</text>',
        f'<text class="tick" x="{_LEFT - 6:g}" y="{strip.bottom:g}" text-anchor="end">0</text>',
        strip.x_title("number of rows by score", 18),
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


# --- The decision curve and calibration over time ---------------------------------------------------------

#: Left end and width of all curves; top, height and distance of the panels over time.
_CURVE_LEFT, _CURVE_WIDTH = 58.0, 328.0
_TIME_TOP, _TIME_HEIGHT, _BETWEEN = 18.0, 120.0, 20.0
#: The largest logarithm to base 10 of an e-value within its panel; on a longer scale the alarm would not be seen.
_MOST = 12.0


def decision_curve(curve: NetBenefit) -> Markup:
    """Return the net benefit against the threshold, with its band, treating all and treating none."""
    # Beyond the largest threshold at which someone would be treated there is nothing to see.
    acted = np.flatnonzero(curve.net_benefit != 0)
    shown = slice(int(acted[-1]) + 2 if len(acted) else None)
    t, low, high = curve.thresholds[shown], curve.low[shown], curve.high[shown]
    last, treat_all = float(t[-1]), curve.treat_all[shown]
    top = 1.05 * max(float(high.max()), float(treat_all.max()), 0.01)
    bottom = min(-0.12 * top, max(1.1 * float(low.min()), -0.5 * top))
    frame = _Frame(_CURVE_LEFT, 10.0, _CURVE_WIDTH, 230.0, 0.0, last, bottom, top)
    best = int(np.argmax(curve.gain[shown]))
    words = (
        f"Net benefit at thresholds from {percent(float(t[0]), 0)} to {percent(last, 0)}. The gain over treating all "
        f"or none is largest at {percent(float(t[best]), 0)}, where the net benefit is {curve.net_benefit[best]:.4f}."
    )
    parts = [f'<rect class="frame" {frame.box()}/>']
    for tick in _round_numbers(0.0, last, 5):
        parts += frame.x_tick(tick, percent(tick, 0))
    for tick in _round_numbers(bottom, top, 5):
        parts += frame.y_tick(tick, f"{round(tick, 6) + 0.0:g}".replace("-", "−"))
    curves = [
        frame.band(t, low, high),
        frame.line("all", t, treat_all),
        frame.line("none", (0, last), (0, 0)),
        frame.line("isotonic", t, curve.net_benefit[shown]),
    ]
    parts += frame.clipped("decision-c", curves)
    parts += [frame.x_title("threshold probability", 31), frame.y_title("net benefit")]
    return _svg("decision", (frame.right + 14, frame.bottom + 38), ("Decision curve", words), parts)


def timeline(part: OverTime) -> Markup:
    """Return the e-value, and observed less predicted in each window and in all rows so far, one below another."""
    looks = part.history
    times = [_number(look.time) for look in looks]
    logs = [max(look.log_evalue / math.log(10), -_MOST) for look in looks]
    alarm, largest = math.log10(part.threshold), max(logs)
    gaps = [look.batch_gap for look in looks]
    lower, upper = [look.gap_low for look in looks], [look.gap_high for look in looks]
    half = len(looks) // 2  # early bounds are wide; the scale is that of the second half
    limits = {
        "e-value": (math.floor(min(*logs, alarm)), math.ceil(max(min(largest, _MOST), alarm + 0.3))),
        "each window": _around_zero(gaps),
        "all rows so far": _around_zero([*lower[half:], *upper[half:]]),
    }
    # A single time stands in the middle; far from 0 a time and the next number differ by more than 1.
    margin = max(1.0, 1e-9 * abs(times[0])) if times[0] == times[-1] else 0.0
    span = (times[0] - margin, times[-1] + margin)
    tops = (_TIME_TOP + place * (_TIME_HEIGHT + _BETWEEN) for place in range(3))
    panels = [
        _Frame(_CURVE_LEFT, top, _CURVE_WIDTH, _TIME_HEIGHT, *span, *ends)
        for top, ends in zip(tops, limits.values(), strict=True)
    ]
    evidence, windows, so_far = panels
    stems = "".join(f"M{windows.points((t, t), (0, gap))}" for t, gap in zip(times, gaps, strict=True))
    width = min(max(0.7 * _CURVE_WIDTH / len(gaps), 0.8), 8.0)
    contents = (
        [evidence.level("alarm", alarm), evidence.line("isotonic", times, logs)],
        [f'<path class="stem" d="{stems}" stroke-width="{width:.1f}"/>', windows.level("ideal", 0)],
        [
            so_far.band(times, lower, upper),
            so_far.level("ideal", 0),
            so_far.line("isotonic", times, [look.gap for look in looks]),
        ],
    )
    parts = []
    for place, (title, panel, content) in enumerate(zip(limits, panels, contents, strict=True)):
        parts += _time_axis(title, panel)
        parts += panel.clipped(f"time-{place}", [*_change(part, panel), *content])
    if largest > evidence.high:  # written above the right end of the curve
        shown = _power(math.floor(largest)) if math.isfinite(largest) else "infinity"
        at = f'x="{evidence.right:g}" y="{evidence.top - 5:g}"'
        parts.append(f'<text class="tick" {at} text-anchor="end">↑ up to {shown}</text>')
    parts += _time_labels([look.time for look in looks], times, so_far)
    return _svg(
        "time", (so_far.right + 14, so_far.bottom + 22), ("Calibration over time", part.verdict), parts
    )


def _time_axis(title: str, panel: _Frame) -> list[str]:
    """Return a panel with about four ticks: whole powers of ten for e-values, else percent."""
    powers = title == "e-value"
    parts = [f'<rect class="frame" {panel.box()}/>', panel.y_title(title)]
    for tick in _round_numbers(panel.low, panel.high, 4, at_least=1.0 if powers else 0.0):
        percentage = f"{round(100 * tick, 6) + 0.0:g}%".replace("-", "−")
        parts += panel.y_tick(tick, _power(tick) if powers else percentage)
    return parts


def _around_zero(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis that has 0 in its middle and shows all values."""
    widest = 1.15 * max(*map(abs, values), 1e-3)
    return -widest, widest


def _power(exponent: float) -> str:
    """Return a power of ten, as a number if that is short."""
    if -3 <= exponent <= 3:
        return f"{10.0**exponent:,g}"
    return f'10<tspan dy="-4" font-size="80%">{exponent:g}</tspan>'.replace(">-", ">−")


def _change(part: OverTime, panel: _Frame) -> list[str]:
    """Return the beginning of the change, and its interval."""
    if part.change is None:
        return []
    # A change before the end of the first window is drawn there, where the line is seen.
    first, last = (_number(part.history[end].time) for end in (0, -1))
    low, start, high = (
        panel.across(min(max(_number(time), first), last))
        for time in (part.change.low_time, part.change.time, part.change.high_time)
    )
    size = f'width="{max(high - low, 1):.1f}" height="{panel.height:g}"'
    return [
        f'<rect class="since" x="{low:.1f}" y="{panel.top:g}" {size}/>',
        f'<path class="alarm solid" d="M{start:.1f} {panel.top:g}v{panel.height:g}"/>',
    ]


def _time_labels(shown: Sequence[Any], times: Sequence[float], panel: _Frame) -> list[str]:
    """Return the first and the last time below the panels, and one in the middle if there is room."""
    anchors = {0: "start", len(times) - 1: "end"} if len(times) > 1 else {0: "middle"}
    off = [abs(panel.across(time) - (panel.left + panel.right) / 2) for time in times]
    centre = min(range(len(times)), key=off.__getitem__)
    if off[centre] < panel.width / 6:  # nearer to an end, the labels would collide
        anchors.setdefault(centre, "middle")
    return [panel.x_tick(times[k], escape(str(shown[k])[:10]), anchor)[1] for k, anchor in anchors.items()]


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
