"""The C statistic against pairs of rows, scikit-learn and simulation."""

import numpy as np
import pytest
from scipy.special import erf, expit
from sklearn.metrics import roc_auc_score

import truecal
from truecal.inference.c_statistic import c_statistic


def draw(rng, n, ties=False):
    p = rng.random(n)
    p = np.round(p, 1) if ties else p
    return (rng.random(n) < p**1.5).astype(int), p


@pytest.mark.parametrize("ties", [False, True])
def test_it_is_the_area_under_the_roc_curve(ties):
    y, p = draw(np.random.default_rng(0), 300, ties)
    found = c_statistic(y, p)
    assert float(found) == pytest.approx(roc_auc_score(y, p), abs=1e-12)
    higher = (p[y == 1][:, None] > p[y == 0]) + 0.5 * (p[y == 1][:, None] == p[y == 0])
    expected = np.var(higher.mean(axis=1), ddof=1) / (y == 1).sum()
    expected += np.var(higher.mean(axis=0), ddof=1) / (y == 0).sum()
    assert found.standard_error == pytest.approx(np.sqrt(expected), rel=1e-9)


def test_weights_and_counts():
    y, p = draw(np.random.default_rng(1), 80, ties=True)
    weight = np.random.default_rng(2).integers(1, 4, 80)
    twice = c_statistic(np.repeat(y, weight), np.repeat(p, weight))
    counted = c_statistic(y, p, sample_weight=weight, weighting="counts")
    assert (counted.value, counted.standard_error) == pytest.approx((twice.value, twice.standard_error))
    sampled = c_statistic(y, p, sample_weight=weight * 7.5)
    assert sampled.value == pytest.approx(twice.value)
    assert sampled.standard_error > twice.standard_error


def test_clusters_of_copies_have_the_error_of_one_copy():
    y, p = draw(np.random.default_rng(3), 400)
    alone = c_statistic(y, p)
    copies = c_statistic(np.repeat(y, 3), np.repeat(p, 3), clusters=np.repeat(np.arange(400), 3))
    assert copies.standard_error == pytest.approx(alone.standard_error, rel=0.01)


def test_separated_and_missing_outcomes():
    perfect = c_statistic([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4])
    assert perfect.value == 1
    assert (perfect.interval.low, perfect.interval.high) == (0, 1)
    assert np.isnan(float(c_statistic([1, 1], [0.3, 0.4])))


@pytest.mark.parametrize(
    ("label", "reading"),
    [
        (np.arange(60) == 40, {}),  # one event
        (np.arange(60) != 40, {}),
        (np.arange(60) == 40, {"sample_weight": np.arange(1, 61) / 7}),
        (np.arange(60) % 3 == 0, {"clusters": np.zeros(60)}),
        (
            np.isin(np.arange(60), [40, 45, 55]),
            {"clusters": np.arange(60) // 20},
        ),  # all events in one cluster
    ],
)
def test_one_row_or_cluster_with_an_outcome_says_nothing_of_others(label, reading):
    interval = c_statistic(label, np.linspace(0.01, 0.99, 60), **reading).interval
    assert (interval.low, interval.high) == (0, 1)


def test_the_scale_of_sampling_weights_does_not_matter():
    y, p = draw(np.random.default_rng(5), 60)
    weight = np.random.default_rng(6).exponential(size=60)
    for scale in (1e-3, 1e3):
        found = c_statistic(y, p, sample_weight=weight * scale)
        assert found.standard_error == pytest.approx(
            c_statistic(y, p, sample_weight=weight).standard_error, rel=1e-9
        )


def test_the_interval_covers_with_few_events():
    """400 draws of 3 events in 300 rows: it was 0.81 with the normal quantile."""
    rng, truth = np.random.default_rng(7), 0.5 * (1 + erf(0.5))
    y = np.arange(300) < 3
    covered = np.mean([truth in c_statistic(y, expit(rng.normal(y, 1))).interval for _ in range(400)])
    assert covered > 0.95 - 0.04 - 3 * np.sqrt(0.91 * 0.09 / 400)


def test_the_interval_covers():
    """300 draws of 150 rows: within four Monte Carlo standard errors of 95%."""
    rng = np.random.default_rng(4)
    y, p = draw(rng, 400_000)
    truth = float(c_statistic(y, p))
    covered = np.mean([truth in c_statistic(*draw(rng, 150)).interval for _ in range(300)])
    assert abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 300)


def test_a_sample_stands_for_both():
    y, p = draw(np.random.default_rng(5), 50)
    assert c_statistic(truecal.Sample.from_predictions(y, p)) == c_statistic(y, p)
