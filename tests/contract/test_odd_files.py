"""Hundreds of odd files: each gives the number that its arrays give, by both paths, or is refused in one line."""

import warnings

import pytest

import truecal
from support.command_line import refuse, run, value_of
from support.odd_files import odd_files

FILES = odd_files()


def test_their_names_differ():
    assert len({file.name for file in FILES}) == len(FILES) > 300


@pytest.mark.slow
@pytest.mark.parametrize("many", [10**9, 10], ids=["in memory", "summarised"])
@pytest.mark.parametrize("part", range(16))
def test_an_odd_file_is_read_rightly_or_refused(part, many, tmp_path, monkeypatch):
    monkeypatch.setattr("truecal.cli._input.table.MANY_ROWS", many)
    monkeypatch.setattr("truecal.cli._input.table.MANY_BYTES", many)
    for file in FILES[part::16]:
        (tmp_path / file.name).write_bytes(file.content)
        command = (
            "measure",
            tmp_path / file.name,
            *file.options,
            "--estimator",
            "ew_bin",
            "--format",
            "json",
        )
        if file.y_true is None:
            assert file.name in refuse(*command) or file.options, file
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = truecal.calibration_error(file.y_true, file.y_proba, estimator="ew_bin")
        assert value_of(run(*command)) == pytest.approx(expected, abs=1e-9), file
