import matplotlib.pyplot as plt
import numpy as np
import pytest

from truecal.display import RiskCoverageDisplay
from truecal.display._style import CYCLE
from truecal.inference.thresholds import risk_coverage

RNG = np.random.default_rng(0)
SCORE = RNG.choice([0.5, 0.7, 0.9, 1.0], 400)
CORRECT = RNG.random(400) < SCORE - 0.1


@pytest.fixture
def axes():
    yield plt.subplots(1, 2, layout="constrained")[1]
    plt.close("all")


def lines(ax):
    return {line.get_label(): line for line in ax.lines}


def legend_of(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_risk_beside_selective_accuracy(axes):
    curve = risk_coverage(CORRECT, SCORE)
    display = RiskCoverageDisplay(curve, name="mini").plot(axes)
    left, right = display.axes_
    np.testing.assert_array_equal(
        lines(left)["mini"].get_xydata(), np.column_stack([curve.coverage, curve.risk])
    )
    np.testing.assert_array_equal(
        lines(right)["mini"].get_xydata(), np.column_stack([curve.threshold, curve.accuracy])
    )
    np.testing.assert_array_equal(lines(right)["accuracy if calibrated"].get_ydata(), curve.mean_score)
    assert lines(left)["mini"].get_marker() == "o"  # four points
    assert legend_of(display.figure_) == ["95% interval, pointwise", "mini", "accuracy if calibrated"]
    assert f"AURC {curve.aurc:.4f}" in left.get_title(loc="left")
    (band,) = left.collections
    assert band.get_datalim(left.transData).y1 == pytest.approx((1 - curve.lower).max())


def test_three_models_on_the_same_axes(axes):
    for k in range(3):
        RiskCoverageDisplay.from_predictions(CORRECT ^ (k > 0), SCORE, name=f"model {k}", ax=axes)
    left, right = axes
    models = [line for line in left.lines if line.get_label().startswith("model")]
    assert [line.get_color() for line in models] == list(CYCLE[:3])
    assert left.get_title(loc="left") == ""
    assert legend_of(left.figure) == [
        "95% interval, pointwise", "model 0", "model 1", "model 2", "accuracy if calibrated",
    ]  # fmt: skip
    low, high = left.get_ylim()
    assert low == 0 <= max(line.get_ydata().max() for line in models) <= high
    assert len(right.lines) == 6


def test_one_axes_or_a_new_figure(axes):
    display = RiskCoverageDisplay.from_predictions(CORRECT, SCORE)
    assert len(display.plot(axes[0], band=False, legend=False).axes_) == 1
    assert not axes[0].collections
    assert len(display.plot().axes_) == 2


def test_many_scores_have_no_markers(axes):
    RiskCoverageDisplay.from_predictions(
        CORRECT, RNG.random(400), name="many", ax=axes, clusters=np.arange(400) // 4
    )
    assert lines(axes[0])["many"].get_marker() == "None"
