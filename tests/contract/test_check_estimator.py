"""scikit-learn's own checks.

Its checks fit every estimator of 2-D arrays to normal deviates in several columns with two classes. Columns
of a recalibrator are classes, so it is tagged like scikit-learn's IsotonicRegression, and most checks do not
apply. Here each class reads the first column as logits and ignores the rest. Then every check applies, and none is
expected to fail.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import truecal.recalibration as recalibrators
from truecal.recalibration._scores import Column, Scores, read_scores

sklearn = pytest.importorskip("sklearn", minversion="1.6")

from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError, SkipTestWarning  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

NAMES = recalibrators.__all__


class FirstColumn(Scores):
    """Scores of two classes in the first of many columns."""

    n_classes = 2

    @property
    def columns(self):
        return (Column(self.values[:, 0], True),)

    def __getitem__(self, rows):
        return FirstColumn(self.values[rows], True, None, False)

    def shaped(self, positive):
        return np.column_stack([1 - positive, positive])


class ReadsFirstColumn:
    """Makes a recalibrator take features instead of scores."""

    def _read(self, scores):
        if np.asarray(scores).ndim == 1:
            raise ValueError("Reshape your data: this reads columns.")
        values = read_scores(scores, "logits").values
        return FirstColumn(values.reshape(len(values), -1), True, None, False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = False
        tags.input_tags.two_d_array = True
        return tags


def reading_first_column(name):
    kind = getattr(recalibrators, name)
    members = {"__init__": kind.__init__, "__module__": __name__, "__qualname__": name}
    return type(name, (ReadsFirstColumn, kind), members)


# Pickle finds a class by its name in its module.
HistogramBinning = reading_first_column("HistogramBinning")
IsotonicCalibration = reading_first_column("IsotonicCalibration")
TemperatureScaling = reading_first_column("TemperatureScaling")
PlattScaling = reading_first_column("PlattScaling")
BetaCalibration = reading_first_column("BetaCalibration")
IdentityCalibration = reading_first_column("IdentityCalibration")
VectorScaling = reading_first_column("VectorScaling")
DirichletCalibration = reading_first_column("DirichletCalibration")
VennAbersCalibration = reading_first_column("VennAbersCalibration")
SplineCalibration = reading_first_column("SplineCalibration")


# The check of weights in 1.6 calls the first label of its rows the positive one, after it has shuffled half of them.
@pytest.mark.skipif(
    sklearn.__version__.startswith("1.6."), reason="scikit-learn 1.6 confuses labels in a check"
)
@pytest.mark.parametrize("name", NAMES)
def test_every_check_passes(name):
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # random labels have no best temperature; no BaseEstimator is inherited
        results = check_estimator(globals()[name](), on_fail=None, on_skip=None)
    failed = {
        result["check_name"]: str(result["exception"]) for result in results if result["status"] == "failed"
    }
    assert failed == {}
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}  # it wants SCIPY_ARRAY_API set before SciPy is imported
    assert len(results) > 45


@pytest.mark.parametrize("name", NAMES)
def test_without_changes_nothing_fails(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with pytest.warns(SkipTestWarning):
            check_estimator(getattr(recalibrators, name)())


@pytest.mark.parametrize("name", NAMES)
def test_clone_and_pipeline(name, golden):
    y, p = golden(200)
    recalibrator = getattr(recalibrators, name)(input="probabilities")
    assert clone(recalibrator).get_params() == recalibrator.get_params()
    with pytest.raises(NotFittedError):
        clone(recalibrator).transform(p)
    pipeline = make_pipeline(FunctionTransformer(), recalibrator).fit(p[:, np.newaxis], y)
    np.testing.assert_array_equal(
        pipeline.transform(p[:, np.newaxis])[:, 0], recalibrator.fit(p, y).transform(p)
    )
