"""Clinical measures: coverage of their intervals; level of the canonical, Kuiper and KS tests."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import root
from scipy.special import expit, logit

import truecal
from experiments._page import Page, markdown
from experiments.clusters import DESIGNS, Design

LEVEL = 0.95
SIZES = (200, 1000, 5000)
THRESHOLDS = (0.1, 0.2, 0.3, 0.5)
#: Predicted risks: a beta distribution with mean 2/7.
RISKS = (2.0, 5.0)
Array = NDArray[Any]
Row = dict[str, Any]


def _local(score: Array) -> Array:
    """Risks between 0.25 and 0.45 are up to 10 points too low; the others are right."""
    return np.asarray(score + 0.1 * np.exp(-(((score - 0.35) / 0.06) ** 2)))


CURVES: dict[str, Callable[[Array], Array]] = {
    "calibrated": lambda score: score,
    "slope 0.7": lambda score: np.asarray(expit(0.7 * logit(score))),
    "level +0.3": lambda score: np.asarray(expit(logit(score) + 0.3)),
    "local error": _local,
}
#: Designs of dependent rows, with the slope of the calibration curve.
CLUSTERED: dict[str, tuple[Design, float]] = {
    f"{name}, slope {slope:g}": (DESIGNS[name], slope)
    for name in ("200 patients x 5 visits", "60 hospitals x 100", "20 hospitals x 500")
    for slope in (1.0, 0.7)
}


def main(*, quick: bool = False, draws: int = 300) -> Page:
    """Draw, and count how often intervals contain the truth and tests reject."""
    repeats = 10 if quick else draws
    rows: list[Row] = []
    for curve in CURVES:
        for n in SIZES:
            rows.append(cell(curve, n, repeats))
            print(rows[-1], flush=True)
    for name in CLUSTERED:
        rows.append(clustered(name, repeats))
        print(rows[-1], flush=True)
    for name, p_values in TESTS.items():
        rows.append(level_of(name, p_values, repeats))
        print(rows[-1], flush=True)
    text = page(rows)
    return Page(text, {"": rows})


# --- Population values ------------------------------------------------------------------------------


def truths(score: Array, chance: Array, weight: Array | None = None) -> dict[str, float]:
    """Return what the measures are for a population that is given by a fine grid of scores."""
    share = np.full(len(score), 1 / len(score)) if weight is None else weight / weight.sum()
    line = logit(score)

    def equations(x: Array) -> Array:
        excess = share * (expit(x[0] + x[1] * line) - chance)
        return np.array([excess.sum(), excess @ line])

    joint = root(equations, [0.0, 1.0]).x
    offset = root(lambda a: share @ (expit(a[0] + line) - chance), [0.0]).x[0]
    distance = np.abs(score - chance)
    order = np.argsort(distance)
    cumulated = np.cumsum(share[order])
    found = {
        "O:E": float(share @ chance / (share @ score)),
        "intercept": float(offset),
        "slope": float(joint[1]),
        "joint intercept": float(joint[0]),
        "ICI": float(share @ distance),
        "E50": float(distance[order][np.searchsorted(cumulated, 0.5)]),
        "E90": float(distance[order][np.searchsorted(cumulated, 0.9)]),
        "Emax": float(distance.max()),
    }
    after = expit(joint[0] + joint[1] * line)
    for t in THRESHOLDS:
        gain = share * (chance - t / (1 - t) * (1 - chance))
        found[f"net benefit {t}"] = float(gain[score >= t].sum())
        found[f"cost {t}"] = float(gain[after >= t].sum()) - found[f"net benefit {t}"]
    return found


def _holds(truth: float, low: float, high: float) -> bool:
    return low - 1e-9 <= truth <= high + 1e-9


def _counted(weak: Any, curve: Any, truth: dict[str, float]) -> dict[str, float]:
    """Return for one draw which intervals contain the truth, which tests reject, and how wide intervals are."""
    found: dict[str, float] = {}
    parameters = {
        "O:E": weak.observed_expected,
        "intercept": weak.intercept,
        "slope": weak.slope,
        "joint intercept": weak.joint_intercept,
    }
    for name, parameter in parameters.items():
        found[name] = _holds(truth[name], parameter.interval.low, parameter.interval.high)
    for name, test in {
        "both": weak.joint_test,
        "level": weak.intercept_test,
        "tilt": weak.slope_test,
    }.items():
        found[f"rejects {name}"] = test.pvalue <= 1 - LEVEL
    for k, t in enumerate(THRESHOLDS):
        found[f"net benefit {t}"] = _holds(truth[f"net benefit {t}"], curve.low[k], curve.high[k])
        found[f"cost {t}"] = _holds(truth[f"cost {t}"], curve.cost_low[k], curve.cost_high[k])
    return found


def cell(curve: str, n: int, repeats: int) -> Row:
    """Return shares and means over draws of independent rows."""
    grid = stats.beta(*RISKS).ppf((np.arange(400_000) + 0.5) / 400_000)
    truth = truths(grid, CURVES[curve](grid))
    parts = []
    for number in range(repeats):
        rng = np.random.default_rng([18, zlib.crc32(curve.encode()), n, number])
        score = rng.beta(*RISKS, n)
        sample = truecal.Sample.from_predictions((rng.random(n) < CURVES[curve](score)).astype(int), score)
        index = truecal.calibration_index(sample)
        one = _counted(
            truecal.weak_calibration(sample), truecal.net_benefit(sample, thresholds=THRESHOLDS), truth
        )
        one["ICI"] = _holds(truth["ICI"], index.interval.low, index.interval.high)
        one["ICI width"] = index.interval.high - index.interval.low
        for name, value in {"ICI": index.ici, "E50": index.e50, "E90": index.e90, "Emax": index.emax}.items():
            one[f"{name} value"], one[f"{name} square"] = value, (value - truth[name]) ** 2
        parts.append(one)
    return {"case": curve, "n": n, **_means(parts, truth)}


def clustered(name: str, repeats: int) -> Row:
    """Return shares over draws of rows in clusters."""
    design, slope = CLUSTERED[name]
    grid = (np.arange(200_000) + 0.5) / 200_000
    truth = truths(grid, expit(slope * logit(grid)), stats.beta(*design.beta).pdf(grid))
    parts = []
    for number in range(repeats):
        rng = np.random.default_rng([19, zlib.crc32(name.encode()), number])
        label, score, cluster = design.draw(rng, slope)
        sample = truecal.Sample.from_predictions(label, score, clusters=cluster)
        curve = truecal.net_benefit(sample, thresholds=THRESHOLDS)
        parts.append(_counted(truecal.weak_calibration(sample), curve, truth))
    return {"case": name, "n": "", **_means(parts, truth)}


def _means(parts: list[dict[str, float]], truth: dict[str, float]) -> Row:
    means = {name: float(np.mean([part[name] for part in parts])) for name in parts[0]}
    return {"draws": len(parts), **means, **{f"true {name}": value for name, value in truth.items()}}


# --- Level of tests ---------------------------------------------------------------------------------


def _vectors(classes: int, n: int, rng: np.random.Generator) -> dict[str, float]:
    proba = rng.dirichlet(np.full(classes, 0.5), n)
    label = np.minimum((proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), classes - 1)
    found = truecal.calibration_test(label, proba, multiclass="canonical", n_resamples=199, rng=rng)
    return {"resampled": found.pvalue}


def _paths(method: str, n: int, rounded: bool, rng: np.random.Generator) -> dict[str, float]:
    score = rng.beta(2, 5, n)
    score = np.round(score, 1) if rounded else score
    label = (rng.random(n) < score).astype(int)
    found = truecal.calibration_test(label, score, method=method, n_resamples=199, rng=rng)
    assert found.asymptotic_pvalue is not None
    return {"resampled": found.pvalue, "asymptotic": found.asymptotic_pvalue}


TESTS: dict[str, Callable[[np.random.Generator], dict[str, float]]] = {
    **{
        f"canonical, {k} classes, n = {n:,}": (lambda rng, k=k, n=n: _vectors(k, n, rng))
        for k, n in ((3, 50), (3, 500), (10, 500), (3, 2000))
    },
    **{
        f"{method}, n = {n:,}{', tenths' if rounded else ''}": (
            lambda rng, method=method, n=n, rounded=rounded: _paths(method, n, rounded, rng)
        )
        for method in ("kuiper", "ks")
        for n, rounded in ((50, False), (200, False), (1000, False), (200, True))
    },
}


def level_of(name: str, p_values: Callable[[np.random.Generator], dict[str, float]], repeats: int) -> Row:
    """Return how often p-values are at most 0.05 and 0.01 for calibrated scores."""
    found = [
        p_values(np.random.default_rng([20, zlib.crc32(name.encode()), number])) for number in range(repeats)
    ]
    shares = {
        f"{kind} {alpha}": float(np.mean([one[kind] <= alpha + 1e-12 for one in found]))
        for kind in found[0]
        for alpha in (0.05, 0.01)
    }
    return {"case": name, "n": "", "draws": repeats, **shares}


# --- Page -------------------------------------------------------------------------------------------


def page(rows: list[Row]) -> str:
    """Return the page of the documentation."""
    repeats = rows[0]["draws"]

    def lines(chosen: Iterator[Row], columns: list[str], first: tuple[str, ...]) -> str:
        return markdown(
            [
                {
                    **{name: row[name] for name in first},
                    **{name: f"{row[name]:.3f}" if name in row else "–" for name in columns},
                }
                for row in chosen
            ]
        )

    independent = [row for row in rows if row["n"] != ""]
    dependent = [row for row in rows if row["case"] in CLUSTERED]
    weak = ["O:E", "intercept", "slope", "joint intercept", "rejects both", "rejects level", "rejects tilt"]
    benefit = [f"{kind} {t}" for kind in ("net benefit", "cost") for t in THRESHOLDS]
    quantiles = [
        {
            "case": row["case"],
            "n": row["n"],
            "ICI interval covers": f"{row['ICI']:.3f}",
            "width": f"{row['ICI width']:.4f}",
            **{
                f"{name}: truth, mean, RMSE": f"{row[f'true {name}']:.4f}, {row[f'{name} value']:.4f}, "
                f"{row[f'{name} square'] ** 0.5:.4f}"
                for name in ("ICI", "E50", "E90", "Emax")
            },
        }
        for row in independent
    ]
    levels = [f"{kind} {alpha}" for kind in ("resampled", "asymptotic") for alpha in (0.05, 0.01)]
    tests = [row for row in rows if row["case"] in TESTS]
    return f"""# Clinical measures

Nominal level {LEVEL:g}; {repeats} draws of each case, so that a share of 0.95 has a Monte Carlo standard error of
{(0.95 * 0.05 / repeats) ** 0.5:.3f}. Predicted risks have the beta distribution with parameters {RISKS[0]:g}
and {RISKS[1]:g}. The local error is up to 10 points, at risks around 0.35.

## ICI, E50, E90 and Emax

The ICI has an interval. E50, E90 and Emax have none, because a quantile of an estimated curve depends on how smooth the
curve is taken to be; their means and errors show how far they can be relied on.

{markdown(quantiles)}

## O:E, calibration intercept and slope

Share of intervals that contain the population value, and of tests with p ≤ 0.05: both together, the level (intercept)
and the tilt (slope). For the local error, the population values are those of the logistic model nearest to the curve.

{lines(iter(independent), weak, ("case", "n"))}

With `clusters=` (the designs are those of the [clusters page](clusters.md)):

{lines(iter(dependent), weak, ("case",))}

## Decision curves

Share of pointwise intervals that contain the net benefit, and what miscalibration costs, at each threshold. The cost is
that of the population's own logistic recalibration.

{lines(iter(independent), benefit, ("case", "n"))}

With `clusters=`:

{lines(iter(dependent), benefit, ("case",))}

## Level of tests of calibrated scores

Share of p-values at or below 0.05 and 0.01, resampled (199 draws of labels) and by the limiting distribution. With 500
draws, 0.05 has a Monte Carlo standard error of 0.010 and 0.01 one of 0.004.

{lines(iter(tests), levels, ("case", "draws"))}
"""
