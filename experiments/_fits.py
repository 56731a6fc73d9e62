"""Time fits of recalibrators by truecal, betacal and scikit-learn in turn. Runs in an environment that has all three.

    python experiments/_fits.py 100000 1000000

Prints JSON: for each fit, size and package the least processor time of several rounds, and the parameters.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

ROUNDS = 7

Fit = Callable[[], Sequence[float]]


def fits(n: int) -> dict[str, dict[str, Fit]]:
    """Return the fits to `n` rows, by what is fitted and by package."""
    from betacal import BetaCalibration as PeerBeta
    from sklearn.calibration import _SigmoidCalibration
    from sklearn.linear_model import LogisticRegression

    from truecal.recalibration import BetaCalibration, PlattScaling

    rng = np.random.default_rng(n)
    p = rng.random(n)
    y = (rng.random(n) < p**1.2).astype(int)
    logit = np.log(p) - np.log1p(-p)

    def beta() -> Sequence[float]:
        (curve,) = BetaCalibration().fit(p, y).maps_
        return curve.a, curve.b, curve.c

    def peer_beta() -> Sequence[float]:
        a, b, m = PeerBeta(parameters="abm").fit(p.reshape(-1, 1), y).calibrator_.map_
        return a, b, b * np.log(1 - m) - a * np.log(m)

    def platt(targets: str) -> Sequence[float]:
        (curve,) = PlattScaling(targets=targets, input="logits").fit(logit, y).maps_
        return curve.slope, curve.intercept

    def peer_sigmoid() -> Sequence[float]:
        fitted = _SigmoidCalibration().fit(logit, y)
        return -fitted.a_, -fitted.b_

    def peer_logistic() -> Sequence[float]:
        fitted = LogisticRegression(C=np.inf).fit(logit.reshape(-1, 1), y)
        return fitted.coef_[0, 0], fitted.intercept_[0]

    return {
        "beta": {"truecal": beta, "betacal": peer_beta},
        "Platt, smoothed targets": {"truecal": lambda: platt("smoothed"), "scikit-learn": peer_sigmoid},
        "Platt, labels": {"truecal": lambda: platt("labels"), "scikit-learn": peer_logistic},
    }


def main(sizes: Sequence[int]) -> None:
    """Time all fits and print them."""
    rows = []
    for n in sizes:
        for what, packages in fits(n).items():
            times: dict[str, list[float]] = {package: [] for package in packages}
            found: dict[str, Sequence[float]] = {}
            for _ in range(ROUNDS):
                for package, fit in packages.items():
                    began = time.process_time()
                    found[package] = fit()
                    times[package].append(time.process_time() - began)
            rows += [
                {
                    "fit": what,
                    "rows": n,
                    "package": package,
                    "seconds": min(times[package]),
                    "truecal_seconds": min(times["truecal"]),
                    "parameters": [float(value) for value in found[package]],
                }
                for package in packages
            ]
    print(json.dumps(rows))


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]])
