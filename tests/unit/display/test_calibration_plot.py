"""The calibration plot of clinical papers."""

import numpy as np
import pytest

import truecal
from truecal.display import CalibrationPlotDisplay


@pytest.fixture(scope="module")
def predictions():
    population = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    return population.sample(500, rng=0)


def texts(ax):
    return "\n".join(text.get_text() for text in ax.texts)


def test_curves_groups_and_measures(predictions, ax):
    display = CalibrationPlotDisplay.from_predictions(*predictions, n_groups=6).plot(ax)
    drawn = {line.get_label(): line for line in ax.lines}
    np.testing.assert_array_equal(drawn["flexible curve"].get_ydata(), display.data.flexible)
    np.testing.assert_array_equal(drawn["logistic curve"].get_ydata(), display.data.logistic)
    assert "6 groups, 95% intervals" in [text.get_text() for text in ax.get_legend().get_texts()]
    weak = truecal.weak_calibration(*predictions)
    assert f"slope {weak.slope.value:.2f} (" in texts(ax)
    assert f"O:E {weak.observed_expected.value:.2f} (" in texts(ax)
    assert "ICI 0." in texts(ax)
    assert "C statistic 0." in texts(ax)
    heights = [bar.get_height() for bar in display.outcomes_ax_.patches]
    assert sum(height for height in heights if height > 0) == predictions[0].sum()
    assert "event" in texts(display.outcomes_ax_)


def test_parts_can_be_left_out(predictions, ax):
    options = dict.fromkeys(("groups", "logistic", "outcomes", "text", "legend"), False)
    display = CalibrationPlotDisplay.from_predictions(*predictions).plot(ax, **options)
    assert display.outcomes_ax_ is None
    assert ax.get_legend() is None
    assert texts(ax) == ""
    assert [line.get_label() for line in ax.lines][-1] == "flexible curve"
    assert ax.get_xlabel() == "predicted risk (%)"


def test_from_an_assessment(predictions, ax):
    assessment = truecal.assess(*predictions, clinical=True, recalibration=False, n_resamples=19, rng=0)
    display = CalibrationPlotDisplay.from_assessment(assessment).plot(ax)
    assert display.data.weak == assessment.weak


def test_one_outcome(ax):
    CalibrationPlotDisplay.from_predictions([1, 1, 1], [0.2, 0.4, 0.9]).plot(ax)
    assert "slope not determined" in texts(ax)
