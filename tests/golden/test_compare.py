"""The comparer finds what differs, and takes what the rules allow."""

import pytest

from golden.cases import CLOSED, FIT, resampled
from golden.record import Tolerance, compare, plain, same_text


def found(old, new, rule=CLOSED):
    old, new = ({("kind", "name"): {"rule": rule, "result": plain(one)}} for one in (old, new))
    return [place for _, _, places in compare(old, new) for place, _, _ in places]


@pytest.mark.parametrize(("rule", "allowed"), [(CLOSED, 1e-10), (FIT, 1e-6)])
def test_relative_tolerance(rule, allowed):
    assert found(0.3, 0.3 * (1 + 0.9 * allowed), rule) == []
    assert found(0.3, 0.3 * (1 + 1.2 * allowed), rule) == ["result"]


def test_pvalues_may_move_by_one_resample_and_other_numbers_not():
    rule = resampled(99)
    assert found({"pvalue": 0.05}, {"pvalue": 0.06}, rule) == []
    assert found({"pvalue": 0.05}, {"pvalue": 0.07}, rule) == ["result.pvalue"]
    assert found({"statistic": 0.05}, {"statistic": 0.06}, rule) == ["result.statistic"]
    assert found({"text": "p = 0.05"}, {"text": "p = 0.06"}, rule) == []
    assert found({"text": "p = 0.050"}, {"text": "p = 0.070"}, rule) == ["result.text"]


def test_one_value_of_a_long_list():
    values = [0.1 * k for k in range(50)]
    assert found(values, values) == []
    assert found(values, [*values[:20], values[20] + 1e-6, *values[21:]]) == [
        "result.sum",
        "result.mixed",
        "result.absolute",
    ]
    swapped = [*values[:20], values[21], values[20], *values[22:]]
    assert found(values, swapped) == ["result.mixed"]


def test_types_keys_and_cases():
    assert found({"n": 3}, {"n": 3.0}) == ["result.n"]
    assert found({"n": 3}, {"n": 4}) == ["result.n"]
    assert found({"a": 1}, {"a": 1, "b": 2}) == ["result.b"]
    assert [one[2][0][2] for one in compare({("k", "old"): {}}, {("k", "new"): {}})] == ["gone", "new"]


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("error 0.0123, n = 30", "error 0.0124, n = 30", True),
        ("error 0.0123, n = 30", "error 0.0125, n = 30", False),
        ("error 0.0123, n = 30", "error 0.0123, n = 31", False),
        ("e 1.8e+05", "e 1.9e+05", True),
        ("1,000 rows", "1,001 rows", False),
        ("is wrong", "was wrong", False),
        ("ici=0.1494358215353302", "ici=0.14943582153533072", True),
        ("ici=0.1494358215353302", "ici=0.1494358218353302", False),
    ],
)
def test_texts(old, new, same):
    assert same_text(old, new, Tolerance(CLOSED)) == same
