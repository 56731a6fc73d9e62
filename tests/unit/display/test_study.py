"""Bias, miss rates and numbers of bins."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import truecal
from support.artists import labelled, legend_texts
from truecal.display import BiasDisplay, BinCountDisplay, MissRateDisplay
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
    with pytest.raises(ValueError, match="so there is no bias"):
        BiasDisplay(rows_of("skce", bias=None)).plot(ax)
    with pytest.raises(ValueError, match="quantity must be one of"):
        BiasDisplay(rows_of("em_bin")).plot(ax, quantity="mean")


def test_miss_rates_by_size_and_by_error():
    rows = [
        {
            "n": n,
            "estimator": "em_sweep",
            "true_error": error,
            "miss_rate": 0.01 if n > 100 else 0.9,
            "se": 0.02,
        }
        for n in (400, 100)
        for error in (0.05, 0.1, 0.05000000001)
    ]
    display = MissRateDisplay(rows)
    display.plot(Figure(figsize=(6, 3)).subplots())
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["true error 5%", "true error 10%"]
    line, _, (bars,) = display.axes_[1].containers[0].lines
    np.testing.assert_array_equal(line.get_xdata(), [100, 400])
    assert bars.get_segments()[1][:, 1] == pytest.approx([0, 0.05])  # never below 0
    display.plot(Figure(figsize=(6, 3)).subplots(), x="true_error")
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["n = 100", "n = 400"]
    with pytest.raises(ValueError, match="x must be one of"):
        display.plot(x="estimator")


def test_miss_rates_of_the_detection_module(ax):
    from truecal.simulation import miss_rates

    result = miss_rates([0.1], [50, 100], methods=["em_sweep"], repeats=20, rng=0)
    display = MissRateDisplay.from_miss_rates(result).plot(ax)
    np.testing.assert_allclose(
        ax.containers[0].lines[0].get_ydata(), [row.miss_rate for row in result.rows], rtol=0, atol=1e-12
    )
    assert display.ax_.get_ylabel() == "miss rate (%)"


def test_bin_count_marks_the_sweep_and_the_truth(predictions, ax):
    BinCountDisplay.from_predictions(*predictions, n_bins=[1, 2, 4, 8], true_error=0.18).plot(ax, name="x")
    sweep = truecal.estimate(*predictions, estimator="em_sweep")
    np.testing.assert_array_equal(labelled(ax, "em_bin").get_xdata(), [1, 2, 4, 8])
    for b, value in zip(*labelled(ax, "em_bin").get_data(), strict=True):
        assert value == truecal.calibration_error(*predictions, estimator="em_bin", n_bins=int(b))
    dot = labelled(ax, "em_sweep")
    assert (dot.get_xdata()[0], dot.get_ydata()[0]) == (sweep.n_bins, sweep.value)
    assert labelled(ax, "true error").get_ydata()[0] == 0.18
    assert ax.get_title(loc="left") == "x, n = 500"
    assert ax.get_ylim()[0] == 0


def test_bin_count_of_a_study_without_a_sweep(ax):
    choices = [{"estimator": "ew_bin", "n_bins": b} for b in (2, 8)]
    square = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    study = truecal.bias_study({"square": square}, estimators=choices, sizes=[100], repeats=9, rng=0)
    BinCountDisplay.from_study(study, binning="ew").plot(ax)
    assert legend_texts(ax) == ["ew_bin", "true error"]
    assert ax.get_ylabel() == "mean error, l2 (%)"
    assert len(ax.collections) == 1
