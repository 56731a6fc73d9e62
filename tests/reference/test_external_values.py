"""Values of other packages and papers, listed in external/README.md of the shared folder, that no unit test has."""

import numpy as np
import pytest
from scipy.special import expit, logit

import truecal
from truecal.inference.c_statistic import c_statistic
from truecal.simulation import BetaScores, FunctionCurve


def load(shared, name):
    data = np.genfromtxt(shared / "external" / f"{name}.csv", delimiter=",", names=True)
    return data["y"].astype(int), data["p"], data


def test_calibrationcurves_testdata(shared):
    """Brier score, C statistic and Spiegelhalter's z; the rest is in the unit tests of weak_calibration."""
    y, p, _ = load(shared, "calibrationcurves_testdata")
    assert truecal.decompose(y, p).score == pytest.approx(0.17703, abs=5e-6)
    assert float(c_statistic(y, p)) == pytest.approx(0.81427, abs=5e-6)
    assert truecal.spiegelhalter_test(y, p).statistic == pytest.approx(2.161, abs=5e-4)
    # The standard test has p = .015; version 0.1.0 said "no miscalibration was found (p = 0.2)".
    assert truecal.calibration_test(y, p, rng=0).pvalue < 0.1


def test_calibrationcurves_clusters(shared):
    y, p, data = load(shared, "calibrationcurves_clusters")
    alone = truecal.weak_calibration(y, p)
    assert float(alone.observed_expected) == pytest.approx(0.9513, abs=5e-5)
    assert alone.intercept.standard_error == pytest.approx(0.0308, abs=5e-5)
    assert alone.slope.standard_error == pytest.approx(0.0429, abs=5e-5)
    robust = truecal.weak_calibration(y, p, clusters=data["cluster"])
    assert float(robust.observed_expected) == pytest.approx(float(alone.observed_expected))


@pytest.mark.parametrize(
    ("name", "error"),
    [("cifar100_resnet56", 0.1520), ("cifar10_vgg19_bn", 0.0213), ("imagenet_resnet152", 0.0499)],
)
def test_tcal(shared, name, error):
    """15 equal-width bins, l1 (Lee et al. 2023)."""
    file = np.load(shared / "external" / f"tcal_{name}.npz")
    value = truecal.calibration_error(file["correct"], file["confidence"], estimator="ece")
    assert value == pytest.approx(error, abs=5e-5)


def test_reliabilitydiag(shared):
    """MCB, DSC and UNC of the R package on the EMOS forecasts of Niamey."""
    file = np.load(shared / "data" / "weather_niamey_EMOS.npz")
    parts = truecal.decompose(file["labels"], file["scores"])
    assert parts.score == pytest.approx(0.232, abs=5e-4)
    assert parts.miscalibration == pytest.approx(0.0183, abs=5e-5)
    assert parts.discrimination == pytest.approx(0.0305, abs=5e-5)
    assert parts.uncertainty == pytest.approx(0.244, abs=5e-4)


CURVES = {
    "perfectly calibrated": (lambda x: x, 0.0),
    "almost": (lambda x: np.clip(x + 0.02, 0, 1), 0.0188),
    "overconfident": (lambda x: expit(0.4 * logit(x) + 0.3), 0.1371),
    "underconfident": (lambda x: expit(4 * logit(x) + 1), 0.1308),
    "wavy": (
        lambda x: np.clip(
            x
            + 2 / (10 * np.pi) * np.sin(10 * np.pi * x)
            + 1 / (10 * np.pi) * np.sin(20 * (np.pi - np.pi / 3) * x),
            0,
            1,
        ),
        0.0400,
    ),
}


@pytest.mark.parametrize("name", CURVES)
def test_true_l1_errors_of_the_variational_estimators_curves(name):
    """Scores Beta(.5, .5); Berta, Braun, Holzmüller, Bach, Jordan 2026, who simulated them (0.1308 for 0.1312)."""
    function, error = CURVES[name]
    population = truecal.Population(BetaScores(0.5, 0.5), FunctionCurve(function))
    assert population.true_error(norm=1) == pytest.approx(error, abs=5e-5, rel=0.004)
