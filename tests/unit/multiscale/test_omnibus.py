import math

import numpy as np
import pytest
from scipy.stats import chi2

from truecal.multiscale._null import ClusterNull, LabelNull
from truecal.multiscale._omnibus import Omnibus, _product, omnibus_test, rank_pvalue


def null_of(score, label, count=None, weight=None):
    order = np.argsort(score, kind="stable")
    pick = lambda values: None if values is None else np.asarray(values, float)[order]  # noqa: E731
    score = np.asarray(score, float)
    return LabelNull(
        score[order], np.ones(len(score)) if count is None else pick(count), pick(label), pick(weight)
    )


def draw(rng, n, curve=lambda p: p, scores=None):
    score = np.sort(rng.random(n) if scores is None else scores(rng, n))
    return score, (rng.random(n) < curve(score)).astype(float)


def pvalue(null, n_resamples=199, seed=0):
    return omnibus_test(null, n_resamples, np.random.default_rng(seed)).pvalue


def tolerance(size, draws):
    """Four standard errors of a share."""
    return 4 * math.sqrt(size * (1 - size) / draws)


SCORES = {
    "uniform": lambda rng, n: rng.random(n),
    "rare": lambda rng, n: rng.beta(0.5, 50, n),
    "near 1": lambda rng, n: rng.beta(2.8, 0.05, n),
    "tenths, with 0 and 1": lambda rng, n: np.round(rng.random(n), 1),
    "one value": lambda rng, n: np.full(n, 0.3),
}


# --- Level -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("scores", SCORES)
def test_size_is_exact_with_fifty_rows(scores):
    rng, draws = np.random.default_rng(1), 600
    found = np.array(
        [
            pvalue(LabelNull(s, np.ones(50), y), 39, i)
            for i in range(draws)
            for s, y in [draw(rng, 50, scores=SCORES[scores])]
        ]
    )
    for size in (0.05, 0.1):
        # More than half of the draws tie where labels hardly vary, and the test is then conservative.
        assert np.mean(found <= size) <= size + tolerance(size, draws)
    if scores in ("uniform", "tenths, with 0 and 1"):
        assert np.mean(found <= 0.1) >= 0.1 - tolerance(0.1, draws)


@pytest.mark.slow
def test_size_is_exact_with_unequal_weights():
    rng, draws = np.random.default_rng(2), 500
    found = []
    for i in range(draws):
        score, label = draw(rng, 60)
        found.append(pvalue(null_of(score, label, weight=rng.lognormal(0, 1, 60)), 39, i))
    assert abs(np.mean(np.array(found) <= 0.1) - 0.1) <= tolerance(0.1, draws)


@pytest.mark.slow
def test_size_with_counts_drawn_as_binomials():
    rng, draws, score = np.random.default_rng(3), 300, np.linspace(0.02, 0.98, 49)
    count = np.full(49, 4000.0)  # beyond the number of rows that are drawn one by one
    found = [
        pvalue(LabelNull(score, count, rng.binomial(4000, score).astype(float)), 39, i) for i in range(draws)
    ]
    assert abs(np.mean(np.array(found) <= 0.1) - 0.1) <= tolerance(0.1, draws)


@pytest.mark.slow
def test_size_with_clusters():
    rng, draws, found = np.random.default_rng(4), 300, []
    for i in range(draws):
        p = rng.beta(3, 2, 100)
        mu = rng.beta(p * 7 / 3, (1 - p) * 7 / 3)  # intraclass correlation 0.3
        score, cluster = np.repeat(p, 5), np.repeat(np.arange(100), 5)
        label = rng.random(500) < np.repeat(mu, 5)
        order = np.argsort(score, kind="stable")
        null = ClusterNull(score[order], (score - label)[order], np.ones(500), cluster[order])
        found.append(pvalue(null, 99, i))
    assert np.mean(np.array(found) <= 0.05) <= 0.05 + tolerance(0.05, draws)


# --- Power -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("curve", "n", "least"),
    [
        (lambda p: 1 - p, 100, 0.99),
        (lambda p: 1 / (1 + ((1 - p) / p) ** 0.75), 1000, 0.75),
        (lambda p: np.clip(p + 0.1 * np.sin(6 * np.pi * p) * 4 * p * (1 - p), 0, 1), 2000, 0.75),
        (lambda p: np.where(p < 0.5, 0.25, 0.75), 200, 0.85),
        (lambda p: p**1.25, 1000, 0.80),
    ],
    ids=["reversed", "slope", "three waves", "step", "power"],
)
def test_power(curve, n, least):
    rng, draws = np.random.default_rng(5), 80
    found = [
        pvalue(LabelNull(s, np.ones(n), y), 99, i) for i in range(draws) for s, y in [draw(rng, n, curve)]
    ]
    assert np.mean(np.array(found) <= 0.05) >= least - tolerance(least, draws)


def test_alternating_errors_of_repeated_scores_are_found():
    rng = np.random.default_rng(6)
    score = np.repeat(np.arange(1, 100) / 100, 60)
    label = rng.random(len(score)) < np.clip(score + 0.08 * (-1) ** np.round(100 * score), 0, 1)
    outcome = omnibus_test(null_of(score, label), 199, rng)
    assert outcome.pvalue == 1 / 200
    assert outcome.component.startswith("local deviations")


# --- The statistic ---------------------------------------------------------------------------------


def test_components_have_their_approximate_null_distribution():
    rng = np.random.default_rng(7)
    null = LabelNull(*draw(rng, 2000)[:1], np.ones(2000), np.zeros(2000))
    pvalues = Omnibus(null).pvalues(np.concatenate(list(null.draws(4000, rng))))
    assert np.abs(np.mean(pvalues <= 0.05, axis=0) - 0.05).max() < 0.02


def test_logistic_component_is_the_score_test_of_intercept_and_slope():
    score, label = draw(
        np.random.default_rng(8), 5000, lambda p: p**1.1, lambda rng, n: rng.uniform(0.05, 0.95, n)
    )
    found = {one.family: one for one in Omnibus(LabelNull(score, np.ones(5000), label)).components}
    x = np.stack([np.ones(5000), np.log(score / (1 - score))])
    u = x @ (score - label)
    expected = chi2.sf(u @ np.linalg.solve((x * score * (1 - score)) @ x.T, u), 2)
    # Cells of equal mass and the kurtosis of the labels make the difference.
    assert found["logistic"].pvalue == pytest.approx(expected, rel=0.05)


def test_waves_are_a_smooth_test_without_intercept_and_slope():
    score, label = draw(np.random.default_rng(8), 2000, lambda p: p + 0.08 * np.sin(6 * np.pi * p))
    test = Omnibus(LabelNull(score, np.ones(2000), label))
    found = {(one.family, one.terms): one.pvalue for one in test.components}
    # With 2,000 rows the noise that is added to the variance hardly matters: terms are standard normal.
    waves, whole = chi2.isf(found["waves", 6], 6), chi2.isf(found["smooth", 8], 8)
    assert waves == pytest.approx(whole - chi2.isf(found["logistic", 2], 2), rel=0.03)


@pytest.mark.parametrize("n_scores", [1, 2, 5, 7])
def test_few_distinct_scores_have_no_waves(n_scores):
    score = np.repeat(np.linspace(0.2, 0.8, n_scores), 20)
    label = np.tile([0.0, 1.0], 10 * n_scores)
    families = {one.family for one in Omnibus(null_of(score, label)).components}
    assert "waves" not in families
    assert "level" in families


def test_grouping_rows_of_equal_score_changes_nothing():
    rng = np.random.default_rng(11)
    score = np.round(rng.random(400), 1)
    label = (rng.random(400) < score).astype(float)
    distinct, group = np.unique(score, return_inverse=True)
    by_row = Omnibus(null_of(score, label)).observed
    grouped = LabelNull(distinct, np.bincount(group).astype(float), np.bincount(group, label))
    assert Omnibus(grouped).observed == pytest.approx(by_row)


def test_statistic_does_not_depend_on_the_scale_of_the_weights():
    rng = np.random.default_rng(12)
    score, label = draw(rng, 300)
    weight = rng.lognormal(0, 1, 300)
    one = Omnibus(null_of(score, label, weight=weight)).observed
    assert Omnibus(null_of(score, label, weight=1e-6 * weight)).observed == pytest.approx(one)
    equal = Omnibus(null_of(score, label, weight=np.full(300, 0.01))).observed
    assert equal == pytest.approx(Omnibus(null_of(score, label)).observed)


# --- What cannot be, and what says nothing ---------------------------------------------------------


def test_a_label_that_a_score_of_0_or_1_rules_out():
    outcome = omnibus_test(null_of([0.0, 0.0, 0.4, 1.0], [0, 1, 0, 1]), 99, np.random.default_rng(0))
    assert outcome.pvalue == 1 / 100
    assert outcome.component == "a score of exactly 0 or 1"
    assert math.isinf(outcome.statistic)


@pytest.mark.parametrize(("score", "label"), [([0.0, 1.0], [0, 1]), ([1.0], [1])])
def test_scores_of_0_and_1_that_agree_with_their_labels(score, label):
    assert pvalue(null_of(score, label)) == 1


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_few_rows(n):
    assert 0 < pvalue(null_of(np.linspace(0.3, 0.9, n), np.ones(n))) <= 1


# --- Clusters --------------------------------------------------------------------------------------


def test_few_clusters_are_enumerated():
    rng = np.random.default_rng(14)
    score = np.sort(rng.random(80))
    null = ClusterNull(score, score - 0.0, np.ones(80), np.arange(80) % 8)  # labels of 0 throughout
    outcome = omnibus_test(null, 999, rng)
    assert len(outcome.null) == 2**7 - 1
    assert outcome.pvalue == 1 / 128
    assert "8 clusters" in outcome.notes[0]


def test_clusters_of_one_row_reject_what_rows_reject():
    rng = np.random.default_rng(15)
    score, label = draw(rng, 800, lambda p: p**1.6)
    assert pvalue(ClusterNull(score, score - label, np.ones(800), np.arange(800))) == 1 / 200


# --- Ranks -----------------------------------------------------------------------------------------


def test_rank_pvalue():
    rng = np.random.default_rng(0)
    drawn = np.arange(1.0, 10.0)
    assert rank_pvalue(9.5, drawn, rng) == (0.1, (0.1, 0.1))
    assert rank_pvalue(math.inf, drawn, rng) == (0.1, (0.1, 0.1))
    found = [rank_pvalue(9.0, drawn, rng)[0] for _ in range(400)]
    assert set(found) == {0.1, 0.2}
    assert rank_pvalue(1.0, np.ones(9), rng) == (1.0, (0.1, 1.0))  # the data can say nothing


def test_scores_next_to_0_and_1_do_not_drown_the_others():
    # The spread of these scores is that of the first and the last, which hardly ever vary.
    score = np.repeat([1e-12, 0.5, 1 - 2**-53], [5, 40, 5])
    label = np.repeat([0.0, 1.0], [5, 45])
    test = Omnibus(null_of(score, label))
    assert all(np.isfinite(one.pvalue) for one in test.components)
    assert [one.family for one in test.components].count("level") == 1
    spread = next(one for one in test.components if one.family == "spread")
    assert spread.pvalue > 0.1
    assert pvalue(null_of(score, label)) <= 0.01


def test_the_scale_of_weights_does_not_matter():
    rng = np.random.default_rng(3)
    score, weight = np.sort(rng.random(50)), rng.lognormal(0, 2, 50)
    label = (rng.random(50) < score).astype(float)
    one, two = (Omnibus(null_of(score, label, weight=factor * weight)).observed for factor in (1, 0.37))
    assert one == pytest.approx(two, rel=1e-9)


def test_exchanging_the_classes_changes_nothing():
    rng = np.random.default_rng(4)
    for n in (30, 49, 100):  # with ranks on the edges of bins
        score = rng.choice([0.1, 0.2, 0.5, 0.7, 0.9], n) if n == 49 else rng.random(n)
        label = (rng.random(n) < score**2).astype(float)
        one, two = (Omnibus(null_of(*pair)).observed for pair in ((score, label), (1 - score, 1 - label)))
        assert one == pytest.approx(two, rel=1e-9)


@pytest.mark.parametrize("shape", [(7, 2048, 16), (1, 5, 2), (3, 1 << 19, 1), (4, 6, 0)])
def test_products_in_pieces_for_one_thread_are_the_products(shape):
    draws, cells, terms = shape
    rng = np.random.default_rng(0)
    residual, columns = rng.random((draws, cells)), rng.random((cells, terms))
    np.testing.assert_allclose(_product(residual, columns), residual @ columns, rtol=1e-12)
