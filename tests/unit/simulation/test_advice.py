import json

import numpy as np
import pytest

import truecal
from truecal.data import as_sample
from truecal.data.sample import Sample


@pytest.fixture(scope="module")
def sample():
    return as_sample(*truecal.paper.population("resnet110_c100").sample(1000, rng=0))


@pytest.fixture(scope="module")
def advice(sample):
    return truecal.advise(sample, estimators=["em_sweep", "ew_bin", "em_bin"], rng=0)


def test_the_smallest_error_is_recommended(advice):
    assert advice.recommended == "em_bin"
    (best,) = (row for row in advice.rows if row.estimator == "em_bin")
    assert all(best.rmse <= row.rmse for row in advice.rows)
    assert (advice.value, advice.corrected) == (best.value, best.value - best.bias)


def test_values_are_those_of_the_data(sample, advice):
    for row in advice.rows:
        assert row.value == truecal.estimate(sample, estimator=row.estimator).value


def test_the_truth_is_that_of_the_fit(advice):
    assert advice.true_error == advice.fit.population.true_error(2)
    assert advice.true_error == pytest.approx(
        truecal.paper.population("resnet110_c100").true_error(), abs=0.06
    )


def test_a_fit_of_its_own_kind_is_reliable(advice):
    assert advice.reliable
    assert "No recommendation" not in str(advice)


def test_the_default_estimator_is_recommended_where_it_is_about_as_good(sample):
    advice = truecal.advise(sample, estimators=["multiscale", "em_bin", "ew_bin"], rng=0)
    rmse = {row.estimator: row.rmse for row in advice.rows}
    assert all(row.rmse_calibrated is None for row in advice.rows)  # an error of 20% is plain to see
    expected = "multiscale" if rmse["multiscale"] <= 1.1 * min(rmse.values()) else min(rmse, key=rmse.get)
    assert advice.recommended == expected


def test_an_estimator_that_is_far_off_on_calibrated_data_is_not_recommended():
    rng = np.random.default_rng(0)
    p = rng.random(600)
    y = (rng.random(600) < p**1.05).astype(int)
    advice = truecal.advise(y, p, estimators=["multiscale", "em_sweep", "em_bin"], rng=0)
    assert advice.recommended == "multiscale"
    assert all(row.rmse_calibrated > 0 for row in advice.rows)


def test_nothing_is_recommended_where_the_scores_do_not_fit():
    rng = np.random.default_rng(0)
    p = np.where(rng.random(3000) < 0.5, 0.3 + 0.01 * rng.random(3000), 0.8 + 0.01 * rng.random(3000))
    sample = as_sample((rng.random(3000) < p).astype(int), p)
    advice = truecal.advise(sample, estimators=["em_bin"], rng=0)
    assert not advice.reliable
    assert advice.recommended is None
    assert advice.rows == ()
    assert "differ from the fitted Beta distribution" in advice.doubts[0]
    assert str(advice).startswith("No recommendation")
    json.dumps(advice.to_dict(), allow_nan=False)


def test_nothing_is_recommended_where_the_curve_does_not_fit():
    rng = np.random.default_rng(1)
    p = rng.random(4000)
    y = rng.random(4000) < np.clip(p + 0.1 * np.sin(20 * np.pi * p), 0, 1)
    advice = truecal.advise(y.astype(int), p, estimators=["em_bin"], rng=0)
    assert advice.recommended is None
    assert "labels contradict the fitted curve" in advice.doubts[0]


def test_other_estimands_are_refused(sample):
    with pytest.raises(ValueError, match="another quantity"):
        truecal.advise(sample, estimators=["ks"])


def test_it_is_plain_and_printable(advice):
    content = advice.to_dict()
    assert content["schema_version"] == 1
    json.dumps(content)
    assert f"Recommended: {advice.recommended}" in str(advice)


def test_the_seed_fixes_it(sample, advice):
    again = truecal.advise(sample, estimators=["em_sweep", "ew_bin", "em_bin"], rng=0)
    assert again.rows == advice.rows


@pytest.mark.slow
def test_a_billion_rows_are_simulated_with_a_million():
    population = truecal.paper.population("resnet152_imgnet")
    sample = as_sample(*population.sample(1000, rng=1))
    positives = np.random.default_rng(0).binomial(10**6, population.curve(sample.score)).astype(float)
    large = Sample(score=sample.score, count=sample.count * 1e6, positives=positives * sample.count)
    advice = truecal.advise(large, estimators=["ew_bin"], rng=0)
    assert (advice.n, advice.repeats) == (10**6, 10)
