"""The gallery runs, draws, and is what sphinx-gallery expects."""

import os
import runpy
from pathlib import Path

import pytest

from truecal.estimators import _registry

os.environ.setdefault("MPLBACKEND", "agg")

FOLDER = Path(__file__).parents[2] / "examples"
GALLERY = sorted(FOLDER.glob("plot_*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_example_runs_and_draws(path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    drawn = []

    def show():
        drawn.extend(plt.get_fignums())
        for number in plt.get_fignums():
            plt.figure(number).draw_without_rendering()
        plt.close("all")

    monkeypatch.setattr(plt, "show", show)
    _registry.list_estimators()  # loads them
    monkeypatch.setattr(_registry, "_SPECS", _registry._SPECS.copy())
    runpy.run_path(str(path), run_name="__main__")
    assert drawn
    assert not plt.get_fignums()


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_example_begins_with_a_title(path):
    comment, quotes, title, line, *_ = path.read_text().splitlines()
    assert comment.startswith("# ruff: noqa")
    assert quotes == '"""'
    assert line == "=" * len(title)


def test_there_is_a_gallery():
    assert len(GALLERY) >= 15
    assert (FOLDER / "GALLERY_HEADER.rst").exists()


def test_demo_runs(capsys):
    runpy.run_path(str(FOLDER / "demo.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "--- balanced ---" in printed
    assert printed.count("The data contradict perfect calibration") == 3
