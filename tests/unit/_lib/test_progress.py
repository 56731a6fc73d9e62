import re

from truecal._lib.text import Progress


def test_it_is_silent_without_a_terminal(capfd):
    with Progress("work", total=2) as progress:
        progress.advance(2)
    assert capfd.readouterr().err == ""


def test_shares_and_remaining_time_are_shown(capfd):
    with Progress("work", total=4, show=True) as progress:
        progress.advance(1)
        progress.advance(3)
    text = capfd.readouterr().err
    assert re.search(r"\rwork:\s+25\.0%, \d+ s left", text)
    assert re.search(r"\rwork:\s*100\.0%, 0 s left\s+\n$", text)


def test_no_work_is_finished_work(capfd):
    with Progress("work", total=0, show=True) as progress:
        progress.advance(0)
    assert "100.0%" in capfd.readouterr().err
