"""Odd and damaged files of predictions through the command line: read rightly, refused in one line, or neither.

    python tools/fuzz_files.py [--damaged 2000] [--seed 0] [--write PAGE.md]
    python tools/fuzz_files.py --guided SECONDS

The first form counts, and exits with 1 if any file was neither. The second lets atheris, if it is installed,
look for inputs that reach new code.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from click.testing import CliRunner  # noqa: E402

import truecal  # noqa: E402
from support.odd_files import odd_files  # noqa: E402
from support.prediction_files import PIECES, cases  # noqa: E402
from truecal.cli import main as command_line  # noqa: E402

#: What can happen to a file, as the page calls it.
OUTCOMES = ("right", "refused in one line", "wrong", "two answers", "unclear error", "traceback")
#: Rows, or bytes, beyond which a file is summarised: neither of them, or each of them.
PATHS = (10**9, 10)


class File(NamedTuple):
    """A file: its name, bytes and options, and what it holds: arrays, nothing that can be read, or unknown."""

    name: str
    content: bytes
    options: Sequence[str]
    truth: tuple[Any, Any] | None = None
    is_bad: bool = False


def measure(path: Path, options: Sequence[str], many: int) -> float | str:
    """Return the error of a file by one of the two paths, or what happened instead, one of `OUTCOMES`."""
    limits = [mock.patch(f"truecal.cli._input.table.{name}", many) for name in ("MANY_ROWS", "MANY_BYTES")]
    arguments = ["measure", path.name, *options, "--estimator", "ew_bin", "--format", "json", "-q"]
    with limits[0], limits[1]:
        result = CliRunner().invoke(command_line, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return "traceback"
    if result.exit_code == 0:
        return float(json.loads(result.stdout)["value"])
    is_clear = result.stderr.count("\n") == 1 or result.stderr.startswith("Usage")
    return "refused in one line" if is_clear and result.exit_code == 2 else "unclear error"


def judge(file: File) -> str:
    """Return what happened to a file by both paths, one of `OUTCOMES`."""
    path = Path(file.name)
    path.write_bytes(file.content)
    found = [measure(path, file.options, many) for many in PATHS]
    path.unlink()
    words = [one for one in found if isinstance(one, str) and one != OUTCOMES[1]]
    if words:
        return words[0]
    values = [one for one in found if isinstance(one, float)]
    if len(values) == 1 or (values and abs(values[0] - values[1]) > 1e-9):
        return "two answers"
    if not values:
        return "wrong" if file.truth is not None else OUTCOMES[1]
    if file.is_bad:
        return "wrong"
    if file.truth is not None:
        expected = truecal.calibration_error(*file.truth, estimator="ew_bin")
        return "right" if abs(values[0] - expected) < 1e-9 else "wrong"
    return "right"


def damaged(number: int, seed: int) -> Iterator[File]:
    """Return files of the corpus with a few bytes replaced, of which it is not known what they hold."""
    rng = np.random.default_rng(seed)
    corpus = [case for case in cases() if len(case.content) < 50_000]
    for _ in range(number):
        case = corpus[rng.integers(len(corpus))]
        content = case.content
        for _ in range(rng.integers(1, 4)):
            start, length = rng.integers(len(content) + 1), rng.integers(6)
            content = content[:start] + PIECES[rng.integers(len(PIECES))] + content[start + length :]
        yield File(case.name, content, case.options)


def count(files: Iterable[File]) -> Counter[str]:
    """Return how many files had each outcome, and name those that were neither right nor refused."""
    counts: Counter[str] = Counter()
    for file in files:
        outcome = judge(file)
        counts[outcome] += 1
        if outcome not in OUTCOMES[:2]:
            print(f"{outcome}: {file.name} {' '.join(file.options)}", file=sys.stderr)
    return counts


def page(counts: dict[str, Counter[str]], command: str) -> str:
    """Return the counts as a page of the documentation."""
    head = ["files", "tried", *OUTCOMES]
    rows = [
        [name, *(f"{n:,}" for n in (found.total(), *map(found.get, OUTCOMES, [0] * 6)))]
        for name, found in counts.items()
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])
    return f"""# Odd and damaged files

Each file goes through `truecal measure` twice: read into memory, and summarised as a file beyond memory is. "Right"
means that both paths give the value that NumPy arrays with the same labels and scores give (to 1e-9); for damaged
files, of which it is not known what they hold, that both paths give one answer. Made by
`{command}`.

{table}

The kinds of files are those in `tests/support/prediction_files.py` and `tests/support/odd_files.py`; damaged files are
the former with one to three pieces of up to 5 bytes replaced.
"""


def guide(seconds: int) -> None:
    """Look for inputs that end in a traceback or an unclear error, guided by coverage."""
    try:
        import atheris
    except ImportError:
        print("atheris is not installed: pip install atheris", file=sys.stderr)
        return
    with atheris.instrument_imports(include=["truecal.cli._input"]):
        importlib.import_module("truecal.cli._input.predictions")
    corpus = [case for case in cases() if len(case.content) < 5_000]

    def try_one(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        case = corpus[provider.ConsumeIntInRange(0, len(corpus) - 1)]
        start = provider.ConsumeIntInRange(0, len(case.content))
        length = provider.ConsumeIntInRange(0, 40)
        new = provider.ConsumeBytes(40)
        outcome = judge(
            File(case.name, case.content[:start] + new + case.content[start + length :], case.options)
        )
        assert outcome in OUTCOMES[:2], (outcome, case.name, start, length, new)

    atheris.Setup(
        [sys.argv[0], f"-max_total_time={seconds}", "-max_len=64", "-len_control=0"],
        atheris.instrument_func(try_one),
    )
    atheris.Fuzz()


def main() -> None:
    """Count, or let atheris search."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--damaged", type=int, default=2000, help="number of damaged files")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--write", type=Path, help="page for the counts")
    parser.add_argument("--guided", type=int, metavar="SECONDS", help="let atheris search for so long")
    asked = parser.parse_args()
    target = asked.write and asked.write.resolve()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if asked.guided:
            guide(asked.guided)
            return
        kinds = [File(case.name, case.content, case.options, (case.y_true, case.y_proba)) for case in cases()]
        odd = [
            File(
                one.name,
                one.content,
                one.options,
                None if one.y_true is None else (one.y_true, one.y_proba),
                one.y_true is None,
            )
            for one in odd_files()
        ]
        counts = {
            "as people have them": count(kinds),
            "odd": count(odd),
            "damaged": count(damaged(asked.damaged, asked.seed)),
        }
        os.chdir(ROOT)
    text = page(counts, f"python tools/fuzz_files.py --damaged {asked.damaged} --seed {asked.seed}")
    if target:
        target.write_text(text, encoding="utf-8")
    print(text)
    sys.exit(any(found[outcome] for found in counts.values() for outcome in OUTCOMES[2:]))


if __name__ == "__main__":
    main()
