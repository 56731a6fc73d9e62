import math

import numpy as np
import pytest
from scipy import stats

import truecal
from truecal._lib.numeric import isotonic_rate


@pytest.mark.parametrize("name", ["brier", "log_loss"])
def test_parts_add_up_and_are_not_negative(golden, name):
    y, p = golden(400)
    parts = truecal.decompose(y, p, score=name)
    assert parts.score == pytest.approx(parts.miscalibration - parts.discrimination + parts.uncertainty)
    assert min(parts.miscalibration, parts.discrimination, parts.uncertainty) >= 0


def test_the_brier_score_by_its_definition(golden):
    y, p = golden(400)
    parts = truecal.decompose(y, p)
    order = np.argsort(p)
    best = isotonic_rate(np.ones(400), y[order].astype(float))
    assert parts.score == pytest.approx(np.mean((p - y) ** 2))
    assert parts.miscalibration == pytest.approx(np.mean((p - y) ** 2) - np.mean((best - y[order]) ** 2))
    assert parts.uncertainty == pytest.approx(y.mean() * (1 - y.mean()))


def test_recalibrated_scores_have_no_miscalibration(golden):
    y, p = golden(400)
    order = np.argsort(p)
    best = isotonic_rate(np.ones(400), y[order].astype(float))
    assert truecal.decompose(y[order], best).miscalibration == pytest.approx(0, abs=1e-12)


def test_an_event_of_probability_zero_makes_the_log_loss_infinite():
    parts = truecal.decompose([1, 0], [0.0, 0.5], score="log_loss")
    assert parts.score == math.inf
    assert parts.to_dict()["score"] is None


def test_a_sample_and_its_rows_agree(golden):
    y, p = golden(100)
    assert truecal.decompose(truecal.Sample.from_predictions(y, p)) == truecal.decompose(y, p)


def test_an_unknown_score_is_refused(golden):
    with pytest.raises(truecal.InputError, match="score must be one of 'brier', 'log_loss'"):
        truecal.decompose(*golden(10), score="spherical")


def test_clusters_need_a_level():
    with pytest.raises(truecal.InputError, match="clusters have no effect on decompose"):
        truecal.decompose([0, 1], [0.2, 0.7], clusters=[1, 2])
    plain = truecal.decompose([0, 1], [0.2, 0.7])
    assert plain.score_interval is None


def test_the_interval_of_the_score_is_that_of_the_mean_loss(golden):
    y, p = golden(400)
    found = truecal.decompose(y, p, confidence_level=0.95)
    loss = (p - y) ** 2
    half = stats.norm.isf(0.025) * loss.std() / 20
    assert found.score_interval.low == pytest.approx(loss.mean() - half)
    assert found.score_interval.high == pytest.approx(loss.mean() + half)
    cluster = np.arange(400) // 4
    found = truecal.decompose(y, p, clusters=cluster, confidence_level=0.95, score="log_loss")
    loss = -np.log(np.where(y == 1, p, 1 - p))
    sums = np.bincount(cluster, loss - loss.mean())
    half = stats.t.isf(0.025, 99) * np.sqrt(100 / 99 * (sums**2).sum()) / 400
    assert found.score_interval.high == pytest.approx(loss.mean() + half)
    assert found.miscalibration_interval is None
    error = truecal.confidence_interval(y, p, clusters=cluster)
    brier = truecal.decompose(y, p, clusters=cluster, confidence_level=0.95)
    assert brier.miscalibration_interval.high == pytest.approx(error.high**2)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 5])
def test_intervals_contain_the_population(size):
    held, draws = np.zeros(4), 150
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        cluster = np.repeat(np.arange(1000 // size), size)
        p = rng.random(1000 // size)[cluster]
        y = (np.repeat(rng.random(1000 // size), size) < p).astype(int)  # calibrated; clusters agree
        found = truecal.decompose(y, p, clusters=cluster if size > 1 else None, confidence_level=0.9)
        truth = {"score": 1 / 6, "miscalibration": 0.0, "discrimination": 1 / 12, "uncertainty": 1 / 4}
        held += [value in getattr(found, f"{name}_interval") for name, value in truth.items()]
    assert (held / draws > 0.9 - 4 * np.sqrt(0.09 / draws)).all()
