import contextlib
import os
import re
import sys
import time

import pytest

from support.command_line import run, write_csv
from truecal.cli._output import stage, wrapped


def test_prose_is_wrapped():
    assert max(map(len, wrapped("word " * 40).splitlines())) <= 80


def test_progress_is_shown_on_a_terminal_only(capsys, monkeypatch):
    monkeypatch.setattr("truecal._lib.text._PATIENCE", 0)
    monkeypatch.setattr("truecal._lib.text._TICK", 0.01)
    with stage("reading"):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with stage("reading"):
        time.sleep(0.2)
    assert "reading ..." in capsys.readouterr().err


def _on_a_terminal(width, *arguments):
    """Return what a command prints on a terminal, without what was cleared."""
    pty = pytest.importorskip("pty")
    process, terminal = pty.fork()
    if process == 0:  # pragma: no cover
        os.environ["COLUMNS"] = str(width)
        os.execv(sys.executable, [sys.executable, "-m", "truecal", *map(str, arguments)])
    printed = b""
    with contextlib.suppress(OSError):  # Linux ends so
        while chunk := os.read(terminal, 1 << 16):
            printed += chunk
    os.waitpid(process, 0)
    return re.sub(r"\r\x1b\[2K[^\r\n]*(?=\r\x1b\[2K)|\r\x1b\[2K", "", printed.decode().replace("\r\n", "\n"))


WIDE = (
    ("test", "flights", "--at-most", "0.05", "--group", "origin"),
    ("monitor", "flights", "--every", "4000", "--group", "origin"),
    ("recalibrate", "flights"),
    ("estimators",),
    ("measure", "--help"),
    ("measure", "flights", "--score", "nobody"),
)


@pytest.mark.parametrize("arguments", WIDE, ids=lambda arguments: " ".join(arguments[:2]))
def test_everything_fits_a_terminal_of_60_columns_and_keeps_its_words(arguments):
    narrow, wide = (_on_a_terminal(width, *arguments) for width in (60, 120))
    assert max(map(len, narrow.splitlines())) <= 60
    assert "\x1b" not in wide  # no colours
    # No word is broken: all words of the wide form are in the narrow one.
    missing = set(wide.split()) - set(narrow.split())
    assert missing <= {"all", "so", "far", "predicted,"}  # the end of the last head of monitor


def test_verbose_reports_how_the_file_was_read_and_the_time_of_each_step(tmp_path):
    path = write_csv(tmp_path / "plain.csv")
    told = run("measure", path, "--verbose", "--estimator", "ew_bin").stderr
    assert "plain.csv has 4 columns separated by ',', and its rows are read into memory." in told
    assert re.search(r"truecal: reading took \d+\.\d\d s\.", told)
    assert "took" not in run("measure", path, "--estimator", "ew_bin").stderr


def test_a_question_has_no_full_stop(tmp_path):
    path = write_csv(tmp_path / "logits.csv", {"label": [0, 1, 1], "score": [0.5, 5.5, 7]})
    assert "are they something else, and not logits?\n" in run("measure", path, "--logits").stderr
