"""The gate at its own error, by enumeration: every possible sample, given the rows at each score. No simulation."""

import itertools

import numpy as np
import pytest
from scipy.stats import beta, binom

from support.grouped import sample_of
from truecal.multiscale._error import analyse

#: Largest probability of a false pass, by the level of the gate.
ALLOWED = {0.05: 0.055, 0.01: 0.011}
SMALL = [
    ([0.0, 1.0], [8, 8]),
    ([0.001, 0.01], [14, 7]),
    ([0.2, 0.7], [8, 6]),
    ([0.1, 0.9], [14, 3]),
    ([0.0, 0.01, 0.5], [5, 4, 3]),
]
LARGE = [
    ([0.0, 1.0], [15, 15]),
    ([0.0, 0.5], [20, 12]),
    ([0.001, 0.01], [40, 20]),
    ([0.001, 0.3], [60, 8]),
    ([0.05, 0.0501], [12, 12]),
    ([0.2, 0.7], [20, 20]),
    ([0.4, 0.6], [10, 25]),
    ([0.02, 1.0], [30, 6]),
    ([0.1, 0.5, 0.9], [7, 7, 7]),
    ([0.001, 0.01, 0.3], [10, 8, 6]),
    ([0.0, 0.5, 1.0], [6, 8, 6]),
    ([0.2, 0.3, 0.4], [12, 4, 4]),
    ([0.01, 0.02, 0.05], [12, 8, 5]),
]


def limits_of(score, rows, events):
    sample = sample_of(score, rows, events)
    return analyse(sample).limits


def curves_of_error(score, rows, error, steps):
    """Return observed frequencies whose error, weighted by the rows, is `error`: all directions, and the borders."""
    score, share = np.array(score), np.array(rows) / sum(rows)
    n = len(score)
    found = score - error * _sphere(n, steps) / np.sqrt(share)
    parts = [found]
    for k, end in itertools.product(range(n), (0.0, 1.0)):  # one frequency at its border
        rest = error**2 - share[k] * (score[k] - end) ** 2
        if rest < 0:
            continue
        others = np.delete(np.arange(n), k)
        border = np.full((len(_sphere(n - 1, 2 * steps)), n), end)
        border[:, others] = score[others] - np.sqrt(rest / share[others]) * _sphere(n - 1, 2 * steps)
        parts.append(border)
    curves = np.concatenate(parts)
    return np.clip(curves[((curves > -1e-12) & (curves < 1 + 1e-12)).all(axis=1)], 0.0, 1.0)


def _sphere(n, steps):
    """Return points on the unit sphere, the axes among them."""
    if n == 1:
        return np.array([[1.0], [-1.0]])
    angle = np.arange(4 * steps) * (np.pi / (2 * steps))
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if n == 2:
        return circle
    height = np.cos(np.arange(2 * steps + 1) * (np.pi / (2 * steps)))
    ring = np.sqrt(np.maximum(1 - height**2, 0.0))
    plane = ring[:, np.newaxis, np.newaxis] * circle
    return np.concatenate(
        [plane, np.broadcast_to(height[:, np.newaxis, np.newaxis], (*plane.shape[:2], 1))], 2
    ).reshape(-1, 3)


def largest_false_pass(score, rows, errors, steps):
    """Return, for each level, the largest probability of a false pass, with the error and the curve that have it."""
    samples = list(itertools.product(*(range(n + 1) for n in rows)))
    pvalue = np.array(
        [[limits.at_most(e) for e in errors] for limits in (limits_of(score, rows, x) for x in samples)]
    )
    worst = dict.fromkeys(ALLOWED, (0.0, 0.0, ()))
    for error, column in zip(errors, pvalue.T, strict=True):
        curves = curves_of_error(score, rows, error, steps)
        if len(curves) == 0:
            continue
        chance = np.ones((len(curves), 1))
        for k, n in enumerate(rows):
            law = binom.pmf(np.arange(n + 1), n, curves[:, k, np.newaxis])
            chance = (chance[:, :, np.newaxis] * law[:, np.newaxis]).reshape(len(curves), -1)
        for level, (most, *_) in worst.items():
            passed = chance @ (column <= level)
            if passed.max() > most:
                worst[level] = (passed.max(), error, tuple(curves[passed.argmax()]))
    return worst


def errors_up_to_the_largest(score, rows, n):
    """Return errors from what a few more events make to nearly all that the scores allow."""
    score, share = np.array(score), np.array(rows) / sum(rows)
    largest = np.sqrt(share @ np.maximum(score, 1 - score) ** 2)
    return np.geomspace(1.5 / sum(rows), 0.97 * largest, n)


@pytest.mark.parametrize(("score", "rows"), SMALL)
def test_a_model_passes_rarely_at_its_own_error(score, rows):
    worst = largest_false_pass(score, rows, errors_up_to_the_largest(score, rows, 6), 12)
    for level, (chance, *where) in worst.items():
        assert chance <= ALLOWED[level], (level, *where)


@pytest.mark.slow
@pytest.mark.parametrize(("score", "rows"), LARGE)
def test_a_model_passes_rarely_at_its_own_error_on_finer_grids(score, rows):
    worst = largest_false_pass(score, rows, errors_up_to_the_largest(score, rows, 24), 24)
    for level, (chance, *where) in worst.items():
        assert chance <= ALLOWED[level], (level, *where)


@pytest.mark.parametrize("f", [0.0, 0.001, 0.01, 0.2, 0.5, 0.93, 1.0])
@pytest.mark.parametrize("n", [10, 40])
def test_one_score_keeps_the_level_and_is_as_short_as_clopper_and_pearson(f, n):
    events = np.arange(n + 1)
    all_limits = [limits_of([f], [n], [k]) for k in events]
    for level in ALLOWED:
        limit = np.array([limits.upper(level) for limits in all_limits])
        high = np.append(beta.ppf(1 - level, events[:-1] + 1, n - events[:-1]), 1.0)
        low = np.append(0.0, beta.ppf(level, events[1:], n - events[1:] + 1))
        assert (limit <= 1.03 * np.maximum(high - f, f - low)).all()
        # More samples pass at an error that is some limit than just below it: these are the worst errors.
        for error in limit[limit < max(f, 1 - f) * (1 - 1e-6)] * (1 + 1e-9):
            for rate in (f + error, f - error):
                if 0 <= rate <= 1:
                    assert binom.pmf(events, n, rate) @ (limit <= error) <= level * (1 + 1e-5)
