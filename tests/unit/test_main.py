import sys

import pytest

from truecal.__main__ import main


def test_without_the_packages_of_the_command_line_it_exits_2_with_the_pip_command(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "truecal.cli", None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "pip install 'truecal[app]'" in capsys.readouterr().err
