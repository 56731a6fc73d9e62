"""Groups of rows, classes, and whether groups differ."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

from truecal.assessment._groups import (
    SMALL_GROUP,
    Settings,
    assess_groups,
    clustered_difference,
    group_difference,
)
from truecal.data import as_sample, read_rows


def sample_of(n, curve, rng):
    p = rng.random(n)
    return as_sample(rng.random(n) < curve(p), p)


def look(samples, rng, **options):
    names = [str(k) for k in range(len(samples))]
    settings = Settings(
        **{"confidence_level": 0.95, "resolution": None, "n_resamples": 199, **options}, rng=rng
    )
    parts = [(name, (name,), sample) for name, sample in zip(names, samples, strict=True)]
    return assess_groups(("group",), parts, settings)


def test_many_bad_groups_are_all_found():
    # Holm's correction of 60 p-values of at least 1/200 could reject none of them.
    rng = np.random.default_rng(0)
    groups = look([sample_of(150, lambda p: p**4, rng) for _ in range(60)], rng)
    assert len(groups.miscalibrated) == groups.n_hypotheses == 60
    assert {row.adjusted_pvalue for row in groups.rows} == {1 / 200}


def test_adjusted_pvalues_are_at_least_the_single_ones_and_intervals_agree():
    rng = np.random.default_rng(1)
    curves = [lambda p: p, lambda p: p**2, lambda p: p**1.3, lambda p: p]
    groups = look([sample_of(300, curve, rng) for curve in curves], rng)
    for row in groups.rows:
        assert row.adjusted_pvalue >= row.pvalue - 0.05  # both are resampled
        assert row.miscalibrated == (row.adjusted_pvalue <= 0.05)
        assert (row.interval.low == 0) or row.miscalibrated
    assert groups["1"].miscalibrated


def test_groups_print_as_a_table():
    rng = np.random.default_rng(1)
    groups = look([sample_of(400, curve, rng) for curve in (lambda p: p, lambda p: p**3)], rng)
    lines = str(groups).splitlines()
    assert lines[0].split("  ")[0] == "group"
    assert "95% interval" in lines[0]
    row = groups["1"]
    assert f"{row.interval.low:.4f} to {row.interval.high:.4f}" in lines[2]
    assert "Miscalibrated: 1" in lines
    assert lines[-1].startswith("Test of no difference between groups: p ")
    assert "(97.5%)" in str(row.estimate)


def test_small_groups_are_marked():
    rng = np.random.default_rng(2)
    groups = look(
        [sample_of(SMALL_GROUP - 1, lambda p: p, rng), sample_of(SMALL_GROUP, lambda p: p, rng)], rng
    )
    assert [row.small for row in groups.rows] == [True, False]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_familywise_error_rate_is_that_of_the_level():
    rng = np.random.default_rng(3)
    repeats = 400
    found = [
        bool(look([sample_of(n, lambda p: p, rng) for n in (30, 60, 120)], rng, n_resamples=99).miscalibrated)
        for _ in range(repeats)
    ]
    error = np.sqrt(0.05 * 0.95 / repeats)
    assert abs(np.mean(found) - 0.05) < 4 * error


@pytest.mark.slow
def test_the_difference_test_is_chi_square_if_groups_share_one_curve():
    rng = np.random.default_rng(4)
    repeats = 500
    results = [
        group_difference([sample_of(200, lambda p: p**1.5, rng) for _ in range(3)]) for _ in range(repeats)
    ]
    assert {result.degrees for result in results} == {4}
    assert stats.kstest([result.pvalue for result in results], "uniform").pvalue > 1e-3


def test_the_difference_test_sees_level_and_slope():
    rng = np.random.default_rng(5)
    same = sample_of(1000, lambda p: p, rng)
    for curve in (lambda p: p**1.6, lambda p: 0.5 + 0.6 * (p - 0.5)):
        assert group_difference([same, sample_of(1000, curve, rng)]).pvalue < 1e-3


def test_no_difference_where_there_is_nothing_to_compare():
    rng = np.random.default_rng(6)
    sample = sample_of(100, lambda p: p, rng)
    assert group_difference([sample]) is None
    assert group_difference([sample, as_sample([1, 0], [0.4, 0.6])]) is None
    assert group_difference([as_sample([1, 1], [1.0, 1.0])] * 2) is None


def rows_of(rng, shift=0.0, n_clusters=60, size=10):
    """Patients with visits in both of two groups; `shift` is added to the logit in the second."""
    who, p = np.repeat(np.arange(n_clusters), size), rng.beta(2, 3, n_clusters * size)
    group = rng.integers(0, 2, len(who))
    chance = expit(logit(p) + rng.normal(0, 0.8, n_clusters)[who] + shift * group)
    (rows,) = read_rows(rng.random(len(who)) < chance, p, clusters=who)
    return rows, group


def test_the_clustered_difference_keeps_its_level_and_finds_a_shift():
    rng = np.random.default_rng(0)
    pvalues = [clustered_difference(*rows_of(rng), 2).pvalue for _ in range(200)]
    assert stats.kstest(pvalues, "uniform").pvalue > 1e-3
    assert clustered_difference(*rows_of(rng, shift=1.5), 2).pvalue < 1e-3


def test_groups_of_whole_clusters_differ_only_by_chance():
    # Ten hospitals in each group: rows taken as independent would often be said to differ.
    rng, low, naive = np.random.default_rng(1), 0, 0
    for _ in range(100):
        who, p = np.repeat(np.arange(20), 100), rng.beta(2, 3, 2000)
        y = rng.random(2000) < expit(logit(p) + rng.normal(0, 0.6, 20)[who])
        (rows,) = read_rows(y, p, clusters=who)
        found = clustered_difference(rows, who % 2, 2)
        assert found.degrees == 2
        low += found.pvalue <= 0.05
        naive += (
            group_difference([as_sample(y[who % 2 == k], p[who % 2 == k]) for k in (0, 1)]).pvalue <= 0.05
        )
    assert low <= 12  # 5 expected; 12 has probability below 0.005
    assert naive >= 20


def test_no_clustered_difference_where_it_cannot_be_made():
    rng = np.random.default_rng(2)
    rows, group = rows_of(rng, n_clusters=14)
    assert clustered_difference(rows, group, 2) is None
    rows, group = rows_of(rng)
    assert clustered_difference(rows, np.zeros_like(group), 1) is None
    (weighted,) = read_rows([0, 1], [0.2, 0.7], sample_weight=[1, 2], clusters=[0, 1])
    assert clustered_difference(weighted, np.array([0, 1]), 2) is None
