"""The tools of the documentation: the check of the built site, and pages generated from code and data."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import truecal
from support.snippets import ROOT
from truecal.estimators._registry import TRUE_ERROR, list_estimators


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / "docs" / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_faults_of_a_site(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<a href="good.html#here">1</a><a href="good.html#gone">2</a><a href="missing.html">3</a>'
        '<a href="https://example.org">4</a><script src="https://example.org/x.js"></script>'
    )
    (tmp_path / "good.html").write_text('<p id="here">x</p>')
    (tmp_path / "style.css").write_text(
        "@import 'https://example.org/font.css'; a { background: url(a.png) }"
    )
    assert load("check_site.py").faults(tmp_path) == [
        "index.html: loads https://example.org/x.js from the network",
        "index.html: good.html#gone has no such anchor",
        "index.html: missing.html does not exist",
        "style.css: loads https://example.org/font.css from the network",
    ]


def test_bias_table(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    board = tmp_path / "leaderboard.csv"
    board.write_text(
        "suite,estimator,absolute_bias,rmse\nA,em_bin,0.02,0.04\nA,multiscale,0.001,0.02\nB,multiscale,0.004,0.01\n"
    )
    assert load("_ext/estimator_table.py")._bias(board) == [
        "| estimator | A: miscalibrated | B: calibrated |",
        "|---|---|---|",
        "| `multiscale` | 0.10 / 2.00 | 0.40 / 1.00 |",
        "| `em_bin` | 2.00 / 4.00 |  |",
    ]


def test_bias_table_of_the_leaderboard() -> None:
    pytest.importorskip("sphinx")
    head, _, *rows = load("_ext/estimator_table.py")._bias(ROOT / "docs" / "benchmarks" / "leaderboard.csv")
    assert head == "| estimator | A: miscalibrated | B: calibrated | C1: other shapes | C2: held out |"
    assert {row.split("`")[1] for row in rows} == {
        spec.name for spec in list_estimators() if spec.estimand == TRUE_ERROR
    }


def test_formulas() -> None:
    pytest.importorskip("latex2mathml")
    pytest.importorskip("sphinx")
    to_mathml = load("_ext/mathml.py").to_mathml
    assert "<msub><mover" in to_mathml(r"\bar y_k", block=False)
    with pytest.raises(ValueError, match="nosuch"):
        to_mathml(r"\nosuch x", block=True)


def test_layers_show_the_whole_tree() -> None:
    pytest.importorskip("sphinx")
    layers = load("_ext/layers.py")
    shown = [name for layer in layers.layers() for name in layer]
    source = ROOT / "src" / "truecal"
    packages = {path.parent.name for path in source.glob("*/__init__.py")}
    single = {path.stem for path in source.glob("*.py") if not path.stem.startswith("__")}
    assert sorted(shown) == sorted(packages | single)
    assert all(layers.summary(name) for name in shown)
    assert {"sample", "cells"} <= set(layers.modules("data"))
    assert layers.modules("simulation") == ["suites"]  # the other modules begin with an underscore


def test_gallery_order_names_every_example() -> None:
    order = load("_ext/gallery_order.py")
    files = sorted((ROOT / "examples").glob("plot_*.py"), key=lambda path: order.Order("")(path.name))
    assert [path.stem.removeprefix("plot_") for path in files] == list(order.ORDER)


def test_every_public_name_is_in_the_api_reference() -> None:
    pytest.importorskip("sphinx")
    missing = [name for name in ("torch", "torchmetrics") if importlib.util.find_spec(name) is None]
    sections = list(load("_ext/api_pages.py").sections(missing))
    assert "Other" not in [title for title, _, _ in sections], (
        "give these names a group in docs/_ext/api_pages.py"
    )
    documented = [name for _, _, names in sections for name in names]
    assert len(documented) == len(set(documented))
    for module in (truecal.display, truecal.recalibration, truecal.simulation):
        short = {name.rpartition(".")[2] for name in documented}
        modules = {name for name in module.__all__ if isinstance(getattr(module, name), ModuleType)}
        assert set(module.__all__) - modules <= short
