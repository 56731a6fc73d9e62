"""One display of each kind, on data of several shapes, and figures that belong to no window."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

# Read when matplotlib is first imported; only `pyplot`, which displays use when they get no axes, heeds it.
os.environ.setdefault("MPLBACKEND", "agg")

import truecal
from truecal import datasets
from truecal.display import (
    AuditDisplay,
    BiasDisplay,
    BinCountDisplay,
    CalibrationPlotDisplay,
    ComparisonDisplay,
    CurveDisplay,
    DecisionCurveDisplay,
    MissRateDisplay,
    MonitorDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    ScoreDisplay,
)
from truecal.simulation import Study

Make = Callable[[], Any]

FAST = {"n_resamples": 20, "rng": 0}
ESTIMATORS = ("ew_bin", "em_bin", "ew_debias", "em_debias", "ew_sweep", "em_sweep", "kde")
SIZES = (200, 400, 800, 1600, 3200, 6400, 12800)


def skewed(n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    return truecal.paper.population("resnet110_c10").sample(n, rng=0)


def uniform(n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    return truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2)).sample(
        n, rng=0
    )


def tied(n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Five distinct scores, 0 and 1 among them."""
    score = np.random.default_rng(0).choice([0.0, 0.25, 0.5, 0.75, 1.0], n)
    return (np.random.default_rng(1).random(n) < 0.1 + 0.8 * score).astype(int), score


def flights() -> tuple[np.ndarray, np.ndarray]:
    data = datasets.load("flights")
    return data.y_true, data.y_proba


def study_rows(*populations: str) -> list[dict[str, Any]]:
    """Rows of a study that was not run: shapes as they are, numbers made up."""
    return [
        {
            "population": population, "n": n, "estimator": estimator, "norm": 2.0, "repeats": 100, "seed": 0,
            "true_error": 0.1, "mean": 0.1 + bias, "bias": bias, "bias_se": 0.03 / n**0.5, "sd": 0.3 / n**0.5,
            "rmse": 0.3 / n**0.5 + abs(bias), "median_bias": bias, "mean_bins": 15.0,
        }
        for shift, population in enumerate(populations)
        for place, estimator in enumerate(ESTIMATORS)
        for n in SIZES
        for bias in [(place - 3) / n**0.5 / 3 + 0.01 * shift]
    ]  # fmt: skip


def miss_rows() -> list[dict[str, Any]]:
    return [
        {"n": n, "estimator": name, "true_error": error, "miss_rate": rate, "se": 0.01}
        for error in (0.02, 0.05, 0.1)
        for n in (200, 500, 1000, 2000, 5000, 10_000)
        for name, factor in (("ew_bin", 4), ("em_sweep", 3))
        for rate in [float(np.exp(-((error * n**0.5 / factor) ** 2)))]
    ]


def bin_study() -> Study:
    choices = [{"estimator": "em_bin", "n_bins": b} for b in (2, 4, 8)]
    population = truecal.Population(
        truecal.simulation.UniformScores(), truecal.simulation.LogisticCurve(10, -5)
    )
    return truecal.bias_study(
        {"logistic": population}, estimators=[*choices, "em_sweep"], sizes=[200], repeats=20, rng=0
    )


def digits(cls: Any, model: str, **options: Any) -> Any:
    data = datasets.load("digits")
    return cls.from_predictions(data.y_true, data.predictions[model], labels=data.labels, **options)


def monitored() -> truecal.CalibrationMonitor:
    rng, monitor = np.random.default_rng(0), truecal.CalibrationMonitor()
    for day in range(12):
        score = rng.uniform(0.1, 0.7, 400)
        monitor.update(rng.random(400) < score + (0.1 if day > 7 else 0), score)
    return monitor


DISPLAYS: dict[str, Make] = {
    "monitor": lambda: MonitorDisplay.from_monitor(monitored()),
    "reliability, skewed": lambda: ReliabilityDisplay.from_predictions(
        *skewed(), estimator="em_sweep", **FAST
    ),
    "reliability, complement": lambda: ReliabilityDisplay.from_predictions(
        *skewed(), scale="complement", **FAST
    ),
    "reliability, logit": lambda: ReliabilityDisplay.from_predictions(*tied(), scale="logit", **FAST),
    "reliability, bins": lambda: ReliabilityDisplay.from_predictions(*uniform(), kind="bins", **FAST),
    "reliability, sweep": lambda: ReliabilityDisplay.from_predictions(*skewed(), kind="sweep", **FAST),
    "reliability, tied": lambda: ReliabilityDisplay.from_predictions(*tied(), **FAST),
    "reliability, under-confident": lambda: digits(
        ReliabilityDisplay, "forest", estimator="multiscale", **FAST
    ),
    "reliability, no band": lambda: ReliabilityDisplay.from_predictions(*uniform(), band=False),
    "bias": lambda: BiasDisplay(study_rows("one")),
    "bias, panels": lambda: BiasDisplay(
        study_rows("resnet110_c10", "resnet_wide32_c100", "resnet152_imgnet")
    ),
    "bin count": lambda: BinCountDisplay.from_predictions(*skewed(), true_error=0.107),
    "bin count, study": lambda: BinCountDisplay.from_study(bin_study()),
    "scores, linear": lambda: ScoreDisplay.from_predictions(*flights()),
    "scores, complement": lambda: ScoreDisplay.from_predictions(*skewed(), scale="complement"),
    "scores, logit": lambda: ScoreDisplay.from_predictions(*tied(), scale="logit", fit=None),
    "scores, rounded": lambda: digits(ScoreDisplay, "logistic", scale="complement"),
    "curve": lambda: CurveDisplay.from_predictions(*flights()),
    "curve, population": lambda: CurveDisplay.from_population(truecal.paper.population("resnet110_c10")),
    "decision": lambda: DecisionCurveDisplay.from_predictions(*flights()),
    "decision, few thresholds": lambda: DecisionCurveDisplay.from_predictions(
        *skewed(), thresholds=[0.1, 0.5, 0.9]
    ),
    "calibration plot": lambda: CalibrationPlotDisplay.from_predictions(*flights()),
    "risk coverage": lambda: RiskCoverageDisplay.from_predictions(*tied()),
    "risk coverage, classes": lambda: digits(RiskCoverageDisplay, "forest"),
    "miss rate": lambda: MissRateDisplay([row for row in miss_rows() if row["true_error"] == 0.05]),
    "miss rate, panels": lambda: MissRateDisplay(miss_rows()),
    "audit": lambda: AuditDisplay(
        truecal.audit(
            *flights(), {"origin": datasets.load("flights").groups["origin"]}, n_resamples=99, rng=0
        )
    ),
    "comparison": lambda: ComparisonDisplay.from_predictions(
        flights()[0],
        datasets.load("flights").predictions,
        estimators=("multiscale", "em_sweep", "ew_bin"),
        **FAST,
    ),
}


@pytest.fixture(scope="session")
def displays() -> dict[str, Any]:
    """The displays by name, each made when it is first asked for."""

    class Cache(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            import matplotlib.pyplot as plt

            self[name] = DISPLAYS[name]()
            plt.close("all")  # it is drawn at once
            return self[name]

    return Cache()


@pytest.fixture(scope="session")
def display_names() -> list[str]:
    """The names of `displays`."""
    return list(DISPLAYS)


@pytest.fixture(params=list(DISPLAYS))
def display(request: pytest.FixtureRequest, displays: dict[str, Any]) -> Any:
    """Each display in turn."""
    return displays[request.param]


@pytest.fixture(autouse=True)
def _no_figure_stays_open() -> Iterator[None]:
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture
def ax() -> Any:
    """Axes of a figure that belongs to no window, of the width of a column."""
    from matplotlib.figure import Figure

    return Figure(figsize=(3.3, 3.3), layout="constrained").subplots()


@pytest.fixture
def pyplot() -> Iterator[Any]:
    """matplotlib.pyplot, without figures before and after."""
    import matplotlib.pyplot as plt

    plt.close("all")
    yield plt
    plt.close("all")


@pytest.fixture(scope="module")
def predictions():
    return truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2)).sample(
        500, rng=0
    )
