"""Settings and folders of files for the tests of the reproduction and of the experiments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from truecal import paper
from truecal.reproduce import Settings


@pytest.fixture
def settings(tmp_path) -> Settings:
    """Hardly any repetitions, and no real data."""
    return Settings(out=tmp_path / "out", effort="tiny", seed=1, progress=False)


def write_splits(path: Path, *, n: int = 400, classes: int = 3, seed: int = 0) -> None:
    """Write logits of a model that is too sure of itself, in the layout of NPZ files with two splits."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for split in ("val", "test"):
        logits = rng.normal(0, 1, (n, classes))
        chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        labels = (chance.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        arrays |= {f"{split}_logits": (3 * logits).astype(np.float32), f"{split}_labels": labels}
    np.savez(path, **arrays)


@pytest.fixture
def data(tmp_path) -> Path:
    """A folder with one file of each layout, under names of the paper and others."""
    folder = tmp_path / "data"
    folder.mkdir()
    write_splits(folder / "two_splits.npz")
    hits, confidence = paper.population("resnet110_c100").sample(2000, rng=3)
    pred = np.zeros(2000, dtype=int)
    np.savez(
        folder / "hollance_markus93_resnet110_c100.npz",
        confidence=confidence.astype(np.float32),
        pred=pred,
        labels=1 - hits,
    )
    rng = np.random.default_rng(5)
    scores = rng.beta(2, 3, 1500)
    np.savez(folder / "binary.npz", scores=scores, labels=rng.random(1500) < scores**1.2)
    np.savez(folder / "something_else.npz", numbers=np.arange(3))
    return folder
