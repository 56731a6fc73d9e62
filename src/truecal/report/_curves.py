"""The decision curve and calibration over time as SVG, with style sheet classes so that they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from truecal._lib.text import percent
from truecal._lib.types import FloatArray
from truecal.assessment._sections import OverTime
from truecal.inference.thresholds import NetBenefit

#: Left end and width of all panels; top and height of the decision curve, and of the panels over time.
_LEFT, _WIDTH = 58.0, 328.0
_RIGHT = _LEFT + _WIDTH
_TOP, _HEIGHT = 10.0, 230.0
_BOTTOM = _TOP + _HEIGHT
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

    def at(x: float, y: float) -> str:
        return f"{_LEFT + _WIDTH * x / last:.1f} {_BOTTOM - _HEIGHT * (y - bottom) / (top - bottom):.1f}"

    def line(values: FloatArray) -> str:
        return "L".join(at(x, max(y, bottom - top)) for x, y in zip(t[:end], values[:end], strict=True))

    band = "M" + line(curve.high) + "L" + "L".join(line(curve.low).split("L")[::-1]) + "Z"
    best = int(np.argmax(curve.gain[:end]))
    words = (
        f"Net benefit at thresholds from {percent(float(t[0]), 0)} to {percent(last, 0)}. The gain over treating all "
        f"or none is largest at {percent(float(t[best]), 0)}, where the net benefit is {curve.net_benefit[best]:.4f}."
    )
    clip = f'x="{_LEFT:g}" y="{_TOP:g}" width="{_WIDTH:g}" height="{_HEIGHT:g}"'
    turned = f'transform="translate(11 {_TOP + _HEIGHT / 2:g}) rotate(-90)"'
    labelled = 'aria-labelledby="decision-t decision-d"'
    middle = f'x="{_LEFT + _WIDTH / 2:g}" y="{_BOTTOM + 31:g}" text-anchor="middle"'
    parts = [
        f'<svg class="diagram" viewBox="0 0 {_RIGHT + 14:g} {_BOTTOM + 38:g}" role="img" {labelled}>',
        '<title id="decision-t">Decision curve</title>',
        f'<desc id="decision-d">{escape(words)}</desc>',
        f'<clipPath id="decision-c"><rect {clip}/></clipPath>',
        f'<rect class="frame" {clip}/>',
    ]
    for tick in _round_numbers(0.0, last, 5):
        x = at(tick, bottom).split()[0]
        parts.append(f'<path class="grid" d="M{x} {_TOP:g}V{_BOTTOM:g}"/>')
        parts.append(
            f'<text class="tick" x="{x}" y="{_BOTTOM + 14:g}" text-anchor="middle">{percent(tick, 0)}</text>'
        )
    for tick in _round_numbers(bottom, top, 5):
        y = float(at(0, tick).split()[1])
        shown = f"{round(tick, 6) + 0.0:g}".replace("-", "−")
        parts.append(f'<path class="grid" d="M{_LEFT:g} {y:.1f}H{_RIGHT:g}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 6:g}" y="{y + 4:.1f}" text-anchor="end">{shown}</text>')
    parts += [
        '<g clip-path="url(#decision-c)">',
        f'<path class="band" d="{band}"/>',
        f'<path class="all" d="M{line(curve.treat_all)}"/>',
        f'<path class="none" d="M{at(0, 0)}L{at(last, 0)}"/>',
        f'<path class="isotonic" d="M{line(curve.net_benefit)}"/>',
        "</g>",
        f'<text class="axis" {middle}>threshold probability</text>',
        f'<text class="axis" {turned} text-anchor="middle">net benefit</text>',
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
        return _LEFT + _WIDTH * min(max(share, 0.0), 1.0)

    at = [x(look.time) for look in looks]
    drawn = [_evidence(part, at), _of_windows(part, at), _so_far(part, at)]
    parts = []
    for panel, content, above in drawn:
        clip = f'<g clip-path="url(#time-{panel.place})">'
        parts += [*panel.frame(), clip, *_change(part, panel, x), *content, "</g>", above]
    bottom = drawn[-1][0].bottom
    parts += _time_labels([look.time for look in looks], at, bottom)
    head = f'viewBox="0 0 {_RIGHT + 14:g} {bottom + 22:g}" role="img" aria-labelledby="time-t time-d"'
    words = f'<title id="time-t">Calibration over time</title><desc id="time-d">{escape(part.verdict)}</desc>'
    return Markup("\n".join([f'<svg class="diagram" {head}>', words, *parts, "</svg>"]))


#: A panel, what is drawn inside it, and what is written above it.
_Drawn = tuple["_Panel", list[str], str]


def _evidence(part: OverTime, at: Sequence[float]) -> _Drawn:
    logs = [max(look.log_evalue / math.log(10), -_MOST) for look in part.history]
    alarm, largest = math.log10(part.threshold), max(logs)
    panel = _Panel("e-value", 0, math.floor(min(logs)), math.ceil(max(min(largest, _MOST), alarm + 0.3)))
    lines = [f'<path class="alarm" d="M{_LEFT:g} {panel.y(alarm)}H{_RIGHT:g}"/>', panel.line(at, logs)]
    return panel, lines, panel.above(largest) if largest > panel.high else ""


def _of_windows(part: OverTime, at: Sequence[float]) -> _Drawn:
    gaps = [look.batch_gap for look in part.history]
    widest = 1.15 * max(*map(abs, gaps), 1e-3)
    panel = _Panel("each window", 1, -widest, widest)
    stems = "".join(f"M{a:.1f} {panel.y(0)}V{panel.y(gap)}" for a, gap in zip(at, gaps, strict=True))
    width = min(max(0.7 * _WIDTH / len(gaps), 0.8), 8.0)
    return panel, [f'<path class="stem" d="{stems}" stroke-width="{width:.1f}"/>', panel.zero()], ""


def _so_far(part: OverTime, at: Sequence[float]) -> _Drawn:
    looks = part.history
    # Early bounds are wide; the scale is that of the second half.
    ends = [abs(end) for look in looks[len(looks) // 2 :] for end in (look.gap_low, look.gap_high)]
    widest = 1.15 * max(*ends, 1e-3)
    panel = _Panel("all rows so far", 2, -widest, widest)
    band = panel.band(at, [look.gap_low for look in looks], [look.gap_high for look in looks])
    return panel, [band, panel.zero(), panel.line(at, [look.gap for look in looks])], ""


def _change(part: OverTime, panel: _Panel, x: Callable[[Any], float]) -> list[str]:
    """Return the beginning of the change, and its interval."""
    if part.change is None:
        return []
    start, end = x(part.change.low_time), x(part.change.high_time)
    size = f'width="{max(end - start, 1):.1f}" height="{_TIME_HEIGHT:g}"'
    line = f"M{x(part.change.time):.1f} {panel.top:g}v{_TIME_HEIGHT:g}"
    box = f'<rect class="since" x="{start:.1f}" y="{panel.top:g}" {size}/>'
    return [box, f'<path class="alarm solid" d="{line}"/>']


def _time_labels(times: Sequence[Any], at: Sequence[float], bottom: float) -> list[str]:
    """Return the first and the last time below the panels, and one in the middle if there is room."""
    anchors = {0: "start", len(times) - 1: "end"} if len(times) > 1 else {0: "middle"}
    middle = (_LEFT + _RIGHT) / 2
    centre = min(range(len(times)), key=lambda number: abs(at[number] - middle))
    if abs(at[centre] - middle) < _WIDTH / 6:  # nearer to an end, the labels would collide
        anchors.setdefault(centre, "middle")
    texts = [str(time)[:10] for time in times]
    return [
        f'<text class="tick" x="{at[k]:.1f}" y="{bottom + 14:g}" text-anchor="{anchor}">{escape(texts[k])}</text>'
        for k, anchor in anchors.items()
    ]


@dataclass(frozen=True)
class _Panel:
    """One of the diagrams: its title, its place from the top, and the ends of its scale."""

    title: str
    place: int
    low: float
    high: float

    @property
    def top(self) -> float:
        return _TIME_TOP + self.place * (_TIME_HEIGHT + _BETWEEN)

    @property
    def bottom(self) -> float:
        return self.top + _TIME_HEIGHT

    def y(self, value: float) -> str:
        return f"{self.bottom - _TIME_HEIGHT * (value - self.low) / (self.high - self.low):.1f}"

    def frame(self) -> list[str]:
        box = f'x="{_LEFT:g}" y="{self.top:g}" width="{_WIDTH:g}" height="{_TIME_HEIGHT:g}"'
        turned = f'transform="translate(11 {self.top + _TIME_HEIGHT / 2:g}) rotate(-90)"'
        lines = [
            f'<clipPath id="time-{self.place}"><rect {box}/></clipPath><rect class="frame" {box}/>',
            f'<text class="axis" {turned} text-anchor="middle">{self.title}</text>',
        ]
        for tick in self._ticks():
            y = self.y(tick)
            lines.append(
                f'<path class="grid" d="M{_LEFT:g} {y}H{_RIGHT:g}"/><text class="tick" x="{_LEFT - 6:g}" '
                f'y="{float(y) + 4:.1f}" text-anchor="end">{self._shown(tick)}</text>'
            )
        return lines

    def _ticks(self) -> list[float]:
        """Return about four round numbers; of exponents, whole ones."""
        return _round_numbers(self.low, self.high, 4, at_least=1.0 if self.place == 0 else 0.0)

    def _shown(self, tick: float) -> str:
        if self.place:
            return f"{round(100 * tick, 6) + 0.0:g}%".replace("-", "−")
        if -3 <= tick <= 3:
            return f"{10.0**tick:,g}"
        return f'10<tspan dy="-4" font-size="80%">{tick:g}</tspan>'.replace(">-", ">−")

    def above(self, largest: float) -> str:
        """Return the largest value of a curve that leaves the panel, written above its right end."""
        shown = self._shown(math.floor(largest)) if math.isfinite(largest) else "infinity"
        return (
            f'<text class="tick" x="{_RIGHT:g}" y="{self.top - 5:g}" text-anchor="end">↑ up to {shown}</text>'
        )

    def zero(self) -> str:
        return f'<path class="ideal" d="M{_LEFT:g} {self.y(0)}H{_RIGHT:g}"/>'

    def line(self, at: Sequence[float], values: Sequence[float]) -> str:
        return f'<path class="isotonic" d="M{self._points(at, values)}"/>'

    def band(self, at: Sequence[float], low: Sequence[float], high: Sequence[float]) -> str:
        return f'<path class="band" d="M{self._points(at, high)}L{self._points(at[::-1], low[::-1])}Z"/>'

    def _points(self, at: Sequence[float], values: Sequence[float]) -> str:
        # Far outside the panel is as good as at infinity, which a path cannot have.
        far = 3 * (self.high - self.low)
        inside = (min(max(value, self.low - far), self.high + far) for value in values)
        return "L".join(f"{a:.1f} {self.y(value)}" for a, value in zip(at, inside, strict=True))


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
