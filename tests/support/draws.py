"""Data drawn for tests: calibrated or not, rounded, with several classes."""

import numpy as np

import truecal


def drawn(n=300, d=1.0, seed=0, scores=None):
    population = truecal.Population(
        scores or truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(d)
    )
    return population.sample(n, rng=seed)


def rounded(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 10, size=n) / 10
    return (rng.random(n) < p).astype(int), p


def top(n, n_classes=4, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.6), size=n)
    truth = proba**power / (proba**power).sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
    return y, proba
