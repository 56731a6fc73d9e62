"""Coverage of the confidence interval; the whole table is in the docs, made by experiments/coverage.py."""

import numpy as np
import pytest
from scipy.special import expit

import truecal
from truecal.data import as_sample
from truecal.inference.interval import confidence_interval

UNIFORM = truecal.simulation.UniformScores()
POPULATIONS = {
    "uniform, truth 0": truecal.Population(UNIFORM, truecal.simulation.IdentityCurve()),
    "uniform, truth 0.05": truecal.Population(UNIFORM, truecal.simulation.PowerCurve(1.2)),
    "tenths, truth 0": truecal.Population(
        truecal.simulation.RoundedScores(UNIFORM, decimals=1), truecal.simulation.IdentityCurve()
    ),
    "skewed, miscalibrated": truecal.paper.population("resnet110_c10"),
    "skewed, calibrated": truecal.paper.population("densenet40_c100", calibrated=True),
}


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("name", POPULATIONS)
def test_intervals_cover(name, norm):
    population, repeats = POPULATIONS[name], 150
    truth = population.true_error(norm)
    held = sum(
        truth in confidence_interval(as_sample(*population.sample(500, rng=seed)), norm=norm)
        for seed in range(repeats)
    )
    # The target is at least 93%; the tolerance is four binomial standard errors.
    assert held / repeats > 0.93 - 4 * (0.93 * 0.07 / repeats) ** 0.5


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize(("level", "n", "threshold"), [(-2.0, 120, 0.5), (-3.0, 400, 0.3), (-5.0, 4000, 0.1)])
def test_net_benefit_is_covered_with_few_events(level, n, threshold, clustered):
    """20 to 45 events, of which few lie above the threshold: Wald's interval covers 0.89, 0.89 and 0.77."""
    rng = np.random.default_rng(7)

    def few(size):
        p = expit(level + rng.normal(size=size))
        return (rng.random(size) < p).astype(int), p

    truth = truecal.net_benefit(*few(1_000_000), thresholds=[threshold]).net_benefit[0]
    held = 0
    for _ in range(300):
        y, p = few(n)
        clusters = rng.integers(0, n // 8, n) if clustered else None
        curve = truecal.net_benefit(y, p, thresholds=[threshold], clusters=clusters)
        held += curve.low[0] <= truth <= curve.high[0]
    assert held / 300 > 0.95 - 3 * (0.95 * 0.05 / 300) ** 0.5
