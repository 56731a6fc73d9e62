"""Coverage of the confidence interval; the whole table is in the docs, made by benchmarks/coverage.py."""

import pytest

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
