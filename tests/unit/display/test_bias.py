import numpy as np
import pytest
from matplotlib.figure import Figure

from support.artists import legend_texts
from truecal.display import BiasDisplay
from truecal.simulation import Study


def rows_of(*names, sizes=(100, 400), **more):
    return [
        {"population": "p", "n": n, "estimator": name, "norm": 2, "bias": 1 / n + k, "bias_se": 0.1 / n,
         "sd": 3 / n, "rmse": 4 / n, "median_bias": 2 / n, **more}
        for k, name in enumerate(names)
        for n in sizes
    ]  # fmt: skip


def test_bias_lines_and_bars_are_those_of_the_rows(ax):
    BiasDisplay(rows_of("ew_bin", "em_bin")).plot(ax)
    first, second = ax.containers
    np.testing.assert_allclose(first.lines[0].get_ydata(), [0.01, 0.0025])
    np.testing.assert_allclose(second.lines[0].get_ydata(), [1.01, 1.0025])
    (bar, _) = first.lines[2][0].get_segments()
    np.testing.assert_allclose(bar[:, 1], [0.01 - 0.002, 0.01 + 0.002])
    assert first.lines[0].get_linestyle() == "--"
    assert second.lines[0].get_linestyle() == "-"
    assert legend_texts(ax) == ["ew_bin", "em_bin"]
    assert ax.get_legend().get_title().get_text() == "bars: ±2 Monte Carlo s.e."


@pytest.mark.parametrize(("quantity", "value"), [("sd", 0.03), ("rmse", 0.04), ("median_bias", 0.02)])
def test_bias_display_of_something_else(ax, quantity, value):
    BiasDisplay(rows_of("em_bin")).plot(ax, quantity=quantity)
    assert ax.containers[0].lines[0].get_ydata()[0] == pytest.approx(value)
    assert ax.get_ylabel().startswith(quantity.replace("_", " "))


def test_bias_panels_show_all_of_their_lines():
    rows = [*rows_of("em_bin", sd=0.1), *rows_of("em_bin", population="q", sd=0.9)]
    display = BiasDisplay(rows).plot(Figure(figsize=(6, 3)).subplots(), quantity="sd")
    assert [one.get_title(loc="left") for one in display.axes_] == ["p", "q"]
    low, high = display.axes_[0].get_ylim()
    assert low == 0
    assert high > 0.9


def test_bias_of_some_estimators_in_their_order(ax):
    study = Study(rows_of("ew_bin", "em_bin", "kde"))
    display = BiasDisplay.from_study(study, estimators=["kde", "ew_bin"], populations=["p"])
    assert [row["estimator"] for row in display.rows] == ["kde", "kde", "ew_bin", "ew_bin"]
    with pytest.raises(ValueError, match="estimator must be one of"):
        BiasDisplay.from_study(study, estimators=["skce"])


def test_bias_leaves_out_estimators_without_a_truth(ax):
    BiasDisplay([*rows_of("em_bin"), *rows_of("skce", bias=None)]).plot(ax)
    assert legend_texts(ax) == ["em_bin"]
    with pytest.raises(ValueError, match="No row has a bias"):
        BiasDisplay(rows_of("skce", bias=None)).plot(ax)
    with pytest.raises(ValueError, match="quantity must be one of"):
        BiasDisplay(rows_of("em_bin")).plot(ax, quantity="mean")
