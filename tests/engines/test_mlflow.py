"""A real local store of MLflow: SQLite for metrics, a folder for artifacts."""

import json
import os
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("mlflow", reason="mlflow is not installed: pip install 'truecal[mlflow]'")

import mlflow
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

import truecal
from truecal.exceptions import InputError
from truecal.integrations.mlflow import calibration_metric, log_calibration

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow and SQLAlchemy warn of their own future


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlflow")
    # MLflow notes store and experiment in the environment, for processes that are started later.
    with mock.patch.dict(os.environ):
        mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
        mlflow.create_experiment("calibration", artifact_location=(folder / "artifacts").as_uri())
        mlflow.set_experiment("calibration")
        yield mlflow.MlflowClient()


@pytest.fixture(scope="module")
def predictions():
    rng = np.random.default_rng(0)
    p = rng.random(800)
    return (rng.random(800) < p**1.5).astype(int), p


def test_metrics_with_intervals_and_the_report_in_one_call(store, predictions, tmp_path):
    with mlflow.start_run() as run:
        found = log_calibration(*predictions, rng=0, n_resamples=99)
    logged = store.get_run(run.info.run_id).data.metrics
    assert logged == {
        "calibration_error": pytest.approx(found.estimate.value),
        "calibration_error_low": pytest.approx(found.interval.low),
        "calibration_error_high": pytest.approx(found.interval.high),
        "calibration_test_pvalue": pytest.approx(found.test.pvalue),
    }
    assert {file.path for file in store.list_artifacts(run.info.run_id)} == {
        "calibration.html",
        "calibration.json",
    }
    page = mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/calibration.html")
    assert page == found.to_html()
    kept = json.loads(mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/calibration.json"))
    assert kept["schema_version"] == found.to_dict()["schema_version"]


def test_steps_of_a_run_that_is_not_active(store, predictions):
    y, p = predictions
    with mlflow.start_run() as run:
        pass
    for step in range(2):
        log_calibration(
            y,
            p ** (1 + step / 2),
            prefix="valid",
            step=step,
            run_id=run.info.run_id,
            report=False,
            rng=0,
            n_resamples=99,
        )
    history = store.get_metric_history(run.info.run_id, "valid_error")
    assert [one.step for one in history] == [0, 1]
    assert history[0].value > history[1].value
    assert store.list_artifacts(run.info.run_id) == []


def test_a_metric_of_evaluate(store, predictions):
    y, p = predictions
    frame = pd.DataFrame({"y": y, "p": p})
    with mlflow.start_run():
        result = mlflow.models.evaluate(
            data=frame, targets="y", predictions="p", extra_metrics=[calibration_metric()]
        )
    expected = truecal.estimate(y, p, confidence_level=0.95)
    assert result.metrics["calibration_error/value"] == pytest.approx(expected.value)
    assert result.metrics["calibration_error/low"] == pytest.approx(expected.interval.low)
    assert result.metrics["calibration_error/high"] == pytest.approx(expected.interval.high)


@pytest.fixture(scope="module")
def classifier():
    """A classifier, fresh rows with their labels, and its probabilities for them."""
    X, y = make_classification(1200, flip_y=0.2, random_state=0)
    model = GaussianNB().fit(X[:600], y[:600])
    return model, X[600:], y[600:], model.predict_proba(X[600:])[:, 1]


@pytest.mark.parametrize("logged", ["predict", "predict_proba"])
@pytest.mark.parametrize("model_type", [None, "classifier"])
def test_classes_of_a_logged_classifier_are_refused(store, classifier, logged, model_type):
    model, X, y, _ = classifier
    with mlflow.start_run() as run:
        info = mlflow.sklearn.log_model(
            model, name="model", pyfunc_predict_fn=logged, pip_requirements=["scikit-learn"]
        )
        with pytest.raises(
            InputError, match=r"predictions are predicted classes \(0, 1\).* a function, lambda X"
        ):
            mlflow.models.evaluate(
                info.model_uri,
                pd.DataFrame(X).assign(y=y),
                targets="y",
                model_type=model_type,
                extra_metrics=[calibration_metric()],
                evaluator_config={"log_explainer": False, "log_model_explainability": False},
            )
    assert not [name for name in store.get_run(run.info.run_id).data.metrics if "calibration" in name]


@pytest.mark.parametrize("route", ["function", "column", "certain first row"])
def test_every_route_gives_the_number_of_the_probabilities(store, classifier, route):
    model, X, y, p = classifier
    data = pd.DataFrame(X).assign(y=y)
    if route == "certain first row":  # on which MLflow tries the metric
        p = np.where(np.arange(len(p)) == 0, 1.0, p)
    expected = truecal.estimate(y, p, confidence_level=0.95)
    with mlflow.start_run():
        result = (
            mlflow.models.evaluate(
                lambda X: model.predict_proba(X)[:, 1],
                data,
                targets="y",
                extra_metrics=[calibration_metric()],
            )
            if route == "function"
            else mlflow.models.evaluate(
                data=data.assign(p=p), targets="y", predictions="p", extra_metrics=[calibration_metric()]
            )
        )
    assert result.metrics["calibration_error/value"] == pytest.approx(expected.value)
    assert result.metrics["calibration_error/high"] == pytest.approx(expected.interval.high)


@pytest.mark.parametrize(
    ("predictions", "targets"),
    [
        ([0, 1, 1], [0, 1, 0]),
        ([0.0, 1.0, 1.0], [0, 1, 0]),
        ([True, False, True], [0, 1, 0]),
        ([1.0, 1.0, 1.0], [0, 1, 0]),
        ([0, 1, 1], ["no", "yes", "no"]),
        (["no", "yes", "yes"], ["no", "yes", "no"]),
        ([1, 2, 3], [3, 1, 2]),
        ([[0, 1], [1, 0], [0, 1]], [0, 1, 0]),
    ],
)
def test_classes_are_refused(predictions, targets):
    compute = calibration_metric(pos_label="yes" if "yes" in targets else None).eval_fn
    with pytest.raises(InputError, match="predictions are predicted classes"):
        compute(pd.Series(predictions), pd.Series(targets))


def test_an_interval_belongs_to_the_flagship():
    with pytest.raises(InputError, match="estimator must be 'multiscale'"):
        calibration_metric(estimator="em_bin")
