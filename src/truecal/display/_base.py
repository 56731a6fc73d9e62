"""What all displays have in common."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from truecal._lib.lazy import fill_docstring
from truecal.exceptions import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_AX = "ax : matplotlib Axes, optional\n    Where to draw; by default a new figure of `matplotlib.pyplot`."
_OPTIONS = "**options\n    Options of `plot`"

#: Fills what the docstrings of all `plot`, and of what makes displays, have in common.
describe_plot = fill_docstring(
    ax=_AX,
    draw=f"{_AX}\n{_OPTIONS}.",
    read_and_draw=f"{_AX}\n{_OPTIONS}, and how to read the predictions, as in `truecal.estimate`.",
    display="Returns\n-------\nSelf\n    The display, drawn.",
    title="name : str, optional\n    Title; by default what the scores are probabilities of.",
    legend="legend : bool\n    Whether to draw a legend.",
    drawn="Returns\n-------\nSelf\n    With its axes in `ax_` and its figure in `figure_`.",
    panels="Returns\n-------\nSelf\n    With its panels in `axes_` and its figure in `figure_`.",
)


#: Properties of lines that constructors which also read predictions pass on to `plot`.
_LINE = frozenset(
    {
        "alpha", "linestyle", "linewidth", "ls", "lw", "marker", "markeredgecolor", "markerfacecolor", "markersize",
        "ms", "zorder",
    }
)  # fmt: skip


class Display(ABC):
    """Something drawn: `ax_` are its axes and `figure_` is its figure.

    ``from_predictions`` and all other constructors whose names begin with ``from_`` draw at once and return the
    display; `plot` draws it again. Where there are several panels, `axes_` has them all and `ax_` is the first.
    """

    ax_: Axes
    axes_: list[Axes]
    figure_: Figure

    @abstractmethod
    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw into the given axes, or into those of a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, or several, optional
            Where to draw; by default a new figure of `matplotlib.pyplot`.
        **options
            What each display has of its own.

        Returns
        -------
        Self
            With its axes in `ax_` and its figure in `figure_`.
        """

    @classmethod
    def _split(cls, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the options of `plot`, and the others, which say how to read the predictions."""
        known = _LINE | {
            name
            for name, parameter in inspect.signature(cls.plot).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY
        }
        return (
            {name: value for name, value in options.items() if name in known},
            {name: value for name, value in options.items() if name not in known},
        )

    def _drawn(self, *axes: Axes) -> Self:
        self.ax_, self.axes_ = axes[0], list(axes)
        root: Any = axes[0].figure.figure  # of a subfigure, the figure that it is part of
        self.figure_ = root
        return self


def column(rows: Sequence[Any], name: str) -> list[Any]:
    """Return the distinct values of a column of rows, in order of appearance."""
    return list(dict.fromkeys(row[name] for row in rows))


def check_rows(rows: Any, needed: Sequence[str], what: str) -> list[dict[str, Any]]:
    """Return rows as a list of dictionaries, or say which keys they lack."""
    table = [dict(row) for row in rows]
    if not table:
        raise InputError(f"{what} needs at least one row.")
    for place, row in enumerate(table):
        missing = [name for name in needed if name not in row]
        if missing:
            raise InputError(
                f"{what} needs rows with the keys {', '.join(needed)}. Row {place} lacks {', '.join(missing)}."
            )
    return table
