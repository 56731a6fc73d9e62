"""Recalibrators by CalArena's criterion: how much they improve proper scores of new rows, beside scikit-learn's."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal
from experiments._page import Page, markdown
from truecal.recalibration.selection import BY_NAME

Array = NDArray[Any]
Row = dict[str, Any]
SIZES = (500, 2000)
#: A probability of 0 counts as this one in the log loss.
SMALLEST = float(np.finfo(float).eps)
_TRUECAL = ("temperature", "platt", "beta", "spline", "isotonic", "histogram")
_SKLEARN = ("sigmoid", "isotonic", "temperature")
#: truecal's selection first.
METHODS = ("selected", *(f"truecal {name}" for name in _TRUECAL), *(f"sklearn {name}" for name in _SKLEARN))


def main(*, quick: bool = False, draws: int = 20, data: Path | None = None) -> Page:
    """Recalibrate real predictions by some of their rows, and score the others; half the draws for several classes."""
    sets = {**bundled(), **(outside(data) if data else {})}
    chosen = list(sets)[:2] if quick else list(sets)
    cells = [
        (name, size, sets[name])
        for name in chosen
        for size in SIZES
        if size <= len(sets[name][0]) // 2 or size == SIZES[0]
    ]
    rows = [
        row
        for name, size, given in cells
        for row in cell(name, size, *given, draws=2 if quick else draws // given[1].ndim)
    ]
    return Page(_text(rows, 2 if quick else draws), {"": rows})


def cell(name: str, size: int, label: Array, proba: Array, *, draws: int) -> list[Row]:
    """Return the improvement of each method on one set of predictions, with standard errors over the splits."""
    size = min(size, len(label) // 2)
    found: dict[str, list[tuple[float, float]]] = {method: [] for method in METHODS}
    before = []
    for draw in range(draws):
        order = np.random.default_rng([23, len(label), draw]).permutation(len(label))
        fitted, new = order[:size], order[size : size + 10_000]
        plain = scores(label[new], proba[new])
        before.append(plain)
        for method in METHODS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                after = scores(label[new], recalibrated(method, label[fitted], proba[fitted], proba[new]))
            found[method].append((plain[0] - after[0], plain[1] - after[1]))
    rows = []
    for method, gains in found.items():
        value, error = np.mean(gains, axis=0), np.std(gains, axis=0, ddof=1) / draws**0.5
        row: Row = {
            "data": name,
            "classes": 2 if proba.ndim == 1 else proba.shape[1],
            "rows": size,
            "method": method,
        }
        for k, score in enumerate(("log loss", "Brier score")):
            row |= {score: float(np.mean(before, axis=0)[k]), f"{score} gain": float(value[k])}
            row[f"{score} se"] = float(error[k])
        rows.append(row)
    return rows


def scores(label: Array, proba: Array) -> tuple[float, float]:
    """Return the log loss and the Brier score."""
    if proba.ndim == 1:
        right = np.where(label == 1, proba, 1 - proba)
        return -float(np.log(np.maximum(right, SMALLEST)).mean()), float(((1 - right) ** 2).mean())
    right = proba[np.arange(len(label)), label]
    brier = (proba**2).sum(axis=1) - 2 * right + 1
    return -float(np.log(np.maximum(right, SMALLEST)).mean()), float(brier.mean())


def recalibrated(method: str, label: Array, proba: Array, new: Array) -> Array:
    """Return new probabilities, recalibrated by a method that is fitted to labels and probabilities."""
    if method == "selected":
        return truecal.select_recalibrator(label, proba, rng=0).transform(new)
    package, _, name = method.partition(" ")
    if package == "truecal":
        return np.asarray(BY_NAME[name](input="probabilities").fit(proba, label).transform(new))
    return _by_sklearn(name, label, proba, new)


def _by_sklearn(name: str, label: Array, proba: Array, new: Array) -> Array:
    """Return what CalibratedClassifierCV gives for a finished model with these logits."""
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    class Finished(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        def fit(self, X: Array, y: Array) -> Any:
            self.classes_ = np.arange(2 if proba.ndim == 1 else proba.shape[1])
            return self

        def decision_function(self, X: Array) -> Array:
            return X[:, 0] if X.shape[1] == 1 else X

        def predict(self, X: Array) -> Array:
            return self.decision_function(X)

    finished = FrozenEstimator(Finished().fit(proba, label))
    model = CalibratedClassifierCV(finished, method=name)
    after = model.fit(_logits(proba), label).predict_proba(_logits(new))
    return np.asarray(after[:, 1] if proba.ndim == 1 else after)


def _logits(proba: Array) -> Array:
    safe = np.clip(proba.astype(float), SMALLEST, 1 - SMALLEST)
    return np.log(safe) if proba.ndim == 2 else np.log(safe / (1 - safe))[:, np.newaxis]


# --- Data ------------------------------------------------------------------------------------------


def bundled() -> dict[str, tuple[Array, Array]]:
    """Return labels and probabilities that truecal has, and of two models of scikit-learn's data."""
    flights, digits = truecal.datasets.load("flights"), truecal.datasets.load("digits")
    column = {name: k for k, name in enumerate(digits.labels or ())}
    label = np.array([column[name] for name in digits.y_true])
    found = {
        f"flights, {name}": (np.asarray(flights.y_true), np.asarray(p))
        for name, p in flights.predictions.items()
    }
    found |= {f"digits, {name}": (label, np.asarray(p)) for name, p in digits.predictions.items()}
    return {**found, **_sklearn_models()}


def _sklearn_models() -> dict[str, tuple[Array, Array]]:
    from sklearn.datasets import load_breast_cancer, load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_predict
    from sklearn.naive_bayes import GaussianNB

    found = {}
    for name, load in (("breast cancer", load_breast_cancer), ("handwritten digits", load_digits)):
        x, y = load(return_X_y=True)
        for kind, model in (
            ("naive Bayes", GaussianNB()),
            ("forest", RandomForestClassifier(random_state=0)),
        ):
            proba = cross_val_predict(model, x, y, cv=10, method="predict_proba")
            found[f"{name}, {kind}"] = (y, proba[:, 1] if proba.shape[1] == 2 else proba)
    return found


def outside(folder: Path) -> dict[str, tuple[Array, Array]]:
    """Return labels and probabilities of two classes, of a folder of other people's predictions."""
    found = {}
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            given = dict(file)
        proba = given.get("probs", given.get("scores", np.zeros((0, 3))))
        proba = proba[:, 1] if proba.ndim == 2 and proba.shape[1] == 2 else proba
        # Rows of one event depend on each other.
        if proba.ndim == 1 and len(proba) >= 2 * SIZES[0] and "event" not in given:
            found[path.stem] = (given["labels"].astype(int), np.clip(proba.astype(float), 0, 1))
    return found


# --- The page --------------------------------------------------------------------------------------


def _text(rows: list[Row], draws: int) -> str:
    parts = [
        f"## {title}\n\n{markdown(_summary([row for row in rows if chosen(row['classes'])]))}\n"
        for title, chosen in (("Two classes", lambda k: k == 2), ("Several classes", lambda k: k > 2))
        if any(chosen(row["classes"]) for row in rows)
    ]
    return f"""# Recalibration

CalArena (Berta, Holzmüller, Bach and Jordan 2026, arXiv 2605.30188) compares recalibrators by how much they improve
proper scores over the uncalibrated model, and not by an estimate of the calibration error. This page takes that
criterion to real predictions at hand; it is not a run of their benchmark, whose data are 1.7 GB. In each of {draws}
random splits ({draws // 2} with several classes) a method is fitted to 500 or 2,000 rows (half of the rows where there
are fewer) and scored on up to 10,000 others. "selected" is `select_recalibrator` with its defaults, which may leave the
model as it is; "truecal" are its recalibrators by themselves; "sklearn" is `CalibratedClassifierCV` of a finished
model, with logits.

Gains are percentages of the uncalibrated model's score, means over sets of predictions and sizes with their Monte Carlo
standard errors over the splits. They say nothing about other data: splits of one data set share its rows. "worse"
counts the cells in which a method raises the log loss by more than two standard errors, and "rank" is the mean place
among all {len(METHODS)} methods by log loss, 1 for the best. A probability of 0 counts as {SMALLEST:.1e}.

The selection raises the log loss in no cell by more than two standard errors, and leaves models alone that
recalibration does not help. It is not the best by the mean: where it chooses a histogram or isotonic regression from
500 rows (in some splits of naive Bayes on `flights`), probabilities of 0 on new rows cost more than calibration gains.
Smooth maps alone do better there, as CalArena finds.

{chr(10).join(parts)}
## Each set of predictions

Gain in log loss, in percent. "best single" is the best of the single methods in hindsight.

{markdown(_each(rows))}
"""


def _cells(rows: list[Row]) -> list[list[Row]]:
    """Return the rows of each set of predictions and size."""
    keys = dict.fromkeys((row["data"], row["rows"]) for row in rows)
    return [[row for row in rows if (row["data"], row["rows"]) == key] for key in keys]


def _summary(rows: list[Row]) -> list[Row]:
    cells = _cells(rows)
    places = [_places([row["log loss gain"] for row in cell]) for cell in cells]
    lines = []
    for k, method in enumerate(METHODS):
        each = [cell[k] for cell in cells]
        line: Row = {"method": method}
        for score in ("log loss", "Brier score"):
            gain = 100 * np.array([row[f"{score} gain"] / row[score] for row in each])
            error = 100 * np.array([row[f"{score} se"] / row[score] for row in each])
            line[f"{score} gain, %"] = f"{gain.mean():.2f} ± {np.sqrt((error**2).sum()) / len(each):.2f}"
            if score == "log loss":
                line["worst cell, %"] = f"{gain.min():.2f}"
        worse = sum(row["log loss gain"] < -2 * row["log loss se"] for row in each)
        line |= {"worse": f"{worse} of {len(each)}", "rank": f"{np.mean([place[k] for place in places]):.1f}"}
        lines.append(line)
    return lines


def _places(gains: list[float]) -> Array:
    """Return the place of each gain, 1 for the largest."""
    return np.argsort(np.argsort(-np.array(gains))) + 1


def _each(rows: list[Row]) -> list[Row]:
    lines = []
    for cell in _cells(rows):
        first, *single = cell
        best = max(single, key=lambda row: row["log loss gain"])
        lines.append(
            {
                "predictions": first["data"],
                "classes": first["classes"],
                "fitted to": f"{first['rows']:,}",
                "log loss": f"{first['log loss']:.3f}",
                "selected": _percent(first),
                "best single": f"{_percent(best)} ({best['method']})",
                "best of sklearn": _percent(
                    max(single[-len(_SKLEARN) :], key=lambda row: row["log loss gain"])
                ),
            }
        )
    return lines


def _percent(row: Row) -> str:
    gain, error = (100 * row[f"log loss {name}"] / row["log loss"] for name in ("gain", "se"))
    return f"{gain:.2f} ± {error:.2f}"
