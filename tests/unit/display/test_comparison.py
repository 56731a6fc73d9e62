"""Models, groups and segments side by side."""

import math

import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure

import truecal
from support.artists import labelled, legend_texts
from truecal import datasets
from truecal.data import as_sample
from truecal.display import ComparisonDisplay
from truecal.display._style import BLUE


def test_comparison_of_given_rows(ax):
    rows = [
        {"name": "a", "estimator": "em_bin", "value": 0.1, "low": 0.05, "high": 0.2},
        {"name": "b", "estimator": "em_bin", "value": 0.3},
    ]
    display = ComparisonDisplay(rows).plot(ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b"]
    whisker, first, second = ax.lines
    assert list(whisker.get_xdata()) == [0.05, 0.2]
    assert (first.get_xdata()[0], second.get_xdata()[0]) == (0.1, 0.3)
    assert same_color(whisker.get_color(), "#747474")
    with pytest.raises(ValueError, match="no reliability curves"):
        display.plot(kind="curves")
    with pytest.raises(ValueError, match="kind must be one of"):
        display.plot(kind="both")


def test_comparison_of_groups_says_how_many_rows_each_has(ax):
    data = datasets.load("flights")
    origin = data.groups["origin"]
    display = ComparisonDisplay.from_groups(
        data.y_true,
        data.y_proba,
        origin,
        confidence_level=None,
        estimators=["em_sweep"],
        n_resamples=5,
        rng=0,
    )
    for row in display.rows:
        chosen = origin == row["name"]
        expected = truecal.calibration_error(data.y_true[chosen], data.y_proba[chosen], estimator="em_sweep")
        assert row["value"] == expected
        assert row["n"] == chosen.sum()
    display.plot(ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["EWR (3,532)", "JFK (3,251)", "LGA (3,217)"]
    assert ax.get_legend().get_title().get_text() == ""


def test_comparison_refuses_groups_of_another_length(predictions):
    with pytest.raises(ValueError, match=r"by has 2 values .* for 500 rows"):
        ComparisonDisplay.from_groups(*predictions, ["a", "b"])


def test_comparison_curves(displays):
    display = displays["comparison"]
    display.plot(Figure(figsize=(6, 3), layout="constrained").subplots(), kind="curves", color=BLUE)
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["boosting", "balanced", "naive_bayes"]
    for ax, curve in zip(display.axes_, display.curves.values(), strict=True):
        np.testing.assert_array_equal(labelled(ax, "isotonic").get_ydata(), curve.label)
    assert not math.isnan(display.rows[0]["low"])


def test_comparison_overlays_all_curves():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    samples = {str(k): as_sample(rng.random(200) < p, p) for k in range(3)}
    display = ComparisonDisplay.from_predictions(None, samples, n_resamples=9, rng=0)
    display.plot(Figure(layout="constrained").subplots(), kind="overlay")
    assert len(display.axes_) == 1
    assert legend_texts(display.ax_) == ["0", "1", "2"]


def test_group_names_never_collide():
    display = ComparisonDisplay.from_groups([0, 1, 1], [0.2, 0.6, 0.7], [1, "1", None], n_resamples=9, rng=0)
    assert list(display.curves) == ["1", "'1'", "(missing)"]


def test_a_ranking_is_drawn_with_its_simultaneous_intervals():
    data = datasets.load("flights")
    ranking = truecal.compare(data.y_true, data.predictions)
    display = ComparisonDisplay.from_ranking(ranking).plot()
    assert [label.get_text() for label in display.axes_[0].get_yticklabels()] == [
        m.name for m in ranking.models
    ]
    assert display.rows[0]["high"] == ranking.models[0].interval.high


def test_long_names_are_wrapped():
    data = datasets.load("flights")
    name = "a model whose name is much longer than the space that a small figure has for it, version 2.3.1"
    display = ComparisonDisplay.from_predictions(data.y_true, {name: data.y_proba}, n_resamples=20, rng=0)
    ax = display.plot().axes_[0]
    assert max(map(len, ax.get_yticklabels()[0].get_text().splitlines())) <= 28
    display.figure_.draw_without_rendering()
    assert ax.get_position().width > 0.3


def test_segments_have_their_simultaneous_intervals(displays, ax):
    display = displays["audit"].plot(ax)
    drawn = {tuple(line.get_xdata()) for line in display.ax_.lines}
    for segment in display.audit.segments:
        assert {(segment.low, segment.high), (segment.difference,)} <= drawn
    assert [label.get_text().split(" (")[0] for label in display.ax_.get_yticklabels()] == [
        segment.name for segment in display.audit.segments
    ]


def test_most_segments_and_the_method_of_the_result(displays, ax):
    audit = displays["audit"].audit
    assert len(audit.plot(ax, most=2).ax_.get_yticklabels()) == 2
