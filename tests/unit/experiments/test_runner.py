"""The runner of the experiments, and the pages that it writes."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module

import pytest
from experiments.__main__ import experiments, main
from experiments._page import DOCS, Page, with_origin, write_page

import truecal


@pytest.fixture
def squares(monkeypatch):
    """A small experiment beside the others, which knows only two options."""
    module = type(sys)("experiments.squares")

    def run(*, quick: bool = False, draws: int = 3) -> Page:
        rows = [{"x": x, "square": x**2 + 1 / 3} for x in range(2 if quick else draws)]
        return Page("# Squares\n\nOf small numbers.\n", {"": rows, "again": rows})

    module.main = run
    monkeypatch.setitem(sys.modules, "experiments.squares", module)
    monkeypatch.setattr("experiments.__main__.experiments", lambda: {"squares": "Small squares."})


def test_list_names_every_experiment_with_its_purpose(capsys):
    main(["list"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(experiments())
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize("name", experiments())
def test_an_experiment_has_a_quick_run_and_options_of_the_runner(name):
    options = set(inspect.signature(import_module(f"experiments.{name}").main).parameters)
    assert "quick" in options
    assert options <= {"quick", "draws", "rows", "finished", "n_jobs", "seed", "logits", "data"}


def test_a_page_says_how_it_was_made(squares, capsys, tmp_path):
    main(["squares", "--draws", "2", "--out", str(tmp_path)])
    title, _, made, _, text = (tmp_path / "squares.md").read_text().splitlines()
    assert (title, text) == ("# Squares", "Of small numbers.")
    assert made.startswith("Made by `python -m experiments squares --draws 2` on 2")
    assert f"truecal {truecal.__version__}" in made
    assert "# Squares" in capsys.readouterr().out
    expected = ["x,square", "0,0.333333", "1,1.33333"]
    for name in ("squares.csv", "squares_again.csv"):
        assert (tmp_path / name).read_text().splitlines() == expected


def test_a_quick_run_is_only_printed(squares, capsys, monkeypatch):
    monkeypatch.setattr("experiments.__main__.write_page", None)
    main(["squares", "--quick"])
    assert "`python -m experiments squares --quick`" in capsys.readouterr().out


def test_pages_go_to_a_folder_of_the_docs(monkeypatch, tmp_path):
    monkeypatch.setattr("experiments._page.DOCS", tmp_path)
    page = Page("# Title\n", {}, folder="open")
    assert write_page("name", page, "command") == tmp_path / "open" / "name.md"
    assert (DOCS / "benchmarks").is_dir()
    assert with_origin("# Title\n\nText.", "command").endswith(".\n\nText.")


def test_unknown_names_and_options_are_refused(squares, capsys):
    for arguments, reason in (
        (["circles"], "no experiment circles"),
        (["squares", "--rows", "9"], "no --rows"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)
        assert reason in capsys.readouterr().err
