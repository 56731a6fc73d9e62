"""Make labels_prototype.json: reference values for calibration with imperfect labels.

The values come from a prototype that is not part of this project: ``pseudo_labels.py`` beside LABELS.md in the
folder that the ``shared`` fixture names, run on the package at commit 7232cd3 with ``pseudo_labels_core.patch``
applied. No code of it is here. To make the file again::

    git worktree add /tmp/truecal-7232cd3 7232cd3
    (cd /tmp/truecal-7232cd3 && git apply --directory=src/truecal SHARED/prototypes/pseudo_labels_core.patch)
    PYTHONPATH=/tmp/truecal-7232cd3/src:SHARED/prototypes python tests/reference/labels_prototype.py

The designs need nothing but NumPy and SciPy: a test calls `inputs` and compares with the file.
Random numbers are uniform ones of `numpy.random.default_rng`; everything else is a formula of these.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, logit, ndtri

FILE = Path(__file__).with_suffix(".json")
RESAMPLES = 399
LEVEL = 0.95

Array = NDArray[Any]
Settings = dict[str, Any]

ABOUT = {
    "what": "Estimates, intervals and p-values of a prototype of imperfect labels, for comparison. They are not "
    "the truth and not the goal: the prototype has the upper limits of commit 7232cd3, approximate tails, and "
    "open problems (LABELS.md, section 9). truecal may differ where it is better.",
    "made_by": "tests/reference/labels_prototype.py, which has the designs and says how to run it",
    "source": "prototypes/pseudo_labels.py and pseudo_labels_core.patch beside LABELS.md, package at commit 7232cd3",
    "inputs": "inputs(**settings) in the script; 'check' has sums of them",
    "norm": 2,
    "confidence_level": LEVEL,
    "n_resamples": RESAMPLES,
    "fields": {
        "estimate": "the l2 calibration error; 'square' is the debiased square before the root, which can be negative",
        "low, high, length": "the 95% interval and its length, where the test's p-value takes part in the lower end",
        "upper": "the one-sided 95% upper limit",
        "pvalue": "the omnibus test, 399 resamples, seed 0; 'evidence_pvalue': the evidence, without resampling",
        "depth, size": "number of halvings of the scores, and the effective number of rows of path B",
        "weight": "lambda, the share of the judge's correction that is used; 0 is gold only",
        "noise_factor": "k: observed by expected noise of the gold labels, out of fold",
        "pseudo_labels": "mean, sum of squares, and the first five of z",
        "path": "A: every row or cluster is a cluster, positives are sums of z. B: effective rows with given variances",
    },
    "methods": {
        "judged": "judge and gold labels, cross-fitted (5 folds, seed 0), path B with redrawn gold labels",
        "judged_clusters": "the same pseudo-labels, path A with the clusters",
        "gold_only": "rows with a gold label as an ordinary sample, sampling weights 1/probability if they differ",
        "true_labels": "all true labels, as an ordinary sample",
        "as_truth": "judge, majority or observed labels taken for the truth",
        "pseudo_a, pseudo_b": "the pseudo-labels of the kind, paths A and B (B: variances from bins of the scores)",
        "ipcw_a, ipcw_b, jackknife_b": "inverse probability of censoring, or pseudo-values, in strata of the score",
        "estimated_a": "misclassified: sensitivity and specificity estimated, their noise as clusters without weight",
        "ignored_a": "misclassified: estimated and taken for known",
    },
}


def judged(n: int, gold: float, judge: str, slope: float, seed: int, **more: Any) -> Settings:
    return {"kind": "judged", "n": n, "gold": gold, "judge": judge, "slope": slope, "seed": seed, **more}


def soft(n: int, annotators: int, concentration: float, slope: float, seed: int, **more: Any) -> Settings:
    kind = {"kind": "soft", "n": n, "annotators": annotators, "concentration": concentration}
    return {**kind, "slope": slope, "seed": seed, **more}


def misclassified(n: int, judge: str, slope: float, seed: int, **more: Any) -> Settings:
    return {"kind": "misclassified", "n": n, "judge": judge, "slope": slope, "seed": seed, **more}


def censored(n: int, hazard: float, slope: float, seed: int, **more: Any) -> Settings:
    return {"kind": "censored", "n": n, "hazard": hazard, "slope": slope, "seed": seed, **more}


DESIGNS: dict[str, Settings] = {
    # judge "a/b": right in a% of positives and b% of negatives
    "judge 99/98, 5% gold": judged(1200, 0.05, "99/98", 1.0, 1),
    "judge 99/98, 5% gold, overconfident": judged(1200, 0.05, "99/98", 0.7, 2),
    "judge 95/90, 5% gold": judged(1000, 0.05, "95/90", 1.0, 3),
    "judge 95/90, 10% gold": judged(1000, 0.10, "95/90", 1.0, 4),
    "judge 95/90, 10% gold, overconfident": judged(1000, 0.10, "95/90", 0.7, 5),
    "judge 95/90, 30% gold": judged(1000, 0.30, "95/90", 1.0, 6),
    "judge 95/90, 30% gold, overconfident": judged(1000, 0.30, "95/90", 0.7, 7),
    "judge 95/90, 10% gold, larger": judged(3000, 0.10, "95/90", 1.0, 8),
    "judge 95/90, 10% gold, larger, overconfident": judged(3000, 0.10, "95/90", 0.7, 9),
    "judge 90/80, 10% gold": judged(1000, 0.10, "90/80", 1.0, 10),
    "judge 90/80, 30% gold, overconfident": judged(1000, 0.30, "90/80", 0.7, 11),
    "judge 70/70, 10% gold": judged(1500, 0.10, "70/70", 1.0, 12),
    "judge 70/70, 10% gold, overconfident": judged(1500, 0.10, "70/70", 0.7, 13),
    "all rows gold": judged(600, 1.00, "90/80", 0.7, 14),
    "judge's probability": judged(1000, 0.10, "90/80", 1.0, 15, errors="probability"),
    "judge's probability, overconfident": judged(1000, 0.10, "90/80", 0.7, 16, errors="probability"),
    "errors depend on the score": judged(1500, 0.10, "90/80", 1.0, 17, errors="score"),
    "errors depend on the score, overconfident": judged(1500, 0.10, "90/80", 0.7, 18, errors="score"),
    "unequal probabilities": judged(1500, 0.08, "90/80", 1.0, 19, choice="disagreement"),
    "unequal probabilities, overconfident": judged(1500, 0.08, "90/80", 0.7, 20, choice="disagreement"),
    "scores near 1": judged(1500, 0.10, "90/80", 1.0, 21, scores=(8.0, 0.8)),
    "rare events, underconfident": judged(1500, 0.10, "90/80", 1.5, 22, scores=(0.6, 6.0)),
    "clusters of questions": judged(1200, 0.20, "90/80", 1.0, 23, cluster_size=6),
    "clusters of questions, overconfident": judged(1200, 0.20, "90/80", 0.7, 24, cluster_size=6),
    "5 annotators": soft(1000, 5, 8.0, 1.0, 25),
    "5 annotators, overconfident": soft(1000, 5, 8.0, 0.7, 26),
    "3 annotators": soft(1000, 3, 3.0, 1.0, 27),
    "3 annotators, overconfident": soft(2000, 3, 3.0, 0.7, 28),
    "5 annotators, sampling weights": soft(1000, 5, 8.0, 0.7, 29, weighted=True),
    "3 annotators, clusters": soft(1000, 3, 3.0, 0.7, 30, cluster_size=5),
    "90/80 known": misclassified(1000, "90/80", 1.0, 31),
    "90/80 known, overconfident": misclassified(1000, "90/80", 0.6, 32),
    "95/90 known, sampling weights": misclassified(1000, "95/90", 0.6, 33, weighted=True),
    "90/80 estimated from 200": misclassified(1000, "90/80", 1.0, 34, validated=200),
    "90/80 estimated from 200, overconfident": misclassified(3000, "90/80", 0.6, 35, validated=200),
    "95/90 estimated from 100": misclassified(1000, "95/90", 1.0, 36, validated=100),
    "censored": censored(1000, 1.0, 1.0, 37),
    "censored, overconfident": censored(1000, 1.0, 0.6, 38),
    "censored little, overconfident": censored(2000, 0.5, 0.6, 39),
    "censoring depends on the score": censored(1500, 0.5, 1.0, 40, depends=True),
    "censoring depends on the score, overconfident": censored(1500, 0.5, 0.6, 41, depends=True),
    "not censored": censored(500, 0.0, 0.6, 42),
}


def inputs(**settings: Any) -> dict[str, Array]:
    """Return the arrays of one design: scores, true labels, and what is known of them."""
    n, slope, size = settings["n"], settings["slope"], settings.get("cluster_size", 1)
    rng = np.random.default_rng(settings["seed"])
    number = np.arange(n) // size  # the cluster of each row

    def shared() -> Array:
        """Uniform numbers: those of a cluster agree in about two of three rows."""
        own, common, use = rng.random(n), rng.random(n)[number * size], rng.random(n)
        return np.where((size > 1) & (use < 2 / 3), common, own)

    a, b = settings.get("scores", (3.0, 1.5))
    score = np.clip(betaincinv(a, b, rng.random(n)), 1e-4, 1 - 1e-4)
    chance = expit(slope * logit(score))
    data = {"score": score, "chance": chance}
    if size > 1:
        data["clusters"] = number
    if settings.get("weighted"):
        data["weight"] = np.exp(0.5 * ndtri(rng.random(n)))
    extra = {"judged": _judged, "soft": _soft, "misclassified": _misclassified, "censored": _censored}
    return {**data, **extra[settings["kind"]](settings, data, shared)}


def _rates(settings: Settings) -> tuple[float, float]:
    sensitivity, specificity = settings["judge"].split("/")
    return int(sensitivity) / 100, int(specificity) / 100


def _judged(settings: Settings, data: dict[str, Array], draw: Any) -> dict[str, Array]:
    """Labels, a judge's labels or probabilities, and which rows have a gold label with which probability."""
    score, (a, b) = data["score"], _rates(settings)
    y = (draw() < data["chance"]).astype(float)
    errors, u = settings.get("errors"), draw()
    if errors == "score":  # the judge believes the model
        lean = 2 * score - 1
        sensitivity, specificity = (
            np.clip(a + (1 - a) * lean, 0.5, 1),
            np.clip(b - 2 * (1 - b) * lean, 0.4, 1),
        )
        judge = np.where(y == 1, u < sensitivity, u >= specificity).astype(float)
    elif errors == "probability":
        judge = expit(logit(np.where(y == 1, a, 1 - b)) + ndtri(u))
    else:
        judge = np.where(y == 1, u < a, u >= b).astype(float)
    probability = np.full(len(y), settings["gold"])
    if settings.get("choice") == "disagreement":
        probability = np.clip(settings["gold"] * (0.5 + 2 * np.abs(judge - score)), 0.02, 1)
    u = draw()
    if "clusters" in data:
        u = u[np.searchsorted(data["clusters"], data["clusters"])]  # gold by cluster
    return {"y": y, "judge": judge, "gold": (u < probability).astype(float), "probability": probability}


def _soft(settings: Settings, data: dict[str, Array], draw: Any) -> dict[str, Array]:
    """The share of annotators who say 1, where rows with the same score differ."""
    mean, c = data["chance"], settings["concentration"]
    item = betaincinv(c * mean, c * (1 - mean), draw())
    votes = np.array([draw() < item for _ in range(settings["annotators"])])
    return {"y": votes[0].astype(float), "fraction": votes.mean(axis=0)}


def _misclassified(settings: Settings, data: dict[str, Array], draw: Any) -> dict[str, Array]:
    """Labels seen with errors, and, where they were estimated, how often each class was seen rightly."""
    a, b = _rates(settings)
    y = (draw() < data["chance"]).astype(float)
    u = draw()
    found = {"y": y, "label": np.where(y == 1, u < a, u >= b).astype(float)}
    if "validated" in settings:
        half = settings["validated"] // 2
        u = draw()[: 2 * half]
        found["right"] = np.array([np.sum(u[:half] < a), np.sum(u[half:] < b)], float)
    return found


def _censored(settings: Settings, data: dict[str, Array], draw: Any) -> dict[str, Array]:
    """Times and events: the risk at the horizon 1 is the chance, censoring is exponential."""
    score = data["score"]
    time = np.log1p(-draw()) / np.log1p(-data["chance"])  # P(time <= 1) = chance
    rate = settings["hazard"] * (3 * score if settings.get("depends") else np.ones_like(score))
    with np.errstate(divide="ignore"):
        censoring = -np.log1p(-draw()) / rate
    event = (time <= censoring).astype(float)
    return {"y": (time <= 1).astype(float), "time": np.minimum(time, censoring), "event": event}


def check(data: dict[str, Array]) -> dict[str, float]:
    """Return sums that tell whether two machines made the same input."""
    return {
        name: _rounded(float(np.sum(values * (1 + np.arange(len(values)) % 7))))
        for name, values in data.items()
    }


def _rounded(value: float) -> float:
    return float(f"{value:.10g}") if math.isfinite(value) else value


# What follows needs the prototype on the path.


def _result(found: dict[str, Any], **more: Any) -> dict[str, Any]:
    names = {
        "est": "estimate",
        "square": "square",
        "low": "low",
        "high": "high",
        "up": "upper",
        "p": "pvalue",
    }
    names |= {"pz": "evidence_pvalue", "depth": "depth", "size": "size", "lam": "weight"}
    result = {new: _rounded(float(found[old])) for old, new in names.items() if old in found}
    return {**result, "length": _rounded(result["high"] - result["low"]), **more}


def _about(z: Array) -> dict[str, Any]:
    return {
        "mean": _rounded(float(z.mean())),
        "squares": _rounded(float(z @ z)),
        "first": [_rounded(v) for v in z[:5]],
    }


def _ordinary(
    y: Array, score: Array, weight: Array | None = None, clusters: Array | None = None
) -> dict[str, Any]:
    """Return what 0/1 labels give."""
    import pseudo_labels as prototype

    sample = prototype.Sample.from_rows(y, score, weight, clusters=clusters, sampling=weight is not None)
    return _result(prototype.run(sample, draws=RESAMPLES, level=LEVEL))


def results(settings: Settings) -> dict[str, Any]:
    """Return what the prototype gives on one design, by method."""
    import pseudo_labels as prototype

    data = inputs(**settings)
    score, y, weight, clusters = data["score"], data["y"], data.get("weight"), data.get("clusters")

    def path_a(z: Array) -> dict[str, Any]:
        sample = prototype.sample_of(z, score, clusters, weight)
        return _result(prototype.run(sample, draws=RESAMPLES, level=LEVEL), path="A", pseudo_labels=_about(z))

    def path_b(z: Array) -> dict[str, Any]:
        found = prototype.run_b(z, score, draws=RESAMPLES, level=LEVEL)
        return _result(found, path="B", pseudo_labels=_about(z))

    made: dict[str, Any] = {"true_labels": _ordinary(y, score, weight, clusters)}
    if settings["kind"] == "judged":
        gold, pi, judge = data["gold"] == 1, None, data["judge"]
        if "choice" in settings:
            pi = data["probability"]
        rows = None if clusters is None else clusters[gold]
        made["gold_only"] = _ordinary(y[gold], score[gold], None if pi is None else 1 / pi[gold], rows)
        made["as_truth"] = _ordinary((judge > 0.5).astype(float), score, None, clusters)
        if gold.all():
            return made  # ordinary labels; the prototype divides by zero here
        full = prototype.judged_full(judge, y, gold, score, pi)
        z, noise = full[0], {"noise_factor": _rounded(full[4]), "n_gold": int(gold.sum())}
        if clusters is not None:
            made["judged_clusters"] = {**path_a(z), **noise, "weight": _rounded(full[1])}
        else:
            found = prototype.judged_run(judge, y, gold, score, pi, draws=RESAMPLES, level=LEVEL, full=full)
            made["judged"] = _result(found, path="B", pseudo_labels=_about(z), **noise)
        return made
    if settings["kind"] == "soft":
        made["as_truth"] = _ordinary((data["fraction"] > 0.5).astype(float), score, weight, clusters)
        made["pseudo_a"] = path_a(data["fraction"])
        if weight is None and clusters is None:
            made["pseudo_b"] = path_b(data["fraction"])
        return made
    if settings["kind"] == "misclassified":
        label, (a, b) = data["label"], _rates(settings)
        made["as_truth"] = _ordinary(label, score, weight, clusters)
        if "validated" not in settings:
            z = prototype.misclassified(label, a, b)
            made["pseudo_a"] = path_a(z)
            if weight is None:
                made["pseudo_b"] = path_b(z)
            return made
        half = settings["validated"] // 2
        a, b = data["right"] / half
        z = prototype.misclassified(label, a, b)
        made["ignored_a"] = path_a(z)
        shrunk = (data["right"] + 1) / (half + 2)
        slopes = np.column_stack([-z, 1 - z]) / (a + b - 1)
        sample = prototype.with_nuisance(
            prototype.sample_of(z, score), score, slopes, shrunk * (1 - shrunk) / half
        )
        found = prototype.run(sample, draws=RESAMPLES, level=LEVEL)
        made["estimated_a"] = _result(found, path="A", pseudo_labels=_about(z))
        return made
    time, event = data["time"], data["event"]
    seen = int(np.sum((time > 1) | (event == 1)))
    strata = max(1, min(10, seen // 50))
    about = {"strata": strata, "n_seen": seen}
    z = prototype.ipcw(time, event, 1.0, score, strata)
    made["ipcw_a"], made["ipcw_b"] = {**path_a(z), **about}, {**path_b(z), **about}
    made["jackknife_b"] = {**path_b(prototype.censored(time, event, 1.0, score, strata)), **about}
    made["as_truth"] = _ordinary(((time <= 1) & (event == 1)).astype(float), score)
    return made


def main() -> None:
    designs = {}
    for name, settings in DESIGNS.items():
        print(name, file=sys.stderr)
        designs[name] = {
            "settings": settings,
            "check": check(inputs(**settings)),
            "results": results(settings),
        }
    FILE.write_text(json.dumps({"about": ABOUT, "designs": designs}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
