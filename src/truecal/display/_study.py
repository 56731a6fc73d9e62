"""Bias of estimators against the number of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from truecal._lib.checks import check_choice
from truecal.display._base import Display, check_rows, column, describe_plot
from truecal.display._style import (
    INK,
    estimator_legend,
    estimator_style,
    label_outer,
    panels,
    percent_axis,
    size_axis,
    tidy,
)
from truecal.exceptions import InputError
from truecal.simulation import Study

_LABELS = {
    "bias": "bias (% points)",
    "median_bias": "median bias (% points)",
    "sd": "sd (% points)",
    "rmse": "rmse (% points)",
}
_NEEDED = ("population", "n", "estimator", "bias", "bias_se", "sd", "rmse")


class BiasDisplay(Display):
    """Bias of estimators against the number of rows, with its Monte Carlo error; a panel for each population.

    Equal-width estimators are dashed and hollow, equal-mass ones solid and filled.

    Parameters
    ----------
    rows : iterable of dict
        The rows of a study, as in `truecal.simulation.Study.rows`.

    Examples
    --------
    >>> import truecal
    >>> from matplotlib.figure import Figure
    >>> from truecal.display import BiasDisplay
    >>> calibrated = truecal.Population(truecal.simulation.BetaScores(2.8, 0.05), truecal.simulation.IdentityCurve())
    >>> study = truecal.bias_study(
    ...     {"calibrated": calibrated}, estimators=["ew_bin", "em_sweep"], sizes=[100, 400], repeats=50, rng=0
    ... )
    >>> BiasDisplay.from_study(study).plot(ax=Figure().subplots()).ax_.get_ylabel()
    'bias (% points)'
    """

    def __init__(self, rows: Iterable[Any]) -> None:
        self.rows = check_rows(rows, _NEEDED, "BiasDisplay")

    @classmethod
    def from_study(
        cls,
        study: Study,
        *,
        populations: Sequence[str] | None = None,
        estimators: Sequence[str] | None = None,
    ) -> Self:
        """Make the display from a study, or from some of its populations and estimators.

        Parameters
        ----------
        study : Study
            What `truecal.bias_study` returned.
        populations, estimators : sequence of str, optional
            Which to show, in that order; by default all.

        Returns
        -------
        Self
        """
        rows = study.rows
        for name, wanted in (("population", populations), ("estimator", estimators)):
            if wanted is not None:
                for one in wanted:
                    check_choice(name, one, column(rows, name))
                rows = [row for one in wanted for row in rows if row.get(name) == one]
        return cls(rows)

    @describe_plot
    def plot(self, ax: Any = None, *, quantity: str = "bias", legend: bool = True, **line: Any) -> Self:
        """Draw one panel for each population.

        Parameters
        ----------
        ax : matplotlib Axes, or several, optional
            Where to draw; by default a new figure. Axes are divided if there are several populations.
        quantity : {"bias", "median_bias", "sd", "rmse"}
            What to draw. Bars of two Monte Carlo standard errors are known for the bias.
        {legend}
        **line
            Passed to matplotlib for the lines.

        {panels}
        """
        check_choice("quantity", quantity, _LABELS)
        known = [row for row in self.rows if row.get(quantity) is not None]
        if not known:
            raise InputError(
                f"No row has a {quantity}: these estimators have another estimand than the true error."
            )
        populations, estimators = column(known, "population"), column(known, "estimator")
        axes = panels(ax, len(populations))
        for one, population in zip(axes, populations, strict=True):
            if quantity.endswith("bias"):
                one.axhline(0, color=INK, linewidth=1, linestyle=(0, (1, 1.5)), zorder=1)
            for place, name in enumerate(estimators):
                rows = [row for row in known if row["population"] == population and row["estimator"] == name]
                rows.sort(key=lambda row: float(row["n"]))
                values = np.array([row[quantity] for row in rows])
                error = 2 * np.array([row["bias_se"] for row in rows]) if quantity == "bias" else None
                style = {
                    "linewidth": 1.3,
                    "markersize": 4,
                    "elinewidth": 1,
                    **estimator_style(name, place),
                    **line,
                }
                one.errorbar([row["n"] for row in rows], values, yerr=error, label=name, **style)
            tidy(one, title=str(population) if len(populations) > 1 or population else "")
            size_axis(one, column(known, "n"))
            percent_axis(one.yaxis, sign=quantity.endswith("bias"))
        if quantity in ("sd", "rmse"):
            for one in axes:  # after all are drawn: panels share their scale, and this fixes its upper end
                one.set_ylim(bottom=0)
        label_outer(axes, "n (rows)", _LABELS[quantity])
        if legend:
            known_error = quantity == "bias"
            estimator_legend(axes, "bars: \N{PLUS-MINUS SIGN}2 Monte Carlo s.e." if known_error else "")
        return self._drawn(*axes)
