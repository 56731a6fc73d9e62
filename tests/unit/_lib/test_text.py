import re

import pytest

from truecal._lib.text import (
    as_html,
    as_table,
    counted,
    format_pvalue,
    level,
    listing,
    p_equals,
    percent,
    printable,
    short_count,
    statistic,
)


@pytest.mark.parametrize(
    ("value", "text", "equation"),
    [
        (1.0, "1", "p = 1"),
        (0.001, "0.001", "p = 0.001"),
        (0.00099, "< 0.001", "p < 0.001"),
        (0.0449, "0.045", "p = 0.045"),
    ],
)
def test_pvalues(value, text, equation):
    assert format_pvalue(value) == text
    assert p_equals(value) == equation


def test_the_smallest_resampled_pvalue_is_a_bound():
    assert [p_equals(0.01, 99), p_equals(0.02, 99)] == ["p ≤ 0.01", "p = 0.02"]
    assert p_equals(1e-12, 10**15) == "p < 0.001"


def test_large_statistics_have_an_exponent():
    assert [statistic(value, 2) for value in (1.234, -99999, 1e5, 8.18e149)] == [
        "1.23",
        "-99999.00",
        "1e+05",
        "8.2e+149",
    ]


def test_percentages_have_no_space():
    assert percent(0.5) == "50.0%"
    assert percent(0.00123, 2) == "0.12%"
    assert [level(value) for value in (0.9, 0.95, 0.999, 1 - 0.05 / 3, 0.9999)] == [
        "90%",
        "95%",
        "99.9%",
        "98.3%",
        "99.99%",
    ]


def test_nouns_agree_with_numbers():
    assert [counted(n, "row") for n in (0, 1, 2, 1_000_000)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "1,000,000 rows",
    ]
    assert counted(3, "class", "classes") == "3 classes"


def test_long_lists_are_cut():
    assert listing([]) == ""
    assert listing([1, 2, 3], most=3) == "1, 2, 3"
    assert listing([1, 2, 3], most=2) == "1, 2, ... (3 in all)"


def test_control_characters_are_escaped():
    assert printable("a\x1b[2J\x07\u202eb\nc") == "a\\u001b[2J\\u0007\\u202eb\nc"


def test_tables_fit_80_columns():
    lines = as_table(["name", "n"], [["x" * 90, "1"], ["y\x1b", "22"]]).splitlines()
    assert lines[1] == "x" * 73 + "...   1"
    assert lines[2].split() == ["y\\u001b", "22"]
    wide = as_table(["a", "b", "n"], [["x" * 60, "y" * 60, "1234567"]], text_columns=2)
    assert max(map(len, wide.splitlines())) <= 80


def test_names_that_would_be_the_same_are_not_shortened():
    names = [f"{'x' * 90}{k}" for k in range(2)]
    lines = as_table(["name", "n"], [[name, "1"] for name in names]).splitlines()
    assert [line.split()[0] for line in lines[1:]] == names


def test_a_blank_cell_keeps_its_place_in_html():
    page = as_html("name      a    b\nfirst   1.5  2.5\nsecond       3.5")
    cells = [re.findall(r">([^<]*)</td>", row) for row in page.split("</tr>")]
    assert [row for row in cells if row] == [["first", "1.5", "2.5"], ["second", "", "3.5"]]


def test_counts_are_short():
    assert [short_count(n) for n in (0, 7, 0.5, 999, 9999, 10_000, 123_456, 2e9)] == [
        "0", "7", "0.5", "999", "9,999", "10k", "123k", "2G",
    ]  # fmt: skip
