"""Sample sizes of validation studies against pmvalsampsize and by simulation."""

import numpy as np
import pytest
from scipy.special import expit

import truecal
from truecal.simulation import BetaScores
from truecal.simulation._validation import validation_sample_size

COMMON = {"prevalence": 0.018, "c_statistic": 0.8}


@pytest.mark.parametrize(
    ("predictor", "slope", "tolerance"),
    [
        # pmvalsampsize draws a million linear predictors; the integral differs by what they vary.
        ({"linear_predictor": (-5, 2.5)}, 4544, 0.005 * 4544),
        ({"linear_predictor": -4.7}, 17080, 0.005 * 17080),
    ],
)
def test_it_agrees_with_pmvalsampsize(predictor, slope, tolerance):
    """Values of the package's own unit tests (prevalence 0.018, C statistic 0.8, O:E width 1)."""
    size = validation_sample_size(**COMMON, **predictor)
    assert size.observed_expected == 905
    assert size.c_statistic == 4252
    assert size.slope == pytest.approx(slope, abs=tolerance)
    assert int(size) == max(905, 4252, size.slope)


def test_it_agrees_with_pmvalsampsize_for_scores_of_another_prevalence():
    """An example of pmvalsampsize takes these scores, half of them events, for a prevalence of 0.018."""
    said = r"scores implies a prevalence of 0\.5 .* prevalence is 0\.018"
    with pytest.warns(truecal.CalibrationWarning, match=said) as caught:
        size = validation_sample_size(**COMMON, scores=BetaScores(0.5, 0.5))
    assert size.slope == 1644
    assert caught[0].filename == __file__


@pytest.mark.parametrize("predictor", [(-4.2, 1), -4.2])
def test_another_prevalence_than_that_of_the_scores_gives_a_warning(predictor):
    said = r"linear_predictor implies a prevalence of 0\.02.*is 0\.5\. Give"
    with pytest.warns(truecal.CalibrationWarning, match=said):
        validation_sample_size(prevalence=0.5, c_statistic=0.75, linear_predictor=predictor)
    validation_sample_size(prevalence=0.05, c_statistic=0.75, linear_predictor=predictor)


@pytest.mark.slow
def test_the_slope_is_as_precise_as_promised():
    """Interval widths of 60 simulated studies average 0.4, within four standard errors."""
    size = validation_sample_size(prevalence=0.3, linear_predictor=(-1, 1.5), width_slope=0.4)
    rng = np.random.default_rng(0)
    widths = []
    for _ in range(60):
        p = expit(rng.normal(-1, 1.5, size.slope))
        slope = truecal.weak_calibration(rng.random(size.slope) < p, p).slope
        widths.append(slope.interval.high - slope.interval.low)
    assert np.mean(widths) == pytest.approx(0.4, abs=4 * np.std(widths) / np.sqrt(60) + 0.004)


def test_what_is_not_asked_for_is_left_out():
    size = validation_sample_size(prevalence=0.1)
    assert (size.slope, size.c_statistic) == (None, None)
    assert size.events == pytest.approx(0.1 * size.n)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prevalence": 0}, "prevalence"),
        ({"prevalence": 0.1, "c_statistic": 0.4}, "c_statistic"),
        ({"prevalence": 0.1, "linear_predictor": -2.0}, "c_statistic"),
        ({"prevalence": 0.1, "linear_predictor": (0, 0)}, "linear_predictor"),
        ({"prevalence": 0.1, "width_slope": 0}, "width_slope"),
        ({"prevalence": 0.1, "scores": BetaScores(1, 1), "linear_predictor": (0, 1)}, "linear_predictor"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(truecal.InputError, match=message):
        validation_sample_size(**arguments)
