"""Fits to the available data sets."""

from dataclasses import replace

import pytest

from truecal import paper
from truecal.reproduce.fits import beta_by_recipe, drawn_sets, paper_sets, real_fits


def test_only_data_sets_of_the_paper_are_fitted(settings, data):
    settings = replace(settings, data=data)
    assert list(paper_sets(settings)) == ["resnet110_c100"]
    fit = real_fits(settings)["resnet110_c100"]
    assert fit.n == 2000
    assert real_fits(settings) is real_fits(settings)


def test_samples_with_known_truth_are_reproducible(settings):
    first, second = drawn_sets(settings), drawn_sets(settings)
    assert set(first) <= set(paper.NAMES)
    for name, sample in first.items():
        assert sample.n == 500
        assert sample.score.tolist() == second[name].score.tolist()


def test_rounding_near_one_increases_the_skew_of_the_recipe(settings, data):
    (sample,) = paper_sets(replace(settings, data=data)).values()
    exact, coarse = (beta_by_recipe(sample, coarse=coarse) for coarse in (False, True))
    assert coarse[1] < exact[1]
    assert exact[0] == pytest.approx(paper.population("resnet110_c100").scores.a, rel=0.5)
