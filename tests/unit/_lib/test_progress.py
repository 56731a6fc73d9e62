import re
import time

import pytest

from truecal._lib import text
from truecal._lib.text import Progress, counting


def _use_terminal(monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(text, "_PATIENCE", 0.05)
    monkeypatch.setattr(text, "_TICK", 0.01)


def _wait(capsys, pattern):
    shown = ""
    for _ in range(400):
        shown += capsys.readouterr().err
        if re.search(pattern, shown):
            return shown
        time.sleep(0.01)
    raise AssertionError(shown)


def test_it_is_silent_without_a_terminal(capfd):
    with Progress("work", total=2) as progress:
        progress.advance(2)
    assert capfd.readouterr().err == ""


def test_shares_and_remaining_time_are_shown(capsys, monkeypatch):
    _use_terminal(monkeypatch)
    with Progress("work", total=4) as progress:
        progress.advance(1)
        _wait(capsys, r"\r\x1b\[2Kwork:\s+25\.0% \[#####\.{15}\] \d+ s left")
        progress.advance(2)
        _wait(capsys, r"75\.0% \[#{15}\.{5}\]")
    assert capsys.readouterr().err.endswith("\r\x1b[2K")
    time.sleep(0.05)
    assert capsys.readouterr().err == ""  # nothing is drawn any more


def test_work_of_unknown_length_shows_the_time_and_what_goes_on_inside_it(capsys, monkeypatch):
    _use_terminal(monkeypatch)
    with Progress("reading"):
        _wait(capsys, r"reading \.\.\. 0 s")
        for number in counting(range(2), "audit"):
            _wait(capsys, rf"audit:\s+{50 * number}\.0%")
        _wait(capsys, r"reading \.\.\. 0 s")


def test_what_is_fast_shows_nothing(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Progress("work", total=1) as progress:
        progress.advance(1)
    assert capsys.readouterr().err == "\r\x1b[2K"


def test_a_last_line_stays_if_it_was_asked_for(capfd):
    with Progress("work", total=0, show=True) as progress:
        progress.advance(0)
    assert re.search(r"work: 100\.0% \[#{20}\] 0 s left\n$", capfd.readouterr().err)
    with pytest.raises(ZeroDivisionError), Progress("work", total=1, show=True):
        raise ZeroDivisionError
    assert "work" not in capfd.readouterr().err
