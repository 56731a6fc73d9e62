"""Labels of which a row can have any number: each its own question, with joint statements."""

import numpy as np
import pandas as pd
import pytest

import truecal

NAMES = ["cat", "dog", "cow"]


def labelled(n=800, power=(1.0, 1.0, 1.4), rng=0):
    rng = np.random.default_rng(rng)
    proba = rng.beta(2, 3, (n, 3))
    return (rng.random((n, 3)) < proba**power).astype(int), proba


def test_each_label_is_that_of_its_column():
    truth, proba = labelled()
    whole = truecal.estimate(truth, proba, multiclass="multilabel", labels=NAMES, confidence_level=0.95)
    alone = [truecal.estimate(truth[:, k], proba[:, k], confidence_level=0.95) for k in range(3)]
    assert [one.value for one in whole.classes] == [one.value for one in alone]
    assert whole.value == pytest.approx(np.sqrt(np.mean([one.value**2 for one in alone])))
    assert [one.target for one in whole.classes] == [f"label {name!r}" for name in NAMES]
    assert whole.target == "mean over 3 labels"
    assert whole.value in whole.interval
    frame = truecal.estimate(truth, pd.DataFrame(proba, columns=NAMES), multiclass="multilabel")
    assert [one.target for one in frame.classes] == [one.target for one in whole.classes]


@pytest.mark.parametrize("method", ["multiscale", "ks"])
def test_tests_are_adjusted_by_holm(method):
    truth, proba = labelled()
    whole = truecal.calibration_test(truth, proba, multiclass="multilabel", method=method, rng=0)
    adjusted = [one.adjusted_pvalue for one in whole.classes]
    assert whole.pvalue == min(adjusted) <= 0.01
    assert np.argmin(adjusted) == 2
    assert all(one.adjusted_pvalue >= one.pvalue for one in whole.classes)
    alone = truecal.calibration_test(truth[:, 0], proba[:, 0], method=method, rng=0)
    assert whole.classes[0].pvalue == pytest.approx(alone.pvalue, abs=0.06)


def test_level_and_coverage_of_labels_that_always_agree():
    rejected = covered = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        score = rng.beta(2, 3, 400)
        proba = np.column_stack([score] * 4)
        truth = (rng.random(400) < score)[:, np.newaxis] & np.ones(4, dtype=bool)
        result = truecal.calibration_test(truth, proba, multiclass="multilabel", n_resamples=199, rng=seed)
        rejected += result.pvalue <= 0.05
        covered += truecal.confidence_interval(truth, proba, multiclass="multilabel").low == 0
    assert rejected <= 6
    assert covered >= 34


def test_the_upper_limit_allows_for_labels_that_agree():
    score = np.random.default_rng(0).beta(2, 3, 1000)
    proba, rng = np.column_stack([score] * 6), np.random.default_rng(1)
    same = (rng.random(1000) < score)[:, np.newaxis] & np.ones(6, dtype=bool)
    each = rng.random((1000, 6)) < proba
    high = [truecal.confidence_interval(y, proba, multiclass="multilabel").high for y in (same, each)]
    assert high[0] > high[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y, p: (y[:, :2], p), "both have a column for each label"),
        (lambda y, p: (y[:, 0], p[:, 0]), "both have a column for each label"),
        (lambda y, p: (y, p + (np.arange(3) == 1)), "y_proba, label 1, has"),
        (lambda y, p: (y + 1, p), "y_true, label 0, "),
    ],
)
def test_faults_name_the_label(change, message):
    with pytest.raises(truecal.InputError, match=message):
        truecal.estimate(*change(*labelled(50)), multiclass="multilabel")


def test_what_has_no_meaning_is_refused():
    truth, proba = labelled(50)
    with pytest.raises(truecal.InputError, match="multilabel"):
        truecal.compare(truth, proba, proba, multiclass="multilabel")
    with pytest.raises(truecal.InputError, match="needs 0 or 1 for each label"):
        truecal.estimate(truth, proba, multiclass="multilabel", pos_label=1)
