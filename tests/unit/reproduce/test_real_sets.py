"""Predictions of real models, from folders."""

from __future__ import annotations

import csv
import pickle
from dataclasses import replace

import numpy as np
import pytest

from truecal.reproduce import run
from truecal.reproduce.real_sets import binary_sets, split_sets, top_label_sets

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
    assert {name: sample.n for name, sample in binary_sets(settings).items()} == {"binary": 1500}
