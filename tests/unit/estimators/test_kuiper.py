"""kuiper against every interval of scores, its limit against known moments, and outside numbers."""

import numpy as np
import pytest
from scipy.special import ndtr

import truecal
from truecal.estimators.cumulative import largest_value_exceeds, range_exceeds


@pytest.mark.parametrize("seed", range(9))
def test_is_the_largest_difference_over_intervals(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    p = np.round(rng.random(n), [17, 1, 2][seed % 3])
    y = rng.random(n) < p**2
    ends = np.unique(p)
    totals = [np.sum((p - y)[(p >= a) & (p <= b)]) for a in ends for b in ends if a <= b]
    found = truecal.calibration_error(y, p, estimator="kuiper")
    assert found == pytest.approx(np.abs(totals).max() / n, abs=1e-14)


def test_it_is_between_ks_and_twice_ks():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = rng.random(50)
        y = rng.random(50) < 0.5
        ks, kuiper = (truecal.calibration_error(y, p, estimator=name) for name in ("ks", "kuiper"))
        assert ks - 1e-15 <= kuiper <= 2 * ks + 1e-15


def test_outside_numbers(shared):
    """Kuiper, KS and Kuiper / sigma, computed independently for the review of 2026-11-16."""
    expected = {"EMOS": (0.07179, 0.06115, 1.418), "ENS": (0.21530, 0.21070, 6.409)}
    for name, (kuiper, ks, ratio) in expected.items():
        file = np.load(shared / "data" / f"weather_niamey_{name}.npz")
        sample = truecal.Sample.from_predictions(file["labels"], file["scores"])
        assert truecal.calibration_error(sample, estimator="kuiper") == pytest.approx(kuiper, abs=1e-5)
        assert truecal.calibration_error(sample, estimator="ks") == pytest.approx(ks, abs=1e-5)
        test = truecal.calibration_test(sample, method="kuiper", n_resamples=9, rng=0)
        assert test.asymptotic_pvalue == pytest.approx(range_exceeds(ratio), abs=1e-3)


def test_the_range_has_the_moments_of_feller():
    # E R = sqrt(8 / pi) and E R^2 = 4 log 2 (Feller 1951), from the survival function by parts.
    x = np.linspace(0, 12, 12_001)
    values = np.array([range_exceeds(one) for one in x])
    assert np.trapezoid(values, x) == pytest.approx(np.sqrt(8 / np.pi), abs=1e-6)
    assert np.trapezoid(2 * x * values, x) == pytest.approx(4 * np.log(2), abs=1e-6)
    assert (np.diff(values) <= 1e-12).all()


def test_the_largest_value_agrees_with_the_reflection_principle():
    # The other series of the same distribution: 4 sum (-1)^k P(N > (2k + 1) x).
    x = np.linspace(0.3, 9, 300)
    k = np.arange(60)[:, np.newaxis]
    expected = np.sum(4 * (-1.0) ** k * ndtr(-(2 * k + 1) * x), axis=0)
    found = [largest_value_exceeds(one) for one in x]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)
    assert largest_value_exceeds(0.0) == 1


@pytest.mark.parametrize("name", ["ks", "kuiper"])
def test_the_test_has_both_pvalues(name):
    y, p = truecal.paper.population("resnet152_imgnet").sample(400, rng=1)
    result = truecal.calibration_test(y, p, method=name, n_resamples=499, rng=0)
    assert result.asymptotic_pvalue == pytest.approx(result.pvalue, abs=0.05)
    assert "Asymptotic p" in str(result)
    assert result.to_dict()["asymptotic_pvalue"] == result.asymptotic_pvalue
    assert truecal.calibration_test(y, p, n_resamples=99, rng=0).asymptotic_pvalue is None


@pytest.mark.parametrize(("y", "pvalue"), [([0, 1], 1), ([1, 0], 0)])
def test_certain_scores(y, pvalue):
    result = truecal.calibration_test(y, [0.0, 1.0], method="kuiper", n_resamples=9, rng=0)
    assert result.asymptotic_pvalue == pvalue


@pytest.mark.parametrize("name", ["ks", "kuiper"])
def test_size_of_the_closed_form(name):
    rng = np.random.default_rng(3)
    rejected = 0
    for _ in range(400):
        p = rng.random(500)
        result = truecal.calibration_test(rng.random(500) < p, p, method=name, n_resamples=1, rng=0)
        rejected += result.asymptotic_pvalue <= 0.05
    assert abs(rejected / 400 - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 400)
