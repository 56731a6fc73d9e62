import time

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
        ("The rate fell 20%. I am 70% certain.", 0.7), ("I'm 95% confident that 30% is right", 0.95),
        ("I'm 90% sure it is not Paris", 0.9), ("I am not sure. Confidence: 40%", 0.4), ("I'd say about 70%", 0.7),
        ("Answer: 1\nConfidence: 85%, since 90% of them agree", 0.85), ("Certainty: 80%", 0.8),
        ("Answer 1 confidence 0.9", 0.9),
        ('{"answer": 25, "confidence": 0.9}', 0.9), ("Confidence in this answer:\n0.9, I think", 0.9),
        ("The 95% confidence interval is wide. Confidence: 60%", 0.6), ("Confidence (out of 100): 85%", 0.85),
        ("Guess: Paris\nProbability: 0.73", 0.73), ("Likelihood = 40%", 0.4),
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
        "Confidence: 0,9", "Confidence: 1,5", "Confidence: 95,5%", "Confidence: 1,000", "Confidence: 3/5",
        "The rate fell 20%. Confidence: high", "Answer: 25%", "Paris. 100% of the capital is there", "95% CI",
        "I am not 90% sure", "I'm not at all 90% sure", "I can't be 90% sure", "I'm 90% not sure", "I am 10% unsure",
        "My confidence is not 0.9", "Not confident: 20%", "Confident that 20% of people agree",
        "The probability is 25%", "Probability: 1/6", "Probability: 0.5. Confidence: 80%",
        "I am confident. 20% of people agree", "Confidence: 60% or 70%", "The 95% confidence interval is wide",
        "I am between 80% and 90% sure", "-5% confident",
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


@pytest.mark.parametrize("text", ["3 of 5", "9 out of 10", "4 / 5", "85,5"])
def test_parts_of_another_whole_are_not_percent(text):
    assert parse_confidence(text, scale="percent") is None
    assert parse_confidence(f"Confidence: {text}", scale="percent") is None


def test_numbers_are_taken_as_they_are():
    assert parse_confidence(0.25) == 0.25
    assert parse_confidence(np.float32(0.5)) == 0.5
    assert parse_confidence(1e-9) == 1e-9
    assert parse_confidence(85, scale="percent") == 0.85
    assert [parse_confidence(value) for value in (None, 85, -0.1, float("nan"), 10**400)] == [None] * 5
    assert [parse_confidence(value) for value in ([0.5], {"a": 1}, True, b"0.5", 0.5j)] == [None] * 5
    with pytest.raises(InputError, match="scale must be one of"):
        parse_confidence("90%", scale="percents")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Confidence: 80%\n" * 4000, 0.8),
        ("I am 80% sure. " * 4000, 0.8),
        ("9" + " " * 20_000 + "confidence: 8", None),
        ("confidence " * 10_000, None),
    ],
)
def test_a_model_that_repeats_itself_takes_no_minutes(text, value):
    start = time.process_time()
    assert parse_confidence(text) == value
    assert time.process_time() - start < 5  # half a minute if every statement looks at all the text before it
