"""What is asked of predictions: samples, shares, sizes, and how estimates combine."""

import numpy as np
import pytest

import truecal
from truecal.data import Question, ask
from truecal.exceptions import InputError
from truecal.results import Estimate


@pytest.fixture
def predictions():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1.0, 1.0, 0.5], 60)
    return rng.integers(0, 3, 60), proba


def test_one_column_is_a_single_question():
    question = ask([0, 1, 1], [0.2, 0.6, 0.9])
    assert question.single
    assert question.target == "P(y = 1)"
    assert question.share.tolist() == [1.0]
    assert question.combine([Estimate(0.3)]).value == 0.3


def test_classes_have_the_same_rows_and_equal_shares(predictions):
    question = ask(*predictions, multiclass="classwise", sample_weight=np.arange(60))
    assert len(question.samples) == 3
    assert not question.apart
    assert question.share == pytest.approx([1 / 3] * 3)
    assert len(question.weight) == 59  # each row once, without the one of weight 0
    assert question.proba.shape == (59, 3)
    assert question.size_fields["n"] == pytest.approx(59 * 30)


def test_predicted_classes_have_rows_of_their_own_and_count_by_them(predictions):
    y, proba = predictions
    question = ask(y, proba, multiclass="top_by_class", clusters=np.arange(60) // 2)
    top = np.bincount(proba.argmax(axis=1)) / 60
    assert question.apart
    assert question.share == pytest.approx(top)
    assert question.size_fields == {"n": 60, "effective_size": None, "n_clusters": 30}
    assert len(question.cluster) == 60
    assert sum(part.samples[0].n for part in question.of_each()) == 60


def test_targets_of_predicted_classes_name_the_class():
    question = ask([0, 1], [[0.7, 0.3], [0.2, 0.8]], multiclass="top_by_class")
    assert [sample.target for sample in question.samples] == [
        "P(y = 0) where it is the top label",
        "P(y = 1) where it is the top label",
    ]


def test_a_sample_has_no_rows():
    sample = truecal.Sample.from_predictions([0, 1], [0.2, 0.7])
    question = ask(sample)
    assert question.rows is None
    assert question.weight is None
    with pytest.raises(InputError, match="one column"):
        ask(sample, multiclass="top_by_class")


def test_estimates_combine_by_share():
    parts = [truecal.Sample.from_predictions([0] * n, np.linspace(0.1, 0.4, n)) for n in (3, 1)]
    whole = Question(tuple(parts), apart=True).combine([Estimate(0.1, norm=1.0), Estimate(0.5, norm=1.0)])
    assert whole.value == pytest.approx(0.2)
    assert whole.n == 4
