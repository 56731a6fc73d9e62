"""Every snippet in README.md and in the documentation is run, and prints what the page says."""

from pathlib import Path

import pytest

from support.snippets import NOT_RUN, PAGES, ROOT, check_page, fences, run, same, snippets, workplace

pytest.importorskip("click")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [page for page in PAGES if any(snippets(page.read_text()))], ids=name_of)
def test_page(path: Path) -> None:
    left_out = check_page(path)
    if left_out:
        pytest.skip(f"{name_of(path)}: {'; '.join(left_out)}")


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_nothing_hides_in_fences_that_are_not_run(path: Path) -> None:
    for block in fences(path.read_text()):
        assert block.kind, f"{name_of(path)}, line {block.first}: say what the fence holds"
        assert block.kind not in ("bash", "shell", "py", "pycon"), f"{name_of(path)}, line {block.first}"
        if block.kind == "sh":
            for line in filter(None, block.lines):
                assert line.split()[0] in NOT_RUN, f"{name_of(path)}: {line!r} should be run: mark it console"


@pytest.mark.parametrize(
    ("expected", "printed", "equal"),
    [
        ("a 0.10", "a 0.11", True),
        ("a 0.10", "a 0.12", False),
        ("10 rows", "11 rows", False),
        ("p < 0.001 ... end", "p < 0.001 and so on\nto the end", True),
        ("one two", "one  two\n", True),
        ("one two", "one three", False),
        ("1e-3", "3e-3", False),
        ("+0.002 ± 0.001", "+0.001 ± 0.001", True),
    ],
)
def test_outputs_are_compared_as_a_reader_would(expected: str, printed: str, equal: bool) -> None:
    assert same(expected, printed) is equal


def test_a_wrong_output_is_found() -> None:
    page = "```python\nprint(0.123)\n```\n\n```text\n0.124\n```\n\n```console\n$ truecal --version\nno\n```\n"
    first, second = snippets(page)
    with workplace() as namespace:
        assert same(first.expected, run(first, namespace))
        assert not same(second.expected, run(second, namespace))
