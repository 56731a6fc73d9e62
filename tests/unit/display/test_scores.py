import numpy as np
import pytest

import truecal
from support.artists import legend_texts
from truecal.display import ScoreDisplay


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
