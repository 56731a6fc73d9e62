"""The reliability diagram as SVG, drawn with style sheet classes so that it follows light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from scipy.stats import beta

from truecal.reliability import Reliability
from truecal.sample import FloatArray

#: The square of the diagram within the drawing, and the strip of the histogram below it.
_LEFT, _TOP, _SIDE, _STRIP = 46.0, 10.0, 340.0, 64.0
_WIDTH, _HEIGHT = _LEFT + _SIDE + 14, _TOP + _SIDE + 40 + _STRIP + 38
_BOTTOM = _TOP + _SIDE
#: Points of a curve beyond which nothing can be seen.
_POINTS = 240
_TIP_WIDTH, _TIP_LINE = 196.0, 14.5


@dataclass(frozen=True)
class Scale:
    """Where a probability lies between the ends of an axis, and where the axis has ticks."""

    name: str
    ticks: tuple[float, ...]
    #: On the logit scale, the last probability that is shown; 0 for the plain scale.
    end: float = 0.0

    def place(self, value: float) -> float:
        """Return the place of a probability, from 0 to 1."""
        if not self.end:
            return value
        value = min(max(value, self.end), 1 - self.end)
        return 0.5 - 0.5 * math.log(value / (1 - value)) / math.log(self.end / (1 - self.end))


PLAIN = Scale("plain", (0, 0.2, 0.4, 0.6, 0.8, 1))
LOGIT = Scale("logit", (0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999), end=1e-4)


def reliability_svg(
    curve: Reliability, histogram: dict[str, Any], scale: Scale = PLAIN, *, level: float = 0.95
) -> Markup:
    """Return the diagram with band, isotonic curve, bins that tell of themselves, and the scores' histogram.

    Parameters
    ----------
    curve : Reliability
        The curves.
    histogram : dict
        ``edges`` and ``count`` of the scores.
    scale : Scale
        Of both axes.
    level : float
        Level of the bins' intervals.
    """
    draw = _Drawing(scale)
    name = f"rel-{scale.name}"
    parts = [
        f'<svg class="diagram" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="group" aria-labelledby="{name}-t {name}-d">',
        f'<title id="{name}-t">Reliability diagram</title>',
        f'<desc id="{name}-d">{escape(_in_words(curve))}</desc>',
        *draw.frame(),
        *([f'<path class="band" d="{draw.band(curve)}"/>'] if curve.has_band else []),
        f'<path class="ideal" d="M{draw.x(0)} {draw.y(0)}L{draw.x(1)} {draw.y(1)}"/>',
        f'<path class="isotonic" d="{draw.steps(curve.score, curve.label)}"/>',
        *draw.histogram(histogram),
        *draw.bins(curve, level),
        "</svg>",
    ]
    return Markup("\n".join(parts))


class _Drawing:
    """The parts of a diagram on one scale."""

    def __init__(self, scale: Scale) -> None:
        self.scale = scale

    def x(self, score: float) -> str:
        return f"{_LEFT + _SIDE * self.scale.place(score):.1f}"

    def y(self, label: float) -> str:
        return f"{_BOTTOM - _SIDE * self.scale.place(label):.1f}"

    def frame(self) -> list[str]:
        lines = [f'<rect class="frame" x="{_LEFT:g}" y="{_TOP:g}" width="{_SIDE:g}" height="{_SIDE:g}"/>']
        for tick in self.scale.ticks:
            x, y = self.x(tick), self.y(tick)
            shown = _tick(tick, self.scale)
            lines += [
                f'<path class="grid" d="M{x} {_TOP:g}V{_BOTTOM:g}M{_LEFT:g} {y}H{_LEFT + _SIDE:g}"/>',
                f'<text class="tick" x="{x}" y="{_BOTTOM + 14:g}" text-anchor="middle">{shown}</text>',
                f'<text class="tick" x="{_LEFT - 6:g}" y="{float(y) + 4:.1f}" text-anchor="end">{shown}</text>',
            ]
        turned = f'transform="translate(11 {_TOP + _SIDE / 2:g}) rotate(-90)"'
        middle = _LEFT + _SIDE / 2
        return [
            *lines,
            f'<text class="axis" x="{middle:g}" y="{_BOTTOM + 30:g}" text-anchor="middle">score</text>',
            f'<text class="axis" {turned} text-anchor="middle">how often it came true</text>',
        ]

    def steps(self, score: FloatArray, label: FloatArray) -> str:
        """Return the path of a step curve, with a corner only where the step changes."""
        change = np.flatnonzero(np.diff(label, prepend=np.nan) != 0)
        edges = np.append((score[np.maximum(change, 1) - 1] + score[change]) / 2, score[-1])
        edges[0] = score[0]
        moves = [f"M{self.x(edges[0])} {self.y(label[0])}"]
        for place, end in zip(change, edges[1:], strict=True):
            moves.append(f"V{self.y(label[place])}H{self.x(end)}")
        return "".join(moves)

    def band(self, curve: Reliability) -> str:
        ends = [self.scale.place(value) for value in curve.score.tolist()]
        # As many points as can be seen apart, and the first and the last.
        seen = np.unique(np.round(np.array(ends) * _POINTS), return_index=True)[1]
        places = np.append(seen, len(ends) - 1)
        there = [f"{self.x(curve.score[k])} {self.y(curve.upper[k])}" for k in places]
        back = [f"{self.x(curve.score[k])} {self.y(curve.lower[k])}" for k in places[::-1]]
        return "M" + "L".join(there + back) + "Z"

    def histogram(self, histogram: dict[str, Any]) -> list[str]:
        top = _BOTTOM + 40
        base, middle = top + _STRIP, _LEFT + _SIDE / 2
        counts, edges = histogram["count"], histogram["edges"]
        most = max(counts) or 1
        bars = []
        for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
            if count:
                height = max(_STRIP * count / most, 0.7)  # a single row is to be seen
                left, right = float(self.x(low)), float(self.x(high))
                bars.append(
                    f'<rect class="bar" x="{left:.1f}" y="{base - height:.1f}" '
                    f'width="{max(right - left - 0.6, 0.4):.1f}" height="{height:.1f}"/>'
                )
        return [
            *bars,
            f'<path class="base" d="M{_LEFT:g} {base:g}H{_LEFT + _SIDE:g}"/>',
            f'<text class="tick" x="{_LEFT - 6:g}" y="{top + 8:g}" text-anchor="end">{_short(most)}</text>',
            f'<text class="tick" x="{_LEFT - 6:g}" y="{base:g}" text-anchor="end">0</text>',
            f'<text class="axis" x="{middle:g}" y="{base + 20:g}" text-anchor="middle">rows with such a score</text>',
        ]

    def bins(self, curve: Reliability, level: float) -> list[str]:
        """Return the bins, and above all of them the strips that show what each has to tell."""
        bins = curve.bins
        low, high = _label_interval(bins.count, bins.mean_label, level)
        centres = [_LEFT + _SIDE * self.scale.place(score) for score in bins.mean_score.tolist()]
        edges = [_LEFT, *((a + b) / 2 for a, b in pairwise(centres)), _LEFT + _SIDE]
        marks, strips = [], []
        for k, row in enumerate(bins.to_rows()):
            x, y = self.x(row["mean_score"]), self.y(row["mean_label"])
            marks.append(
                f'<path class="whisker" d="M{x} {self.y(low[k])}V{self.y(high[k])}"/>'
                f'<circle class="dot" cx="{x}" cy="{y}" r="4"/>'
            )
            lines = [
                f"{row['count']:,.10g} rows, scores {_score(row['lower'])} to {_score(row['upper'])}",
                f"mean score {_score(row['mean_score'])}",
                f"came true {row['mean_label']:.3f}",
                f"{100 * level:g} % interval {low[k]:.3f} to {high[k]:.3f}",
            ]
            if curve.has_band:
                lines.append(f"if calibrated {curve.bins_lower[k]:.3f} to {curve.bins_upper[k]:.3f}")
            strips.append(
                f'<g class="bin" tabindex="0" role="img" aria-label="{escape("; ".join(lines))}">'
                f'<rect class="reach" x="{edges[k]:.1f}" y="{_TOP:g}" '
                f'width="{max(edges[k + 1] - edges[k], 0.5):.1f}" height="{_SIDE:g}"/>'
                f'<circle class="mark" cx="{x}" cy="{y}" r="5.5"/>{_tip(float(x), float(y), lines)}</g>'
            )
        return [*marks, *strips]


def _tip(x: float, y: float, lines: Sequence[str]) -> str:
    """Return a box beside a bin that is shown while the pointer or the focus is there."""
    height = _TIP_LINE * len(lines) + 9
    left = x + 12 if x + 12 + _TIP_WIDTH <= _WIDTH - 2 else x - 12 - _TIP_WIDTH
    left = min(max(left, 2), _WIDTH - _TIP_WIDTH - 2)
    top = min(max(y - height / 2, 2), _BOTTOM - height)
    text = "".join(
        f'<text x="{left + 8:.1f}" y="{top + 15 + _TIP_LINE * place:.1f}">{escape(line)}</text>'
        for place, line in enumerate(lines)
    )
    return (
        f'<g class="tip" aria-hidden="true"><rect x="{left:.1f}" y="{top:.1f}" width="{_TIP_WIDTH:g}" '
        f'height="{height:g}" rx="4"/>{text}</g>'
    )


def bin_rows(curve: Reliability, level: float = 0.95) -> list[dict[str, Any]]:
    """Return the bins with their intervals and bands, as the diagram shows them."""
    low, high = _label_interval(curve.bins.count, curve.bins.mean_label, level)
    return [
        {
            **row,
            "low": low[k],
            "high": high[k],
            "band_low": curve.bins_lower[k],
            "band_high": curve.bins_upper[k],
        }
        for k, row in enumerate(curve.bins.to_rows())
    ]


def _label_interval(count: FloatArray, label: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Return Jeffreys' interval for the chance behind each bin's mean label."""
    tail = (1 - level) / 2
    hits, misses = count * label + 0.5, count * (1 - label) + 0.5
    return np.asarray(beta.ppf(tail, hits, misses)), np.asarray(beta.ppf(1 - tail, hits, misses))


def _in_words(curve: Reliability) -> str:
    worst = int(np.abs(curve.bins.gap).argmax())
    score, label = curve.bins.mean_score[worst], curve.bins.mean_label[worst]
    band = ", with the band in which a calibrated model would lie" if curve.has_band else ""
    return (
        f"Score against how often it came true, in {len(curve.bins)} bins{band}. The largest gap is at a mean score "
        f"of {score:.2f}, where {label:.2f} came true."
    )


def _score(value: float) -> str:
    """Return a score with three digits, and more of them near 1, where they matter."""
    digits = 3 if value < 0.995 or value == 1 else min(max(3, 1 - math.floor(math.log10(1 - value))), 8)
    return f"{value:.{digits}f}" if value >= 0.001 or value == 0 else f"{value:.2g}"


def _tick(value: float, scale: Scale) -> str:
    if not scale.end:
        return f"{value:g}"
    return f"{value:f}".rstrip("0").lstrip("0") if value < 1 else "1"


def _short(count: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if count >= size:
            return f"{count / (1e3 if unit == 'k' else size):.3g}{unit}"
    return f"{count:.4g}"
