"""Confidences that a language model states in words: "90%", "0.9", "95/100"."""

from __future__ import annotations

import math
import re

from truecal._lib.checks import check_choice

#: How a bare number without a percent sign is to be read.
SCALES = ("fraction", "percent")

_NUMBER = r"(?P<number>\d+(?:\.\d+)?|\.\d+)"
_UNIT = r"(?:\s*(?P<percent>%|percent\b)|\s*/\s*(?P<whole>100|10)\b(?![.,]\d))?"
#: Nothing that would make it another number may stand beside it: a sign, a range, a comparison, more digits.
_VALUE = re.compile(rf"(?<![\w.,/<>≤≥±-]){_NUMBER}(?![\d])(?!\.\d){_UNIT}(?![\w%/])", re.IGNORECASE)
_MARKER = re.compile(r"confiden(?:ce|t)\b[^\d.\n]{0,40}?(?=[\d.<>≤≥±-])", re.IGNORECASE)
_BOUND = r"over|under|above|below|more than|less than|at least|at most|up to|between"
_INEXACT = re.compile(rf"(?:[<>≤≥±]|\b(?:{_BOUND})|\d\s*%?\s*(?:[-–]|to|and))\s*$", re.IGNORECASE)
_RANGE = re.compile(r"^\s*(?:-|–|to\b|and\b)\s*\d", re.IGNORECASE)


def parse_confidence(text: str | float | None, *, scale: str = "fraction") -> float | None:
    """Return the confidence that a text states, or None if it does not state exactly one.

    Nothing is guessed. A range ("80-90%"), a bound ("over 90%"), a number outside [0, 1] and two different values are
    None. After the word "confidence" a number may follow in a longer text ("Answer: 12. Confidence: 85%"); otherwise
    the text must contain one value with a unit (%, /100, /10), or be a number and nothing else.

    Parameters
    ----------
    text : str, float or None
        What the model said. A number is taken as it is.
    scale : {"fraction", "percent"}
        What a bare number without a unit means. With ``"fraction"`` it must lie in [0, 1], and "90" is None. With
        ``"percent"``, for prompts that ask for 0 to 100, "90" is 0.9; "0.9" is then None, since it is not clear whether
        that is 0.9% or a fraction.

    Returns
    -------
    float or None

    Examples
    --------
    >>> [parse_confidence(text) for text in ("90%", "0.9", "95/100", "I am 80 percent sure.", "Confidence: 0.75")]
    [0.9, 0.9, 0.95, 0.8, 0.75]
    >>> [parse_confidence(text) for text in ("90", "80-90%", "over 90%", "very sure", "120%", "60% or 70%")]
    [None, None, None, None, None, None]
    >>> parse_confidence("Confidence (0-100): 90", scale="percent")
    0.9
    """
    check_choice("scale", scale, SCALES)
    if text is None:
        return None
    if not isinstance(text, str):
        return _bare(float(text), scale)
    text = re.sub(
        r"\(?\b0\s*(?:-|–|to)\s*(?:100|1|10)\b%?\)?", "", text
    )  # the scale that the prompt asked for
    marked = {_value(text, marker.end(), scale) for marker in _MARKER.finditer(text)}
    if marked:
        return marked.pop() if len(marked) == 1 else None
    stripped = text.strip().rstrip(".")
    whole = _VALUE.fullmatch(stripped)
    if whole and not (whole["percent"] or whole["whole"]):
        return _read(whole, scale)
    found = [
        _value(text, match.start(), scale)
        for match in _VALUE.finditer(text)
        if match["percent"] or match["whole"]
    ]
    # A number that is not a value, as in "-5%" or "80-90%", has a percent sign nevertheless.
    signs = len(re.findall(r"%|percent\b|/\s*100?\b", text, re.IGNORECASE))
    return found[0] if signs == len(found) and len(set(found)) == 1 else None


def _value(text: str, start: int, scale: str) -> float | None:
    """Return the value that begins at a place of the text."""
    match = _VALUE.match(text, start)
    if match is None or _INEXACT.search(text[:start]) or _RANGE.match(text[match.end() :]):
        return None
    return _read(match, scale)


def _read(match: re.Match[str], scale: str) -> float | None:
    number = float(match["number"])
    if match["percent"]:
        return _bare(number / 100, "fraction")
    if match["whole"]:
        return _bare(number / int(match["whole"]), "fraction")
    return _bare(number, scale)


def _bare(number: float, scale: str) -> float | None:
    """Return a number without a unit as a fraction, or None if that is not possible."""
    if scale == "percent":
        number = number / 100 if number == 0 or number >= 1 else math.nan
    return number if 0 <= number <= 1 else None
