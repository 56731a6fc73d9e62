import re

from support.command_line import run, write_csv
from truecal.cli._output import stage, wrapped


def test_prose_is_wrapped():
    assert max(map(len, wrapped("word " * 40).splitlines())) <= 80


def test_progress_is_shown_on_a_terminal_only(capsys, monkeypatch):
    with stage("reading"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with stage("reading"):
        pass
    assert "reading ..." in capsys.readouterr().err


def test_verbose_reports_how_the_file_was_read_and_the_time_of_each_step(tmp_path):
    path = write_csv(tmp_path / "plain.csv")
    told = run("measure", path, "--verbose", "--estimator", "ew_bin").stderr
    assert "plain.csv has 4 columns separated by ',', and its rows are read into memory." in told
    assert re.search(r"truecal: reading took \d+\.\d\d s\.", told)
    assert "took" not in run("measure", path, "--estimator", "ew_bin").stderr


def test_a_question_has_no_full_stop(tmp_path):
    path = write_csv(tmp_path / "logits.csv", {"label": [0, 1, 1], "score": [0.5, 5.5, 7]})
    assert "are they something else, and not logits?\n" in run("measure", path, "--logits").stderr
