"""Calibration curves and score distributions of populations."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import truecal
from support.artists import labelled, legend_texts
from truecal import datasets
from truecal.display import CurveDisplay, ScoreDisplay
from truecal.display._population import formula


def test_curve_is_bold_where_the_scores_are(ax):
    population = truecal.Population(
        truecal.simulation.UniformScores(0.2, 0.6), truecal.simulation.PowerCurve(2)
    )
    CurveDisplay.from_population(population).plot(ax)
    bold = labelled(ax, "p = c^2")
    drawn = bold.get_xdata()[~np.isnan(bold.get_xdata())]
    assert 0.2 <= drawn.min() < 0.22
    assert 0.58 < drawn.max() <= 0.6
    np.testing.assert_allclose(bold.get_ydata(), np.nan_to_num(bold.get_ydata()))
    assert legend_texts(ax)[-1] == f"true error {100 * population.true_error():.2f}%"


@pytest.mark.parametrize("scale", ["linear", "complement", "logit"])
def test_curve_with_the_bins_of_the_data(scale):
    data = datasets.load("digits")
    ax = Figure(layout="constrained").subplots()
    display = CurveDisplay.from_predictions(data.y_true, data.y_proba, labels=data.labels, n_bins=8)
    display.plot(ax, scale=scale)
    dots = ax.containers[0].lines[0]
    np.testing.assert_array_equal(dots.get_xdata(), display.bins.mean_score)
    assert f"data, {len(display.bins)} bins" in legend_texts(ax)
    assert any(text.startswith("error of the fit") for text in legend_texts(ax))
    ax.figure.draw_without_rendering()


@pytest.mark.parametrize(
    ("curve", "text"),
    [
        (
            truecal.simulation.GLMCurve("logflip", "logflip", b0=-0.24, b1=0.3),
            "log(1 − p) = −0.24 + 0.3 log(1 − c)",
        ),
        (truecal.simulation.GLMCurve("log", "log", b1=1.27), "log p = 1.27 log c"),
        (truecal.simulation.GLMCurve("logit", "logit", b0=2), "logit p = 2"),
        (truecal.simulation.GLMCurve("logit", "logflip", b0=1, b1=-0.5), "logit p = 1 − 0.5 log(1 − c)"),
        (truecal.simulation.LogisticCurve(10, -5), "logit p = 10 c − 5"),
        (truecal.simulation.IdentityCurve(), "p = c"),
        (truecal.simulation.FunctionCurve(np.sqrt), ""),
    ],
)
def test_formulas(curve, text):
    assert formula(curve) == text.replace("−", "\N{MINUS SIGN}")


@pytest.mark.parametrize("scale", ["linear", "complement", "logit"])
def test_score_bars_and_fit_have_area_one(ax, scale):
    y, p = truecal.paper.population("resnet110_c10").sample(3000, rng=0)
    display = ScoreDisplay.from_predictions(y, p, scale=scale).plot(ax)
    for stairs in ax.patches:
        heights, _, _ = stairs.get_data()
        width = display.histogram.width
        if scale == "complement":
            width = np.append(width, 1)
        elif scale == "logit":
            width = np.concatenate([[1], width, [1]])
        assert np.sum(heights * width) == pytest.approx(1)
    assert any(text.startswith("exactly 1: ") for text in legend_texts(ax))
    assert legend_texts(ax)[1].startswith("Beta(2.")


def test_score_display_of_a_fit_of_a_distribution_and_of_none(predictions, ax):
    fit = truecal.fit_population(*predictions)
    assert (
        ScoreDisplay.from_predictions(*predictions, fit=fit).name
        == f"Beta({fit.beta.a:.3g}, {fit.beta.b:.3g})"
    )
    assert (
        ScoreDisplay.from_predictions(*predictions, fit=truecal.simulation.UniformScores()).name == "uniform"
    )
    ScoreDisplay.from_predictions(*predictions, fit=None).plot(ax, color="red")
    assert legend_texts(ax) == ["scores"]
    with pytest.raises(ValueError, match="fit must be 'beta'"):
        ScoreDisplay.from_predictions(*predictions, fit="gamma")
