"""The samples of the published program."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

import truecal
from truecal.reproduce._studies import published_draw, seeds, walk
from truecal.reproduce.fig1 import CALIBRATED


def test_the_published_seeds_repeat_and_a_smaller_sample_is_the_beginning_of_a_larger_one():
    found, start = walk()
    assert (len(found), start) == (4744, 3442)
    assert found[:2] == list(islice(seeds(), 2))
    population = truecal.paper.population("resnet110_c10")
    label, score = published_draw(population, found[1], 200)
    again, _ = published_draw(population, found[1], 100)
    np.testing.assert_array_equal(again, label[:100])
    assert 0.8 < score.mean() < 1


def test_the_published_second_sample_is_the_one_of_its_figure():
    """plot_intro_ece_distribution.py of google-research/caltrain marks 5.08%."""
    label, score = published_draw(CALIBRATED, walk()[0][1], 200)
    assert 100 * truecal.calibration_error(label, score, estimator="ew_bin") == pytest.approx(5.08, abs=0.005)
