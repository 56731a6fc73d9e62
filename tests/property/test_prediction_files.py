"""Damaged files: every one is read or refused in one line, and never gives two answers."""

import os
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from support.command_line import value_of
from support.prediction_files import PIECES, Case, cases
from truecal.cli import main

CASES = [case for case in cases() if len(case.content) < 50_000]


@st.composite
def damaged(draw: st.DrawFn) -> Case:
    """Return a file with a few pieces replaced."""
    case = draw(st.sampled_from(CASES))
    content = case.content
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(content)))
        length = draw(st.integers(0, 20))
        content = content[:start] + draw(st.sampled_from(PIECES)) + content[start + length :]
    return Case(case.name, content, case.options, case.y_true, case.y_proba)


def measure(path: Path, case: Case, many: int) -> float | None:
    """Return the error of a file, or None if it is refused; anything else is a failure."""
    name = "truecal.cli._input.table."
    with mock.patch(f"{name}MANY_ROWS", many), mock.patch(f"{name}MANY_BYTES", many):
        arguments = ["measure", path.name, *case.options, "--estimator", "ew_bin", "--format", "json", "-q"]
        result = CliRunner().invoke(main, arguments)
    assert isinstance(result.exception, SystemExit | None), (case.name, result.exception)
    assert result.exit_code in (0, 2)
    if result.exit_code == 2:
        assert result.stderr.count("\n") == 1 or result.stderr.startswith("Usage"), result.stderr
        assert path.name in result.stderr or "--" in result.stderr
        return None
    return value_of(result)


@settings(max_examples=100, deadline=None)
@given(case=damaged())
def test_a_damaged_file_is_refused_or_gives_one_answer(case):
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            path = Path(case.name)
            path.write_bytes(case.content)
            small, large = measure(path, case, 10**9), measure(path, case, 1)
        finally:
            os.chdir(before)
    assert (small is None) == (large is None), (case.name, small, large)
    assert small is None or large is None or np.isclose(small, large, rtol=0, atol=1e-9)
