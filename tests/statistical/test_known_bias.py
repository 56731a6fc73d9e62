"""Means of the estimates over many samples, against results of other programs.

Samples are drawn with NumPy alone, so that only the estimators of truecal are tested.
"""

import math

import numpy as np
import pytest

from truecal.data.sample import Sample
from truecal.estimators._registry import get_estimator

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

REPEATS = 600


def mean_and_error(draw, names, *, norm=2, repeats=REPEATS, seed=0):
    """Mean and standard deviation of each estimator over the same draws."""
    rng = np.random.default_rng(seed)
    specs = [get_estimator(name) for name in names]
    values = np.empty((repeats, len(specs)))
    for row in values:
        label, score = draw(rng)
        sample = Sample.from_rows(label, score)
        row[:] = [spec(sample, norm=norm).value for spec in specs]
    return dict(zip(names, zip(values.mean(axis=0), values.std(axis=0, ddof=1), strict=True), strict=True))


def resnet110_c10(rng, n, *, calibrated):
    """Scores Beta(2.7752, 0.0478), drawn as complements t; log(1 - y) = -0.24 + 0.30 log t (the paper's fits)."""
    t = rng.beta(0.0478, 2.7752, n)
    wrong = t if calibrated else np.exp(-0.24) * t**0.30
    return rng.random(n) >= wrong, 1 - t


# Source: an independent simulation of the paper's populations, by a program that shares no code with truecal
# (population resnet110_c10, l2, 15 bins): mean and its standard error over 1000 repetitions. `resnet110_c10` above
# is the whole model, so that any implementation of the estimators can repeat it.
SIMULATED = {
    (200, False): {
        "ew_bin": (0.112343, 0.000840),
        "em_bin": (0.118142, 0.001002),
        "ew_debias": (0.090688, 0.001163),
        "em_debias": (0.098786, 0.001148),
        "ew_sweep": (0.073228, 0.000851),
        "em_sweep": (0.108328, 0.001026),
        "kde": (0.125228, 0.000900),
    },
    (800, True): {
        "ew_bin": (0.044449, 0.000300),
        "em_bin": (0.013389, 0.000232),
        "ew_debias": (0.021507, 0.000577),
        "em_debias": (0.004349, 0.000255),
        "ew_sweep": (0.018278, 0.000336),
        "em_sweep": (0.016088, 0.000286),
        "kde": (0.053476, 0.000243),
    },
}


@pytest.mark.parametrize(("n", "calibrated"), SIMULATED)
def test_bias_is_that_of_an_independent_simulation(n, calibrated):
    expected = SIMULATED[n, calibrated]
    ours = mean_and_error(lambda rng: resnet110_c10(rng, n, calibrated=calibrated), list(expected))
    for name, (mean, error) in expected.items():
        joint = math.hypot(error, ours[name][1] / math.sqrt(REPEATS))
        assert abs(ours[name][0] - mean) < 4.5 * joint, name


# Source: other packages, run in 2026 on 200 samples of each model (l1, 15 bins): netcal, torchmetrics and seven more
# for ew_bin (identical values), caltrain, the paper's own code, for em_bin and both sweeps, and the normal
# resampling of uncertainty-calibration for em_debias. Scores c are uniform, and the probability of the event is
# c^d, as in `draw` below. The means have four digits and no standard errors; ours are used for both.
PEERS = {
    (100, 1.0): {
        "ew_bin": 0.1219,
        "em_bin": 0.1243,
        "em_sweep": 0.0677,
        "ew_sweep": 0.0669,
        "em_debias": 0.0817,
    },
    (1000, 1.0): {
        "ew_bin": 0.0389,
        "em_bin": 0.0387,
        "em_sweep": 0.0294,
        "ew_sweep": 0.0289,
        "em_debias": 0.0234,
    },
    (1000, 1.2): {
        "ew_bin": 0.0569,
        "em_bin": 0.0567,
        "em_sweep": 0.0518,
        "ew_sweep": 0.0515,
        "em_debias": 0.0463,
    },
}


@pytest.mark.parametrize(("n", "d"), PEERS)
def test_bias_is_that_of_other_packages(n, d):
    def draw(rng):
        score = rng.random(n)
        return rng.random(n) < score**d, score

    expected = PEERS[n, d]
    ours = mean_and_error(draw, list(expected), norm=1)
    for name, mean in expected.items():
        joint = ours[name][1] * math.sqrt(1 / 200 + 1 / REPEATS)
        assert abs(ours[name][0] - mean) < 4.5 * joint, name


def test_the_first_figure():
    # The paper's Figure 1: Beta(2.8, 0.05), perfectly calibrated, n = 200. The program above, with 20,000
    # samples, gives a mean of 6.69% and a standard deviation of 1.87%; the true error is 0.
    def draw(rng):
        t = rng.beta(0.05, 2.8, 200)
        return rng.random(200) >= t, 1 - t

    ((mean, deviation),) = mean_and_error(draw, ["ew_bin"], repeats=4000).values()
    assert abs(mean - 0.0669) < 4.5 * math.hypot(0.0187 / math.sqrt(20_000), deviation / math.sqrt(4000))
    assert abs(deviation - 0.0187) < 4.5 * 0.0187 / math.sqrt(2 * 4000)
