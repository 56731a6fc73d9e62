import pytest

from truecal.cli.input import quotes
from truecal.cli.input.quotes import has_quoted_fields
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
    monkeypatch.setattr(quotes, "_CHUNK", chunk)
    assert has_quoted_fields(text.encode(), ",") == quoted
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    assert has_quoted_fields([tmp_path / "a.csv"], ",") == quoted


@pytest.mark.parametrize("text", ['a,b\n1,"x"\n2,5"2\n', 'a,b\n1,"x"\n2,"open\n', 'a,b\n1,"x"\n2,"x"y"\n'])
def test_quotation_marks_that_readers_disagree_about_are_refused(text):
    with pytest.raises(InputError, match="line 3 has a quotation mark"):
        has_quoted_fields(text.encode(), ",")
