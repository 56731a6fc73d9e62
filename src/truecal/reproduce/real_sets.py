"""Predictions of real models in folders given by the user: logits with two splits, or top labels.

Known layouts: the pickles of the paper's data (``truecal.data.load_logits``), the same four arrays in an
NPZ file, top-label outputs (``confidence``, ``pred``, ``labels``), binary predictions (``scores``,
``labels``), and hits (``confidence``, ``correct``). Files with other layouts are ignored.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from truecal._lib.types import FloatArray
from truecal.data import LogitSplits, as_sample, load_logits
from truecal.data.sample import Sample
from truecal.reproduce.contract import Settings

_SPLITS = ("val_logits", "val_labels", "test_logits", "test_labels")


def split_sets(settings: Settings) -> dict[str, LogitSplits]:
    """Return every set of logits with a calibration and a test split, by name, from both folders."""
    sets: dict[str, LogitSplits] = {}
    for path in _files(settings.logits, "*.p", "*.pkl", "*.pickle"):
        sets[_name_of(path)] = load_logits(path)
    for path in (*_files(settings.logits, "*.npz"), *_files(settings.data, "*.npz")):
        with np.load(path, allow_pickle=False) as file:
            if set(_SPLITS) <= set(file.files):
                arrays = (file[key] for key in _SPLITS)
                sets[_name_of(path)] = LogitSplits(*arrays)
    return sets


def top_label_sets(settings: Settings) -> dict[str, Sample]:
    """Return the top-label predictions of every test split and every top-label set, by name."""
    sets: dict[str, Sample] = {}
    for name, splits in split_sets(settings).items():
        sets[name] = as_sample(splits.test_labels, splits.test_logits, logits=True)
    for path in _files(settings.data, "*.npz"):
        with np.load(path, allow_pickle=False) as file:
            if {"confidence", "pred", "labels"} <= set(file.files):
                sets[_name_of(path)] = as_sample(file["pred"] == file["labels"], file["confidence"])
    return sets


def binary_sets(settings: Settings) -> dict[str, Sample]:
    """Return every set of probabilities of a positive class, by name."""
    sets: dict[str, Sample] = {}
    for path in _files(settings.data, "*.npz"):
        with np.load(path, allow_pickle=False) as file:
            if {"scores", "labels"} <= set(file.files):
                sets[path.stem] = as_sample(file["labels"], file["scores"])
    return sets


def hit_sets(settings: Settings) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return (label, score) of every set of top-label scores with their hits, by name, in the order of its rows."""
    sets: dict[str, tuple[FloatArray, FloatArray]] = {}
    for path in _files(settings.data, "*.npz"):
        with np.load(path, allow_pickle=False) as file:
            if {"confidence", "correct"} <= set(file.files):
                sets[path.stem] = (file["correct"].astype(np.float64), file["confidence"])
    return sets


def _files(folder: Path | None, *patterns: str) -> list[Path]:
    if folder is None:
        return []
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}.")
    return sorted(path for pattern in patterns for path in folder.glob(pattern))


def _name_of(path: Path) -> str:
    """Return the data set's name as in the paper's tables, extracted from a file name."""
    name = path.stem.removeprefix("probs_").removesuffix("_logits")
    return name.removeprefix("hollance_markus93_")
