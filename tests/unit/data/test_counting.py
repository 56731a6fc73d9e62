"""Sums over cells: exact, and the same for any order of rows."""

import math

import numpy as np
import pytest

from truecal.data.counting import CellSums, mean_in_cell, rounded


def test_values_are_rounded_to_multiples_of_a_power_of_two():
    assert rounded(np.array([0.0, 0.3, 0.874, 1.0]), 0.25).tolist() == [0.0, 0.25, 0.75, 1.0]


def test_sums_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    score, cell = rng.random(10_000), rng.integers(0, 5, 10_000)
    tables = []
    for order in (np.arange(10_000), rng.permutation(10_000)):
        sums = CellSums(5)
        for part in np.array_split(order, 3):
            sums.add(cell[part], score[part])
        tables.append(sums.table)
    assert (tables[0] == tables[1]).all()
    rows, coarse, fine = tables[0]
    assert rows.tolist() == np.bincount(cell).tolist()
    exact = [math.fsum(score[cell == k]) for k in range(5)]
    assert coarse + fine == pytest.approx(exact, rel=1e-15)


def test_cells_split_by_label_are_put_together_again():
    sums = CellSums(4)
    label, score = np.array([0, 1, 1, 0]), np.array([0.1, 0.2, 0.7, 0.9])
    sums.add_labelled(np.array([0, 0, 1, 1]), label, score)
    table, positives = sums.by_label()
    assert table[0].tolist() == [2, 2]
    assert positives.tolist() == [1, 1]
    assert (table[1] + table[2]).tolist() == pytest.approx([0.3, 1.6])


def test_rounding_does_not_move_a_mean_out_of_its_cell():
    table = np.array([[3.0], [3.0], [0.0]])  # a mean of 1, at the open end of [1/2, 1)
    assert 0.5 <= mean_in_cell(table, np.array([0.5]), np.array([1.0]))[0] < 1
