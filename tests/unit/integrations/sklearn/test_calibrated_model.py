from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import truecal
from truecal.exceptions import CalibrationWarning, InputError
from truecal.recalibration import BetaCalibration, HistogramBinning, IdentityCalibration, TemperatureScaling

sklearn = pytest.importorskip("sklearn", minversion="1.6")

from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.datasets import make_classification  # noqa: E402
from sklearn.frozen import FrozenEstimator  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

from truecal.integrations.sklearn import CalibratedModel, CalibrationScorer  # noqa: E402

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
WORDS = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def two():
    return make_classification(900, 8, n_redundant=4, random_state=0)


@pytest.fixture(scope="module")
def three():
    X, y = make_classification(600, 8, n_informative=5, n_classes=3, random_state=0)
    return X, WORDS[y]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        CalibratedModel(LogisticRegression(), "platt"),
        CalibratedModel(GaussianNB()),
        CalibratedModel(LinearSVC(random_state=0), "isotonic"),
        CalibratedModel(LogisticRegression(), "temperature", cv=0.25),
    ],
    ids=["named", "auto", "margins", "held out"],
)
def test_every_check_of_scikit_learn_passes(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn on few rows, and of temperatures for random labels
        results = check_estimator(model, on_fail=None, on_skip=None)
    failed = {one["check_name"]: str(one["exception"]) for one in results if one["status"] == "failed"}
    assert failed == {}
    assert len(results) > 55


@pytest.mark.parametrize("words", [False, True])
def test_cross_fitting_is_out_of_fold_predictions_then_a_model_of_all_rows(two, words):
    X, y = two
    labels = WORDS[y] if words else y
    model = CalibratedModel(GaussianNB(), "platt", cv=FOLDS).fit(X, labels)
    held_out = cross_val_predict(GaussianNB(), X, y, cv=FOLDS, method="predict_proba")
    platt = truecal.recalibration.PlattScaling().fit(held_out, y)
    expected = platt.transform(GaussianNB().fit(X, y).predict_proba(X))
    np.testing.assert_allclose(model.predict_proba(X), expected)
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    np.testing.assert_array_equal(model.predict(X), np.unique(labels)[expected.argmax(axis=1)])
    assert model.score(X, labels) > 0.8
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))


def test_a_held_out_part_is_not_seen_by_the_classifier(two):
    X, y = two
    model = CalibratedModel(GaussianNB(), "isotonic", cv=0.25, random_state=0).fit(X, y)
    assert model.estimator_.class_count_.sum() == 675
    (train, test), *_ = sklearn.model_selection.StratifiedShuffleSplit(
        1, test_size=0.25, random_state=np.random.RandomState(0)
    ).split(X, y)
    fitted = GaussianNB().fit(X[train], y[train])
    isotonic = truecal.recalibration.IsotonicCalibration().fit(fitted.predict_proba(X[test]), y[test])
    np.testing.assert_array_equal(model.predict_proba(X), isotonic.transform(fitted.predict_proba(X)))


def test_a_frozen_model_uses_all_rows_for_the_recalibrator(three):
    X, words = three
    fitted = GaussianNB().fit(X[:300], words[:300])
    kept = 300 + np.flatnonzero(
        words[300:] != "bee"
    )  # a class may be missing from the rows to recalibrate on
    model = CalibratedModel(FrozenEstimator(fitted), "temperature").fit(X[kept], words[kept])
    assert model.estimator_.estimator is fitted
    scaling = TemperatureScaling(input="probabilities").fit(
        fitted.predict_proba(X[kept]), np.searchsorted(WORDS, words[kept])
    )
    assert model.recalibrator_.temperature_ == scaling.temperature_
    np.testing.assert_array_equal(model.classes_, WORDS)
    with pytest.raises(InputError, match=r"y has 1 label outside classes_ .*row 2: np.str_\('dog'\)|'dog'"):
        model.fit(X[:3], ["ant", "bee", "dog"])


def test_auto_leaves_a_calibrated_model_alone_and_changes_another(two):
    X, y = two
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 1))
    calibrated = CalibratedModel(LogisticRegression(), random_state=0).fit(
        x, rng.random(3000) < 1 / (1 + np.exp(-x[:, 0]))
    )
    assert isinstance(calibrated.recalibrator_, IdentityCalibration)
    assert calibrated.selection_.leave_alone
    changed = CalibratedModel(GaussianNB(), random_state=0).fit(X, y)
    assert not changed.selection_.leave_alone
    among = CalibratedModel(GaussianNB(), ["histogram"], random_state=0).fit(X, y)
    assert [one.name for one in among.selection_.candidates] == ["identity", "histogram"]


def test_margins_are_passed_to_the_recalibrator_as_logits(two, three):
    X, y = two
    model = CalibratedModel(LinearSVC(random_state=0), BetaCalibration(), cv=FOLDS).fit(X, y)
    margin = cross_val_predict(LinearSVC(random_state=0), X, y, cv=FOLDS, method="decision_function")
    beta = BetaCalibration(input="logits").fit(margin, y)
    expected = beta.transform(LinearSVC(random_state=0).fit(X, y).decision_function(X))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected)
    assert model.recalibrator.input == "probabilities"
    X, words = three
    proba = CalibratedModel(LinearSVC(random_state=0), "platt", cv=FOLDS).fit(X, words).predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_a_temperature_needs_no_logits(two):
    X, y = two
    model = CalibratedModel(GaussianNB(), TemperatureScaling(), cv=FOLDS).fit(X, y)
    assert model.recalibrator_.input == "probabilities"
    assert model.recalibrator_.temperature_ > 1


def test_search_over_recalibrators_and_their_parameters(two):
    X, y = two
    search = GridSearchCV(
        CalibratedModel(GaussianNB(), cv=0.25, random_state=0),
        [
            {"recalibrator": ["identity", "platt"]},
            {"recalibrator": [HistogramBinning()], "recalibrator__n_bins": [2, 400]},
        ],
        scoring="neg_brier_score",
        cv=FOLDS,
    ).fit(X, y)
    assert search.best_params_ == {"recalibrator": "platt"}
    few, many = search.cv_results_["mean_test_score"][2:]
    assert few != many


def test_in_a_pipeline_and_around_one_with_scorers_of_calibration(two):
    X, y = two
    around = CalibratedModel(make_pipeline(StandardScaler(), GaussianNB()), "isotonic", cv=3)
    inside = make_pipeline(StandardScaler(), CalibratedModel(GaussianNB(), "isotonic", cv=3))
    scoring = {"error": CalibrationScorer(), "brier": "neg_brier_score"}
    for model in (around, inside):
        scores = cross_validate(model, X, y, cv=FOLDS, scoring=scoring)
        bare = cross_validate(GaussianNB(), X, y, cv=FOLDS, scoring=scoring)
        assert scores["test_error"].mean() > bare["test_error"].mean()
        assert scores["test_brier"].mean() > bare["test_brier"].mean()


class Records(GaussianNB):
    """Remembers the rows and the weights that it was fitted to."""

    log: list = []  # noqa: RUF012 - clones share it

    def fit(self, X, y, sample_weight=None):
        Records.log.append((X[:, 0], sample_weight))
        return super().fit(X, y, sample_weight=sample_weight)


@pytest.fixture
def log():
    Records.log.clear()
    return Records.log


def marked(two):
    """Return features whose first column is the number of the group, with weights that follow from it."""
    X, y = two
    group = np.arange(len(y)) // 9
    return np.column_stack([group, X]), y, group, 1.0 + group


@pytest.mark.parametrize("cv", [3, 0.25, GroupKFold(3)])
@pytest.mark.parametrize("recalibrator", ["auto", "platt"])
def test_groups_stay_together(two, log, cv, recalibrator):
    X, y, group, _ = marked(two)
    CalibratedModel(Records(), recalibrator, cv=cv, random_state=0).fit(X, y, groups=group)
    for rows, _ in log:
        assert set(np.unique(rows, return_counts=True)[1]) == {9}
    assert len(log[0][0]) < len(y)


def test_weights_reach_the_classifier_and_the_recalibrator(two, log):
    X, y, _, weight = marked(two)
    model = CalibratedModel(Records(), "platt", cv=FOLDS).fit(X, y, sample_weight=weight)
    assert len(log) == 4
    for rows, weights in log:
        np.testing.assert_array_equal(weights, 1 + rows)
    plain = CalibratedModel(Records(), "platt", cv=FOLDS).fit(X, y)
    assert model.recalibrator_.maps_ != plain.recalibrator_.maps_
    held_out = cross_val_predict(
        Records(), X, y, cv=FOLDS, method="predict_proba", params={"sample_weight": weight}
    )
    platt = truecal.recalibration.PlattScaling().fit(held_out, y, sample_weight=weight)
    assert model.recalibrator_.maps_[0].slope == pytest.approx(platt.maps_[0].slope)


def test_weights_that_a_classifier_cannot_take_are_reported(two):
    X, y = two
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    with pytest.warns(CalibrationWarning, match="Pipeline.fit takes no sample_weight: .* recalibrator only"):
        CalibratedModel(pipeline, "platt").fit(X, y, sample_weight=np.ones(len(y)))


def test_routing_of_weights_and_groups(two, log, routing):
    X, y, group, weight = marked(two)
    model = CalibratedModel(Records().set_fit_request(sample_weight=True), "platt", cv=3)
    model.set_fit_request(sample_weight=True, groups=True)
    scorer = CalibrationScorer().set_score_request(sample_weight=True)
    cross_validate(
        model, X, y, cv=GroupKFold(2), scoring=scorer, params={"sample_weight": weight, "groups": group}
    )
    assert len(log) == 8
    for rows, weights in log:
        np.testing.assert_array_equal(weights, 1 + rows)
        assert set(np.unique(rows, return_counts=True)[1]) == {9}


def test_routing_through_a_pipeline_and_to_a_group_splitter(two, log, routing):
    X, y, group, weight = marked(two)
    model = CalibratedModel(
        make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            Records().set_fit_request(sample_weight=True),
        ),
        "platt",
        cv=GroupKFold(3),
    ).set_fit_request(sample_weight=True, groups=True)
    scorer = CalibrationScorer().set_score_request(sample_weight=True)
    search = GridSearchCV(model, {"recalibrator": ["platt", "beta"]}, scoring=scorer, cv=GroupKFold(2))
    search.fit(X, y, sample_weight=weight, groups=group)
    assert all(weights is not None for _, weights in log)
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
        CalibratedModel(Records(), "platt").fit(X, y, sample_weight=weight)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"recalibrator": "plat"}, "Did you mean 'platt'"),
        ({"recalibrator": 3}, "recalibrator must be a name or have fit and transform. Got 3"),
        ({"cv": 1.5}, "cv must be a number of folds or a fraction between 0 and 1. Got 1.5"),
        ({"cv": RepeatedStratifiedKFold(n_splits=2, n_repeats=2)}, "cv must hold out each row at most once"),
    ],
)
def test_wrong_parameters(two, change, says):
    X, y = two
    with pytest.raises(InputError, match=says):
        CalibratedModel(GaussianNB()).set_params(**change).fit(X, y)


def test_a_fold_that_lacks_a_class_is_refused(three):
    X, words = three
    order = np.argsort(words)
    with pytest.raises(InputError, match="cv leaves no rows of class 'ant' to fit the classifier to"):
        CalibratedModel(GaussianNB(), "platt", cv=KFold(3)).fit(X[order], words[order])
    with pytest.raises(InputError, match="y has 9 rows of 1 class; two classes are needed"):
        CalibratedModel(GaussianNB()).fit(X[:9], np.zeros(9))


def test_a_classifier_without_scores_is_refused(two):
    X, y = two
    from sklearn.neighbors import NearestCentroid

    class OnlyPredicts(NearestCentroid):
        predict_proba = decision_function = property()

    with pytest.raises(
        InputError, match=r"must have predict_proba or decision_function. OnlyPredicts has neither"
    ):
        CalibratedModel(OnlyPredicts(), "platt").fit(X, y)


def test_scikit_learns_own_wrapper_takes_no_other_recalibrator(two):
    """The guide says so; when this fails, scikit-learn has opened its interface."""
    X, y = two
    with pytest.raises(
        ValueError, match="The 'method' parameter of CalibratedClassifierCV must be a str among"
    ):
        CalibratedClassifierCV(GaussianNB(), method=BetaCalibration()).fit(X, y)


def test_an_ensemble_is_the_mean_over_folds():
    X, y = make_classification(400, n_redundant=10, random_state=0)
    model = CalibratedModel(GaussianNB(), "platt", cv=4, ensemble=True).fit(X, y)
    assert len(model.estimators_) == 4
    parts = [model.recalibrator_.transform(one.predict_proba(X)) for one in model.estimators_]
    np.testing.assert_allclose(model.predict_proba(X), np.mean(parts, axis=0))
    alone = CalibratedModel(GaussianNB(), "platt", cv=4).fit(X, y)
    assert len(alone.estimators_) == 1
    with pytest.raises(ValueError, match="ensemble"):
        CalibratedModel(GaussianNB(), ensemble="yes").fit(X, y)
