"""smece against relplot 1.0.3, and its exact variant against the definition."""

import numpy as np
import pytest

import truecal
from truecal.simulation import IdentityCurve, PowerCurve, UniformScores

#: ``relplot.metrics.smECE(p, y)`` of relplot 1.0.3 (PyPI), NumPy 2.4.6, on `made`.
RELPLOT = {
    (150, "square"): 0.17227333,
    (150, "identity"): 0.05205022,
    (150, "reversed"): 0.37573084,
    (150, "ends"): 0.12684696,
    (1500, "square"): 0.16794706,
    (1500, "identity"): 0.02803197,
    (1500, "reversed"): 0.37906452,
    (1500, "ends"): 0.10663954,
}


def made(n, curve):
    """Multiples of irrational numbers, modulo 1."""
    i = np.arange(n, dtype=np.float64) + 0.5
    p = (i * 0.6180339887498949) % 1.0
    u = (i * 0.7548776662466927 + 0.31 * np.floor(i / 97.0)) % 1.0
    p = 1 - p**8 if curve == "ends" else p
    return (u < {"square": p**2, "identity": p, "reversed": 1 - p, "ends": p**3}[curve]).astype(int), p


@pytest.mark.parametrize(("n", "curve"), RELPLOT)
def test_equals_relplot(n, curve):
    found = truecal.calibration_error(*made(n, curve), estimator="smece")
    assert found == pytest.approx(RELPLOT[n, curve], abs=2e-5)


def test_equals_relplot_on_the_niamey_forecasts(shared):
    for name, value in {"EMOS": 0.05948, "ENS": 0.20502}.items():
        file = np.load(shared / "data" / f"weather_niamey_{name}.npz")
        found = truecal.calibration_error(file["labels"], file["scores"], estimator="smece")
        assert found == pytest.approx(value, abs=1e-5)


def by_definition(y, p, sigma, points=4000):
    t = (np.arange(points) + 0.5) / points
    images = [p + 2 * k for k in range(-3, 4)] + [2 * k - p for k in range(-3, 4)]
    kernel = sum(np.exp(-0.5 * ((t[:, np.newaxis] - x) / sigma) ** 2) for x in images)
    kernel /= sigma * np.sqrt(2 * np.pi)
    return float(np.abs(kernel @ (p - y)).mean() / len(p))


@pytest.mark.parametrize("curve", ["square", "identity", "reversed", "ends"])
def test_the_exact_variant_solves_its_equation(curve):
    y, p = made(300, curve)
    value = truecal.calibration_error(y, p, estimator="smece", variant="exact")
    assert by_definition(y, p, value) == pytest.approx(value, abs=1e-5)


def test_the_variants_are_near_each_other_inside():
    for seed in range(5):
        y, p = truecal.Population(UniformScores(), PowerCurve(1.5)).sample(2000, rng=seed)
        values = [truecal.calibration_error(y, p, estimator="smece", variant=v) for v in ("relplot", "exact")]
        assert values[0] == pytest.approx(values[1], abs=1e-3)


def test_truth():
    population = truecal.Population(UniformScores(), PowerCurve(2))
    values = [
        truecal.calibration_error(*population.sample(10_000, rng=seed), estimator="smece")
        for seed in range(20)
    ]
    assert abs(np.mean(values) - population.true_value("smece")) < 0.001 + 4.5 * np.std(values) / np.sqrt(20)
    calibrated = truecal.Population(UniformScores(), IdentityCurve())
    assert calibrated.true_value("smece", variant="exact") < 1e-6


def test_an_unknown_variant_is_refused():
    with pytest.raises(truecal.InputError, match="variant must be one of 'relplot', 'exact'"):
        truecal.calibration_error([0, 1], [0.2, 0.7], estimator="smece", variant="fast")
