"""The reliability diagram as SVG, drawn with style sheet classes so that it follows light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from scipy.stats import beta

from truecal.reliability import Reliability
from truecal.sample import FloatArray

#: The square of the diagram within the drawing, and the strip of the histogram below it.
_LEFT, _TOP, _SIDE, _STRIP = 56.0, 12.0, 420.0, 84.0
_WIDTH, _HEIGHT = _LEFT + _SIDE + 16, _TOP + _SIDE + 44 + _STRIP + 44
#: Points of a curve beyond which nothing can be seen.
_POINTS = 240
_TICKS = (0, 0.2, 0.4, 0.6, 0.8, 1)


def reliability_svg(curve: Reliability, histogram: dict[str, Any], level: float = 0.95) -> Markup:
    """Return the diagram with band, isotonic curve, bins that tell of themselves, and the scores' histogram."""
    parts = [
        f'<svg class="diagram" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-labelledby="rel-t rel-d">',
        '<title id="rel-t">Reliability diagram</title>',
        f'<desc id="rel-d">{escape(_in_words(curve))}</desc>',
        *_frame(),
        f'<path class="band" d="{_band(curve)}"/>',
        f'<path class="ideal" d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}"/>',
        f'<path class="isotonic" d="{_steps(curve.score, curve.label)}"/>',
        *_histogram(histogram),
        *_bins(curve, level),
        "</svg>",
    ]
    return Markup("\n".join(parts))


def _x(score: float) -> str:
    return f"{_LEFT + _SIDE * score:.1f}"


def _y(label: float) -> str:
    return f"{_TOP + _SIDE * (1 - label):.1f}"


def _frame() -> list[str]:
    bottom = _TOP + _SIDE
    lines = [f'<rect class="frame" x="{_LEFT:g}" y="{_TOP:g}" width="{_SIDE:g}" height="{_SIDE:g}"/>']
    for tick in _TICKS:
        lines += [
            f'<path class="grid" d="M{_x(tick)} {_TOP:g}V{bottom:g}M{_LEFT:g} {_y(tick)}H{_LEFT + _SIDE:g}"/>',
            f'<text class="tick" x="{_x(tick)}" y="{bottom + 16:g}" text-anchor="middle">{tick:g}</text>',
            f'<text class="tick" x="{_LEFT - 8:g}" y="{float(_y(tick)) + 4:g}" text-anchor="end">{tick:g}</text>',
        ]
    middle = _TOP + _SIDE / 2
    turned = f'transform="translate(14 {middle:g}) rotate(-90)"'
    return [
        *lines,
        f'<text class="axis" x="{_LEFT + _SIDE / 2:g}" y="{bottom + 34:g}" text-anchor="middle">score</text>',
        f'<text class="axis" {turned} text-anchor="middle">how often it comes true</text>',
    ]


def _steps(score: FloatArray, label: FloatArray) -> str:
    """Return the path of a step curve, with a corner only where the step changes."""
    change = np.flatnonzero(np.diff(label, prepend=np.nan) != 0)
    edges = np.append((score[np.maximum(change, 1) - 1] + score[change]) / 2, score[-1])
    edges[0] = score[0]
    moves = [f"M{_x(edges[0])} {_y(label[0])}"]
    for place, end in zip(change, edges[1:], strict=True):
        moves.append(f"V{_y(label[place])}H{_x(end)}")
    return "".join(moves)


def _band(curve: Reliability) -> str:
    places = np.unique(np.linspace(0, len(curve.score) - 1, _POINTS).astype(int))
    there = [f"{_x(s)} {_y(v)}" for s, v in zip(curve.score[places], curve.upper[places], strict=True)]
    back = [f"{_x(s)} {_y(v)}" for s, v in zip(curve.score[places], curve.lower[places], strict=True)]
    return "M" + "L".join(there + back[::-1]) + "Z"


def _histogram(histogram: dict[str, Any]) -> list[str]:
    top = _TOP + _SIDE + 44
    counts, edges = histogram["count"], histogram["edges"]
    most = max(counts) or 1
    bars = []
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        height = _STRIP * count / most
        bars.append(
            f'<rect class="bar" x="{_x(low)}" y="{top + _STRIP - height:.1f}" width="{_SIDE * (high - low) - 0.8:.1f}" '
            f'height="{height:.1f}"><title>{count:,.10g} rows with scores from {low:g} to {high:g}</title></rect>'
        )
    base, middle = top + _STRIP, _LEFT + _SIDE / 2
    return [
        *bars,
        f'<path class="ideal" d="M{_LEFT:g} {base:g}H{_LEFT + _SIDE:g}"/>',
        f'<text class="tick" x="{_LEFT - 8:g}" y="{top + 10:g}" text-anchor="end">{_short(most)}</text>',
        f'<text class="tick" x="{_LEFT - 8:g}" y="{base:g}" text-anchor="end">0</text>',
        f'<text class="axis" x="{middle:g}" y="{base + 20:g}" text-anchor="middle">rows with each score</text>',
    ]


def _short(count: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if count >= size:
            return f"{count / (1e3 if unit == 'k' else size):.3g}{unit}"
    return f"{count:.4g}"


def _bins(curve: Reliability, level: float) -> list[str]:
    groups = []
    bins = curve.bins
    low, high = _label_interval(bins.count, bins.mean_label, level)
    for row, lower, upper, one_low, one_high in zip(
        bins.to_rows(), curve.bins_lower, curve.bins_upper, low, high, strict=True
    ):
        x, y = row["mean_score"], row["mean_label"]
        lines = [
            f"{row['count']:,.10g} rows, scores {row['lower']:.3g} to {row['upper']:.3g}",
            f"mean score {x:.3f}",
            f"came true {y:.3f}",
            f"{100 * level:g} % interval {one_low:.3f} to {one_high:.3f}",
            f"if calibrated {lower:.3f} to {upper:.3f}",
        ]
        groups.append(
            f'<g class="bin" tabindex="0" role="img" aria-label="{escape("; ".join(lines))}">'
            f'<path class="whisker" d="M{_x(x)} {_y(one_low)}V{_y(one_high)}"/>'
            f'<circle class="dot" cx="{_x(x)}" cy="{_y(y)}" r="4.5"/>'
            f'<circle class="reach" cx="{_x(x)}" cy="{_y(y)}" r="12"/>{_tip(x, y, lines)}</g>'
        )
    return groups


def _tip(x: float, y: float, lines: Sequence[str]) -> str:
    """Return a box that is shown while its bin is under the pointer or has the focus."""
    width, height = 214.0, 16.0 * len(lines) + 10
    left = (
        min(_LEFT + _SIDE * x + 14, _WIDTH - width - 4) if x < 0.5 else max(_LEFT + _SIDE * x - width - 14, 4)
    )
    top = min(max(_TOP + _SIDE * (1 - y) - height / 2, 2), _TOP + _SIDE - height)
    text = "".join(
        f'<text x="{left + 10:.1f}" y="{top + 18 + 16 * place:.1f}">{escape(line)}</text>'
        for place, line in enumerate(lines)
    )
    return (
        f'<g class="tip" aria-hidden="true"><rect x="{left:.1f}" y="{top:.1f}" width="{width:g}" '
        f'height="{height:g}" rx="4"/>{text}</g>'
    )


def _label_interval(count: FloatArray, label: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Return Jeffreys' interval for the chance behind each bin's mean label."""
    tail = (1 - level) / 2
    hits, misses = count * label + 0.5, count * (1 - label) + 0.5
    return np.asarray(beta.ppf(tail, hits, misses)), np.asarray(beta.ppf(1 - tail, hits, misses))


def _in_words(curve: Reliability) -> str:
    worst = int(np.abs(curve.bins.gap).argmax())
    score, label = curve.bins.mean_score[worst], curve.bins.mean_label[worst]
    return (
        f"Score against how often it comes true, in {len(curve.bins)} bins, with the band in which a calibrated model "
        f"would lie. The largest gap is at a mean score of {score:.2f}, where {label:.2f} came true."
    )
