"""Rows counted in equal-width bins give what sorted rows give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import truecal
from truecal.data import read_rows
from truecal.data.width_bins import WidthBins, add_exactly, rounded, width_edges
from truecal.estimators._registry import list_estimators

COUNTED = [spec.name for spec in list_estimators() if spec.counting]


@pytest.fixture
def counted_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count also the few rows that would be sorted sooner."""
    monkeypatch.setattr("truecal.data.width_bins._FEWEST_SCORES", 0)


def scores_on_edges(n_bins: int, dtype: Any, rng: np.random.Generator) -> Any:
    """Return scores on the edges, one step below and above them, 0, 1, and anywhere."""
    edges = (np.arange(n_bins + 1) / n_bins).astype(dtype)
    near = [
        edges,
        np.nextafter(edges, dtype(0)),
        np.nextafter(edges, dtype(1)),
        rng.random(500).astype(dtype),
    ]
    return rng.permutation(np.concatenate([*near, near[-1][:50]]))


def test_the_estimators_that_are_counted() -> None:
    assert COUNTED == ["ew_bin", "ew_debias", "ew_label", "ew_mce"]


@pytest.mark.usefixtures("counted_always")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n_bins", [1, 2, 3, 7, 10, 15, 49, 100, 250])
@pytest.mark.parametrize("name", COUNTED)
def test_same_bins_and_same_value_as_sorted_rows(name: str, n_bins: int, dtype: Any) -> None:
    rng = np.random.default_rng(n_bins)
    score = scores_on_edges(n_bins, dtype, rng)
    label = rng.random(len(score)) < score
    (rows,) = read_rows(label, score)
    assert len(rows.group(n_bins=n_bins)) <= n_bins
    counted = truecal.estimate(label, score, estimator=name, n_bins=n_bins)
    ordered = truecal.estimate(truecal.Sample.from_predictions(label, score), estimator=name, n_bins=n_bins)
    assert counted.value == pytest.approx(ordered.value, abs=1e-15 if name != "ew_debias" else 1e-8)
    assert counted.bins is not None
    assert ordered.bins is not None
    for column in ("lower", "upper", "count", "mean_label"):
        np.testing.assert_array_equal(getattr(counted.bins, column), getattr(ordered.bins, column))
    np.testing.assert_allclose(counted.bins.mean_score, ordered.bins.mean_score, rtol=0, atol=4e-16)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n_bins", [*range(1, 60), 99, 255])
def test_a_score_belongs_to_the_last_bin_whose_edge_it_reaches(n_bins: int, dtype: Any) -> None:
    score = scores_on_edges(n_bins, dtype, np.random.default_rng(0))
    edges = (np.arange(n_bins) / n_bins).astype(dtype)
    index = WidthBins(n_bins, np.dtype(dtype)).index(score.astype(np.float64))
    np.testing.assert_array_equal(index, edges.searchsorted(score, "right") - 1)


def test_means_are_exact() -> None:
    rng = np.random.default_rng(2)
    score = np.concatenate(
        [rng.random(3000), rng.random(3000) * 1e-9, 1 - rng.random(3000) * 1e-9, [0.0, 1.0]]
    )
    counted = WidthBins(7, score.dtype).count(score > 0.5, score, "")
    for k, (one, rows) in enumerate(zip(counted.score, counted.count, strict=True)):
        inside = score[(score * 7).clip(0, 6).astype(int) == k]
        assert rows == len(inside)
        assert one == pytest.approx(math.fsum(inside) / len(inside), rel=2**-52, abs=2**-54)


def test_sums_are_the_same_for_every_order_of_the_rows() -> None:
    rng = np.random.default_rng(1)
    score = rng.random(100_000) ** 5
    label = rng.random(len(score)) < score
    order = rng.permutation(len(score))
    bins = WidthBins(15, score.dtype)
    one, other = bins.count(label, score, ""), bins.count(label[order], score[order], "")
    for column in ("score", "count", "positives"):
        np.testing.assert_array_equal(getattr(one, column), getattr(other, column))


def test_a_mean_stays_in_its_bin() -> None:
    # The mean of rows that all lie just below an edge would be rounded to the edge.
    score = np.full(3, np.nextafter(2 / 3, 0))
    counted = WidthBins(3, score.dtype).count(np.array([0, 1, 1]), score, "")
    assert counted.score.tolist() == [score[0]]
    assert (counted.count.tolist(), counted.positives.tolist()) == ([3.0], [2.0])


@pytest.mark.usefixtures("counted_always")
def test_rows_are_sorted_where_counting_would_not_be_exact() -> None:
    score = np.linspace(0, 1, 400).astype(np.float32)
    label = score > 0.5
    (rows,) = read_rows(label, score)
    (half,) = read_rows(label, score.astype(np.float16))
    (weighted,) = read_rows(label, score, sample_weight=np.ones(400))
    (clustered,) = read_rows(label, score, clusters=np.arange(400))
    assert width_edges(np.array([3]), 10, np.dtype(np.float32)) == np.float32(0.3)
    assert len(rows.group(n_bins=300)) == 300
    assert len(half.group(n_bins=300)) == len(half.group()) > 300
    for other in (rows.group(n_bins=401), weighted.group(n_bins=4)):
        assert len(other) == 400
    assert len(clustered.group(n_bins=4)) == 400


@pytest.mark.parametrize("norm", [1, 1.5, 2, 3, 7, 30, 300, 5000])
@pytest.mark.parametrize("shape", [(1.0, 1.0), (0.1, 0.2), (50.0, 5.0), (0.02, 8.0)])
def test_distances_of_rows_are_those_of_sorted_rows_for_every_order_and_norm(norm: float, shape: Any) -> None:
    rng = np.random.default_rng(3)
    score = rng.beta(*shape, 40_000)
    label = rng.random(len(score)) < score**2
    order = rng.permutation(len(score))
    options: dict[str, Any] = {"estimator": "ew_label", "norm": norm}
    counted = truecal.calibration_error(label, score, **options)
    ordered = truecal.calibration_error(truecal.Sample.from_predictions(label, score), **options)
    assert counted == pytest.approx(ordered, rel=1e-14)
    assert truecal.calibration_error(label[order], score[order], **options) == counted


@pytest.mark.usefixtures("counted_always")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", COUNTED)
def test_classes_are_counted_as_each_against_the_rest(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(4)
    proba = rng.dirichlet(np.full(7, 0.3), 500).astype(dtype)
    label = rng.integers(0, 6, 500)  # nobody is of the last class
    together = truecal.estimate(label, proba, estimator=name, multiclass="classwise")
    for k, one in enumerate(together.classes):
        alone = truecal.estimate(label == k, proba[:, k], estimator=name)
        assert (one.value, one.n, one.target) == (alone.value, 500, f"P(y = {k}) against the rest")
        assert one.bins is not None
        assert one.bins.to_dict() == alone.bins.to_dict()


def test_few_rows_are_sorted_sooner_than_counted() -> None:
    score = np.random.default_rng(5).random((8192, 2))
    for n, groups in ((8191, 8191), (8192, 15)):
        (rows,) = read_rows(score[:n, 1] < 0.5, score[:n, 0])
        assert len(rows.group(n_bins=15)) == groups


def test_values_are_rounded_to_multiples_of_a_power_of_two():
    assert rounded(np.array([0.0, 0.3, 0.874, 1.0]), 0.25).tolist() == [0.0, 0.25, 0.75, 1.0]


def test_sums_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    score, cell = rng.random(10_000), rng.integers(0, 5, 10_000)
    tables = []
    for order in (np.arange(10_000), rng.permutation(10_000)):
        tables.append(np.zeros((3, 5)))
        for part in np.array_split(order, 3):
            add_exactly(tables[-1], cell[part], score[part])
    assert (tables[0] == tables[1]).all()
    rows, coarse, fine = tables[0]
    assert rows.tolist() == np.bincount(cell).tolist()
    exact = [math.fsum(score[cell == k]) for k in range(5)]
    assert coarse + fine == pytest.approx(exact, rel=1e-15)


def exact(score: np.ndarray, level: np.ndarray, p: float) -> float:
    """Return the l_p distance from the level of each row, with sums that are rounded once."""
    power = np.abs(score - level) ** p
    return (math.fsum(power) / len(score)) ** (1 / p)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 40.0])
def test_distance_from_the_levels_of_bins(p: float) -> None:
    rng = np.random.default_rng(0)
    score = rng.random(5000)
    sample = WidthBins(10, np.dtype(np.float64)).count(rng.random(5000) < score, score, "the event")
    level = rng.random(10)
    (found,) = sample.distance(level, np.arange(10), p)
    assert found == pytest.approx(exact(score, level[np.floor(10 * score).astype(int)], p), rel=1e-13)


def test_distance_from_levels_of_several_groups() -> None:
    rng = np.random.default_rng(1)
    score = rng.random(2000)
    sample = WidthBins(12, np.dtype(np.float64)).count(rng.random(2000) < score, score, "the event")
    (found,) = sample.distance(np.array([0.2, 0.7]), np.array([0, 6]), 2.0)
    assert found == pytest.approx(exact(score, np.where(score < 0.5, 0.2, 0.7), 2.0), rel=1e-13)


@pytest.mark.parametrize("offset", [0.0, 1e-9, 1e-200])
def test_tiny_distances_are_taken_from_the_rows_themselves(offset: float) -> None:
    level = (np.arange(5) + 0.5) / 5
    score = np.repeat(level, 300) + offset
    sample = WidthBins(5, np.dtype(np.float64)).count(np.ones(1500, dtype=bool), score, "the event")
    (found,) = sample.distance(level, np.arange(5), 2.0)
    assert found == pytest.approx(exact(score, np.repeat(level, 300), 2.0), rel=1e-12, abs=0)
