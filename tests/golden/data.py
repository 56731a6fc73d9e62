"""Predictions without a random generator, so that every machine makes the same bits.

A name is a curve, a number of rows, and what comes with them: ``square 300 counts``, ``three 200 clusters top``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from golden.cases import weighted

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def uniform(n: int, step: float, start: float = 0.0) -> np.ndarray:
    """Return numbers that are spread evenly over [0, 1) in an irregular order."""
    i = np.arange(n) + 0.5
    return (i * step + start + 0.29 * np.floor(i / 89)) % 1.0


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def binary(curve: str, n: int, dependent: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and scores of a curve; dependent labels agree within five rows, mostly."""
    p = (np.arange(n) * 0.6180339887498949 + 0.1037) % 1.0
    u = uniform(n, 0.8191725133961645, 0.17)
    if dependent:
        rows = np.arange(n)
        u = np.where(rows % 3 == 0, u, u[rows // 5 * 5])
    truth = p
    if curve == "square":
        truth = p**2
    elif curve == "overconfident":
        truth = sigmoid(0.5 * np.log(p / (1 - p)))
    elif curve == "rare":
        p = 0.3 * p**4 + 1e-4
        truth = 0.6 * p
    elif curve == "high":
        p = 1 - 0.4 * p**5
        truth = p - 0.02
    elif curve == "rounded":
        p = truth = np.round(p * 20) / 20
    elif curve == "ends":
        p = np.clip(1.4 * p - 0.2, 0, 1)
        truth = np.where((p == 0) | (p == 1), p, p**1.5)
    elif curve == "contradicted":
        p = truth = np.clip(1.4 * p - 0.2, 0, 1)
        truth = np.clip(truth, 0.05, 0.95)
    elif curve == "float32":
        p = truth = p.astype(np.float32)
    elif curve == "certain":
        p = np.round(p)
        truth = 0.9 * p
    elif curve == "constant":
        p, truth = np.full(n, 0.3), np.full(n, 0.35)
    elif curve == "two":
        p = np.where(p < 0.5, 0.2, 0.7)
        truth = p
    elif curve != "calibrated":
        raise ValueError(curve)
    return (u < truth).astype(np.int64), p


def classes(k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and probabilities of k classes, overconfident."""
    logits = np.column_stack([4 * uniform(n, step, 0.05 * j) for j, step in enumerate(STEPS[:k])])
    p, truth = (np.exp(slope * logits) for slope in (1.0, 0.7))
    p, truth = (one / one.sum(axis=1, keepdims=True) for one in (p, truth))
    label = (truth.cumsum(axis=1) < uniform(n, 0.8191725133961645)[:, None]).sum(axis=1)
    return label.clip(max=k - 1), p


STEPS = (0.6180339887498949, 0.7548776662466927, 0.5698402909980532, 0.41421356237, 0.7320508075688772)
WORDS = np.array(["ant", "bee", "cat", "dog", "eel"])


def extra(name: str, n: int) -> dict[str, Any]:
    """Return keyword arguments that come with predictions."""
    rows = np.arange(n)
    if name == "counts":
        return {"sample_weight": rows % 4, **weighted("counts")}
    if name == "weights":
        return {"sample_weight": 0.5 + 2 * uniform(n, 0.3819660112501051)}
    if name == "clusters":
        return {"clusters": rows // 5}
    if name == "uneven":
        return {"clusters": np.array([f"c{k}" for k in np.floor(2.5 * np.sqrt(rows)).astype(int)])}
    if name == "few":
        return {"clusters": rows % 4}
    if name == "equal":
        return {"clusters": np.floor(2.5 * np.sqrt(rows)).astype(int), **weighted("clusters")}
    if name in ("top", "classwise", "canonical", "top_k", "top_by_class"):
        return {"multiclass": name}
    if name == "top_2":
        return {"multiclass": "top_2"}
    raise ValueError(name)


@cache
def arguments(name: str) -> Arguments:
    """Return the positional and keyword arguments of named data."""
    curve, size, *others = name.split()
    n, shape = int(size), {"three": 3, "four": 4, "five": 5}
    keywords: dict[str, Any] = {}
    if curve in shape or curve == "words":
        y, p = classes(shape.get(curve, 4), n)
        if curve == "words":
            y, keywords = WORDS[y], {"labels": list(WORDS[:4])}
    else:
        y, p = binary(curve, n, dependent=bool({"clusters", "uneven", "few", "equal"} & set(others)))
    for other in others:
        if other == "column":
            p = p[:, None]
        elif other == "two_columns":
            p = np.column_stack([1 - p, p])
        elif other == "named":
            y, keywords = np.array(["no", "yes"])[y], {**keywords, "pos_label": "yes"}
        elif other == "bool":
            y = y.astype(bool)
        elif other == "list":
            y, p = y.tolist(), p.tolist()
        else:
            keywords |= extra(other, n)
    return (y, p), keywords
