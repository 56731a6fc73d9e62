"""All estimators of the true calibration error on suites A, B and C: bias, spread, error and time."""

from __future__ import annotations

import time
from collections import defaultdict

import numpy as np

import truecal
from experiments._page import FOLDER, Page, markdown
from truecal.estimators._registry import get_estimator
from truecal.simulation.suites import SIZES, suite_study

SUITES = {
    "A": "the ten populations of the paper, as fitted",
    "B": "the same scores, perfectly calibrated",
    "C1": "other curves and scores, the half that constants were chosen on",
    "C2": "other curves and scores, the half that was set aside",
}


def main(*, quick: bool = False) -> Page:
    """Run the study (it goes on where it was stopped), and write one table for each suite."""
    path = None if quick else FOLDER / "leaderboard_rows.csv"
    FOLDER.mkdir(parents=True, exist_ok=True)
    arguments = {**suite_study(SUITES), "repeats": 4 if quick else 1000}
    study = truecal.bias_study(**arguments, n_jobs=2, path=path, progress=True)
    rows = _summarise(study)
    seconds = {name: _microseconds(name) for name in {row["estimator"] for row in rows}}
    parts = []
    for suite, words in SUITES.items():
        lines = [
            {
                "estimator": f"`{row['estimator']}`",
                "mean absolute bias": f"{100 * row['absolute_bias']:.3f} ± {100 * row['absolute_bias_se']:.3f}",
                "mean absolute median bias": f"{100 * row['absolute_median_bias']:.3f}",
                "sd": f"{100 * row['sd']:.2f}",
                "RMSE": f"{100 * row['rmse']:.3f}",
                "µs at n = 3,200": f"{seconds[row['estimator']]:.0f}",
            }
            for row in sorted(rows, key=lambda row: row["rmse"])
            if row["suite"] == suite
        ]
        parts.append(f"## Suite {suite}: {words}\n\n{markdown(lines)}")
    page = f"""# Leaderboard

l2, percent; means over the populations of a suite and n = {", ".join(map(str, SIZES))}; {arguments["repeats"]} draws of
each, the same for all estimators. Monte Carlo noise alone gives an absolute bias of about 0.8 standard errors.
`truecal study --suite A --suite B --suite C` makes the same study.

{chr(10).join(parts)}
"""
    return Page(page, {"": rows})


def _summarise(study: truecal.simulation.Study) -> list[dict[str, object]]:
    cells = defaultdict(list)
    for row in study.rows:
        cells[row["population"].partition(":")[0], row["estimator"]].append(row)
    return [
        {
            "suite": suite,
            "estimator": estimator,
            "absolute_bias": np.mean([abs(row["bias"]) for row in part]),
            "absolute_bias_se": np.sqrt(np.sum([row["bias_se"] ** 2 for row in part])) / len(part),
            "absolute_median_bias": np.mean([abs(row["median_bias"]) for row in part]),
            "sd": np.mean([row["sd"] for row in part]),
            "rmse": np.mean([row["rmse"] for row in part]),
        }
        for (suite, estimator), part in cells.items()
    ]


def _microseconds(name: str) -> float:
    """Time one estimate from a sorted sample of 3,200 rows; each sample is new, because a sample keeps its analysis."""
    population, spec, times = truecal.paper.population("resnet110_c100"), get_estimator(name), []
    for seed in range(20):
        sample = truecal.Sample.from_predictions(*population.sample(3200, rng=seed))
        began = time.perf_counter()
        spec(sample)
        times.append(time.perf_counter() - began)
    return 1e6 * float(np.median(times))
