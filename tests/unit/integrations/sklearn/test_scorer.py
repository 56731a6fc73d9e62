from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import truecal
from truecal.estimators._registry import DEFAULT_ESTIMATOR
from truecal.integrations.sklearn import CalibrationScorer

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.datasets import make_classification  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate  # noqa: E402
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402

FOLDS = KFold(3, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def two():
    return make_classification(300, 8, n_redundant=4, random_state=0)


@pytest.fixture(scope="module")
def three():
    return make_classification(300, 8, n_informative=5, n_classes=3, random_state=0)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("name", [spec.name for spec in truecal.list_estimators()])
def test_every_estimator_has_a_scorer(two, name):
    X, y = two
    model = GaussianNB().fit(X, y)
    expected = -truecal.calibration_error(y, model.predict_proba(X)[:, 1], estimator=name)
    assert CalibrationScorer(name)(model, X, y) == expected


def test_the_default_is_the_flagship(two):
    X, y = two
    model = GaussianNB().fit(X, y)
    assert CalibrationScorer()(model, X, y) == -truecal.calibration_error(
        y, model.predict_proba(X), estimator=DEFAULT_ESTIMATOR
    )


def test_greater_is_better(two):
    X, y = two
    grid = GridSearchCV(
        LogisticRegression(), {"C": [1e-4, 1.0]}, scoring=CalibrationScorer("em_sweep"), cv=FOLDS
    ).fit(X, y)
    assert grid.best_params_ == {"C": 1.0}
    assert grid.best_score_ < 0


def test_cross_validate_measures_each_fold(two):
    X, y = two
    scores = cross_validate(
        GaussianNB(), X, y, cv=FOLDS, scoring=CalibrationScorer("em_bin", n_bins=5, norm=1)
    )
    for (train, test), score in zip(FOLDS.split(X), scores["test_score"], strict=True):
        proba = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])[:, 1]
        assert score == -truecal.calibration_error(y[test], proba, estimator="em_bin", n_bins=5, norm=1)


def test_squared(two):
    X, y = two
    model = GaussianNB().fit(X, y)
    assert CalibrationScorer(squared=True)(model, X, y) == pytest.approx(
        -(CalibrationScorer()(model, X, y) ** 2)
    )


def test_several_at_once(two):
    X, y = two
    few = {f"neg_{name}": CalibrationScorer(name) for name in ("em_sweep", "kde")} | {"accuracy": "accuracy"}
    scores = cross_validate(GaussianNB(), X, y, cv=FOLDS, scoring=few)
    assert {"test_neg_em_sweep", "test_neg_kde", "test_accuracy"} < set(scores)
    assert (scores["test_neg_em_sweep"] < 0).all()


def test_words_for_labels(two):
    X, y = two
    words = np.array(["no", "yes"])[y]
    plain = cross_val_score(GaussianNB(), X, y, cv=FOLDS, scoring=CalibrationScorer("em_sweep"))
    named = cross_val_score(GaussianNB(), X, words, cv=FOLDS, scoring=CalibrationScorer("em_sweep"))
    np.testing.assert_array_equal(named, plain)
    first = cross_val_score(
        GaussianNB(), X, words, cv=FOLDS, scoring=CalibrationScorer("ew_bin", pos_label="no")
    )
    second = cross_val_score(
        GaussianNB(), X, words, cv=FOLDS, scoring=CalibrationScorer("ew_bin", pos_label="yes")
    )
    np.testing.assert_allclose(
        first, second, atol=0.05
    )  # nearly, since edges k/15 are not met from both sides
    assert (first != second).any()


@pytest.mark.parametrize("multiclass", [None, "top", "classwise"])
def test_several_classes(three, multiclass):
    X, y = three
    words = np.array(["ant", "bee", "cat"])[y]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, words)
    score = CalibrationScorer(multiclass=multiclass)(model, X, words)
    assert score == -truecal.calibration_error(y, model.predict_proba(X), multiclass=multiclass)


def test_a_fold_without_a_class(three):
    X, y = three
    words = np.array(["ant", "bee", "cat"])[y]
    model = GaussianNB().fit(X, words)
    kept = words != "bee"
    score = CalibrationScorer()(model, X[kept], words[kept])
    assert score == -truecal.calibration_error(y[kept], model.predict_proba(X[kept]))


def test_weights(two):
    X, y = two
    weight = np.arange(len(y)) % 3
    model = GaussianNB().fit(X, y)
    score = CalibrationScorer()(model, X, y, sample_weight=weight)
    assert score == -truecal.calibration_error(y, model.predict_proba(X)[:, 1], sample_weight=weight)


def test_routed_weights(two, routing):
    X, y = two
    weight = 1.0 + np.arange(len(y)) % 3
    weighted = CalibrationScorer().set_score_request(sample_weight=True)
    model = GaussianNB().set_fit_request(sample_weight=False)
    scores = cross_validate(model, X, y, cv=FOLDS, scoring=weighted, params={"sample_weight": weight})
    for (train, test), score in zip(FOLDS.split(X), scores["test_score"], strict=True):
        proba = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])[:, 1]
        assert score == -truecal.calibration_error(y[test], proba, sample_weight=weight[test])


def test_routed_weights_of_several_and_by_another_name(two, routing):
    X, y = two
    weight = 1.0 + np.arange(len(y)) % 3
    few = {
        "plain": CalibrationScorer().set_score_request(sample_weight=False),
        "weighted": CalibrationScorer().set_score_request(sample_weight="score_weight"),
    }
    grid = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1.0]}, scoring=few, refit="weighted", cv=FOLDS)
    grid.fit(X, y, score_weight=weight)
    assert (grid.cv_results_["mean_test_plain"] != grid.cv_results_["mean_test_weighted"]).all()


def test_weights_that_nobody_asked_for_are_an_error(two, routing):
    X, y = two
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        cross_validate(
            GaussianNB().set_fit_request(sample_weight=True),
            X,
            y,
            scoring=CalibrationScorer(),
            params={"sample_weight": np.ones(len(y))},
        )


def test_requests_need_routing():
    with pytest.raises(RuntimeError, match="only available when metadata routing is enabled"):
        CalibrationScorer().set_score_request(sample_weight=True)


def test_copies_are_alike_and_apart(two, routing):
    X, y = two
    first = CalibrationScorer("em_bin", n_bins=4).set_score_request(sample_weight=True)
    model = GaussianNB().fit(X, y)
    for twin in (pickle.loads(pickle.dumps(first)), copy.deepcopy(first), clone(first)):
        assert twin(model, X, y) == first(model, X, y)
        assert repr(twin) == repr(first) == "CalibrationScorer('em_bin', n_bins=4)"
        assert twin.get_metadata_routing().score.requests == {"sample_weight": True, "clusters": None}
        twin.set_score_request(sample_weight=False)
        assert first.get_metadata_routing().score.requests == {"sample_weight": True, "clusters": None}
    search = clone(GridSearchCV(GaussianNB(), {}, scoring=first))
    assert search.scoring is not first


def test_no_probabilities(two):
    X, y = two
    with pytest.raises(AttributeError, match=r"LinearSVC has no predict_proba: .*CalibratedModel"):
        CalibrationScorer()(LinearSVC().fit(X, y), X, y)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"estimator": "em_swep"}, "Did you mean 'em_sweep'"),
        ({"estimator": "em_bin", "bins": 3}, "bins is not an option of em_bin. Its options: n_bins"),
    ],
)
def test_wrong_parameters(given, says):
    with pytest.raises(ValueError, match=says):
        CalibrationScorer(**given)


@pytest.mark.parametrize("name", [True, "groups"])
def test_clusters_are_routed(routing, name):
    X, y = make_classification(400, random_state=0)
    who = np.arange(400) // 4
    scorer = CalibrationScorer().set_score_request(clusters=name)
    key = "clusters" if name is True else name
    splitter = KFold(3)
    scores = cross_validate(GaussianNB(), X, y, cv=splitter, scoring=scorer, params={key: who})
    for score, (train, test) in zip(scores["test_score"], splitter.split(X), strict=True):
        proba = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])[:, 1]
        assert score == -truecal.calibration_error(y[test], proba, clusters=who[test])
