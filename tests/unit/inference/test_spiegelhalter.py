import json
import math

import numpy as np
import pytest
from scipy import stats
from scipy.stats import norm

import truecal
from truecal import Sample
from truecal.data import as_sample
from truecal.inference.spiegelhalter import spiegelhalter_test


def by_hand(y, p):
    """Spiegelhalter (1986), formula by formula: the Brier score less its mean, over its deviation."""
    score = np.mean((y - p) ** 2)
    mean = np.mean(p * (1 - p))
    variance = np.sum((1 - 2 * p) ** 2 * p * (1 - p)) / len(p) ** 2
    return (score - mean) / np.sqrt(variance)


def test_it_is_the_brier_score_standardised():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p**1.3).astype(float)
    result = spiegelhalter_test(y, p)
    z = by_hand(y, p)
    assert result.statistic == pytest.approx(z, rel=1e-12)
    assert result.pvalue == pytest.approx(2 * norm.sf(abs(z)), rel=1e-9)
    assert (result.n, result.target) == (300, "P(y = 1)")


def test_ties_weights_and_a_sample_say_the_same_as_rows():
    y, p = np.array([0, 1, 1, 0, 1]), np.array([0.2, 0.2, 0.7, 0.7, 0.9])
    weight = np.array([3, 1, 4, 1, 5])
    rows = spiegelhalter_test(np.repeat(y, weight), np.repeat(p, weight))
    assert spiegelhalter_test(y, p, sample_weight=weight, weighting="counts").statistic == pytest.approx(
        rows.statistic, rel=1e-12
    )
    assert spiegelhalter_test(
        as_sample(y, p, sample_weight=weight, weighting="counts")
    ).statistic == pytest.approx(rows.statistic, rel=1e-12)


@pytest.mark.parametrize(
    ("label", "score", "z", "pvalue"),
    [
        ([0, 1, 1], [0.0, 1.0, 1.0], 0.0, 1.0),
        ([0, 1, 1], [0.5, 0.5, 0.5], 0.0, 1.0),
        ([1, 1, 0], [0.0, 1.0, 0.5], math.inf, 0.0),
        ([0, 0, 0], [0.0, 1.0, 0.5], math.inf, 0.0),
    ],
)
def test_scores_without_variance(label, score, z, pvalue):
    result = spiegelhalter_test(label, score)
    assert (result.statistic, result.pvalue) == (z, pvalue)
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["pvalue"] == pvalue


def test_over_confidence_is_positive_and_under_confidence_negative():
    p = np.tile([0.1, 0.9], 50)
    coin = np.tile([0, 0, 1, 1], 25)
    assert spiegelhalter_test(coin, p).statistic > 5
    assert spiegelhalter_test(p > 0.5, p).statistic < -2


# -- several classes -------------------------------------------------------------------------------------


def test_two_classes_are_one_column():
    rng = np.random.default_rng(1)
    p = rng.random(200)
    y = rng.random(200) < p
    one = spiegelhalter_test(y, p)
    both = spiegelhalter_test(y.astype(int), np.column_stack([1 - p, p]), multiclass="classwise")
    assert both.statistic == pytest.approx(one.statistic, rel=1e-9)


def test_classes_have_mean_zero_and_variance_one_under_calibration():
    rng = np.random.default_rng(2)
    proba = rng.dirichlet([0.5, 1.0, 2.0, 0.3], size=150)
    draws = (proba.cumsum(axis=1)[:, :-1] < rng.random((2000, 150, 1))).sum(axis=2)
    z = np.array([spiegelhalter_test(y, proba, multiclass="classwise").statistic for y in draws[:600]])
    assert abs(z.mean()) < 4 / math.sqrt(len(z))
    assert abs(z.var() - 1) < 4 * math.sqrt(2 / len(z))


def test_sure_and_right_in_every_class_has_no_variance():
    result = spiegelhalter_test([0, 1, 2], np.eye(3), multiclass="classwise")
    assert (result.statistic, result.pvalue) == (0.0, 1.0)
    wrong = spiegelhalter_test([0, 1, 1], np.eye(3), multiclass="classwise")
    assert (wrong.statistic, wrong.pvalue) == (math.inf, 0.0)


def test_weights_of_rows_with_several_classes():
    rng = np.random.default_rng(3)
    proba, y = rng.dirichlet([1, 1, 1], size=20), rng.integers(3, size=20)
    weight = rng.integers(4, size=20)
    rows = spiegelhalter_test(np.repeat(y, weight), np.repeat(proba, weight, axis=0), multiclass="classwise")
    assert spiegelhalter_test(
        y, proba, sample_weight=weight, weighting="counts", multiclass="classwise"
    ).statistic == pytest.approx(rows.statistic)


def test_fractional_weights_are_refused():
    with pytest.raises(ValueError, match=r"sample_weight must be whole numbers.* for Spiegelhalter's test"):
        spiegelhalter_test(Sample(score=np.array([0.3]), count=np.array([1.5]), positives=np.array([0.5])))


def test_sampling_weights_have_a_sandwich_variance():
    rng = np.random.default_rng(0)
    z = []
    for _ in range(400):
        p = rng.random(300)
        z.append(spiegelhalter_test(rng.random(300) < p, p, sample_weight=rng.lognormal(0, 1, 300)).statistic)
    assert np.var(z) == pytest.approx(1, abs=4 * np.sqrt(2 / 400))


def test_it_prints():
    assert (
        str(spiegelhalter_test([0, 1, 0, 0], [0.1, 0.6, 0.8, 0.9])) == "Spiegelhalter's Z = 2.44, p = 0.015"
    )


def _in_clusters(seed, n=60, size=8):
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n), size)
    score = rng.random(n)[cluster]
    label = np.repeat(rng.random(n), size) < score  # all rows of a cluster agree
    return label.astype(int), score, cluster


def test_clusters_are_a_t_test_of_their_sums():
    label, score, cluster = _in_clusters(0)
    found = truecal.spiegelhalter_test(label, score, clusters=cluster)
    sums = np.bincount(cluster, (label - score) * (1 - 2 * score))
    expected = stats.ttest_1samp(sums, 0)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.pvalue == pytest.approx(expected.pvalue)
    assert found.n_clusters == 60
    beside = truecal.calibration_test(label, score, clusters=cluster, n_resamples=19, rng=0).spiegelhalter
    assert beside.pvalue == found.pvalue


def test_clusters_of_several_classes_are_added_up():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 90)
    truth, cluster = rng.integers(0, 3, 90), np.arange(90) // 3
    found = truecal.spiegelhalter_test(truth, proba, clusters=cluster, multiclass="classwise")
    excess = ((np.eye(3)[truth] - proba) * (1 - 2 * proba)).sum(axis=1)
    expected = stats.ttest_1samp(np.bincount(cluster, excess), 0).statistic
    assert (
        0.9 * expected <= found.statistic <= expected
    )  # clusters show less variance here than independent rows have


def test_no_event_in_any_cluster_is_no_evidence():
    score, cluster = np.full(100, 0.01), np.arange(100) % 20
    assert truecal.spiegelhalter_test(np.zeros(100, int), score, clusters=cluster).pvalue > 0.05


def test_one_cluster_shows_nothing():
    assert truecal.spiegelhalter_test([0, 1], [0.9, 0.1], clusters=[1, 1]).pvalue == 1


def test_dependent_rows_are_rejected_as_often_as_the_level_says():
    pvalues = [
        truecal.spiegelhalter_test(label, score, clusters=cluster).pvalue
        for label, score, cluster in map(_in_clusters, range(400))
    ]
    assert stats.kstest(pvalues, "uniform").pvalue > 1e-4
