"""Run the snippets of Markdown pages, and compare their output with the page.

- A fence marked ``python`` is run. All fences of a page share one namespace, from top to bottom.
- In a fence marked ``console`` every line that begins with ``$ `` is a command, run without a shell. The lines below
  it are its output; if there are none, the command must not be refused (exit code 2).
- A fence marked ``text`` directly after a ``python`` fence is the output of that fence.
- ``<!-- needs: duckdb -->`` before a fence: the fence is skipped if that package is not installed.

In outputs ``...`` matches anything, white space is ignored, and a number may differ by one in its last digit.

``python tests/support/snippets.py README.md docs/guide/*.md`` writes the current outputs into the pages.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

#: README.md and the pages of the documentation, without those that are made.
PAGES = sorted(
    path
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if not {"_build", "gallery", "generated"} & set(path.relative_to(ROOT).parts)
)

#: Commands that take minutes are not run, but their options must exist.
LONG = ("reproduce",)

#: Commands that may appear in a fence marked ``sh``, which is not run.
NOT_RUN = (
    "git",
    "make",
    "pip",
    "python",
    "source",
    "cd",
    "#",
    "psql",
    "sqlite3",
    "duckdb",
    "bq",
    "snow",
    "dbt",
)

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,}) *(?P<kind>[^`]*)$")
_NEEDS = re.compile(r"<!-- needs: (?P<packages>[\w, ]+) -->")
_NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Fence:
    """A fenced block: its kind, its lines, and the line number of the first of them."""

    kind: str
    lines: list[str]
    first: int
    needs: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def fences(page: str) -> list[Fence]:
    """Return the fenced blocks of a page.

    Examples
    --------
    >>> [block.kind for block in fences("~~~python\\nx = 1\\n~~~\\n\\n~~~text\\n1\\n~~~")]
    ['python', 'text']
    """
    found, opened, needs, kind, body, first, indent = [], "", (), "", [], 0, 0
    for number, line in enumerate(page.splitlines()):
        match = _FENCE.match(line)
        if opened:
            if match and match["ticks"].startswith(opened) and not match["kind"].strip():
                found.append(Fence(kind, body, first, needs))
                opened, needs = "", ()
            else:
                body.append(line[indent:] if not line[:indent].strip() else line)
        elif match:
            opened, kind, body, first = match["ticks"], match["kind"].strip(), [], number + 1
            indent = len(match["indent"])
        elif line.strip():
            wanted = _NEEDS.search(line)
            needs = tuple(part.strip() for part in wanted["packages"].split(",")) if wanted else ()
    return found


@dataclass(frozen=True)
class Snippet:
    """Code to run, and the output that the page shows; None if it shows none."""

    kind: str
    code: str
    line: int
    needs: tuple[str, ...]
    expected: str | None
    output_lines: tuple[int, int] | None


def snippets(page: str) -> Iterator[Snippet]:
    """Yield the snippets of a page in order."""
    blocks = fences(page)
    lines = page.splitlines()
    for k, block in enumerate(blocks):
        if block.kind == "python":
            after = blocks[k + 1] if k + 1 < len(blocks) else None
            end = block.first + len(block.lines) + 1
            follows = (
                after is not None
                and after.kind == "text"
                and not "".join(lines[end : after.first - 1]).strip()
            )
            expected = after.text if follows else None
            where = (after.first, after.first + len(after.lines)) if follows else None
            yield Snippet("python", block.text, block.first + 1, block.needs, expected, where)
        elif block.kind == "console":
            starts = [number for number, line in enumerate(block.lines) if line.startswith("$ ")]
            for start, end in zip(starts, [*starts[1:], len(block.lines)], strict=True):
                shown = block.lines[start + 1 : end]
                expected = "\n".join(shown) + "\n" if shown else None
                where = (block.first + start + 1, block.first + end) if shown else None
                command = block.lines[start].removeprefix("$ ")
                yield Snippet("console", command, block.first + start + 1, block.needs, expected, where)


def run(snippet: Snippet, namespace: dict[str, object]) -> str:
    """Run a snippet in the current folder and return its output."""
    if snippet.kind == "python":
        return _run_python(snippet, namespace)
    # A page may show how bad input is refused, which is exit code 2.
    return _run_command(snippet.code, allowed=(0, 1) if snippet.expected is None else (0, 1, 2))


def _run_python(snippet: Snippet, namespace: dict[str, object]) -> str:
    printed = io.StringIO()
    # Line numbers in tracebacks are those of the page.
    code = compile("\n" * (snippet.line - 1) + snippet.code, str(namespace.get("__file__", "page")), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def _run_command(command: str, allowed: tuple[int, ...]) -> str:
    from click.testing import CliRunner

    from truecal.cli import main

    name, *arguments = shlex.split(command, comments=True)
    if name != "truecal":
        raise AssertionError(f"Only truecal commands are run here, not {command!r}.")
    if arguments[0] in LONG:
        known = {option for parameter in _command(arguments[0]).params for option in parameter.opts}
        unknown = {word for word in arguments[1:] if word.startswith("-")} - known
        assert not unknown, f"{command}: there is no {', '.join(sorted(unknown))}"
        return ""
    result = CliRunner().invoke(main, arguments, prog_name="truecal")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code not in allowed:
        raise AssertionError(f"{command} ended with exit code {result.exit_code}:\n{result.output}")
    return result.output


def _command(name: str) -> Any:
    import click

    from truecal.cli import main

    command = main.get_command(click.Context(main), name)
    assert command is not None, f"there is no command {name}"
    return command


def check_page(path: Path) -> list[str]:
    """Run the snippets of a page, compare what they print, and return what was left out and why."""
    name, left_out = path.relative_to(ROOT), []
    with workplace() as namespace:
        namespace["__file__"] = str(path)
        for snippet in snippets(path.read_text()):
            if missing(snippet):
                left_out.append(f"line {snippet.line} needs {', '.join(missing(snippet))}")
                continue
            printed = run(snippet, namespace)
            if snippet.expected is None and snippet.kind == "python":
                assert not printed, f"{name}, line {snippet.line}: the page does not show\n{printed}"
            elif snippet.expected is not None:
                message = f"{name}, line {snippet.line}: the page says\n{snippet.expected}\nbut it prints\n"
                assert same(snippet.expected, printed), message + printed
    return left_out


def missing(snippet: Snippet) -> list[str]:
    """Return the packages that a snippet needs and that are not installed."""
    return [name for name in snippet.needs if importlib.util.find_spec(name) is None]


def same(expected: str, printed: str) -> bool:
    """Return whether an output agrees with the page.

    Examples
    --------
    >>> same("error 0.0282 of ... rows", "error  0.0283 of 10000 rows"), same("0.028", "0.031")
    (True, False)
    """
    return renewed(expected, printed) is not None


def renewed(expected: str, printed: str) -> str | None:
    """Return an output of the page with the last digits of today; None if it does not agree.

    Examples
    --------
    >>> renewed("error 0.0282 of ... rows", "error  0.0283 of 10000 rows")
    'error 0.0283 of ... rows'
    """
    words = re.escape(_NUMBER.sub("\0", " ".join(expected.split())))
    words = words.replace(re.escape("\0"), f"({_NUMBER.pattern})").replace(r"\.\.\.", ".*?")
    match = re.fullmatch(words, " ".join(printed.split()))
    if match is None or not all(map(_near, _NUMBER.findall(expected), match.groups())):
        return None
    numbers = iter(match.groups())
    return _NUMBER.sub(lambda _: next(numbers), expected)


def _near(written: str, printed: str) -> bool:
    one, two = (float(text.replace(",", "").replace("−", "-")) for text in (written, printed))
    mantissa, _, exponent = written.replace(",", "").partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    # Whole numbers are counts and must be exact.
    return one == two if unit == 1 else abs(one - two) <= 1.01 * unit


@contextlib.contextmanager
def workplace() -> Iterator[dict[str, object]]:
    """Work in an empty folder with the bundled tables and a fresh namespace; restore everything afterwards."""
    from truecal.estimators import _registry

    _registry.list_estimators()
    before, environment, estimators = Path.cwd(), os.environ.copy(), _registry._SPECS.copy()
    with tempfile.TemporaryDirectory() as folder:
        for table in (ROOT / "src/truecal/datasets").glob("*.csv.gz"):
            shutil.copy(table, folder)
        os.environ.update(MPLBACKEND="Agg", COLUMNS="100")
        os.chdir(folder)
        try:
            # Dataclasses and pickles look up the module that they are defined in.
            module = sys.modules["__snippets__"] = types.ModuleType("__snippets__")
            yield module.__dict__
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ.update(environment)
            sys.modules.pop("__snippets__", None)
            _registry._SPECS.clear()
            _registry._SPECS.update(estimators)
            if "matplotlib.pyplot" in sys.modules:
                sys.modules["matplotlib.pyplot"].close("all")


def update(path: Path) -> None:
    """Write the current outputs into a page."""
    page = path.read_text()
    lines = page.splitlines()
    shift = 0
    with workplace() as namespace:
        for snippet in snippets(page):
            if missing(snippet):
                print(
                    f"{path}:{snippet.line}: skipped, {', '.join(missing(snippet))} is not installed",
                    file=sys.stderr,
                )
                continue
            printed = run(snippet, namespace)
            if snippet.output_lines is None:
                continue
            text = renewed(snippet.expected or "", printed) or printed.strip("\n")
            new = [line.rstrip() for line in text.splitlines()]
            first, last = (end + shift for end in snippet.output_lines)
            lines[first:last] = new
            shift += len(new) - (last - first)
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("error")
    for name in sys.argv[1:]:
        update(Path(name).resolve())
