from pathlib import Path

import pytest

from truecal.cli.input.sniffing import encoding_of, format_by_content, format_by_name, read_dialect


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.csv", "csv"), ("a.CSV.GZ", "csv"), ("a.b.parquet", "parquet"), ("a.json", "jsonl"), ("a", None)],
)
def test_the_name_gives_the_format(name, format):
    assert format_by_name(Path(name)) == format


def test_spreadsheets_are_refused_by_name():
    with pytest.raises(ValueError, match="Save the sheet as CSV"):
        format_by_name(Path("a.xlsx"))


def test_the_content_gives_the_format():
    heads = {
        b"PAR1": "parquet",
        b"\x93NUMPY": "npy",
        b'\xef\xbb\xbf {"a"': "jsonl",
        b"[{": "jsonl",
        b"a,b": "csv",
    }
    assert [format_by_content(head) for head in heads] == list(heads.values())
    assert encoding_of("a".encode("utf-16")) == "utf-16"


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
