"""The segments of an audit, with intervals that hold for all of them at once."""

from __future__ import annotations

from typing import Any, Self

from truecal._lib.checks import check_count
from truecal._lib.text import level
from truecal.display._base import Display, describe_plot
from truecal.display._style import (
    INK,
    RED,
    axes_or_new,
    legend_below,
    percent_axis,
    short_count,
    tidy,
)
from truecal.inference.audit import Audit

#: Longer names of segments are cut.
_LONGEST_NAME = 48


class AuditDisplay(Display):
    """Observed rate less mean prediction in each segment, with simultaneous intervals.

    A segment can be found although its interval contains 0: the test also looks at the slope, for scores that are too
    high at one end and too low at the other.

    Parameters
    ----------
    audit : Audit
        Result of `truecal.audit`.

    Examples
    --------
    >>> import truecal
    >>> from matplotlib.figure import Figure
    >>> data = truecal.datasets.load("flights")
    >>> audit = truecal.audit(data.y_true, data.y_proba, {"origin": data.groups["origin"]}, rng=0)
    >>> display = truecal.display.AuditDisplay(audit).plot(ax=Figure().subplots())
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ["origin: 'JFK' (3,251)", "origin: 'EWR' (3,532)", "origin: 'LGA' (3,217)"]
    """

    def __init__(self, audit: Audit) -> None:
        self.audit = audit

    @describe_plot
    def plot(self, ax: Any = None, *, most: int = 20, legend: bool = True, **options: Any) -> Self:
        """Draw the segments, smallest adjusted p-value first.

        Parameters
        ----------
        {ax}
        most : int
            Number of segments.
        {legend}
        **options
            Passed to matplotlib for the dots.

        {drawn}
        """
        audit, shown = self.audit, self.audit.segments[: check_count("most", most)]
        ax = axes_or_new(ax, figsize=(5.6, 1.6 + 0.24 * len(shown)))
        ax.axvline(0, color=INK, linewidth=0.8, linestyle="--")
        named = set()
        for place, segment in enumerate(shown):
            found = segment.adjusted_pvalue <= audit.alpha
            color, text = (RED, "found (level or slope)") if found else (INK, "not found")
            ends = [segment.low, segment.high]
            ax.plot(ends, [place, place], color=color, linewidth=2.5, alpha=0.45, solid_capstyle="butt")
            style = {"color": color, "marker": "o", "linestyle": "none", "markersize": 5, **options}
            ax.plot([segment.difference], [place], label=None if text in named else text, **style)
            named.add(text)
        ax.set_yticks(range(len(shown)), [_label(segment.name, segment.n) for segment in shown])
        ax.set_ylim(len(shown) - 0.5, -0.5)
        tidy(ax, xlabel="observed less predicted (%)")
        ax.grid(False, axis="y")
        percent_axis(ax.xaxis, sign=True)
        if legend:
            title = f"{len(shown)} of {audit.n_searched:,} segments\n{level(1 - audit.alpha)} simultaneous intervals"
            legend_below([ax], columns=1, title=title)
        return self._drawn(ax)


def _label(name: str, n: int) -> str:
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return f"{short} ({short_count(n)})"
