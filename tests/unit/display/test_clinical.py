"""The calibration plot and the decision curve."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import truecal
from truecal.display import CalibrationPlotDisplay, DecisionCurveDisplay


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
    assert "6 groups, 95% intervals" in [
        text.get_text() for text in display.outcomes_ax_.get_legend().get_texts()
    ]
    weak = truecal.weak_calibration(*predictions)
    assert f"slope {weak.slope.value:.2f} (" in texts(ax)
    assert f"O:E {weak.observed_expected.value:.2f} (" in texts(ax)
    assert "ICI 0." in texts(ax)
    assert "C statistic 0." in texts(ax)
    heights = [bar.get_height() for bar in display.outcomes_ax_.patches]
    assert sum(height for height in heights if height > 0) == predictions[0].sum()
    assert "event" in texts(display.outcomes_ax_)


def test_words_cover_neither_each_other_nor_the_curve_of_a_small_plot(predictions):
    ax = Figure(figsize=(3, 3.4), layout="constrained").subplots()
    display = CalibrationPlotDisplay.from_predictions(*predictions, ax=ax)
    display.figure_.draw_without_rendering()
    assert texts(ax) == ""
    event, none = (text.get_window_extent() for text in display.outcomes_ax_.texts)
    assert event.y0 > none.y1


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


def low_risks():
    rng = np.random.default_rng(0)
    risk = rng.beta(1, 30, 2000)
    return (rng.random(2000) < np.minimum(1.5 * risk, 1)).astype(int), risk


def test_axes_end_where_low_risks_end(ax):
    display = CalibrationPlotDisplay.from_predictions(*low_risks(), ax=ax)
    assert display.ax_.get_xlim() == display.ax_.get_ylim() == display.outcomes_ax_.get_xlim()
    assert low_risks()[1].max() <= ax.get_xlim()[1] <= 0.6
    decisions = DecisionCurveDisplay.from_predictions(*low_risks())
    assert decisions.ax_.get_xlim()[1] <= 0.6


def test_decision_curves_begin_where_models_matter():
    data = truecal.datasets.load("flights")
    ax = Figure().subplots()
    for model, first in (("boosting", 0.1), ("naive_bayes", 0.02)):  # the axes have room for both
        curve = DecisionCurveDisplay.from_predictions(data.y_true, data.predictions[model], ax=ax).curve
        assert ax.get_xlim()[0] == pytest.approx(first)
        inside = curve.thresholds >= ax.get_xlim()[0]
        assert curve.high[inside].max() < ax.get_ylim()[1] < 1.2 * curve.high[inside].max()


def test_the_measures_stand_where_the_curve_is_not(predictions):
    y, p = predictions
    for given, too_low in ((low_risks(), True), ((y, p**0.2), False)):
        ax = Figure().subplots()
        CalibrationPlotDisplay.from_predictions(*given, ax=ax)
        (text,) = ax.texts
        assert text.get_ha() == ("right" if too_low else "left")


def test_several_decision_curves_on_one_axes(predictions, ax):
    y, p = predictions
    for name, risk in {"one": p, "two": p**2, "three": p**0.5}.items():
        DecisionCurveDisplay.from_predictions(y, risk, ax=ax, name=name)
    named = {line.get_label(): line.get_color() for line in ax.lines}
    assert len({named[name] for name in ("one", "two", "three", "act always")}) == 4
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(texts) == sorted(set(texts))
    assert {"one", "two", "three", "act always", "act never", "recalibrated"} <= set(texts)


def test_a_legend_is_inside_the_saved_picture(predictions):
    figure = Figure(figsize=(3.3, 2.6))
    display = DecisionCurveDisplay.from_predictions(*predictions, ax=figure.subplots())
    figure.draw_without_rendering()
    box = display.ax_.get_legend().get_window_extent()
    assert box.y0 >= 0
    assert box.y1 <= display.ax_.get_window_extent().y0


def test_a_decision_curve_of_scores_below_all_thresholds_is_drawn():
    display = DecisionCurveDisplay.from_predictions(np.arange(50) % 5 == 0, np.full(50, 1e-9))
    assert np.isfinite(display.ax_.get_ylim()).all()
