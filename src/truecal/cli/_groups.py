"""Looking at many groups, and paying for it: p-values corrected by Holm's method."""

from __future__ import annotations

from typing import Any

from truecal.cli.input.predictions import Predictions, Summary
from truecal.data import one_sample
from truecal.data.cells import Cells
from truecal.inference.calibration_test import TestResult, calibration_test, corrected_by_holm

#: Rows beyond which labels are drawn for cells of nearly equal scores, and no longer for each row.
_MANY_ROWS = 200_000


def test_rows(arguments: dict[str, Any], **options: Any) -> TestResult:
    """Test predictions; very many rows of one class through cells, so that it costs the same for any number.

    Parameters
    ----------
    arguments : dict
        The predictions, as `Predictions.arguments` gives them.
    **options
        Those of `truecal.calibration_test`.
    """
    if len(arguments["y_true"]) > _MANY_ROWS and arguments.get("multiclass") != "classwise":
        arguments = {"y_true": Cells.from_sample(one_sample(**arguments))}
    return calibration_test(**arguments, **options)


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
        tests.append(test_rows(arguments, **options))
    return dict(zip(names, corrected_by_holm(tests), strict=True))


# pytest would take them for tests
test_rows.__test__ = False  # type: ignore[attr-defined]
test_groups.__test__ = False  # type: ignore[attr-defined]
