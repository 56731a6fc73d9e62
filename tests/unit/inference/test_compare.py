import numpy as np
import pytest

import truecal
from truecal.inference.compare import compare

POPULATION = truecal.paper.population("resnet110_c100")


def test_a_recalibrated_model_is_better():
    y, p = POPULATION.sample(3000, rng=0)
    comparison = compare(y, p, POPULATION.curve(p), names=("raw", "recalibrated"))
    assert comparison.difference > 0.1
    assert comparison.interval.low > 0
    assert comparison.pvalue < 0.001
    assert comparison.verdict.startswith("recalibrated is better calibrated")
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


def test_the_winners_number_comes_first():
    y, p = POPULATION.sample(3000, rng=0)
    q = POPULATION.curve(p)
    for comparison in (compare(y, p, q, names=("raw", "new")), compare(y, q, p, names=("new", "raw"))):
        winner = comparison.errors[comparison.names.index("new")]
        low, high = sorted(map(abs, (comparison.interval.low, comparison.interval.high)))
        assert comparison.verdict.startswith(f"new is better calibrated: {winner:.4f} against")
        assert f"smaller by {low:.4f} to {high:.4f} (95%)" in comparison.verdict
        assert comparison.verdict.endswith("p < 0.001.")


def test_a_constant_that_wins_is_called_what_it_is():
    y, p = POPULATION.sample(4000, rng=1)
    comparison = compare(y, {"model": p, "constant": np.full(len(p), y.mean())})
    assert comparison.names == ("model", "constant")
    assert comparison.verdict.startswith("constant is better calibrated")
    assert "hardly separates the outcomes (C statistic 0.50" in comparison.verdict


def test_several_models_are_ranked_and_those_that_cannot_be_separated_are_named():
    rng = np.random.default_rng(2)
    mu = rng.random(4000)
    y = (rng.random(4000) < mu).astype(int)
    models = {"far": mu**2, "good": mu, "near": 0.998 * mu + 0.001, "middle": mu**1.4}
    ranking = compare(y, models)
    assert [model.name for model in ranking.models][2:] == ["middle", "far"]
    assert len(ranking.pairs) == 6
    assert {model.name for model in ranking.models if model.not_separated_from_best} == {"good", "near"}
    assert "cannot separate" in ranking.verdict
    for pair in ranking.pairs:
        alone = compare(y, models[pair.names[0]], models[pair.names[1]])
        assert pair.pvalue == alone.pvalue <= pair.adjusted_pvalue <= 6 * alone.pvalue
        assert pair.interval.high - pair.interval.low >= alone.interval.high - alone.interval.low
    assert set(ranking.to_dict()) == {
        "schema_version",
        "models",
        "pairs",
        "confidence_level",
        "notes",
        "verdict",
    }


@pytest.mark.slow
def test_equal_models_are_rarely_separated_by_a_ranking():
    """60 data sets with three models of equal error: the family-wise error is at most the level."""
    rng, wrong = np.random.default_rng(3), 0
    for _ in range(60):
        mu = rng.random(600)
        y = (rng.random(600) < mu).astype(int)
        ranking = compare(y, {"a": mu**1.3, "b": 1 - (1 - mu) ** 1.3, "c": mu[::-1] ** 0 * mu**1.3})
        wrong += any(pair.separated for pair in ranking.pairs)
    assert wrong <= 8


def test_two_samples_are_different_rows():
    y1, p1 = POPULATION.sample(2000, rng=3)
    y2, p2 = POPULATION.calibrated().sample(500, rng=4)
    samples = (truecal.Sample.from_predictions(y1, p1), truecal.Sample.from_predictions(y2, p2))
    assert compare(*samples) == compare(y1, p1, p2, y_true_b=y2)
    with pytest.raises(truecal.InputError, match="Sample of the second"):
        compare(samples[0], p2)
    with pytest.raises(truecal.InputError, match="clusters"):
        compare(*samples, clusters=[1])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([0, 1], [0.2, 0.8]), "second model"),
        (([0, 1], {"a": [0.2, 0.8]}), "at least two"),
        (([0, 1], {"a": [0.2, 0.8], "b": [0.1, 0.9]}, [0.1, 0.9]), "beside a dict"),
    ],
)
def test_missing_models(arguments, says):
    with pytest.raises(truecal.InputError, match=says):
        compare(*arguments)


def test_counts_are_rows_that_occur_so_often():
    rng = np.random.default_rng(4)
    p = np.round(rng.random(400), 2)
    other = np.round(np.clip(p + rng.normal(0, 0.1, 400), 0, 1), 2)
    y, count = (rng.random(400) < p).astype(int), rng.integers(1, 4, 400)
    one = truecal.compare(y, {"a": p, "b": other}, sample_weight=count, weighting="counts")
    two = truecal.compare(y.repeat(count), {"a": p.repeat(count), "b": other.repeat(count)})
    assert (one.interval.low, one.interval.high, one.pvalue) == pytest.approx(
        (two.interval.low, two.interval.high, two.pvalue), rel=1e-9
    )


def test_a_ranking_says_if_the_winner_is_a_constant():
    data = truecal.datasets.load("flights")
    constant = np.full(len(data.y_true), np.mean(data.y_true))
    ranking = truecal.compare(data.y_true, {**data.predictions, "constant": constant})
    assert ranking.models[0].name == "constant"
    assert "hardly separates the outcomes (C statistic 0.50" in ranking.verdict


@pytest.mark.parametrize("n", [20, 50])
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("scores", [(0.3, 0.2), (0.9, 0.5), (0.05, 0.02)])
def test_rows_of_one_label_show_no_more_than_their_number(n, label, scores):
    y = np.full(n, label)
    found = truecal.compare(y, {name: np.full(n, score) for name, score in zip("ab", scores, strict=True)})
    assert (found.pvalue <= 0.05) == (0 not in found.interval)
    if (n, label, scores) == (
        20,
        0,
        (0.3, 0.2),
    ):  # both err alike at a rate of 0.25, where P(no event) = 0.003
        assert found.pvalue > 0.003
