import pytest

from truecal.cli._input import table
from truecal.cli._input.table import has_quoted_fields, read_dialect
from truecal.exceptions import InputError


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ('a,b\n1,"x"\n', True),
        ('\ufeff"a",b\n1,2', True),
        ('a,b\n1,"x, ""y"" z"\n', True),
        ('a,b\n1,""\n2,"line\nbreak"\n', True),
        ('a, "b"\n1, "x"\n2,"y"', True),
        ("a,b\n1,2\n", False),
        ('a,b\n1,5"2\n2,6"\n', False),
        ('a,b\n1,x""y\n', False),
    ],
)
@pytest.mark.parametrize("chunk", [1 << 26, 3])
def test_quotation_marks_around_fields_or_as_plain_characters(text, quoted, chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(table, "_CHUNK", chunk)
    assert has_quoted_fields(text.encode(), ",") == quoted
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    assert has_quoted_fields(tmp_path / "a.csv", ",") == quoted


@pytest.mark.parametrize("text", ['a,b\n1,"x"\n2,5"2\n', 'a,b\n1,"x"\n2,"open\n', 'a,b\n1,"x"\n2,"x"y"\n'])
def test_quotation_marks_that_readers_disagree_about_are_refused(text):
    with pytest.raises(InputError, match="line 3 has a quotation mark"):
        has_quoted_fields(text.encode(), ",")


@pytest.mark.parametrize(
    ("head", "separator", "names", "skipped"),
    [
        (b"a,b\n1,2\n", ",", ("a", "b"), 0),
        (b'"a;b",c\n', ",", ("a;b", "c"), 0),
        (b"a;b\n", ";", ("a", "b"), 0),
        (b'sep=|\n"a,b"|c\n', "|", ("a,b", "c"), 1),
        (b"# one\n# two\na\tb\n", "\t", ("a", "b"), 2),
        (b"# a b,c\n1,2\n", ",", ("a b", "c"), 1),
        (b"only\n1\n", ",", ("only",), 0),
        (b"a,b", ",", ("a", "b"), 0),
    ],
)
def test_separators_names_and_lines_before_the_header(head, separator, names, skipped):
    dialect = read_dialect(head, "csv")
    assert (dialect.separator, dialect.names, dialect.skip_lines) == (separator, names, skipped)
    assert dialect.has_header == (head != b"# a b,c\n1,2\n")


def test_a_letter_cut_in_two_by_the_end_of_the_head_is_no_error():
    assert read_dialect("a,é\n1,é".encode()[:-1], "csv").names == ("a", "é")
