"""Every snippet in README.md and in the documentation is run, and prints what the page says."""

from pathlib import Path

import pytest

from support.snippets import NOT_RUN, ROOT, fences, missing, run, same, snippets, workplace

PAGES = sorted(
    path
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if not {"_build", "gallery", "generated"} & set(path.relative_to(ROOT).parts)
)

pytest.importorskip("click")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [page for page in PAGES if any(snippets(page.read_text()))], ids=name_of)
def test_page(path: Path) -> None:
    left_out = []
    with workplace() as namespace:
        namespace["__file__"] = str(path)
        for snippet in snippets(path.read_text()):
            if missing(snippet):
                left_out.append(f"line {snippet.line} needs {', '.join(missing(snippet))}")
                continue
            printed = run(snippet, namespace)
            if snippet.expected is None and snippet.kind == "python":
                assert not printed, f"{name_of(path)}, line {snippet.line}: the page does not show\n{printed}"
            elif snippet.expected is not None:
                message = f"{name_of(path)}, line {snippet.line}: the page says\n{snippet.expected}\nbut it prints\n"
                assert same(snippet.expected, printed), message + printed
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
