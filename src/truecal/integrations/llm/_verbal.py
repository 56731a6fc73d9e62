"""Confidences that a language model states in words: "90%", "0.9", "95/100"."""

from __future__ import annotations

import math
import re
from numbers import Number
from typing import Any

from truecal._lib.checks import check_choice

#: How a bare number without a percent sign is to be read.
SCALES = ("fraction", "percent")

_NUMBER = r"(?P<number>\d+(?:\.\d+)?|\.\d+)"
_UNIT = r"(?:\s*(?P<percent>%|percent\b)|\s*/\s*(?P<whole>100|10)\b)?"
#: Nothing that would make it another number may stand beside it: a sign, a comparison, a fraction, more digits.
_BEFORE = r"(?<![\w.,/<>≤≥±-])"
_AFTER = r"(?![\w%])(?![.,]\d)(?!\s*/|\s+(?:out\s+)?of\b)"
_VALUE = re.compile(rf"{_BEFORE}{_NUMBER}(?!\d|\.\d){_UNIT}{_AFTER}", re.IGNORECASE)
#: What ties a number to a confidence: "Confidence in this answer: 85%", "I am 85% sure".
_LINKS = (
    r"about|answer|approximately|around|be|estimate|in|is|level|my|of|rating|roughly|score|the|this|would"
)
_NAME = re.compile(
    rf"\b(?:confidence|certainty|(?:confident|probability|likelihood|chance)(?=\W*[:=]))\b(?:[^\w.,;!?<>≤≥±-]|(?:{_LINKS})\b)*(?=[\d.<>≤≥±-])",
    re.IGNORECASE,
)
_STATED = re.compile(
    rf"{_VALUE.pattern}[ \t*_(]*(?:sure|certain|confident|(?:confidence|certainty)(?!\s+(?:interval|level|limit)))\b",
    re.IGNORECASE,
)
#: What may stand beside a number that is the whole statement: "About 70%", "**90%**".
_FILLERS = re.compile(
    r"(?:[\s*_.,:;!…()\"'’~≈]|\b(?:about|approximately|around|d|i|roughly|say|yes)\b)*", re.IGNORECASE
)
_NEGATED = re.compile(r"(?:\b(?:not|no|never|hardly|cannot)|n['’]t)(?:\s+[\w'’]+){0,2}\s*$", re.IGNORECASE)
_BOUND = r"over|under|above|below|more than|less than|at least|at most|up to|between"
_INEXACT = re.compile(rf"(?:[<>≤≥±]|\b(?:{_BOUND})|\d\s*%?\s*(?:[-–]|to|and|or))\s*$", re.IGNORECASE)
#: Characters before a number in which a negation or a bound is looked for: a few words.
_REACH = 100
_RANGE = re.compile(r"^\s*(?:[-–±]|to\b|and\b|or\b)\s*\d", re.IGNORECASE)
#: The scale that the prompt asked for: "(0-100)", "(out of 100)".
_SCALE = re.compile(r"\(?\b0\s*(?:-|–|to)\s*(?:100|10|1)\b%?\)?|\(out of 100?\)", re.IGNORECASE)


def parse_confidence(text: str | float | None, *, scale: str = "fraction") -> float | None:
    """Return the confidence that a text states, or None if it does not state exactly one.

    Nothing is guessed. In a longer text a number counts if it is tied to a word of confidence ("Answer: 12. Confidence:
    85%", "Guess: Paris. Probability: 0.7", "I am 80% sure"), unless that is denied ("not 90% sure"). Otherwise the text
    must be the number and nothing else but words such as "about". A range ("80-90%"), a bound ("over 90%"), a fraction
    other than /100 and /10 ("3 of 5"), a decimal comma, a number outside [0, 1] and two different values are None.

    Parameters
    ----------
    text : str, float or None
        What the model said. A number is taken as it is; anything that is neither text nor a number is None.
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
    >>> [parse_confidence(text) for text in ("Answer: 25%", "I am not 90% sure", "Confidence: 0,9")]
    [None, None, None]
    >>> parse_confidence("Confidence (0-100): 90", scale="percent")
    0.9
    """
    check_choice("scale", scale, SCALES)
    if not isinstance(text, str):
        return _number(text, scale)
    text = _SCALE.sub("", text)
    tied = [(name.start(), name.end()) for name in _NAME.finditer(text)]
    tied += [(match.start(), match.start()) for match in _STATED.finditer(text) if _has_unit(match)]
    if tied:
        found = {
            None if _NEGATED.search(_before(text, start)) else _value(text, place, scale)
            for start, place in tied
        }
    else:
        values = list(_VALUE.finditer(text))
        bare = _VALUE.fullmatch(text.strip().rstrip("."))
        alone = _FILLERS.fullmatch(_VALUE.sub("", text)) and (bare or all(map(_has_unit, values)))
        found = {_read(match, scale) for match in values} if alone else set()
    return found.pop() if len(found) == 1 else None


def _number(value: Any, scale: str) -> float | None:
    """Return a number as a fraction; None for anything else, and for numbers that a float cannot hold."""
    if not isinstance(value, Number) or isinstance(value, bool | complex):
        return None
    try:
        return _bare(float(value), scale)  # type: ignore[arg-type]
    except (OverflowError, TypeError):
        return None


def _value(text: str, start: int, scale: str) -> float | None:
    """Return the value that begins at a place of the text."""
    match = _VALUE.match(text, start)
    if match is None or _INEXACT.search(_before(text, start)) or _RANGE.match(text[match.end() :]):
        return None
    return _read(match, scale)


def _before(text: str, start: int) -> str:
    """Return the words before a position; few of them, since repetitive text would otherwise take minutes."""
    return text[max(0, start - _REACH) : start]


def _has_unit(match: re.Match[str]) -> bool:
    return bool(match["percent"] or match["whole"])


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
