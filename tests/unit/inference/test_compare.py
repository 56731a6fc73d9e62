import numpy as np
import pytest

import truecal
from truecal.inference.compare import compare

POPULATION = truecal.paper.population("resnet110_c100")


def test_a_recalibrated_model_is_better():
    y, p = POPULATION.sample(3000, rng=0)
    comparison = compare(y, p, POPULATION.curve(p), names=("raw", "mended"))
    assert comparison.difference > 0.1
    assert comparison.interval.low > 0
    assert comparison.pvalue < 0.001
    assert comparison.verdict.startswith("mended is better calibrated")
    assert comparison.paired
    assert comparison.to_dict()["pvalue"] == comparison.pvalue


def test_a_model_does_not_differ_from_itself():
    y, p = POPULATION.sample(1000, rng=0)
    comparison = compare(y, p, p)
    assert comparison.difference == 0
    assert 0 in comparison.interval
    assert comparison.pvalue == 1
    assert comparison.verdict.startswith("No difference")


def test_exchanging_the_models_turns_the_sign():
    y, p = POPULATION.sample(2000, rng=1)
    q = POPULATION.curve(p)
    one, two = compare(y, p, q), compare(y, q, p)
    assert one.difference == -two.difference
    assert one.interval.low == pytest.approx(-two.interval.high)
    assert one.pvalue == pytest.approx(two.pvalue)


def test_pairing_narrows_the_interval_of_similar_models():
    y, p = POPULATION.sample(3000, rng=2)
    q = np.clip(p - 0.01, 0, 1)
    paired = compare(y, p, q)
    apart = compare(y, p, q, y_true_b=y)
    assert not apart.paired
    assert paired.interval.high - paired.interval.low < 0.5 * (apart.interval.high - apart.interval.low)


def test_models_on_different_rows():
    y1, p1 = POPULATION.sample(2000, rng=3)
    y2, p2 = POPULATION.calibrated().sample(500, rng=4)
    comparison = compare(y1, p1, p2, y_true_b=y2)
    assert comparison.n == (2000, 500)
    assert comparison.interval.low > 0


def test_the_p_value_is_where_the_interval_touches_zero():
    y, p = truecal.paper.population("resnet152_imgnet").sample(2000, rng=5)
    q = 0.85 * p + 0.1
    comparison = compare(y, p, q)
    assert 0 < comparison.pvalue < 1
    for factor, held in ((0.98, True), (1.02, False)):
        level = 1 - min(comparison.pvalue * factor, 0.999)
        assert (0 in compare(y, p, q, confidence_level=level).interval) is held


def test_multiclass_top_label_and_strings():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([0.6] * 3, 1500)
    labels = np.array(["a", "b", "c"])[[rng.choice(3, p=row) for row in proba]]
    sharp = proba**3 / (proba**3).sum(axis=1, keepdims=True)
    comparison = compare(labels, sharp, proba, labels=["a", "b", "c"])
    assert comparison.difference > 0
    assert comparison.pvalue < 0.05


@pytest.mark.parametrize(
    ("options", "says"),
    [({"norm": 3}, "norm must be 1 or 2"), ({"confidence_level": 1}, "confidence_level must be")],
)
def test_bad_parameters(options, says):
    y, p = POPULATION.sample(50, rng=0)
    with pytest.raises(ValueError, match=says):
        compare(y, p, p, **options)


def test_classwise_is_refused():
    with pytest.raises(ValueError, match="one class at a time"):
        compare([0, 1, 2], np.eye(3), np.eye(3), multiclass="classwise")
