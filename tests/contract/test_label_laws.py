"""Labels of every kind that happen to be the truth give what ordinary labels give, in every function and command."""

import inspect
import json

import numpy as np
import polars as pl
import pytest

import truecal
from support.command_line import run
from truecal import InputError, labels

N = 240
_RNG = np.random.default_rng(11)
P = _RNG.beta(2, 2, N)
Y = (_RNG.random(N) < P**1.4).astype(int)
OTHER = np.clip(P + _RNG.normal(0, 0.1, N), 0.01, 0.99)
FEATURES = {"x": _RNG.normal(size=N)}

KINDS = {
    "judged": labels.judged(1 - Y, Y),
    "judged by None": labels.judged(Y, Y.astype(object), probability=0.5),
    "soft": labels.soft(Y, 1),
    "misclassified": labels.misclassified(Y, sensitivity=1, specificity=1),
    "censored": labels.censored(np.where(Y == 1, 0.5, 2.0), Y, horizon=1.0),
    "competing": labels.censored(
        np.where(Y == 1, 0.5, 0.7), np.where(Y == 1, 3, 0) + 2 * (1 - Y), horizon=1.0, cause=3
    ),
}
#: What each public function with predictions is called with.
CALLS = {
    "advise": {"estimators": ["em_sweep"], "rng": 0},
    "assess": {"n_resamples": 49, "by": FEATURES["x"] > 0, "clinical": True, "rng": 0},
    "audit": {"features": FEATURES, "n_resamples": 49, "rng": 0},
    "calibration_error": {},
    "calibration_index": {},
    "calibration_test": {"n_resamples": 49, "rng": 0},
    "compare": {"y_proba_b": OTHER},
    "confidence_interval": {"norm": 1},
    "decompose": {},
    "describe_clusters": {"clusters": np.arange(N) // 3},
    "estimate": {"estimator": "em_sweep"},
    "fit_population": {},
    "net_benefit": {"thresholds": [0.3, 0.6]},
    "reliability_curve": {"rng": 0},
    "select_recalibrator": {},
    "spiegelhalter_test": {"clusters": np.arange(N) // 3},
    "weak_calibration": {"sample_weight": 1 + P},
}
#: They never take labels of `truecal.labels`.
REFUSE = {"select_recalibrator"}


def test_every_function_is_there():
    public = {name: getattr(truecal, name) for name in dir(truecal)}
    assert {
        name
        for name, value in public.items()
        if inspect.isfunction(value) and "y_true" in inspect.signature(value).parameters
    } == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_true_labels_of_any_kind_are_ordinary_labels(name):
    function, given = getattr(truecal, name), CALLS[name]
    plain = None if name in REFUSE else function(Y, P, **given)
    for kind, seen in KINDS.items():
        if name in REFUSE:
            with pytest.raises(InputError, match="true labels"):
                function(seen, P, **given)
            continue
        assert repr(function(seen, P, **given)) == repr(plain), kind


COLUMNS = {
    "label": ("--label", "y"),
    "judged": ("--judge", "wrong", "--gold", "y"),
    "soft": ("--label", "y", "--soft"),
    "misclassified": ("--label", "y", "--sensitivity", "1", "--specificity", "1"),
    "censored": ("--time", "t", "--event", "y", "--horizon", "1"),
}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("more", [(), ("--weight", "w"), ("--cluster", "c")], ids=str)
def test_so_they_are_on_the_command_line(tmp_path, ending, more):
    columns = {
        "p": P,
        "y": Y,
        "wrong": 1 - Y,
        "t": np.where(Y == 1, 0.5, 2.0),
        "w": 1 + P,
        "c": np.arange(N) // 3,
    }
    path = tmp_path / f"rows.{ending}"
    frame = pl.DataFrame(columns)
    frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
    found = {}
    for kind, given in COLUMNS.items():
        answers = [
            json.loads(
                run(command, path, "--score", "p", *given, *more, "--format", "json", code=(0, 1)).stdout
            )
            for command in ("measure", "test")
        ]
        found[kind] = *(answers[0][name] for name in ("value", "interval", "test", "n")), answers[1]["result"]
    for kind in COLUMNS:
        assert found[kind] == found["label"], kind


@pytest.mark.parametrize("kind", ["judged", "soft", "misclassified", "censored"])
def test_scores_of_0_and_1_do_not_hide_a_wrong_slope(kind):
    rng = np.random.default_rng(5)
    p = np.clip(rng.uniform(-0.2, 1.2, 600), 0, 1)
    y = (rng.random(600) < 0.5 + 0.5 * (p - 0.5)).astype(int)
    wrong = np.where(rng.random(600) < 0.9, y, 1 - y)
    made = {
        "judged": lambda: labels.judged(wrong, np.where(rng.random(600) < 0.4, y, np.nan)),
        "soft": lambda: labels.soft(rng.binomial(3, 0.5 + 0.5 * (p - 0.5)) / 3, 3),
        "misclassified": lambda: labels.misclassified(wrong, sensitivity=0.9, specificity=0.9),
        "censored": lambda: labels.censored(np.where(y == 1, 0.5, 2), rng.random(600) < 0.7, horizon=1),
    }[kind]()
    found = truecal.calibration_test(made, p, n_resamples=99, rng=0)
    logistic = next(one for one in found.components if one.family == "logistic")
    assert logistic.pvalue < 1e-6
    assert found.pvalue <= 0.01
