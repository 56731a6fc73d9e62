"""`find_root` gives the root between two points."""

import math

import pytest
from scipy.optimize import brentq

from truecal._lib.roots import find_root

FUNCTIONS = [
    (math.cos, 0, 3),
    (lambda x: x**3 - 2, -1, 1.5),
    (lambda x: math.atan(x - 100), -1e6, 1e6),
    (lambda x: math.expm1(x) - 1e-8, -50, 5),
    (lambda x: 1.0 if x > 0.3 else -1.0, 0, 1),
    (lambda x: x, 0, 1),
    (lambda x: x - 1, 0, 1),
]


@pytest.mark.parametrize(("function", "low", "high"), FUNCTIONS)
def test_roots_are_those_of_scipy(function, low, high):
    calls = []

    def counted(x):
        calls.append(x)
        return function(x)

    root = find_root(counted, low, high, xtol=1e-12)
    expected = brentq(function, low, high, xtol=1e-14)
    assert root == pytest.approx(expected, abs=2e-12, rel=1e-14)
    assert len(calls) < 80
    assert min(calls) >= low
    assert max(calls) <= high


def test_the_tolerance_saves_calls():
    calls = []
    find_root(lambda x: calls.append(x) or math.cos(x), 0, 3, xtol=1e-3)
    assert len(calls) < 8


def test_a_function_without_a_change_of_sign_is_an_error():
    with pytest.raises(ValueError, match="no change of sign"):
        find_root(math.exp, 0, 1)
    with pytest.raises(ValueError, match="no change of sign"):
        find_root(lambda _: math.nan, 0, 1)
