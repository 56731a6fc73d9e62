import json

import numpy as np
import pytest

import truecal
from truecal import describe_clusters
from truecal.data import as_sample
from truecal.inference.dependence import suspected_dependence


def questions(n, size, rng, icc=0.3, slope=1.0):
    p, rest = rng.beta(3, 2, n), (1 - icc) / icc
    curve = 1 / (1 + ((1 - p) / p) ** slope)
    who = np.repeat(np.arange(n), size)
    return (rng.random(n * size) < rng.beta(curve * rest, (1 - curve) * rest)[who]).astype(int), p[who], who


@pytest.mark.parametrize("slope", [1.0, 0.6])
def test_the_intraclass_correlation_is_found_whatever_the_curve(slope):
    found = [
        describe_clusters(y, p, clusters=who)
        for y, p, who in (questions(200, 5, np.random.default_rng(k), slope=slope) for k in range(40))
    ]
    icc = np.array([one.icc for one in found])
    assert icc.mean() == pytest.approx(0.3, abs=0.02)  # a standard error of 0.006, and a small bias
    assert np.mean([one.icc_standard_error for one in found]) == pytest.approx(icc.std(), rel=0.35)
    assert np.mean([one.design_effect for one in found]) == pytest.approx(1 + 4 * icc.mean(), abs=0.05)


@pytest.mark.parametrize(("n", "size", "icc", "most"), [(46, 10, 0.1, 0.007), (20, 60, 0.05, 0.002)])
def test_what_the_curve_takes_up_of_few_clusters_is_given_back(n, size, icc, most):
    """Compared with the residuals of the true curve; without the correction too low by 0.012 and 0.007."""
    lost = []
    for k in range(100):
        y, p, who = questions(n, size, np.random.default_rng([n, k]), icc)
        e, variance = (y - p).reshape(n, size), (p * (1 - p)).reshape(n, size)[:, 0]
        known = (np.sum(e.sum(axis=1) ** 2) - np.sum(e**2)) / (size * (size - 1) * variance.sum())
        lost.append(known - describe_clusters(y, p, clusters=who).icc)
    assert abs(np.mean(lost)) < most  # standard errors of 0.0014 and 0.0007


def test_few_large_clusters_are_few():
    y, p, who = questions(100, 8, np.random.default_rng(0))
    assert describe_clusters(y, p, clusters=who).effective_clusters == pytest.approx(100)
    unequal = np.where(who < 50, 0, who)  # half of the rows in one cluster
    found = describe_clusters(y, p, clusters=unequal)
    assert found.effective_clusters == pytest.approx(1 / (0.5**2 + 50 * 0.01**2))
    assert found.n_clusters == 51


def test_the_mean_residual_has_the_standard_error_of_inspect_ai():
    """The formula of `_clustered_stderr` in inspect_ai 0.3.285, scorer/_metrics/std.py."""
    y, p, who = questions(120, 4, np.random.default_rng(0))
    kept = np.random.default_rng(1).random(len(y)) < 0.7  # clusters of different sizes
    y, p, who = y[kept], p[kept], who[kept]
    partition = [(p - y)[who == name] for name in np.unique(who)]
    values = np.concatenate(partition)
    total = sum(((part - values.mean()).sum()) ** 2 for part in partition)
    expected = np.sqrt(total * len(partition) / (len(partition) - 1)) / len(values)
    found = describe_clusters(y, p, clusters=who)
    assert found.standard_error == pytest.approx(expected, rel=1e-12)
    assert found.mean_residual == pytest.approx(values.mean(), abs=1e-15)
    assert found.sizes.tolist() == [len(part) for part in partition]


def test_copies_and_single_rows():
    y, p = truecal.paper.population("resnet110_c10").sample(500, rng=0)
    alone = describe_clusters(y, p, clusters=np.arange(500))
    assert np.isnan(alone.icc)
    assert alone.design_effect == 1
    assert alone.effective_size == 500
    assert "intraclass" not in str(alone)
    copies = describe_clusters(np.repeat(y, 3), np.repeat(p, 3), clusters=np.repeat(np.arange(500), 3))
    assert copies.icc == pytest.approx(1, abs=0.05)
    assert copies.design_effect == pytest.approx(3, abs=0.1)
    assert copies.standard_error == pytest.approx(alone.standard_error)
    written = json.loads(json.dumps(copies.to_dict()))
    assert (written["n_clusters"], written["median"], written["weighting"]) == (500, 3, "rows")
    assert "sizes" not in written


def test_equal_clusters_and_missing_ones():
    y, p, who = questions(80, 3, np.random.default_rng(0))
    more = np.repeat(np.arange(len(y)), np.where(who < 4, 30, 1))
    equal = describe_clusters(y[more], p[more], clusters=who[more], weighting="clusters")
    plain = describe_clusters(y, p, clusters=who)
    assert equal.weighting == "clusters"
    assert equal.mean_residual == pytest.approx(plain.mean_residual)
    assert equal.standard_error == pytest.approx(plain.standard_error)
    assert equal.largest == 90
    with pytest.raises(truecal.InputError, match="clusters are missing"):
        describe_clusters(y, p)


# --- The warning -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "size"), [(1000, 2), (200, 5), (100, 20)])
def test_repeated_answers_lead_to_a_warning_that_names_clusters(n, size):
    y, p, who = questions(n, size, np.random.default_rng(0))
    with pytest.warns(truecal.CalibrationWarning, match=f"occur {size} times each.*clusters") as caught:
        truecal.estimate(y, p, confidence_level=0.95)
    assert caught[0].filename == __file__
    for function in (
        truecal.calibration_error,
        truecal.confidence_interval,
        truecal.calibration_test,
        truecal.calibration_index,
    ):
        with pytest.warns(truecal.CalibrationWarning, match="clusters") as caught:
            function(y, p)
        assert caught[0].filename == __file__
    truecal.estimate(y, p, clusters=who, confidence_level=0.95)  # warnings are errors here
    truecal.calibration_error(y, p, estimator="em_sweep")  # claims nothing about independent rows


def test_decisions_on_doubled_rows_carry_the_warning():
    """A join doubled the rows of a calibrated model, which then seems to have a large error."""
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, 1000)
    y, p = np.tile(rng.random(1000) < p, 2), np.tile(p, 2)
    for decide in (
        lambda: truecal.calibration_test(y, p, at_most=0.1),
        lambda: truecal.calibration_test(y, p, method="em_sweep", n_resamples=19, rng=0),
        lambda: truecal.compare(y, p, p**1.1),
        lambda: truecal.compare(y, {"a": p, "b": p**1.1, "c": p**1.2}),
    ):
        with pytest.warns(truecal.CalibrationWarning, match="the error is estimated too large") as caught:
            result = decide()
        assert [one.filename for one in caught] == [__file__]
        assert "1,000 scores occur 2 times each" in result.notes[-1]
        assert "(correlation 1.00)" in result.notes[-1]
        assert result.to_dict()["notes"][-1] == result.notes[-1]
        assert f"Note: {result.notes[-1]}" in str(result)


def test_the_correlation_is_at_most_one():
    """Labels that contradict their scores are farther from the curve than its variance allows."""
    rng = np.random.default_rng(0)
    p = np.repeat(np.concatenate([rng.uniform(0.04, 0.06, 530), rng.uniform(0.94, 0.96, 470)]), 2)
    assert "(correlation 1.00)" in suspected_dependence(as_sample(p < 0.5, p))


def ordinary(kind, rng):
    """Independent rows of models whose scores repeat."""
    n = 4000
    if kind == "five copies of a score, independent labels":
        p = np.repeat(rng.beta(3, 2, n // 5), 5)
    elif kind == "decimals":
        p = rng.beta(3, 2, n).round(int(rng.integers(1, 4)))
    elif kind == "votes":
        p = rng.binomial(64, rng.beta(3, 2, n)) / 64
    elif kind == "leaves":  # of a tree that was fitted to other rows
        leaf, chance = rng.integers(0, 100, n), rng.beta(3, 2, 100)
        fitted = rng.binomial(40, chance) / 40 + rng.uniform(0, 1e-3, 100)
        return rng.random(n) < chance[leaf], fitted.clip(0, 1)[leaf]
    else:  # confidence in words, far from calibrated
        level = rng.integers(0, 40, n)
        return rng.random(n) < rng.random(40)[level], (level + 0.5) / 40
    return rng.random(n) < p**1.5, p


@pytest.mark.parametrize(
    "kind", ["five copies of a score, independent labels", "decimals", "votes", "leaves", "words"]
)
def test_ordinary_data_give_no_warning(kind):
    rng = np.random.default_rng(0)
    assert not any(suspected_dependence(as_sample(*ordinary(kind, rng))) for _ in range(100))


def test_one_cluster_says_nothing_of_others():
    """It used to be worth 6,400 independent rows of 80."""
    y, p, _ = questions(40, 2, np.random.default_rng(0))
    one = describe_clusters(y, p, clusters=np.zeros(80))
    assert np.isnan([one.icc, one.design_effect, one.effective_size, one.standard_error]).all()
    for clusters in (np.zeros(80), np.arange(80) % 2, np.arange(80) % 5):
        text = str(describe_clusters(y, p, clusters=clusters))
        assert text.endswith("too few to tell how much clusters differ")
        assert "independent rows" not in text
