"""Predictions of real models, fits to them, and the tables printed in the paper."""

from __future__ import annotations

import csv
import pickle
from dataclasses import replace

import numpy as np
import pytest

import truecal
from truecal import paper
from truecal.reproduce import run
from truecal.reproduce._data import (
    beta_by_recipe,
    drawn_sets,
    paper_sets,
    printed_betas,
    printed_ece,
    printed_models,
    real_fits,
    split_sets,
    top_label_sets,
)

QUICKEST = "appendix_d"


def test_a_folder_that_does_not_exist_is_named(settings, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        run(replace(settings, data=tmp_path / "nowhere"), ["table1"])


@pytest.mark.slow
def test_pickled_logits_of_the_papers_layout_are_read(settings, data, tmp_path):
    folder = tmp_path / "logits"
    folder.mkdir()
    with np.load(data / "two_splits.npz") as file:
        content = ((file["val_logits"], file["val_labels"]), (file["test_logits"], file["test_labels"]))
    with (folder / "probs_resnet110_c10_logits.p").open("wb") as target:
        pickle.dump(content, target)
    run(replace(settings, logits=folder), ["table1", "table2"])
    with (settings.out / "table1_real.csv").open(newline="") as file:
        assert [row["model"] for row in csv.DictReader(file)] == ["resnet110_c10"]
    with (settings.out / "table2.csv").open(newline="") as file:
        ways = {
            row["way"]
            for row in csv.DictReader(file)
            if row["set"] == "resnet110_c10" and row["scores"] == "real"
        }
    assert ways == {"printed", "mle", "recipe", "recipe_coarse"}


def test_files_of_each_layout_are_found_and_others_ignored(settings, data):
    settings = replace(settings, data=data)
    assert set(split_sets(settings)) == {"two_splits"}
    assert {name: sample.n for name, sample in top_label_sets(settings).items()} == {
        "two_splits": 400,
        "resnet110_c100": 2000,
    }


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


SQUARE = truecal.Population(truecal.simulation.BetaScores(1, 1), truecal.simulation.PowerCurve(2))


def test_printed_tables_are_the_populations_of_the_library():
    assert tuple(printed_betas()) == tuple(printed_models()) == tuple(printed_ece()) == truecal.paper.NAMES
    for name, models in printed_models().items():
        best = next(model for model, row in models.items() if row["selected"])
        curve = truecal.paper.population(name).curve
        terms = [term for term in ("b0", "b1") if getattr(curve, term) is not None]
        assert best == "_".join([curve.link, curve.transform, *terms])
        assert (models[best]["b0"], models[best]["b1"]) == (curve.b0, curve.b1)
        assert len(models) == 12
        assert models[best]["aic"] == min(row["aic"] for row in models.values())
