"""Rows in cells: exact sums, opened cells, and values row by row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import truecal
from truecal.data.row_cells import RowCells


def drawn(n: int, dtype: Any = np.float64) -> tuple[Any, Any]:
    """Return labels and scores with ties, small numbers, zeros and ones."""
    rng = np.random.default_rng(0)
    score = np.concatenate(
        [rng.random(n), rng.random(n) * 1e-9, np.round(rng.random(n), 3), [0.0, -0.0, 1.0]]
    )
    score = rng.permutation(score).astype(dtype)
    return rng.random(len(score)) < score, score


def test_sums_are_exact_and_do_not_depend_on_the_order_of_rows() -> None:
    label, score = drawn(5000)
    order = np.random.default_rng(1).permutation(len(score))
    one, other = RowCells.count(label, score, 1 << 13), RowCells.count(label[order], score[order], 1 << 13)
    for name in ("rows", "positives", "above"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.rows.sum() == len(score)
    assert one.positives.sum() == label.sum()
    cell = np.floor(score * one.n_cells)
    for k in (0, 17, one.n_cells // 2, one.n_cells):
        inside = score[cell == k]
        assert one.rows[k] == len(inside)
        if len(inside):
            total = (k * one.rows[k] + one.above[k]) / one.n_cells
            assert total == pytest.approx(math.fsum(inside), rel=2**-51, abs=len(inside) * 2.0**-54)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_opened_cells_hold_every_score_and_the_others_are_one_group(dtype: Any) -> None:
    label, score = drawn(3000, dtype)
    cells = RowCells.count(label, score, 1 << 13)
    opened = cells.near_ranks(np.array([0.0, 4000.0, 7000.0, float(len(score))]), 1)
    sample = cells.sample(opened, "the event")
    assert sample is not None
    assert (sample.n, sample.target, sample.dtype) == (len(score), "the event", np.dtype(dtype))
    assert (np.diff(sample.score) > 0).all()
    assert (sample.lower <= sample.score).all()
    ordered = truecal.Sample.from_predictions(label, score)
    inside = opened[np.floor(ordered.score * cells.n_cells).astype(int)]
    place = sample.score.searchsorted(ordered.score[inside])
    for name in ("score", "count", "positives"):
        np.testing.assert_array_equal(getattr(sample, name)[place], getattr(ordered, name)[inside])
    assert len(sample) == inside.sum() + np.count_nonzero(cells.rows[~opened])


def test_a_rank_is_in_an_opened_cell_and_so_are_its_neighbours() -> None:
    score = np.array([0.1, 0.1, 0.3, 0.5, 0.5, 0.9])
    cells = RowCells.count(score > 0.4, score, 1 << 13)
    for rank, found in ((0, [0.1, 0.3]), (2, [0.1, 0.3, 0.5]), (4, [0.3, 0.5, 0.9]), (6, [0.5, 0.9])):
        opened = cells.near_ranks(np.array([float(rank)]), 1)
        assert sorted(set(score[opened[cells.cell]])) == (found if rank < 6 else [0.9])
    assert set(score[cells.near_ranks(np.array([1.5, 4.0]), 0)[cells.cell]]) == {0.1, 0.5}
    assert cells.share(np.ones(cells.n_cells + 1, dtype=np.bool_)) == 1


def test_values_of_groups_reach_their_rows() -> None:
    label, score = drawn(30_000)
    cells = RowCells.count(label, score, 1 << 13)
    sample = cells.sample(cells.near_ranks(np.array([0.0, 4000.0]), 1), "")
    assert sample is not None
    parts = list(sample.by_row(np.arange(float(len(sample)))))
    np.testing.assert_array_equal(np.concatenate([part for part, _ in parts]), score)
    group = np.concatenate([value for _, value in parts])
    np.testing.assert_array_equal(group, sample.lower.searchsorted(score, side="right") - 1)


def test_cells_with_so_many_rows_that_their_sums_may_not_be_exact_are_opened() -> None:
    label, score = drawn(5000)
    crowd = 0.5 + np.random.default_rng(3).random(20_000) * 2.0**-13  # all in one cell
    label, score = np.concatenate([label, crowd > 1]), np.concatenate([score, crowd])
    cells = RowCells.count(label, score, 1 << 13)
    sample = cells.sample(cells.near_ranks(np.array([0.0]), 1), "")
    assert sample is not None
    assert np.isin(crowd, sample.score).all()
    middle = cells.between(np.array([0.0, 0.3, 0.7]), "").score[1]
    inside = score[(score >= 0.3) & (score < 0.7)]
    assert middle == pytest.approx(math.fsum(inside) / len(inside), rel=2**-52)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("c", [1 << 3, 1 << 13])
def test_rows_between_edges_are_those_of_the_definition(c: int, dtype: Any) -> None:
    label, score = drawn(5000, dtype)
    edges = np.unique((np.arange(30)[:, np.newaxis] / np.arange(30, 40)).astype(dtype).astype(np.float64))
    score[:500] = np.random.default_rng(2).choice(edges.astype(dtype), 500)  # on the edges
    cells = RowCells.count(label, score, c)
    sample = cells.between(edges, "the event")
    assert sample.target == "the event"
    group = edges.searchsorted(score.astype(np.float64), side="right") - 1
    kept = np.unique(group)
    assert sample.count.tolist() == [np.count_nonzero(group == k) for k in kept]
    assert sample.positives.tolist() == [np.count_nonzero(label[group == k]) for k in kept]
    exact = [math.fsum(score[group == k]) / np.count_nonzero(group == k) for k in kept]
    np.testing.assert_allclose(sample.score, exact, rtol=1e-15, atol=2.0**-53)
    np.testing.assert_array_equal(edges.searchsorted(sample.score, side="right") - 1, kept)
    order = np.random.default_rng(1).permutation(len(score))
    other = RowCells.count(label[order], score[order], c).between(edges, "")
    np.testing.assert_array_equal(sample.score, other.score)
