"""The multiscale test: weights, clusters, cells, classes."""

import numpy as np
import pytest

from support.draws import drawn, rounded, top
from truecal import Sample
from truecal.data.cells import Cells
from truecal.exceptions import CalibrationWarning, InputError
from truecal.inference.calibration_test import calibration_test


def test_reversed_scores_are_found_and_the_slope_is_named():
    y, p = drawn(400)
    result = calibration_test(y, 1 - p, n_resamples=99, rng=0)
    assert result.pvalue == 0.01
    assert result.component == "the slope"


def test_local_errors_are_named_with_their_place():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = rng.random(20_000) < np.where((p > 0.61) & (p < 0.63), p - 0.5, p)
    result = calibration_test(y.astype(int), p, n_resamples=99, rng=0)
    assert result.pvalue == 0.01
    place = float(result.component.removeprefix("local deviations around "))
    assert place == pytest.approx(0.62, abs=0.02)


def test_sampling_weights_neither_multiply_rows_nor_depend_on_scale_or_order():
    rng = np.random.default_rng(0)
    y, p = rounded(400)
    weight = rng.lognormal(0, 1, 400)
    one = calibration_test(y, p, sample_weight=weight, n_resamples=99, rng=3)
    order = rng.permutation(400)
    two = calibration_test(y[order], p[order], sample_weight=5 * weight[order], n_resamples=99, rng=3)
    np.testing.assert_allclose(one.null, two.null)
    assert one.pvalue == two.pvalue
    plain = calibration_test(y, p, n_resamples=99, rng=3)
    same = calibration_test(y, p, sample_weight=np.full(400, 7.0), n_resamples=99, rng=3)
    assert same.statistic == pytest.approx(plain.statistic)


def test_a_sample_with_weights_is_tested_as_its_rows_are():
    rng = np.random.default_rng(0)
    y, p = drawn(300)
    weight = rng.lognormal(0, 1, 300)
    sample = Sample.from_predictions(y, p, sample_weight=weight)
    one = calibration_test(sample, n_resamples=99, rng=3)
    assert one.statistic == pytest.approx(
        calibration_test(y, p, sample_weight=weight, n_resamples=9).statistic
    )


def test_clusters():
    rng = np.random.default_rng(1)
    p = np.repeat(rng.beta(3, 2, 100), 10)
    y = np.repeat(rng.random(100) < p[::10], 10).astype(int)  # all rows of a cluster have one label
    who = np.repeat(np.arange(100), 10)
    with pytest.warns(CalibrationWarning, match="clusters"):
        alone = calibration_test(y, p, rng=0)
    together = calibration_test(y, p, clusters=who, rng=0)
    assert alone.pvalue < 0.05 < together.pvalue
    assert together.spiegelhalter.n_clusters == 100
    few = calibration_test(y, p, clusters=np.arange(1000) // 200, rng=0)
    assert few.n_resamples == 15
    assert (few.pvalue, few.tested, few.why_not_tested) == (
        1,
        False,
        "Not tested: with 5 clusters no p-value can be below 1/16.",
    )
    eight = calibration_test(1 - y, p, clusters=np.arange(1000) % 8, rng=0)
    assert "only 8 clusters: the smallest possible p-value is 1/128" in eight.notes[0]
    with pytest.raises(
        InputError, match=r"method 'em_bin' cannot be tested by .* with clusters.*'ks' or 'kuiper'"
    ):
        calibration_test(y, p, clusters=who, method="em_bin")


def test_clusters_of_several_classes():
    y, proba = top(300)
    result = calibration_test(
        y, proba, multiclass="classwise", clusters=np.arange(300) // 3, n_resamples=99, rng=0
    )
    assert len(result.classes) == 4
    assert 0.01 <= result.pvalue <= 1


def test_a_billion_rows_in_cells():
    rng = np.random.default_rng(0)
    score = np.sort(rng.random(2000))
    count = np.full(2000, 500_000.0)
    good = Sample(score=score, count=count, positives=rng.binomial(500_000, score).astype(float))
    bad = good.with_positives(rng.binomial(500_000, score**1.01).astype(float))
    assert calibration_test(Cells.from_sample(good), n_resamples=99, rng=0).pvalue > 0.01
    result = calibration_test(Cells.from_sample(bad), n_resamples=99, rng=0)
    assert result.n == 1e9
    assert result.pvalue == 0.01


def test_cells_of_different_scores_are_reported():
    y, p = drawn(50_000)
    cells = Cells.from_sample(Sample.from_predictions(y, p))
    result = calibration_test(cells, n_resamples=19, rng=0)
    assert "cells of scores, with a variance too large by less than 0.001%" in result.notes[0]
    y, p = rounded()
    exact = calibration_test(Cells.from_sample(Sample.from_predictions(y, p)), n_resamples=19, rng=0)
    assert exact.notes == ()


def test_classwise_has_a_joint_null():
    y, proba = top(200)
    result = calibration_test(y, proba, multiclass="classwise", n_resamples=39, rng=0)
    assert len(result.classes) == 4
    np.testing.assert_allclose(result.null, np.mean([part.null for part in result.classes], axis=0))
    assert result.statistic == pytest.approx(np.mean([part.statistic for part in result.classes]))
    assert result.adjusted_pvalue is None
    assert "of 4 classes have an adjusted p-value of at most 0.05" in str(result)
    for part in result.classes:
        assert part.adjusted_pvalue >= part.pvalue - 1e-12


def test_many_classes_do_not_need_many_resamples():
    # Holm's smallest adjusted p-value would be 60 / 200.
    y, proba = top(3000, n_classes=60, power=3.0)
    result = calibration_test(y, proba, multiclass="classwise", n_resamples=199, rng=0)
    assert result.pvalue == 0.005
    assert min(part.adjusted_pvalue for part in result.classes) == 0.005


@pytest.mark.parametrize("score", [0.02, 0.25, 0.5, 0.9])
def test_a_constant_score_can_only_have_a_wrong_level(score):
    result = calibration_test(np.arange(400) % 10 < 3, np.full(400, score), n_resamples=99, rng=0)
    assert result.component == "a level shift"
