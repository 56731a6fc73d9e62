import numpy as np
import pytest

import truecal
from truecal.inference.c_statistic import c_statistic, reversed_scores


def draw(seed, n, curve):
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 2, n)
    return rng, (rng.random(n) < curve(p)).astype(int), p


def named(y, p, **reading):
    return reversed_scores(truecal.Sample.from_predictions(y, p, **reading))


@pytest.mark.parametrize("n", [200, 3000])
def test_scores_of_the_other_class_are_named_with_the_c_statistic(n):
    _, y, p = draw(0, n, lambda p: p)
    value = c_statistic(y, 1 - p).value
    assert named(y, 1 - p) == (
        f"Higher scores go with fewer events (C statistic {value:.2f}): are they probabilities of another class?"
    )
    assert f"Note: {named(y, 1 - p)}" in str(truecal.calibration_test(y, 1 - p, n_resamples=9, rng=0))


def test_predicted_classes_that_are_always_wrong_are_named():
    y = np.repeat([0, 1], [60, 40])
    assert "(C statistic 0.00)" in named(y, 1 - y)


def test_a_top_label_is_asked_for_the_order_of_its_columns():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([0.3] * 3, 3000)
    y = (proba.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1)
    assert named(y, proba) is None
    assert "are columns and labels in the same order?" in named(y, proba[:, [1, 2, 0]])


@pytest.mark.parametrize(
    "curve",
    [
        lambda p: p,
        lambda p: p**3,
        lambda p: 0.02 + 0 * p,
        lambda p: 0.5 + 0 * p,
        lambda p: np.abs(1 - 2 * (1 - p) ** 2),
    ],
    ids=["calibrated", "too high", "rare and random", "random", "events at both ends"],
)
def test_chance_is_never_named(curve):
    for seed in range(150):
        rng, y, p = draw(seed, (10, 50, 400)[seed % 3], curve)
        for reading in (
            {},
            {"sample_weight": rng.exponential(size=len(y))},
            {"clusters": np.arange(len(y)) // 5},
        ):
            assert named(y, p, **reading) is None


@pytest.mark.parametrize(
    ("y", "p"), [([0, 1] * 40, [0.3] * 80), ([1] * 80, np.linspace(0, 1, 80)), ([1], [0.2])]
)
def test_without_a_ranking_there_is_nothing_to_reverse(y, p):
    assert named(y, p) is None


def test_rows_that_are_repeated_are_evidence_only_once():
    _, y, p = draw(0, 12, lambda p: p < 0.3)
    times, who = 30, np.arange(12)
    assert named(np.tile(y, times), np.tile(p, times)) is not None
    assert named(np.tile(y, times), np.tile(p, times), clusters=np.tile(who, times)) is None
    # One weight that exceeds all others leaves one row to judge by.
    _, y, p = draw(0, 200, lambda p: 1 - p)
    assert named(y, p) is not None
    assert named(y, p, sample_weight=np.where(np.arange(200) == np.argmax(y), 1e4, 1.0)) is None
