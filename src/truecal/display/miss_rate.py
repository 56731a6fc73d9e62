"""How often tests of calibration miss an error that is there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from truecal._lib.checks import check_choice
from truecal.display._base import Display, check_rows, column, describe_plot
from truecal.display._style import (
    estimator_legend,
    estimator_style,
    label_outer,
    panels,
    percent_axis,
    short_count,
    size_axis,
    tidy,
)


class MissRateDisplay(Display):
    """Miss rates of tests, one panel for each true error, or for each number of rows.

    Parameters
    ----------
    rows : iterable of dict
        With the keys ``n``, ``estimator``, ``true_error``, ``miss_rate`` and ``se``, its standard error.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from truecal.display import MissRateDisplay
    >>> rows = [
    ...     {"n": 200, "estimator": "em_sweep", "true_error": 0.1, "miss_rate": 0.21, "se": 0.01},
    ...     {"n": 500, "estimator": "em_sweep", "true_error": 0.1, "miss_rate": 0.00, "se": 0.00},
    ... ]
    >>> MissRateDisplay(rows).plot(ax=Figure().subplots()).ax_.get_title(loc="left")
    'true error 10%'
    """

    def __init__(self, rows: Iterable[Any]) -> None:
        table = [_as_row(row) for row in rows]
        self.rows = check_rows(table, ("n", "estimator", "true_error", "miss_rate", "se"), "MissRateDisplay")
        for row in self.rows:
            # Errors that were solved for differ in their last digits.
            row["true_error"] = float(f"{row['true_error']:.6g}")

    @classmethod
    def from_miss_rates(cls, result: Any) -> Self:
        """Make the display from what `truecal.simulation.miss_rates` returned.

        Parameters
        ----------
        result : MissRates
            The miss rates.

        Returns
        -------
        Self
        """
        return cls(result.rows)

    @describe_plot
    def plot(self, ax: Any = None, *, x: str = "n", legend: bool = True, **line: Any) -> Self:
        """Draw one panel for each true error, or for each number of rows.

        Parameters
        ----------
        ax : matplotlib Axes, or several, optional
            Where to draw; by default a new figure. Axes are divided if there are several panels.
        x : {"n", "true_error"}
            What the horizontal axis is; the other has a panel for each value.
        {legend}
        **line
            Passed to matplotlib for the lines.

        {panels}
        """
        check_choice("x", x, ("n", "true_error"))
        other = "true_error" if x == "n" else "n"
        parts, estimators = sorted(column(self.rows, other)), column(self.rows, "estimator")
        axes = panels(ax, len(parts))
        for one, part in zip(axes, parts, strict=True):
            for place, name in enumerate(estimators):
                rows = [row for row in self.rows if row[other] == part and row["estimator"] == name]
                rows.sort(key=lambda row: float(row[x]))
                rate, error = (np.array([row[key] for row in rows]) for key in ("miss_rate", "se"))
                # A rate has no business below 0 or above 1, and neither has its bar.
                bars = np.array([np.minimum(2 * error, rate), np.minimum(2 * error, 1 - rate)])
                style = {
                    "linewidth": 1.3,
                    "markersize": 4,
                    "elinewidth": 1,
                    **estimator_style(name, place),
                    **line,
                }
                one.errorbar([row[x] for row in rows], rate, yerr=bars, label=name, **style)
            title = f"true error {100 * part:g}%" if x == "n" else f"n = {short_count(part)}"
            tidy(one, title=title)
            if x == "n":
                size_axis(one, column(self.rows, "n"))
            else:
                one.set_xlim(left=0)
                percent_axis(one.xaxis)
            one.set_ylim(-0.03, 1.03)
            one.set_yticks([0, 0.25, 0.5, 0.75, 1])
            percent_axis(one.yaxis)
        label_outer(axes, "n (rows)" if x == "n" else "true error (%)", "miss rate (%)")
        if legend:
            estimator_legend(axes, "bars: \N{PLUS-MINUS SIGN}2 Monte Carlo s.e.")
        return self._drawn(*axes)


def _as_row(row: Any) -> dict[str, Any]:
    """Return a row as a dictionary, under the names of this module."""
    content: dict[str, Any] = row.to_dict() if hasattr(row, "to_dict") else dict(row)
    if "se" not in content and "standard_error" in content:
        content["se"] = content["standard_error"]
    if "estimator" not in content and "method" in content:
        content["estimator"] = content["method"]
    return content
