from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from support.selections import FAST, NO_OPTIONS, assert_alike
from truecal.exceptions import CalibrationWarning
from truecal.recalibration._fit_rows import MOST_ROWS, FitRows
from truecal.recalibration.selection import select_recalibrator


@pytest.mark.parametrize("multiclass", [None, "top", "classwise"])
def test_two_columns_are_the_second(bad, multiclass):
    y, p = bad
    one = select_recalibrator(y, p, multiclass=multiclass, **FAST)
    two = select_recalibrator(y, np.column_stack([1 - p, p]), multiclass=multiclass, **FAST)
    assert_alike(one, two)
    assert two.transform([[0.3, 0.7]])[0, 1] == one.transform([0.7])[0]


def test_logits_are_never_guessed(bad):
    y, p = bad
    by_proba = select_recalibrator(y, p, **FAST)
    by_logits = select_recalibrator(y, logit(p), input="logits", **FAST)
    assert by_logits.chosen == by_proba.chosen
    np.testing.assert_allclose(by_logits.transform(logit(p)), by_proba.transform(p), atol=1e-6)
    with pytest.raises(ValueError, match="set input='logits'"):
        select_recalibrator(y, logit(p))


def test_labels_of_other_kinds(bad, classes):
    y, p = bad
    plain = select_recalibrator(y, p, **FAST)
    words = select_recalibrator(np.where(y == 1, "a", "b"), p, pos_label="a", **FAST)
    assert words.to_dict()["candidates"] == plain.to_dict()["candidates"]
    assert words.criterion == "log_loss of P(y = 'a')"
    label, logits = classes
    numbers = select_recalibrator(label, logits, input="logits", **FAST)
    names = np.array(["d", "b", "a", "c"])
    named = select_recalibrator(names[label], logits, labels=names, input="logits", **FAST)
    assert named.to_dict()["candidates"] == numbers.to_dict()["candidates"]


def test_names_of_unnamed_columns_are_questioned(classes):
    """scikit-learn's classifiers sort their classes, other models need not."""
    label, logits = classes
    names = np.array(["d", "b", "a", "c"])
    with pytest.warns(CalibrationWarning, match="in the order of the sorted labels: 'a', 'b', 'c', 'd'"):
        select_recalibrator(names[label], logits, input="logits", **FAST)


def read(y, p, **reading):
    return FitRows.read(y, p, "probabilities", **{**NO_OPTIONS, **reading})


def test_all_rows_of_a_large_sample_take_part():
    rng = np.random.default_rng(2)
    n = 4 * MOST_ROWS
    p = expit(rng.normal(0, 12, n))  # many scores are extreme, and some failures cost a log loss above 20
    rows = read((rng.random(n) < p**0.2).astype(int), p)
    blocks, about = rows.compared(rng)
    assert about == f"40,000 rows, with scores merged into {len(np.unique(blocks.scores.values)):,} blocks"
    assert blocks.n == rows.n
    assert blocks.scores.floor == rows.scores.floor
    losses = [
        np.average(
            -np.log(np.where(one.label == 1, q := one.scores.probabilities, 1 - q)), weights=one.weight
        )
        for one in (rows, blocks)
    ]
    assert losses[1] == pytest.approx(losses[0], abs=2e-4)


def test_a_few_scores_of_many_rows_are_not_merged():
    rng = np.random.default_rng(4)
    p = rng.random(3 * MOST_ROWS).round(2)
    rows, about = read((rng.random(len(p)) < p).astype(int), p).compared(rng)
    assert about == "30,000 rows"
    assert len(np.unique(rows.scores.values)) == len(np.unique(p))


def test_of_many_rows_in_clusters_some_are_drawn_without_replacement():
    rng = np.random.default_rng(5)
    n = 2 * MOST_ROWS
    p = rng.random(n)
    rows, about = read((rng.random(n) < p).astype(int), p, clusters=np.arange(n) // 4).compared(rng)
    assert about == "10,000 of the 20,000 rows"
    assert len(np.unique(rows.scores.values)) == len(rows.label) == MOST_ROWS
    assert set(np.bincount(rows.cluster)) == {4}
    assert rows.label.mean() == pytest.approx(0.5, abs=4 * 0.5 / MOST_ROWS**0.5)


@pytest.mark.parametrize("clustered", [False, True])
def test_of_many_rows_with_several_classes_some_are_drawn(clustered):
    rng = np.random.default_rng(6)
    n = MOST_ROWS + 500
    proba, label = rng.dirichlet([1, 1, 1], n), rng.integers(0, 3, n)
    reading = {"clusters": np.arange(n) // 300} if clustered else {}
    rows, about = read(label, proba, **reading).compared(rng)
    size = len(rows.label)
    assert MOST_ROWS - 300 <= size <= MOST_ROWS if clustered else size == MOST_ROWS
    assert about == f"{size:,} of the 10,500 rows"


def test_one_huge_cluster_takes_part_whole():
    rng = np.random.default_rng(7)
    n = MOST_ROWS + 500
    p = rng.random(n)
    rows, _ = read((rng.random(n) < p).astype(int), p, clusters=np.zeros(n)).compared(rng)
    assert len(rows.label) == n


def test_counts_are_taken_apart():
    y, p, times = [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], [2, 1, 0, 3]
    rows, about = read(y, p, sample_weight=times, weighting="counts").compared(np.random.default_rng(0))
    assert rows.weight is None
    assert rows.scores.values.tolist() == [0.1, 0.1, 0.2, 0.4, 0.4, 0.4]
    assert about == "6 rows"
