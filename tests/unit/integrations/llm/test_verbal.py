import numpy as np
import pytest

from truecal.exceptions import InputError
from truecal.integrations.llm import parse_confidence


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("90%", 0.9), ("90 %", 0.9), ("100%", 1.0), ("0%", 0.0), ("99.5%", 0.995), ("0.9", 0.9), (".9", 0.9),
        ("1.0", 1.0), ("1", 1.0), ("0", 0.0), ("95/100", 0.95), ("7/10", 0.7), ("9 / 10", 0.9), ("0.9.", 0.9),
        (" 85% ", 0.85), ("85%.", 0.85), ("I am 80 percent sure.", 0.8), ("About 70%", 0.7), ("**90%**", 0.9),
        ("Answer: 42\nConfidence: 85%", 0.85), ("Confidence: 0.75", 0.75), ("confidence = 95/100", 0.95),
        ("Answer: 50% of them\nConfidence: 60%", 0.6), ("**Confidence:** 0.8", 0.8), ("I'm 90% confident", 0.9),
        ("Confidence (0-100): 90%", 0.9), ("90% ... yes, 90%", 0.9), ("My confidence is 0.65.", 0.65),
    ],
)  # fmt: skip
def test_what_is_read(text, value):
    assert parse_confidence(text) == pytest.approx(value)


@pytest.mark.parametrize(
    "text",
    [
        "", "very sure", "90", "120%", "-5%", "80-90%", "80 - 90%", "80% to 90%", "between 80% and 90%", "over 90%",
        "at least 90%", "<10%", ">90%", "> 90%", "60% or 70%", "1.5", "2/3", "95/1000", "1.2.3", "90%%", "v0.9 beta",
        "Confidence: high", "Confidence: 80-90%", "Confidence: 60%\nConfidence: 70%", "Confidence: 150", "n/a",
        "Confidence: >90%", "Confidence: -1", "0,9", "1e-3", "nan", "The answer is 0.5 or so",
    ],
)  # fmt: skip
def test_what_is_never_guessed(text):
    assert parse_confidence(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("90", 0.9),
        ("1", 0.01),
        ("100", 1.0),
        ("0", 0.0),
        ("90%", 0.9),
        ("0.9", None),
        ("101", None),
        ("95/100", 0.95),
    ],
)
def test_bare_numbers_on_a_scale_of_a_hundred(text, value):
    assert parse_confidence(text, scale="percent") == value
    assert parse_confidence(f"Confidence: {text}", scale="percent") == value


def test_numbers_are_taken_as_they_are():
    assert parse_confidence(0.25) == 0.25
    assert parse_confidence(np.float32(0.5)) == 0.5
    assert parse_confidence(1e-9) == 1e-9
    assert parse_confidence(85, scale="percent") == 0.85
    assert [parse_confidence(value) for value in (None, 85, -0.1, float("nan"))] == [None] * 4
    with pytest.raises(InputError, match="scale must be one of"):
        parse_confidence("90%", scale="percents")
