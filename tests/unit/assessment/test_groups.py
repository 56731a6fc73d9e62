import numpy as np
import pytest

from truecal.assessment.groups import SMALL_GROUP, assess_groups
from truecal.data import as_sample


def sample_of(n, curve, rng):
    p = rng.random(n)
    return as_sample(rng.random(n) < curve(p), p)


def look(samples, rng, **options):
    names = [str(k) for k in range(len(samples))]
    options = {"confidence_level": 0.95, "n_resamples": 199, **options}
    return assess_groups(
        samples, names, [(name,) for name in names], ("group",), estimator="multiscale", rng=rng, **options
    )


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
