import polars as pl
import pytest

from truecal.cli._input.table import Table
from truecal.cli._input.values import Frame, called


def frame(**columns):
    data = pl.DataFrame(columns, strict=False)
    return Frame(Table("a.csv", tuple(columns), data.lazy()), list(columns))


def values(frame, expression):
    return frame.lazy.select(v=expression).collect()["v"].to_list()


def numbers(column, **options):
    made = frame(p=column)
    return values(made, made.numbers([made.field("p")], **options)[0])


def test_text_is_read_as_numbers():
    assert numbers([" 0.5", "1e-3", "", None, "NA", "nan"])[:5] == [0.5, 0.001, None, None, None]
    assert numbers(["0,5", "1"]) == [0.5, 1.0]
    assert numbers(["50%", "2.5 %", "", "NA", "1,5%"], percent=True) == [50, 2.5, None, None, 1.5]
    assert numbers(["50", "2.5", "NA"], percent=True) == [50, 2.5, None]
    assert numbers([50, 25], percent=True) == [50, 25]
    assert numbers([True, False]) == [1.0, 0.0]


@pytest.mark.parametrize(
    ("column", "options", "message"),
    [
        (["0.5", "x", "y"], {}, r"column 'p' has 2 non-numeric values \(first at row 1: 'x'\)"),
        (["0,5", "1"], {"decimal_comma": False}, "1 non-numeric value"),
        (["5%", "1%", "NA"], {}, "2 values with a percent sign .*--percent"),
        (["5%", "x"], {"percent": True}, r"1 non-numeric value \(first at row 1: 'x'\)"),
        ([{"a": 1}], {}, "contains Struct"),
    ],
)
def test_what_is_not_a_number_is_refused(column, options, message):
    with pytest.raises(ValueError, match=message):
        numbers(column, **options)


@pytest.mark.parametrize("percent", [False, True])
@pytest.mark.parametrize("other", ["0.7", "0,7"])
def test_percent_signs_on_some_values_only_are_refused(percent, other):
    """0.7 may be a fraction or a percentage, and only the file's author knows."""
    message = (
        rf"2 values with a percent sign \(first at row 2: '66%'\) and 1 without \(first at row 2: '{other}'\)"
    )
    with pytest.raises(ValueError, match=message):
        numbers(["NA", "66%", other, "5%"], percent=percent)


@pytest.mark.parametrize(
    ("column", "kind", "seen"),
    [
        (["1", " 0", "NULL"], "number", [0, 1]),
        (["1.0", "0.5"], "number", [0.5, 1]),
        (["True", "false"], "boolean", [False, True]),
        (["a ", "b", "a"], "text", ["a", "b"]),
        (
            ["10000000000000000000", "10000000000000000001"],
            "text",
            ["10000000000000000000", "10000000000000000001"],
        ),
        (["1", "x", "NA"], "text", ["1", "NA", "x"]),
        ([True, None], "boolean", [True]),
        ([2.0, 1.0], "number", [1, 2]),
        ([2**63, 1], "text", ["1", str(2**63)]),
    ],
)
def test_labels_are_numbers_booleans_or_text(column, kind, seen):
    made = frame(y=pl.Series(column, dtype=pl.UInt64) if column[0] == 2**63 else column)
    labels = made.labels(made.field("y"))
    assert (labels.kind, labels.seen) == (kind, seen)


def test_parts_of_columns():
    made = frame(l=[[0.1, 0.9], [0.5, 0.5]], s=[{"a": 1.0, "b": 2.0}] * 2, x=[1, 2])
    assert [part.name for name in "lsx" for part in made.expand(name)] == ["l[0]", "l[1]", "s.a", "s.b", "x"]
    assert values(made, made.expand("l")[1].values) == [0.9, 0.5]


def test_groups_are_text_or_integers():
    made = frame(g=[" a", "a", "", None], h=["1", "10", "9", "1"], k=["01", "1", "2", "3"])
    g, h, k = made.groups(["g", "h", "k"])
    assert values(made, g) == ["a", "a", None, None]
    assert values(made, h) == [1, 10, 9, 1]
    assert values(made, k) == ["01", "1", "2", "3"]


def test_rows_are_counted_and_found():
    made = frame(x=[1, 2, 3])
    x = made.field("x").values
    assert made.ask(high=x.max()) == {"high": 3}
    assert made.first(x > 1, x) == (1, 2)
    assert called(["a"]) == "column 'a'"
    with pytest.raises(ValueError, match="no rows"):
        frame(x=[])
