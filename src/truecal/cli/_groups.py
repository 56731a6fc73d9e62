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

#: Rows beyond which labels are drawn for cells of nearly equal scores, and not for each row.
_MANY_ROWS = 200_000


def coarsened(sample: Sample) -> Sample:
    """Return a sample whose test takes the same time for any number of rows."""
    from truecal.data.cells import Cells

    return Cells.from_sample(sample) if len(sample) > _MANY_ROWS and not isinstance(sample, Cells) else sample


def test_groups(groups: Mapping[str, Sample], **options: Any) -> dict[str, TestResult]:
    """Return the test of each group, with adjusted p-values."""
    tests = [calibration_test(coarsened(sample), **options) for sample in groups.values()]
    if not tests:
        return {}
    statistic = np.array([test.statistic for test in tests])
    adjusted = adjusted_pvalues(statistic, np.stack([test.null for test in tests])).tolist()
    pairs = zip(groups, tests, adjusted, strict=True)
    return {name: replace(test, adjusted_pvalue=pvalue) for name, test, pvalue in pairs}


test_groups.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test
