"""Text of results as HTML for notebooks: a heading, tables and lines, in the colours of the page, light or dark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby

#: Most rows of a table; a notebook is not the place for more.
_MOST_ROWS = 12

# Everything takes the colour of the text around it, so that light and dark pages need no rules of their own.
_FAINT = "color-mix(in srgb, currentColor 25%, transparent)"
_BOX = (
    "display:inline-block;max-width:100%;box-sizing:border-box;overflow-x:auto;padding:.5em .8em;"
    f"border:1px solid {_FAINT};border-radius:6px"
)
_CELL = f"padding:.1em 1em .1em 0;white-space:nowrap;background:transparent;border-bottom:1px solid {_FAINT}"


def as_html(text: str, table: Sequence[Sequence[str]] = ()) -> str:
    r"""Return lines of text as a box: the first line in bold, columns as tables, and notes smaller.

    Lines are columns if they have two spaces between their parts, and at least two such lines follow each other.

    Examples
    --------
    >>> "<b>error 0.03</b>" in as_html("error 0.03\nNote: few rows.")
    True
    """
    parts: list[str] = []
    for columns, group in groupby(text.strip("\n").splitlines(), key=_has_columns):
        lines = [line for line in group if line.strip()]
        if columns and len(lines) > 1:
            parts.append(_table([_columns(line) for line in lines]))
            continue
        for line in lines:
            parts.append(_line(line, first=not parts))
    parts += [_table(table)] if table else []
    return f'<div style="{_BOX}">{"".join(parts)}</div>'


def _columns(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def _has_columns(line: str) -> bool:
    """Return whether a line is part of a table: it has several columns, or is a heading over one of them."""
    return len(_columns(line)) > 1 or line.startswith(" " * 8)


def _line(line: str, *, first: bool) -> str:
    if first:
        return f'<div style="max-width:52em;margin-bottom:.2em"><b>{escape(line)}</b></div>'
    small = ";opacity:.75;font-size:90%" if line.startswith("Note: ") else ""
    return f'<div style="max-width:52em;margin:.1em 0{small}">{escape(line.strip())}</div>'


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table; a heading that has no name for the first column gets an empty one."""
    width = max(map(len, rows))
    head = [*[""] * (width - len(rows[0])), *rows[0]]
    body = [[*row, *[""] * (width - len(row))] for row in rows[1:]]
    left_out = len(body) - _MOST_ROWS if len(body) > _MOST_ROWS + 1 else 0
    lines = [_row(head, "th")] + [_row(row, "td") for row in (body[:_MOST_ROWS] if left_out else body)]
    more = f'<div style="opacity:.75;font-size:90%">and {left_out:,} more</div>' if left_out else ""
    return (
        f'<table style="border-collapse:collapse;margin:.3em 0;font-size:95%">{"".join(lines)}</table>{more}'
    )


def _row(cells: Sequence[str], kind: str) -> str:
    shown = (
        f'<{kind} style="{_CELL};text-align:{"left" if place == 0 else "right"}">{escape(cell)}</{kind}>'
        for place, cell in enumerate(cells)
    )
    return f'<tr style="background:transparent">{"".join(shown)}</tr>'
