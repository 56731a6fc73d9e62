import inspect
import warnings

import numpy as np
import pytest

import truecal
from truecal.data import as_sample
from truecal.exceptions import CalibrationWarning


@pytest.fixture
def three_classes():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([0.7] * 3, size=400)
    return np.array([rng.choice(3, p=row) for row in proba]), proba


def test_the_value_alone_is_that_of_the_estimate(golden):
    y, p = golden(300)
    for options in (
        {},
        {"estimator": "kde", "norm": 1, "bandwidth": 0.1},
        {"estimator": "ew_bin", "n_bins": 7},
    ):
        value = truecal.calibration_error(y, p, **options)
        assert type(value) is float
        assert value == truecal.estimate(y, p, **options).value


def test_both_functions_take_the_same_parameters_but_for_interval_and_square():
    one, two = (dict(inspect.signature(f).parameters) for f in (truecal.estimate, truecal.calibration_error))
    assert one.pop("confidence_level").default is one.pop("resolution").default is None
    assert two.pop("squared").default is False
    assert list(one.items()) == list(two.items())


def test_an_interval_comes_when_asked_for(golden):
    y, p = golden(2000)
    assert truecal.estimate(y, p).interval is None
    found = truecal.estimate(y, p, estimator="multiscale", confidence_level=0.9)
    assert found.interval.level == 0.9
    assert found.value in found.interval
    assert "(90%)" in str(found)
    assert found.to_dict()["interval"]["low"] == found.interval.low


def test_a_classwise_interval_is_joint_and_holds_the_value(three_classes):
    y, proba = three_classes
    for norm in (1, 2):
        found = truecal.estimate(y, proba, multiclass="classwise", confidence_level=0.95, norm=norm)
        assert found.value in found.interval
        assert all(part.value in part.interval for part in found.classes)
        alone = truecal.confidence_interval(y, proba, multiclass="classwise", norm=norm)
        assert (alone.low, alone.high) == (found.interval.low, found.interval.high)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"estimator": "ks"}, "confidence_level is for the estimator .multiscale., .* and not for .ks."),
        ({"norm": 3}, "norm must be 1 or 2"),
        ({"confidence_level": 95}, "confidence_level must be"),
    ],
)
def test_an_interval_that_cannot_be_is_refused(golden, options, says):
    with pytest.raises(ValueError, match=says):
        truecal.estimate(*golden(100), **{"confidence_level": 0.95, **options})


def test_a_seed_goes_to_estimators_that_draw_and_nowhere_else(golden):
    y, p = golden(300)
    block = {"estimator": "skce", "method": "block"}
    assert truecal.calibration_error(y, p, rng=1, **block) == truecal.calibration_error(y, p, rng=1, **block)
    assert truecal.calibration_error(y, p, rng=1, **block) != truecal.calibration_error(y, p, rng=2, **block)
    assert truecal.calibration_error(y, p, rng=1) == truecal.calibration_error(y, p)


def test_the_defaults_are_the_flagship_and_the_square_norm(golden):
    estimate = truecal.estimate(*golden(300))
    found = (estimate.estimator, estimate.norm, estimate.n, estimate.target)
    assert found == ("multiscale", 2.0, 300, "P(y = 1)")
    sweep = truecal.estimate(*golden(300), estimator="em_sweep")
    assert sweep.bins is not None
    assert sweep.n_bins == len(sweep.bins)


def test_a_sample_stands_for_labels_and_scores(golden):
    y, p = golden(300)
    sample = as_sample(y, p)
    assert truecal.calibration_error(sample) == truecal.calibration_error(y, p)


@pytest.mark.parametrize(
    ("surplus", "named"),
    [
        ({"y_proba": [0.1, 0.2]}, "y_proba"),
        ({"sample_weight": [1, 2], "multiclass": "top"}, "sample_weight and multiclass"),
        ({"pos_label": 0, "labels": [0, 1]}, "pos_label and labels"),
    ],
)
def test_what_a_sample_cannot_take_into_account_is_refused(surplus, named):
    sample = as_sample([0, 1], [0.2, 0.9])
    with pytest.raises(ValueError, match=rf"^{named} cannot be given beside a Sample"):
        truecal.estimate(sample, **surplus)


def test_scores_may_not_be_forgotten():
    with pytest.raises(
        ValueError, match=r"y_proba is missing\. Pass labels and probabilities, or one Sample"
    ):
        truecal.estimate([0, 1])


def test_bad_parameters_name_themselves(golden):
    y, p = golden(50)
    for options, says in [
        ({"estimator": "em_sweeep"}, "Did you mean 'em_sweep'"),
        ({"norm": 0.5}, r"norm must be a finite number >= 1, 'l1' or 'l2'\. Got 0\.5"),
        ({"norm": np.inf}, "em_mce"),
        ({"estimator": "em_bin", "n_bins": 0}, r"n_bins must be a whole number >= 1\. Got 0"),
        ({"estimator": "em_bin", "n_bins": 2.5}, r"n_bins .* Got 2\.5"),
        ({"n_bins": 10}, "n_bins is not an option of multiscale"),
        ({"estimator": "ks", "n_bins": 10}, "n_bins is not an option of ks"),
        ({"bandwidth": 0.1}, "bandwidth is not an option of multiscale"),
        ({"weights": [1, 2]}, "weights is not an option .* Weights are passed as sample_weight"),
        ({"confidence": 0.95}, "confidence is not an option .* confidence_level=0.95"),
        ({"multiclass": "tops"}, r"multiclass must be one of 'top', 'classwise'.*Did you mean 'top'"),
    ]:
        with pytest.raises(ValueError, match=says):
            truecal.estimate(y, p, **options)


@pytest.mark.parametrize("norm", [1, 2, 300])
def test_classwise_is_the_lp_mean_over_classes(three_classes, norm):
    y, proba = three_classes
    options = {"estimator": "ew_bin", "norm": norm}
    estimate = truecal.estimate(y, proba, multiclass="classwise", **options)
    each = [truecal.calibration_error(y == k, proba[:, k], **options) for k in range(3)]
    assert [part.value for part in estimate.classes] == each
    assert estimate.value == pytest.approx(np.mean(np.power(each, norm)) ** (1 / norm), abs=1e-14)
    assert estimate.target == "mean over 3 classes, each against the rest"
    assert (estimate.estimator, estimate.norm, estimate.n) == ("ew_bin", norm, 400)


def test_every_reduction_names_its_target(three_classes):
    y, proba = three_classes
    assert truecal.estimate(y, proba).target == "top label of 3 classes"
    assert truecal.estimate(y, proba, pos_label=2).target == "P(y = 2) against the rest"
    two = np.column_stack([1 - proba[:, 0], proba[:, 0]])
    assert truecal.estimate(y == 0, two).target == "P(y = 1)"
    assert truecal.estimate(y == 0, two, multiclass="top").target == "top label of 2 classes"


def test_a_note_is_a_warning_on_the_line_of_the_caller():
    y, p = np.repeat([1, 0], 50), np.repeat([0.01, 0.99], 50)
    for function in (truecal.estimate, truecal.calibration_error):
        with pytest.warns(
            CalibrationWarning, match=r"em_sweep of P\(y = 1\): the mean labels are not monotone"
        ) as caught:
            function(y, p, estimator="em_sweep")
        assert [warning.filename for warning in caught] == [__file__]


def test_notes_of_many_classes_are_one_warning():
    proba = np.tile(np.eye(3) * 0.7 + 0.1, (40, 1))
    y = np.tile([1, 2, 0], 40)
    with pytest.warns(
        CalibrationWarning, match="in 3 of 3 classes the mean labels are not monotone"
    ) as caught:
        estimate = truecal.estimate(y, proba, multiclass="classwise", estimator="em_sweep")
    assert len(caught) == 1
    assert all(part.notes for part in estimate.classes)


def test_a_large_norm_does_not_round_the_error_to_nothing():
    y, p = [0, 0, 0, 1] * 20, [0.3, 0.3, 0.9, 0.9] * 20
    for name, largest in [("em_bin", 0.4), ("ew_bin", 0.4), ("em_sweep", 0.4), ("ew_sweep", 0.4)]:
        assert truecal.calibration_error(y, p, estimator=name, norm=20_000) == pytest.approx(
            largest, abs=1e-4
        )


@pytest.mark.parametrize("name", ["ew_bin", "em_bin", "ew_debias", "em_debias", "ks"])
def test_a_million_float32_rows_are_added_up_in_float64(name):
    n = 1_000_000
    score = np.linspace(0.9, 1.0, n, dtype=np.float32)
    label = np.arange(n) * 0.6180339887498949 % 1.0 < score.astype(np.float64) - 0.05
    assert truecal.calibration_error(label, score, estimator=name, norm=1) == pytest.approx(0.05, abs=1e-5)


def test_row_order_and_the_callers_arrays(golden):
    y, p = golden(500)
    p = np.round(p, 2)
    kept = y.copy(), p.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for spec in truecal.list_estimators():
            value = truecal.calibration_error(y, p, estimator=spec.name)
            assert truecal.calibration_error(y[::-1], p[::-1], estimator=spec.name) == value
    assert (y == kept[0]).all()
    assert (p == kept[1]).all()


def test_the_square_of_the_l2_error_is_in_the_unit_of_the_brier_score(golden):
    y, p = golden(500)
    for name in ("multiscale", "em_bin"):
        root = truecal.calibration_error(y, p, estimator=name)
        assert truecal.calibration_error(y, p, estimator=name, squared=True) == root**2


@pytest.mark.parametrize(
    "options", [{"norm": 1}, {"estimator": "ks"}, {"estimator": "ece"}, {"estimator": "skce"}]
)
def test_only_the_l2_error_has_a_square(golden, options):
    y, p = golden(100)
    with pytest.raises(truecal.InputError, match="squared is for the l2 error"):
        truecal.calibration_error(y, p, squared=True, **options)
