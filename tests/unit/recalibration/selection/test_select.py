"""The choice of a recalibrator, and its result."""

import dataclasses
import json

import numpy as np
import pytest
from scipy.special import softmax

import truecal
from support.selections import FAST, NO_OPTIONS, assert_alike
from truecal.exceptions import InputError
from truecal.recalibration import BetaCalibration, HistogramBinning, PlattScaling, TemperatureScaling
from truecal.recalibration._fit_rows import FitRows
from truecal.recalibration.selection import Selection, select_recalibrator


def test_a_bad_model_is_recalibrated(bad):
    y, p = bad
    selection = select_recalibrator(y, p, rng=0)
    assert not selection.leave_alone
    assert selection.chosen in ("platt", "beta", "isotonic", "histogram")
    chosen = selection[selection.chosen]
    assert chosen.passes
    assert chosen.evidence > selection.z
    assert chosen.difference + 3 * chosen.difference_se < 0
    assert truecal.calibration_error(y, selection.transform(p)) < 0.2 * truecal.calibration_error(y, p)
    assert selection.verdict.startswith(f"Use {selection.chosen}: log_loss of P(y = 1) is ")


def test_a_calibrated_model_is_left_alone(golden):
    y, p = golden(1000, "identity")
    selection = select_recalibrator(y, p, rng=0)
    assert selection.leave_alone
    assert selection.chosen == "identity"
    assert selection.verdict.startswith("Leave the model alone.")
    np.testing.assert_array_equal(selection.transform(p), p)


def test_the_identity_comes_first_with_nothing_to_gain(bad):
    first = select_recalibrator(*bad, **FAST).candidates[0]
    assert first.name == "identity"
    assert (first.difference, first.brier_gain, first.log_loss_gain, first.evidence) == (0, 0, 0, 0)
    assert not first.passes


def test_no_failure_among_few_expected_is_no_evidence():
    # All of 300 rows of probability 0.999 come true in 3 of 4 samples: each row gains, and all alike.
    selection = select_recalibrator(np.ones(300, dtype=int), np.full(300, 0.999), **FAST)
    assert selection.leave_alone
    assert selection["histogram"].brier_gain > 0
    assert selection["histogram"].evidence < 1


def test_what_was_called_impossible_is_evidence_enough():
    p = np.tile([0.0, 0.0, 0.5, 1.0], 50)
    y = np.tile([0, 1, 1, 0, 0, 0, 0, 1], 25)
    selection = select_recalibrator(y, p, **FAST)
    assert not selection.leave_alone
    assert truecal.calibration_error(y, selection.transform(p)) < 0.1


def test_a_smaller_criterion_does_not_excuse_a_worse_score(classes):
    # Ten bins of equal mass blur four classes beyond use, however well calibrated what is left of them is.
    label, logits = classes
    coarse = HistogramBinning(n_bins=1, input="logits")
    selection = select_recalibrator(label, logits / 2, candidates={"coarse": coarse}, input="logits", **FAST)
    assert selection["coarse"].brier_gain < 0
    assert selection.leave_alone


def test_shares_add_up_to_1_and_errors_are_positive(bad):
    selection = select_recalibrator(*bad, n_resamples=20, rng=1)
    assert sum(row.chosen_share for row in selection.candidates) == pytest.approx(1)
    assert all(row.criterion_se > 0 for row in selection.candidates)
    assert all(row.difference_se > 0 for row in selection.candidates[1:])


def test_the_recalibrator_is_fitted_to_all_rows(bad):
    y, p = bad
    selection = select_recalibrator(y, p, candidates=["beta"], **FAST)
    np.testing.assert_allclose(selection.transform(p), BetaCalibration().fit(p, y).transform(p))


@pytest.mark.parametrize("multiclass", [None, "top", "classwise"])
def test_several_classes(classes, multiclass):
    label, logits = classes
    given = {"input": "logits", "multiclass": multiclass, "criterion": "em_sweep"}
    selection = select_recalibrator(label, logits, **given, **FAST)
    assert not selection.leave_alone
    proba = softmax(logits, axis=1)
    before = truecal.calibration_error(label, proba, multiclass=multiclass, estimator="em_sweep")
    own = truecal.calibration_error(label, proba, multiclass=multiclass)
    assert selection["identity"].error == pytest.approx(own, rel=1e-6)
    after = truecal.calibration_error(
        label, selection.transform(logits), multiclass=multiclass, estimator="em_sweep"
    )
    assert after < 0.7 * before


def test_a_validation_set_judges_what_was_fitted_elsewhere(golden):
    y, p = golden(2000)
    held_out = y[1000:], p[1000:]
    selection = select_recalibrator(y[:1000], p[:1000], validation=held_out, criterion="ew_bin", **FAST)
    assert selection.design == "1000 validation rows"
    best = BetaCalibration().fit(p[:1000], y[:1000]).transform(p[1000:])
    assert selection["beta"].criterion == pytest.approx(
        truecal.calibration_error(y[1000:], best, estimator="ew_bin")
    )
    brier = np.mean((p[1000:] - y[1000:]) ** 2 - (best - y[1000:]) ** 2)
    assert selection["beta"].brier_gain == pytest.approx(brier)


def test_whole_weights_are_repetition(golden):
    y, p = golden(400)
    weight = np.arange(400) % 3
    y_val, p_val = y[200:], p[200:]
    weighted = select_recalibrator(
        y[:200],
        p[:200],
        sample_weight=weight[:200],
        weighting="counts",
        validation=(y_val, p_val, weight[200:]),
        **FAST,
    )
    times = weight[:200], weight[200:]
    repeated = select_recalibrator(
        np.repeat(y[:200], times[0]),
        np.repeat(p[:200], times[0]),
        validation=(np.repeat(y_val, times[1]), np.repeat(p_val, times[1])),
        **FAST,
    )
    assert weighted.n == repeated.n
    for ours, theirs in zip(weighted.candidates, repeated.candidates, strict=True):
        for name in ("criterion", "difference", "brier_gain", "log_loss_gain", "evidence", "error"):
            assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=1e-6), (ours.name, name)


def test_weights_that_are_no_counts(bad):
    y, p = bad
    selection = select_recalibrator(y, p, sample_weight=np.linspace(0.5, 1.5, len(y)), **FAST)
    assert not selection.leave_alone


def test_the_order_of_rows_does_not_matter(classes):
    label, logits = classes
    shuffled = np.random.default_rng(0).permutation(len(label))
    there = select_recalibrator(label, logits, input="logits", **FAST)
    back = select_recalibrator(label[shuffled], logits[shuffled], input="logits", **FAST)
    assert_alike(there, back)


def test_the_same_rng_gives_the_same_selection(bad):
    assert select_recalibrator(*bad, **FAST).to_dict() == select_recalibrator(*bad, **FAST).to_dict()


def test_folds_can_be_given(bad):
    y, p = bad
    fold = np.arange(len(y)) % 3
    left_out = np.append(y, 1), np.append(p, 0.5)
    selection = select_recalibrator(
        *left_out,
        sample_weight=np.append(np.ones(1000), 0),
        candidates=["platt"],
        cv=np.append(fold, 9),
        criterion="ew_bin",
        **FAST,
    )
    assert selection.design == "3 folds"
    squares = []
    for k in range(3):
        after = PlattScaling().fit(p[fold != k], y[fold != k]).transform(p[fold == k])
        squares.append(truecal.calibration_error(y[fold == k], after, estimator="ew_bin") ** 2)
    share = np.bincount(fold) / len(fold)
    assert selection["platt"].criterion == pytest.approx(np.sqrt(share @ squares))


def test_candidates_by_name_object_and_mapping(bad):
    y, p = bad
    listed = select_recalibrator(y, p, candidates=["platt", HistogramBinning(n_bins=4)], **FAST)
    assert [row.name for row in listed.candidates] == ["identity", "platt", "HistogramBinning"]
    mapped = select_recalibrator(
        y, p, candidates={"coarse": HistogramBinning(n_bins=4), "p": "platt"}, **FAST
    )
    assert mapped["coarse"].criterion == listed["HistogramBinning"].criterion
    with pytest.raises(ValueError, match=r"a candidate must be one of .*'coarse'"):
        mapped["fine"]


def test_candidates_are_not_changed(bad):
    candidate = HistogramBinning(n_bins=4)
    select_recalibrator(*bad, candidates=[candidate], **FAST)
    assert not hasattr(candidate, "maps_")


def test_recalibrators_of_others(bad):
    isotonic = pytest.importorskip("sklearn.isotonic")
    theirs = isotonic.IsotonicRegression(out_of_bounds="clip")
    selection = select_recalibrator(*bad, candidates={"theirs": theirs, "isotonic": "isotonic"}, **FAST)
    assert selection["theirs"].criterion == pytest.approx(selection["isotonic"].criterion)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"criterion": "em_swep"}, r"criterion must be one of 'brier', .* Did you mean 'em_sweep'"),
        ({"criterion": "brier", "n_bins": 3}, "n_bins is not an option of brier"),
        ({"criterion": "em_sweep", "n_bins": 3}, "n_bins is not an option of em_sweep"),
        ({"candidates": "platt"}, "candidates must be a list or a mapping"),
        ({"candidates": ["plat"]}, "Did you mean 'platt'"),
        ({"candidates": [HistogramBinning(4), HistogramBinning(9)]}, "have duplicate names"),
        ({"candidates": [3]}, "candidates must have fit, and transform or predict_proba. Got 3 instead"),
        ({"candidates": {"identity": "platt"}}, "must not be called 'identity'"),
        ({"candidates": [TemperatureScaling()]}, "takes logits, but input='probabilities' was passed"),
        ({"candidates": []}, "candidates must not be empty"),
        ({"cv": 1}, "cv must be a whole number >= 2. Got 1 instead"),
        ({"cv": 1001}, "cv must be at most the number of rows, 1000"),
        ({"cv": np.zeros(1000)}, "cv must have at least two different folds"),
        ({"cv": [0, 1]}, r"cv has shape \(2,\). One fold is needed for each of 1000 rows"),
        ({"multiclass": "all"}, "multiclass must be one of 'top', 'classwise'"),
        ({"validation": ([0, 1],)}, r"validation must be \(y_true, y_proba\)"),
        ({"validation": ([0, 1], [[0.2, 0.8], [0.1, 0.9]])}, "validation has 2 columns of scores"),
        ({"n_resamples": 0}, "n_resamples must be a whole number >= 1"),
        ({"rng": "seed"}, "rng must be None, a seed or"),
    ],
)
def test_wrong_parameters(bad, given, says):
    with pytest.raises(ValueError, match=says):
        select_recalibrator(*bad, **given)


def test_pos_label_is_for_two_classes(classes):
    label, logits = classes
    with pytest.raises(ValueError, match=r"pos_label is for two classes. Scores have 4 columns"):
        select_recalibrator(label, logits, input="logits", pos_label=1)


def test_a_sample_takes_the_place_of_rows(bad):
    y, p = bad
    rounded = p.round(2)
    sample = truecal.Sample.from_predictions(y, rounded)
    frame = pytest.importorskip("polars").DataFrame({"y": y, "p": rounded})
    of_rows = select_recalibrator(y, rounded, candidates=["platt"], **FAST)
    for given in (sample, truecal.summarize(frame, label="y", score="p")):
        selection = select_recalibrator(given, candidates=["platt"], **FAST)
        assert (selection.n, selection.criterion) == (1000, "log_loss of P(y = 1)")
        np.testing.assert_allclose(selection.transform(p), of_rows.transform(p), rtol=1e-3)
        for name in ("identity", "platt"):
            assert selection[name].criterion == pytest.approx(of_rows[name].criterion, rel=0.02)
    held_out = select_recalibrator(sample, validation=sample, **FAST)
    assert held_out.n == 1000


def test_what_a_sample_cannot_say(bad):
    y, p = bad
    sample = truecal.Sample.from_predictions(y, p)
    weighted = truecal.Sample.from_predictions(y, p, sample_weight=np.linspace(0.5, 2, len(y)))
    for given, options, says in [
        (sample, {"clusters": y}, "clusters cannot be given beside a Sample"),
        (sample, {"y_proba": p}, "y_proba cannot be given beside a Sample"),
        (sample, {"cv": y}, "cv must be a number for a Sample"),
        (sample, {"input": "logits"}, "input must be 'probabilities' for a Sample"),
        (weighted, {}, "does not keep the weights of single rows"),
        (y, {}, "y_proba is missing"),
    ]:
        with pytest.raises(InputError, match=says):
            select_recalibrator(given, **options)


def test_folds_never_split_a_cluster(bad):
    y, p = bad
    clusters = np.arange(len(y)) // 7
    rows = FitRows.read(y, p, "probabilities", **{**NO_OPTIONS, "clusters": clusters})
    same, fold = rows.folds(5, np.random.default_rng(0))
    assert same is rows
    assert set(fold) == set(range(5))
    assert len(np.unique(np.column_stack([rows.cluster, fold]), axis=0)) == len(np.unique(clusters))
    sample = truecal.Sample.from_predictions(y, p, clusters=clusters)
    of_sample = select_recalibrator(sample, **FAST)
    assert of_sample["platt"].evidence == pytest.approx(
        select_recalibrator(y, p, clusters=clusters, **FAST)["platt"].evidence, rel=0.1
    )
    with pytest.raises(InputError, match="clusters whose rows are in several folds"):
        select_recalibrator(y, p, clusters=clusters, cv=np.arange(len(y)) % 5)
    with pytest.raises(InputError, match="cv must be at most the number of clusters, 2"):
        select_recalibrator(y, p, clusters=y)


def test_repeated_rows_in_clusters_are_no_evidence(golden):
    y, p = golden(60)
    single = select_recalibrator(y, p, **FAST)
    again = select_recalibrator(np.tile(y, 10), np.tile(p, 10), clusters=np.tile(np.arange(60), 10), **FAST)
    naive = select_recalibrator(np.tile(y, 10), np.tile(p, 10), **FAST)
    assert again["platt"].evidence == pytest.approx(single["platt"].evidence, rel=0.5)
    assert naive["platt"].evidence > 2 * again["platt"].evidence
    assert naive["platt"].interval.low > 0 == again["platt"].interval.low


def test_vector_and_dirichlet_scaling_are_defaults_for_a_few_classes():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([1, 1, 1], 1500)
    y = (truth.cumsum(axis=1) < rng.random((1500, 1))).sum(axis=1)
    p = truth * np.array([5.0, 1.0, 0.3])
    selection = select_recalibrator(y, p / p.sum(axis=1, keepdims=True), n_resamples=1, rng=0)
    names = [candidate.name for candidate in selection.candidates]
    assert names[-2:] == ["vector", "dirichlet"]
    assert selection.chosen in ("vector", "dirichlet")
    binary = select_recalibrator(y == 0, p[:, 0] / p.sum(axis=1), n_resamples=1, rng=0)
    assert "vector" not in [candidate.name for candidate in binary.candidates]


def test_the_criterion_in_words(bad, classes):
    def words(data, **given):
        return select_recalibrator(*data, candidates=["platt"], n_resamples=1, rng=0, **given).criterion

    assert words(bad, criterion="brier") == "brier of P(y = 1)"
    assert words(bad, criterion="em_sweep", multiclass="top") == "em_sweep of the top label of 2 classes"
    many = {"data": classes, "input": "logits"}
    assert words(**many, criterion="em_sweep") == "em_sweep of the top label of 4 classes"
    assert (
        words(**many, criterion="ew_bin", multiclass="classwise")
        == "ew_bin of 4 classes, each against the rest"
    )
    assert words(**many, criterion="log_loss") == "log_loss of 4 classes"


def test_the_result_is_plain_and_frozen(bad):
    selection = select_recalibrator(*bad, **FAST)
    assert isinstance(selection, Selection)
    assert json.loads(json.dumps(selection.to_dict()))["chosen"] == selection.chosen
    with pytest.raises(dataclasses.FrozenInstanceError):
        selection.chosen = "platt"
    text = str(selection)
    assert all(row.name in text for row in selection.candidates)
    assert f"*{selection.chosen}" in text
    assert repr(selection) == f"<Selection {selection.chosen!r} of 6 by log_loss of P(y = 1)>"
