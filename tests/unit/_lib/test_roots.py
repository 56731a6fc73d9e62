"""`find_root` gives the root between two points."""

import math

import pytest

from truecal._lib.roots import find_root


def test_the_root_is_found_to_the_tolerance():
    assert find_root(math.cos, 0, 3) == pytest.approx(math.pi / 2, abs=1e-12)
    assert abs(find_root(math.cos, 0, 3, xtol=1e-3) - math.pi / 2) <= 1e-3


def test_a_function_without_a_change_of_sign_is_an_error():
    with pytest.raises(ValueError, match="different signs"):
        find_root(math.exp, 0, 1)
