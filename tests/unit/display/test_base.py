"""What every display must fulfil: conventions, nothing global touched, nothing cut off, nothing overlapping."""

import inspect
import subprocess
import sys
from itertools import combinations

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

import truecal.display
from truecal.display import BiasDisplay, MissRateDisplay, ReliabilityDisplay


def figure(width=3.3, height=None):
    return Figure(figsize=(width, height or 0.95 * width), layout="constrained")


def has_panels(display):
    names = ("population", "true_error")
    rows = getattr(display, "rows", ())
    return any(len({row.get(name) for row in rows}) > 1 for name in names)


def test_it_draws_into_the_axes_that_it_is_given(display, ax):
    assert display.plot(ax) is display
    assert display.figure_ is ax.figure
    assert display.ax_ is display.axes_[0]
    assert display.ax_ is ax or len(display.axes_) > 1
    shown = [one for one in ax.figure.axes if one.axison]
    assert any(one.get_xlabel() for one in shown)
    assert display.ax_.get_ylabel() or any(label.get_text() for label in display.ax_.get_yticklabels())


def test_without_axes_it_makes_a_figure(display, pyplot):
    display.plot()
    assert [pyplot.figure(number) for number in pyplot.get_fignums()] == [display.figure_]


def test_constructors_draw_at_once(pyplot):
    made = ReliabilityDisplay.from_predictions([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4], band=False)
    assert [pyplot.figure(number) for number in pyplot.get_fignums()] == [made.figure_]
    ax = figure().subplots()
    again = ReliabilityDisplay.from_predictions(
        [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4], band=False, ax=ax, legend=False, linewidth=5, pos_label=1
    )
    assert again.ax_ is ax
    assert ax.get_legend() is None
    assert ax.lines[-1].get_linewidth() == 5
    assert len(pyplot.get_fignums()) == 1


def test_every_constructor_takes_axes():
    for name in truecal.display.__all__:
        cls = getattr(truecal.display, name)
        makers = [one for one in dir(cls) if one.startswith("from_")]
        assert makers, name
        for one in makers:
            names = inspect.signature(getattr(cls, one)).parameters
            assert "ax" in names or "options" in names, (name, one)
            assert "display, drawn" in getattr(cls, one).__doc__, (name, one)


def test_no_setting_of_matplotlib_changes(display):
    before = dict(mpl.rcParams)
    display.plot(figure().subplots())
    assert dict(mpl.rcParams) == before


def test_no_setting_changes_after_an_error(display):
    before = dict(mpl.rcParams)
    with pytest.raises((AttributeError, TypeError, ValueError)):
        display.plot(object())
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("width", [3.3, 6.0])
def test_nothing_is_cut_off_or_overlaps(display, width):
    panels = has_panels(display)
    page = figure(width, 5.5 if panels else None)
    display.plot(page.subplots())
    page.draw_without_rendering()
    box = page.get_tightbbox()
    assert min(box.x0, box.y0) >= -0.02
    assert box.x1 <= page.get_figwidth() + 0.02
    assert box.y1 <= page.get_figheight() + 0.02
    # A legend that is too wide makes matplotlib shrink the axes to nothing.
    assert display.ax_.get_position().width > (0.2 if panels else 0.55)
    assert display.ax_.get_position().height > (0.15 if panels else 0.3)
    for ax in (ax for ax in page.axes if ax.axison):
        for axis, where in ((ax.xaxis, 0), (ax.yaxis, 1)):
            low, high = sorted(axis.get_view_interval())
            labels = [label for label in axis.get_ticklabels() if label.get_text() and label.get_visible()]
            shown = [label for label in labels if low <= label.get_position()[where] <= high]
            for one, other in combinations(shown, 2):
                overlap = one.get_window_extent().overlaps(other.get_window_extent())
                assert not overlap, f"{one.get_text()} and {other.get_text()} overlap"


def test_importing_needs_no_matplotlib():
    code = (
        "import sys, truecal.display; assert not any(name.startswith('matplotlib') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_matplotlib_it_says_what_to_install(displays, monkeypatch):
    bias = displays["bias"]
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"Drawing needs the package 'matplotlib'.*truecal\[app\]"):
        bias.plot()


def test_a_dark_style_has_light_text(displays, ax):
    with mpl.rc_context({"text.color": "white"}):
        displays["scores, linear"].plot(ax)
    assert ax.xaxis.label.get_color() == "white"


def test_all_displays_are_tested(display_names):
    made = {name.partition(",")[0] for name in display_names}
    known = {
        "Audit", "Reliability", "Bias", "BinCount", "Score", "Curve", "MissRate", "Comparison", "DecisionCurve",
        "Monitor", "RiskCoverage", "CalibrationPlot",
    }  # fmt: skip
    assert {f"{name}Display" for name in known} == set(truecal.display.__all__)
    assert len(made) == len(known)


def test_several_panels_in_the_place_of_one_of_several_axes(displays):
    page = figure(6)
    left, right = page.subplots(1, 2)
    displays["bias, panels"].plot(left)
    assert len(displays["bias, panels"].axes_) == 3
    assert not left.axison
    assert right.axison


def test_panels_into_axes_that_are_given(displays):
    axes = figure(6).subplots(1, 3)
    displays["bias, panels"].plot(axes)
    assert displays["bias, panels"].axes_ == list(axes)


def test_too_few_axes_are_refused(displays):
    with pytest.raises(ValueError, match=r"at least 3 axes\. Got 2 axes"):
        displays["bias, panels"].plot(figure().subplots(1, 2))


def test_panels_need_a_place_to_divide(displays):
    ax = Figure().add_axes((0.1, 0.1, 0.8, 0.8))
    with pytest.raises(ValueError, match="ax must be made by subplots, or be 3 axes, for 3 panels"):
        displays["bias, panels"].plot(ax)


def test_axes_that_were_put_down_by_hand(displays):
    ax = Figure().add_axes((0.1, 0.1, 0.8, 0.8))
    display = displays["reliability, bins"].plot(ax)
    below, above = display.histogram_ax_.get_position(), ax.get_position()
    assert below.y1 < above.y0
    assert (below.y0, above.y1) == pytest.approx((0.1, 0.9))


def test_the_figure_of_a_subfigure_is_the_root(displays):
    page = figure(6)
    displays["bias"].plot(page.subfigures(1, 2)[0].subplots())
    assert displays["bias"].figure_ is page


@pytest.mark.parametrize("cls", [BiasDisplay, MissRateDisplay])
def test_rows_that_lack_something_are_refused(cls):
    with pytest.raises(ValueError, match=r"needs rows with the keys .*\. Row 0 lacks "):
        cls([{"n": 3}])
    with pytest.raises(ValueError, match="at least one row"):
        cls([])


@pytest.mark.parametrize("name", ["reliability, skewed", "reliability, tied", "reliability, under-confident"])
def test_a_thumbnail_keeps_its_axes(displays, name):
    page = figure(2.6, 2.4)
    display = displays[name].plot(page.subplots())
    page.draw_without_rendering()
    legend, axes = display.histogram_ax_.get_legend().get_window_extent(), display.ax_.get_window_extent()
    assert axes.width > 0.5 * page.bbox.width
    assert legend.width < 1.1 * axes.width
