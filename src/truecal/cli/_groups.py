"""Looking at many groups, and paying for it: p-values corrected by Holm's method."""

from __future__ import annotations

from typing import Any

from truecal.cli._predictions import Predictions, Summary
from truecal.hypotheses import TestResult, calibration_test
from truecal.hypotheses import _holm as corrected_by_holm


def test_groups(predictions: Predictions | Summary, **options: Any) -> dict[str, TestResult]:
    """Return the test of each group, whose `adjusted_pvalue` holds for all of them at once.

    Parameters
    ----------
    predictions : Predictions or Summary
        With groups.
    **options
        Those of `truecal.calibration_test`.
    """
    names, tests = [], []
    for name, arguments in predictions.groups():
        names.append(name)
        tests.append(calibration_test(**arguments, **options))
    return dict(zip(names, corrected_by_holm(tests), strict=True))


test_groups.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test
