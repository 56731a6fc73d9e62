"""The display of a monitor draws its history."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import truecal
from truecal.display import MonitorDisplay


def _monitor(dated, drift=0.2):
    rng, monitor = np.random.default_rng(0), truecal.CalibrationMonitor()
    for day in range(1, 13):
        score = rng.uniform(0.1, 0.7, 400)
        label = rng.random(400) < score + (drift if day > 8 else 0)
        monitor.update(label, score, time=f"2026-03-{day:02d}" if dated else None)
    return monitor


@pytest.mark.parametrize("dated", [True, False])
def test_lines_are_the_history(dated):
    monitor = _monitor(dated)
    display = monitor.plot(ax=Figure(layout="constrained").subplots())
    assert isinstance(display, MonitorDisplay)
    above, batches, last = display.axes_
    assert above.lines[0].get_ydata() == pytest.approx([min(look.evalue, 1e12) for look in monitor.history])
    stems = batches.collections[0].get_segments()
    assert [stem[1][1] for stem in stems] == pytest.approx([look.batch_gap for look in monitor.history])
    assert list(last.lines[0].get_ydata()) == [look.gap for look in monitor.history]
    assert last.get_xlabel() == ("time" if dated else "rows")
    assert last.get_ylim()[1] > monitor.history[-1].gap_high
    assert above.get_yscale() == "log"
    (legend,) = display.figure_.legends
    assert "change" in [text.get_text() for text in legend.get_texts()]
    display.figure_.draw_without_rendering()


def test_no_change_without_an_alarm():
    display = _monitor(False, drift=0.0).plot(ax=Figure().subplots())
    (legend,) = display.figure_.legends
    assert "change" not in [text.get_text() for text in legend.get_texts()]


def test_an_infinite_evalue_is_drawn():
    monitor = truecal.CalibrationMonitor()
    monitor.update([1, 0], [0.0, 0.4])
    display = monitor.plot(ax=Figure().subplots())
    assert np.isfinite(display.ax_.lines[0].get_ydata()).all()


def test_a_monitor_without_rows_is_refused():
    with pytest.raises(truecal.InputError, match="at least one look"):
        truecal.CalibrationMonitor().plot()


@pytest.mark.parametrize("layout", [None, "tight", "constrained"])
def test_the_legend_covers_neither_curves_nor_dates(layout):
    monitor = truecal.CalibrationMonitor()
    for day in range(1, 9):
        monitor.update([0, 1, 1], [0.2, 0.7, 0.9], time=f"2026-03-0{day}")
    figure = Figure(figsize=(5, 5), layout=layout)
    ax = figure.subplots() if layout else figure.add_axes((0.15, 0.3, 0.8, 0.6))
    last = MonitorDisplay.from_monitor(monitor, ax=ax).axes_[-1]
    figure.draw_without_rendering()
    legend = (figure.legends or [last.get_legend()])[0].get_window_extent()
    assert legend.y1 <= last.xaxis.get_label().get_window_extent().y0 + 1
