"""How numbers, p-values and lists are written, everywhere: messages, tables, reports, command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: The smallest p-value that is printed as a number.
SMALLEST_PVALUE = 0.001


def format_pvalue(value: float) -> str:
    """Return a p-value with two digits, or "< 0.001"; NaN, where there is no test, is "n/a".

    Examples
    --------
    >>> format_pvalue(0.01234), format_pvalue(0.0001), format_pvalue(1.0), format_pvalue(float("nan"))
    ('0.012', '< 0.001', '1', 'n/a')
    """
    if value != value:
        return "n/a"
    return f"{value:.2g}" if value >= SMALLEST_PVALUE else f"< {SMALLEST_PVALUE:g}"


def p_equals(value: float, n_resamples: int | None = None) -> str:
    """Return "p = 0.012", "p < 0.001", or "p ≤ 0.001" for the smallest value that `n_resamples` resamples can give.

    Examples
    --------
    >>> p_equals(0.01234), p_equals(0.0001), p_equals(0.001, 999)
    ('p = 0.012', 'p < 0.001', 'p ≤ 0.001')
    """
    shown = format_pvalue(value)
    if shown.startswith("<"):
        return f"p {shown}"
    return f"p {'≤' if n_resamples and value <= 1.0001 / (n_resamples + 1) else '='} {shown}"


def statistic(value: float, digits: int = 4) -> str:
    """Return a test statistic with `digits` digits after the point, or with an exponent if it is large.

    Examples
    --------
    >>> statistic(3.14159, 2), statistic(0.0123), statistic(8.18e149)
    ('3.14', '0.0123', '8.2e+149')
    """
    return f"{value:.{digits}f}" if abs(value) < 1e5 else f"{value:.2g}"


def percent(value: float, digits: int = 1) -> str:
    """Return a fraction in percent.

    Examples
    --------
    >>> percent(0.1234), percent(0.1234, 2), percent(0.95, 0)
    ('12.3%', '12.34%', '95%')
    """
    return f"{100 * value:.{digits}f}%"


def level(value: float) -> str:
    """Return a confidence level in percent, with no more digits than it has.

    Examples
    --------
    >>> level(0.95), level(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * value:.6g}%"


def counted(number: float, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, in the plural where it is not 1.

    Examples
    --------
    >>> counted(1, "row"), counted(12000, "row"), counted(2, "class", "classes")
    ('1 row', '12,000 rows', '2 classes')
    """
    return f"{number:,.10g} {noun if number == 1 else plural or noun + 's'}"


def listing(values: Sequence[Any], most: int = 6) -> str:
    """Return the first few values as a person would list them.

    Examples
    --------
    >>> listing(["a", "b"]), listing(range(9), most=2)
    ("'a', 'b'", '0, 1, ... (9 in all)')
    """
    shown = ", ".join(repr(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, ... ({len(values)} in all)"
