import sys

import pytest

import truecal
from truecal.__main__ import main


def test_without_the_packages_of_the_command_line_it_exits_2_with_the_pip_command(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "truecal.cli", None)
    monkeypatch.setattr(sys, "argv", ["truecal", "measure", "flights"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "pip install 'truecal[app]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "answer"), [("--version", truecal.__version__), ("--help", "pip install")]
)
def test_without_these_packages_it_answers_what_it_can(monkeypatch, capsys, option, answer):
    monkeypatch.setitem(sys.modules, "truecal.cli", None)
    monkeypatch.setattr(sys, "argv", ["truecal", option])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert answer in capsys.readouterr().out
