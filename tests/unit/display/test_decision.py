import numpy as np
import pytest

import truecal
from truecal.display import DecisionCurveDisplay


@pytest.fixture(scope="module")
def predictions():
    population = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    return population.sample(500, rng=0)


def lines(ax):
    return {line.get_label(): line.get_ydata() for line in ax.lines}


def test_decision_curve(predictions, ax):
    curve = truecal.net_benefit(*predictions, thresholds=[0.1, 0.2, 0.4])
    DecisionCurveDisplay(curve).plot(ax, name="risk score")
    drawn = lines(ax)
    np.testing.assert_array_equal(drawn["risk score"], curve.net_benefit)
    np.testing.assert_array_equal(drawn["act always"], curve.treat_all)
    np.testing.assert_array_equal(drawn["recalibrated"], curve.recalibrated)
    assert "95% interval, pointwise" in [text.get_text() for text in ax.get_legend().get_texts()]
    low, high = ax.get_ylim()
    assert low < 0 < curve.net_benefit.max() < high
    (band,) = ax.collections
    assert band.get_datalim(ax.transData).y1 == pytest.approx(curve.high.max())


@pytest.mark.parametrize("quantity", ["cost", "interventions_avoided"])
def test_other_quantities(predictions, ax, quantity):
    display = DecisionCurveDisplay.from_predictions(*predictions, thresholds=[0.2, 0.3])
    display.plot(ax, quantity=quantity, legend=False)
    np.testing.assert_array_equal(lines(ax)["model"], getattr(display.curve, quantity))
    assert ax.get_legend() is None
    assert len(ax.collections) == (quantity == "cost")  # the other has no interval
    with pytest.raises(ValueError, match="quantity must be one of"):
        display.plot(ax, quantity="gain")
