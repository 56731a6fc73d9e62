"""The decision curve as SVG, drawn with style sheet classes so that it follows light and dark."""

from __future__ import annotations

import math

import numpy as np
from markupsafe import Markup, escape

from truecal._lib.text import percent
from truecal._lib.types import FloatArray
from truecal.inference.net_benefit import NetBenefit

_LEFT, _TOP, _WIDTH, _HEIGHT = 58.0, 10.0, 328.0, 230.0
_RIGHT, _BOTTOM = _LEFT + _WIDTH, _TOP + _HEIGHT


def decision_curve(curve: NetBenefit) -> Markup:
    """Return the net benefit against the threshold, with its band, treating all and treating none.

    Parameters
    ----------
    curve : NetBenefit
        The decision curve.
    """
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
    for tick in _ticks(0.0, last):
        x = at(tick, bottom).split()[0]
        parts.append(f'<path class="grid" d="M{x} {_TOP:g}V{_BOTTOM:g}"/>')
        parts.append(
            f'<text class="tick" x="{x}" y="{_BOTTOM + 14:g}" text-anchor="middle">{percent(tick, 0)}</text>'
        )
    for tick in _ticks(bottom, top):
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


def _ticks(low: float, high: float) -> FloatArray:
    """Return about five round numbers between two others."""
    raw = (high - low) / 5
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if raw <= size * factor * 1.0001)
    return np.asarray(np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1) * step)
