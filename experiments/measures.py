"""Estimators of other quantities than the true calibration error, each against its own population value."""

from __future__ import annotations

import numpy as np

import truecal
from experiments._page import Page, markdown
from experiments.leaderboard import SUITES
from truecal.estimators._registry import TRUE_ERROR
from truecal.simulation.suites import SIZES, suite_study


def main(*, quick: bool = False, draws: int = 100) -> Page:
    """Run the study and write one table for each suite."""
    names = [spec.name for spec in truecal.list_estimators() if spec.estimand != TRUE_ERROR and spec.truth]
    arguments = {**suite_study(SUITES), "estimators": names, "repeats": 4 if quick else draws}
    study = truecal.bias_study(**arguments, n_jobs=1)
    rows = [
        {"suite": suite, "estimator": name, **_summary(study, suite, name)}
        for suite in SUITES
        for name in names
    ]
    parts = []
    for suite, words in SUITES.items():
        lines = [
            {
                "estimator": f"`{row['estimator']}`",
                "mean truth": f"{100 * row['truth']:.3f}",
                "mean bias": f"{100 * row['bias']:+.3f} ± {100 * row['bias_se']:.3f}",
                "mean absolute bias": f"{100 * row['absolute_bias']:.3f}",
                "sd": f"{100 * row['sd']:.3f}",
                "RMSE": f"{100 * row['rmse']:.3f}",
            }
            for row in rows
            if row["suite"] == suite
        ]
        parts.append(f"## Suite {suite}: {words}\n\n{markdown(lines)}\n")
    page = f"""# Other quantities

Estimators of other quantities than the true calibration error, each compared with its own value for the population
(`Population.true_value`); l2 where there is a norm. Hundredths; `atb` and `skce` are squares. Means over the
populations of a suite and n = {", ".join(map(str, SIZES))}; {arguments["repeats"]} draws of each.
Quantities differ, so that rows cannot be compared with each other. The maximum errors `ew_mce` and `em_mce` are
compared with the largest gap of any score that occurs, which bins do not resolve.

{chr(10).join(parts)}"""
    return Page(page, {"": rows})


def _summary(study: truecal.simulation.Study, suite: str, name: str) -> dict[str, float]:
    part = [
        row for row in study.rows if row["estimator"] == name and row["population"].partition(":")[0] == suite
    ]
    return {
        "truth": float(np.mean([row["true_error"] for row in part])),
        "bias": float(np.mean([row["bias"] for row in part])),
        "bias_se": float(np.sqrt(np.sum([row["bias_se"] ** 2 for row in part])) / len(part)),
        "absolute_bias": float(np.mean([abs(row["bias"]) for row in part])),
        "sd": float(np.mean([row["sd"] for row in part])),
        "rmse": float(np.mean([row["rmse"] for row in part])),
    }
