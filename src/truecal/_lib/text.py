"""How numbers, p-values, lists and results are written everywhere, as text and as HTML for notebooks; progress."""

from __future__ import annotations

import math
import re
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from html import escape
from itertools import groupby
from types import TracebackType
from typing import Any, ClassVar, TypeVar

_Item = TypeVar("_Item")
#: Control characters, and those that reverse the direction of text.
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
#: Smallest width of a text column in a table.
_NARROWEST = 12
#: The smallest and the largest width of text on a terminal, and that of the terminal in use.
_LEAST_WIDTH, _MOST_WIDTH = 60, 120
_TERMINAL: ContextVar[int | None] = ContextVar("terminal", default=None)
#: The smallest p-value that is printed as a number.
SMALLEST_PVALUE = 0.001


def format_pvalue(value: float, n_resamples: int | None = None) -> str:
    """Return a p-value with two digits, or "< 0.001"; NaN, where there is no test, is "n/a".

    The smallest value that `n_resamples` resamples can give is an upper limit: "≤ 0.001".

    Examples
    --------
    >>> format_pvalue(0.01234), format_pvalue(0.0001), format_pvalue(1.0), format_pvalue(float("nan"))
    ('0.012', '< 0.001', '1', 'n/a')
    >>> format_pvalue(0.001, 999), format_pvalue(0.002, 999)
    ('≤ 0.001', '0.002')
    """
    if value != value:
        return "n/a"
    if value < SMALLEST_PVALUE:
        return f"< {SMALLEST_PVALUE:g}"
    return f"{'≤ ' if n_resamples and value <= 1.0001 / (n_resamples + 1) else ''}{value:.2g}"


def p_equals(value: float, n_resamples: int | None = None) -> str:
    """Return "p = 0.012", "p < 0.001", or "p ≤ 0.001" for the smallest value that `n_resamples` resamples can give.

    Examples
    --------
    >>> p_equals(0.01234), p_equals(0.0001), p_equals(0.001, 999)
    ('p = 0.012', 'p < 0.001', 'p ≤ 0.001')
    """
    shown = format_pvalue(value, n_resamples)
    return f"p {shown}" if shown[0] in "<≤" else f"p = {shown}"


def statistic(value: float, digits: int = 4) -> str:
    """Return a test statistic with `digits` digits after the point, or with an exponent if it is large.

    Examples
    --------
    >>> statistic(3.14159, 2), statistic(0.0123), statistic(8.18e149)
    ('3.14', '0.0123', '8.2e+149')
    """
    return f"{value:.{digits}f}" if abs(value) < 1e5 else f"{value:.2g}"


def shorten(text: str, most: int = 40) -> str:
    """Shorten a long name by cutting out its middle, so that tables keep their width.

    Examples
    --------
    >>> shorten("boosting"), shorten("a model with a very long name, version 2", 20)
    ('boosting', 'a model wi…version 2')
    """
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}…{text[1 - (most - half) :]}"


def percent(value: float, digits: int = 1) -> str:
    """Return a fraction in percent.

    Examples
    --------
    >>> percent(0.1234), percent(0.1234, 2), percent(0.95, 0)
    ('12.3%', '12.34%', '95%')
    """
    return f"{100 * value:.{digits}f}%"


def level(value: float) -> str:
    """Return a confidence level in percent, with two significant digits of its distance from 100 at most.

    Examples
    --------
    >>> level(0.95), level(0.999), level(1 - 0.05 / 3), level(1 - 0.05 / 60)
    ('95%', '99.9%', '98.3%', '99.917%')
    """
    digits = max(1, 1 - math.floor(math.log10(max(100 * (1 - value), 1e-9))))
    return f"{100 * value:.{digits}f}".rstrip("0").rstrip(".") + "%"


def counted(number: float, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, in the plural where it is not 1.

    Examples
    --------
    >>> counted(1, "row"), counted(12000, "row"), counted(2, "class", "classes")
    ('1 row', '12,000 rows', '2 classes')
    """
    return f"{number:,.10g} {noun if number == 1 else plural or noun + 's'}"


def short_count(n: float) -> str:
    """Return a number of rows in short form.

    Examples
    --------
    >>> [short_count(n) for n in (200, 6400, 12_800, 100_000, 2_500_000)]
    ['200', '6,400', '12.8k', '100k', '2.5M']
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= max(size, 1e4):
            return f"{n / size:.3g}{unit}"
    return f"{n:,.4g}" if n < 1000 else f"{n:,.0f}"


def in_clusters(number: int | None) -> str:
    """Return " in 5 clusters", or nothing if rows are independent.

    Examples
    --------
    >>> in_clusters(5), in_clusters(None)
    (' in 5 clusters', '')
    """
    return f" in {counted(number, 'cluster')}" if number else ""


def sample_size(
    n: float, effective: float | None, n_clusters: int | None, label_kind: str | None, comma: str = ","
) -> str:
    """Return the size of a sample: rows, or what weights and labels that are not the truth leave of them.

    Examples
    --------
    >>> sample_size(1200, None, 30, None), sample_size(1.0, 321.45, None, None)
    ('n = 1,200 in 30 clusters', 'effective n = 321.4')
    """
    rows = f"n = {n:{comma}.10g}"
    if effective is not None:  # the sum of sampling weights says nothing about the number of rows
        rows = f"effective n = {effective:{comma}.1f}"
        if label_kind is not None:
            rows = f"n = {n:,.10g}, worth {effective:,.0f} true labels"
    return rows + in_clusters(n_clusters)


def listing(values: Sequence[Any], most: int = 6) -> str:
    """Return the first few values as a person would list them.

    Examples
    --------
    >>> listing(["a", "b"]), listing(range(9), most=2)
    ("'a', 'b'", '0, 1, ... (9 in all)')
    """
    shown = ", ".join(repr(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, ... ({len(values)} in all)"


def printable(text: str) -> str:
    r"""Return text whose control characters are escaped, so that a terminal does not interpret them.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a\\u001b[2Jb'
    """
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def use_terminal() -> None:
    """Take the width of the terminal for text from now on, if standard output is one."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    _TERMINAL.set(None if columns is None else min(max(columns, _LEAST_WIDTH), _MOST_WIDTH))


def text_width(otherwise: int = 80) -> int:
    """Return the number of columns of text: those of the terminal, or else 80."""
    return _TERMINAL.get() or otherwise


def fitted(text: str, width: int) -> str:
    r"""Return text in at most `width` columns: prose is wrapped, and tables are continued below.

    Examples
    --------
    >>> print(fitted("a sentence of some words\n\nname   one  two\nfirst    1    2", 14))
    a sentence of
    some words
    <BLANKLINE>
    name   one
    first    1
    <BLANKLINE>
    name   two
    first    2
    """
    parts: list[str] = []
    for is_table, group in groupby(text.split("\n"), key=lambda line: len(_columns(line)) > 1):
        lines = list(group)
        if max(map(len, lines)) <= width:
            parts += lines
        elif is_table:
            parts += _continued(lines, width)
        else:
            for line in lines:
                indent = " " * (len(line) - len(line.lstrip()))
                options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
                parts += textwrap.wrap(line, width, subsequent_indent=indent, **options) or [""]
    return "\n".join(parts)


def _cut(lines: list[str]) -> list[list[str]]:
    """Return the cells of a table, whose columns have two blanks between them in every line."""
    longest = max(map(len, lines))
    letters = zip(*(line.ljust(longest) for line in lines), strict=True)
    blank = "".join(" " if {*column} == {" "} else "x" for column in letters)
    starts = [0, *(match.end() for match in re.finditer(r"  +(?=\S)", blank))]
    starts[1:2] = starts[1:2] if starts[1:2] > [4] else []  # a mark belongs to the name beside it
    return [[line[i:j].rstrip() for i, j in zip(starts, [*starts[1:], None], strict=True)] for line in lines]


def _continued(lines: list[str], width: int) -> list[str]:
    """Return a table whose last columns stand below the others, beside a copy of the first column."""
    cells = _cut(lines)
    sizes = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sizes[0] = min(sizes[0], max(_NARROWEST, width - max(sizes[1:], default=0) - 2))
    names = _short_names([row[0] for row in cells], sizes[0])
    blocks = [names]
    for k, size in enumerate(sizes[1:], start=1):
        if blocks[-1] is not names and len(blocks[-1][0]) + 2 + size > width:
            blocks.append(names)
        blocks[-1] = [f"{line}  {row[k]:<{size}}" for line, row in zip(blocks[-1], cells, strict=True)]
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks).split("\n")


def as_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int = 1) -> str:
    """Lay out a table in the width of text; the first columns are text, which is shortened, the others numbers."""
    lines = [[printable(cell) for cell in row] for row in [head, *rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for _ in range(text_columns):
        widest = max(range(text_columns), key=widths.__getitem__)
        excess = sum(widths) + 2 * (len(widths) - 1) - text_width()
        narrowest = (
            _NARROWEST if _TERMINAL.get() is None else text_width() // 2
        )  # `fitted` moves the other columns
        widths[widest] = max(widths[widest] - max(excess, 0), min(widths[widest], narrowest))
    columns = [
        _short_names(column, width) if k < text_columns else [cell.rjust(width) for cell in column]
        for k, (column, width) in enumerate(zip(zip(*lines, strict=True), widths, strict=True))
    ]
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))


def _short_names(names: Sequence[str], width: int) -> list[str]:
    """Return names padded to one width, and shortened to it unless two of them would then be the same."""
    short = [name if len(name) <= width else f"{name[: width - 3]}..." for name in names]
    shown = short if len(set(short)) == len(set(names)) else list(names)
    return [name.ljust(max(width, *map(len, shown))) for name in shown]


class Progress:
    """Show work that takes longer than two seconds on standard error: a bar if its amount is known, else the time.

    It is silent unless standard error is a terminal or `show` is True. The line is that of the innermost work, drawn by
    one thread, and cleared at the end; `show` leaves a last line.

    Examples
    --------
    >>> with Progress("study", total=2, show=False) as progress:
    ...     progress.advance(1)
    """

    _open: ClassVar[list[Progress]] = []
    _end: ClassVar[threading.Event] = threading.Event()
    _thread: ClassVar[threading.Thread]

    def __init__(self, name: str, total: float | None = None, show: bool | None = None) -> None:
        self.name, self.total, self.done = name, total, 0.0
        self.stays = show is True
        self.shown = sys.stderr.isatty() if show is None else show
        self.began = time.monotonic()

    def __enter__(self) -> Progress:
        if self.shown:
            self._open.append(self)
            if len(self._open) == 1:
                Progress._end.clear()
                Progress._thread = threading.Thread(target=_draw_until_end, daemon=True)
                Progress._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.shown:
            self._open.remove(self)
            if not self._open:
                Progress._end.set()
                Progress._thread.join()
            sys.stderr.write(f"{_CLEARED}{self.line()}\n" if self.stays and not error else _CLEARED)
            sys.stderr.flush()

    def advance(self, amount: float) -> None:
        """Add finished work, in the unit of `total`."""
        self.done += amount

    def line(self) -> str:
        """Return what is shown: the name, how much is done, and the time that is left."""
        seconds = time.monotonic() - self.began
        if self.total is None:
            return f"{self.name} ... {seconds:.0f} s"
        share = self.done / self.total if self.total else 1.0
        left = f"{seconds * (1 - share) / share:.0f} s left" if share else "..."
        return f"{self.name}: {share:6.1%} [{'#' * int(20 * share):.<20}] {left}"


def counting(items: Sequence[_Item], name: str) -> Iterator[_Item]:
    """Yield items that take equally long, and show progress."""
    with Progress(name, total=len(items)) as progress:
        for item in items:
            yield item
            progress.advance(1)


#: Seconds before progress is shown, and between two lines of it.
_PATIENCE, _TICK = 2.0, 0.3
#: What clears the line of a terminal.
_CLEARED = "\r\x1b[2K"


def _draw_until_end() -> None:
    """Draw the innermost work that takes long, again and again."""
    while not Progress._end.wait(_TICK):
        work = next(iter(Progress._open[::-1]), None)
        if work is not None and time.monotonic() - Progress._open[0].began >= _PATIENCE:
            sys.stderr.write(f"{_CLEARED}{work.line()}")
            sys.stderr.flush()


# --- HTML ------------------------------------------------------------------------------------------------

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
            head, *rows = map(_columns, lines)
            blanks = len(set(map(len, rows))) > 1  # of rows with blank cells only the places tell the columns
            parts.append(_table(_cut(lines) if blanks else [head, *rows]))
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
    head, *body = rows
    head = [*[""] * (max(map(len, rows)) - len(head)), *head]
    left_out = len(body) - _MOST_ROWS if len(body) > _MOST_ROWS + 1 else 0
    lines = [_row(head, "th")] + [_row(row, "td") for row in (body[:_MOST_ROWS] if left_out else body)]
    more = f'<div style="opacity:.75;font-size:90%">and {left_out:,} more</div>' if left_out else ""
    return (
        f'<table style="border-collapse:collapse;margin:.3em 0;font-size:95%">{"".join(lines)}</table>{more}'
    )


def _row(cells: Sequence[str], kind: str) -> str:
    shown = (
        f'<{kind} style="{_CELL};text-align:{"left" if place == 0 else "right"}">{escape(cell.strip())}</{kind}>'
        for place, cell in enumerate(cells)
    )
    return f'<tr style="background:transparent">{"".join(shown)}</tr>'
