"""Options and comparisons for tests of the selection of recalibrators."""

from __future__ import annotations

import pytest

NO_OPTIONS = dict.fromkeys(("sample_weight", "weighting", "pos_label", "labels", "clusters"))


FAST = {"n_resamples": 5, "rng": 0}


def assert_alike(one, two):
    """Check that all candidates have the same numbers."""
    for ours, theirs in zip(one.to_dict()["candidates"], two.to_dict()["candidates"], strict=True):
        assert ours.pop("interval") == pytest.approx(theirs.pop("interval"))
        assert ours == pytest.approx(theirs)
