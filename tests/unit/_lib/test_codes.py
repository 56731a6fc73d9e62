"""Codes are ordered and numbered as sorting would do it."""

import numpy as np
import pytest

from truecal._lib.codes import first_of_pairs, number_values, order_of, sum_pairs


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_the_order_is_that_of_a_stable_sort(n):
    code = np.random.default_rng(n).integers(0, 7, n)
    order, bounds = order_of(code, 7)
    assert order.tolist() == np.argsort(code, kind="stable").tolist()
    assert np.diff(bounds).tolist() == np.bincount(code, minlength=7).tolist()


@pytest.mark.parametrize(
    "values",
    [
        np.array([5, 3, 5, 9]),
        np.array([-128, 127, -128, 0] * 40, dtype=np.int8),
        np.array([2**64 - 1, 2**64 - 3, 2**64 - 1], dtype=np.uint64),
        np.array([-(2**63), 2**63 - 1, 0]),
        np.array([2**62, 7]),
        np.array([], dtype=np.int64),
        np.array([0.5, 0.25, 0.5]),
        np.array(["b", "a", "b"]),
    ],
    ids=lambda values: f"{values.dtype}-{len(values)}",
)
def test_values_are_numbered_in_their_order(values):
    distinct, place = number_values(values)
    expected, where = np.unique(values, return_inverse=True)
    assert distinct.dtype == expected.dtype
    assert distinct.tolist() == expected.tolist()
    assert place.tolist() == where.tolist()


def test_pairs_are_summed_in_the_order_of_the_second_and_then_the_first():
    rng = np.random.default_rng(0)
    minor, major, value = rng.integers(0, 5, 200), rng.integers(0, 9, 200), rng.random(200)
    first, second, (sums,) = sum_pairs(minor, major, [value])
    key, place = np.unique(major * 5 + minor, return_inverse=True)
    assert (second * 5 + first).tolist() == key.tolist()
    assert sums == pytest.approx(np.bincount(place, value), abs=1e-12)
    assert first_of_pairs(first, second).tolist() == list(range(len(first)))
