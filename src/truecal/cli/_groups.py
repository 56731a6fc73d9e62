"""Tests of many groups, with p-values that hold for all of them at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from truecal.inference.calibration_test import TestResult, calibration_test
from truecal.inference.multiplicity import adjusted_pvalues

if TYPE_CHECKING:
    from truecal.data.sample import Sample


def test_groups(groups: Mapping[str, Sample], **options: Any) -> dict[str, TestResult]:
    """Return the test of each group; p-values of perfect calibration are also adjusted for their number."""
    tests = {name: calibration_test(sample, **options) for name, sample in groups.items()}
    if not tests or options.get("at_most") is not None:
        return tests
    statistic = np.array([test.statistic for test in tests.values()])
    adjusted = adjusted_pvalues(statistic, np.stack([test.null for test in tests.values()])).tolist()
    pairs = zip(tests.items(), adjusted, strict=True)
    return {name: replace(test, adjusted_pvalue=pvalue) for (name, test), pvalue in pairs}


test_groups.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test
