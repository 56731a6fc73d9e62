"""Time one function of one package on saved data. Runs in that package's own environment.

    python experiments/_worker.py probcal sweep labels.npy scores.npy

Prints JSON: versions, the value returned, the best time, and the best time of ``np.sort`` in turn with it.
Only NumPy and the package itself are imported here. Times are of the processor, not of the clock, so that
other programs on the machine disturb them little, and so is the limit: exit code `TOO_LONG`.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
import threading
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np

MEMORY_LIMIT = 12 * 2**30  # bytes of address space, so that quadratic memory ends in an error
TIME_LIMIT = 60  # seconds
TOO_LONG = 75
ROUNDS = 7
LONG_ENOUGH = 5.0  # seconds after which no further round is started

Measure = Callable[[np.ndarray, np.ndarray], float]


def truecal() -> dict[str, Measure]:
    from truecal import calibration_error

    return {
        "ece": lambda y, p: calibration_error(y, p, estimator="ew_bin", norm=1, n_bins=15),
        "debiased": lambda y, p: calibration_error(y, p, estimator="em_debias", norm=2, n_bins=15),
        "sweep": lambda y, p: calibration_error(y, p, estimator="em_sweep", norm=1),
        "smooth": lambda y, p: calibration_error(y, p, estimator="smece"),
    }


def probcal() -> dict[str, Measure]:
    from probcal import metrics

    return {
        "ece": lambda y, p: metrics.ece(y, p, n_bins=15, strategy="width"),
        "debiased": lambda y, p: metrics.ece_debiased(y, p, n_bins=15),
        "sweep": lambda y, p: metrics.ece_sweep(y, p),
        "smooth": lambda y, p: metrics.smooth_ece(y, p),
    }


def uncertainty_calibration() -> dict[str, Measure]:
    import calibration

    return {
        "ece": lambda y, p: calibration.get_ece(p, y, num_bins=15),
        "debiased": lambda y, p: calibration.lower_bound_scaling_ce(p, y, p=2, debias=True, num_bins=15),
    }


def relplot() -> dict[str, Measure]:
    import relplot

    return {
        "ece": lambda y, p: relplot.metrics.binnedECE(p, y, nbins=15),
        "smooth": lambda y, p: relplot.smECE(p, y),
    }


def scikit_learn() -> dict[str, Measure]:
    from sklearn.calibration import calibration_curve

    def mean_gap(y: np.ndarray, p: np.ndarray) -> float:
        label, score = calibration_curve(y, p, n_bins=15)
        return np.abs(label - score).mean()

    return {"ece": mean_gap}


def calibre() -> dict[str, Measure]:
    import calibre

    return {
        "ece": lambda y, p: calibre.expected_calibration_error(y, p, n_bins=15),
        "debiased": lambda y, p: calibre.debiased_calibration_error(y, p, n_bins=15),
        "sweep": lambda y, p: calibre.sweep_calibration_error(y, p, norm=1),
        "smooth": lambda y, p: calibre.smooth_calibration_error(y, p),
    }


PACKAGES: dict[str, Callable[[], dict[str, Measure]]] = {
    "truecal": truecal,
    "probcal": probcal,
    "uncertainty-calibration": uncertainty_calibration,
    "relplot": relplot,
    "scikit-learn": scikit_learn,
    "calibre": calibre,
}


def timed(call: Callable[[], float]) -> tuple[float, float]:
    start = time.process_time()
    value = call()
    return time.process_time() - start, value


def end_in_time() -> None:
    """Leave when the time is up. RLIMIT_CPU would do the same, but makes Linux round processor times to ticks."""
    while time.process_time() < TIME_LIMIT:
        time.sleep(0.5)
    os._exit(TOO_LONG)


def main(package: str, task: str, labels: str, scores: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    threading.Thread(target=end_in_time, daemon=True).start()
    measure = PACKAGES[package]()[task]
    y, p = np.load(labels), np.load(scores)
    measure(y[:100], p[:100])  # imports and first-call costs

    times, sorts, value = [], [], float("nan")
    while len(times) < ROUNDS and sum(times) < LONG_ENOUGH:
        sorts.append(timed(lambda: np.sort(p)[0])[0])
        elapsed, value = timed(lambda: measure(y, p))
        times.append(elapsed)
    print(
        json.dumps(
            {
                "version": version(package),
                "python": platform.python_version(),
                "numpy": np.__version__,
                "value": float(value),
                "seconds": min(times),
                "sort_seconds": min(sorts),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
