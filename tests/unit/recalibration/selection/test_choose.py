from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from scipy.special import expit, logit, softmax

import truecal
from truecal.exceptions import InputError
from truecal.recalibration import BetaCalibration, HistogramBinning, PlattScaling, TemperatureScaling
from truecal.recalibration.selection import Selection, select_recalibrator
from truecal.recalibration.selection.criterion import gain_over, losses
from truecal.recalibration.selection.rows import FitRows

NO_OPTIONS = dict.fromkeys(("sample_weight", "weights", "pos_label", "labels", "clusters"))
FAST = {"n_resamples": 5, "rng": 0}


@pytest.fixture(scope="module")
def bad(golden):
    """Labels that come true p squared of the time."""
    return golden(1000)


@pytest.fixture(scope="module")
def classes():
    """Labels and logits of four classes, twice as sure as they should be."""
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(800, 4)) * 2
    label = (rng.random((800, 1)) > softmax(logits, axis=1).cumsum(axis=1)).sum(axis=1)
    return label, 2 * logits


def assert_alike(one, two):
    """Check that all candidates have the same numbers."""
    for ours, theirs in zip(one.to_dict()["candidates"], two.to_dict()["candidates"], strict=True):
        assert ours.pop("interval") == pytest.approx(theirs.pop("interval"))
        assert ours == pytest.approx(theirs)


# --- The choice ------------------------------------------------------------------------------------


def test_a_bad_model_is_mended(bad):
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


# --- Criteria, classes, logits ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "criterion", ["brier", "log_loss", *(spec.name for spec in truecal.list_estimators())]
)
def test_every_criterion(golden, criterion):
    y, p = golden(300)
    selection = select_recalibrator(y, p, criterion=criterion, n_resamples=2, rng=0)
    # All of these scores are too high, so the model itself has no underconfidence to reduce.
    assert selection.leave_alone == (criterion == "underconfidence")
    assert selection.criterion == f"{criterion} of P(y = 1)"


def test_options_of_the_criterion(bad):
    y, p = bad
    fold, options = np.arange(len(y)) % 4, {"norm": 1, "n_bins": 7}
    selection = select_recalibrator(y, p, criterion="em_bin", cv=fold, **options, **FAST)
    folds = [
        truecal.calibration_error(y[fold == k], p[fold == k], estimator="em_bin", **options) for k in range(4)
    ]
    assert selection["identity"].criterion == pytest.approx(np.mean(folds))


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


@pytest.mark.parametrize("multiclass", [None, "top", "classwise"])
def test_two_columns_are_the_second(bad, multiclass):
    y, p = bad
    one = select_recalibrator(y, p, multiclass=multiclass, **FAST)
    two = select_recalibrator(y, np.column_stack([1 - p, p]), multiclass=multiclass, **FAST)
    assert_alike(one, two)
    assert two.transform([[0.3, 0.7]])[0, 1] == one.transform([0.7])[0]


def test_logits_are_said_never_guessed(bad):
    y, p = bad
    by_proba = select_recalibrator(y, p, **FAST)
    by_logits = select_recalibrator(y, logit(p), input="logits", **FAST)
    assert by_logits.chosen == by_proba.chosen
    np.testing.assert_allclose(by_logits.transform(logit(p)), by_proba.transform(p), atol=1e-6)
    with pytest.raises(ValueError, match="set input='logits'"):
        select_recalibrator(y, logit(p))


def test_labels_of_other_kinds(bad, classes):
    y, p = bad
    plain = select_recalibrator(y, p, **FAST)
    words = select_recalibrator(np.where(y == 1, "a", "b"), p, pos_label="a", **FAST)
    assert words.to_dict()["candidates"] == plain.to_dict()["candidates"]
    assert words.criterion == "log_loss of P(y = 'a')"
    label, logits = classes
    numbers = select_recalibrator(label, logits, input="logits", **FAST)
    names = np.array(["d", "b", "a", "c"])
    named = select_recalibrator(names[label], logits, labels=names, input="logits", **FAST)
    assert named.to_dict()["candidates"] == numbers.to_dict()["candidates"]


# --- How rows are held out -------------------------------------------------------------------------


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
        weights="counts",
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


# --- Candidates ------------------------------------------------------------------------------------


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
        ({"criterion": "brier", "n_bins": 3}, "brier has no option 'n_bins'"),
        ({"criterion": "em_sweep", "n_bins": 3}, "em_sweep has no option 'n_bins'"),
        ({"candidates": "platt"}, "candidates must be a list or a mapping"),
        ({"candidates": ["plat"]}, "Did you mean 'platt'"),
        ({"candidates": [HistogramBinning(4), HistogramBinning(9)]}, "have the same name twice"),
        ({"candidates": [3]}, "candidates must have fit and transform. Got 3 instead"),
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


# --- The result ------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("score", ["brier", "log_loss"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_losses_are_scikit_learns(score, n_classes):
    metrics = pytest.importorskip("sklearn.metrics", reason="the reference")
    rng = np.random.default_rng(0)
    p = softmax(rng.normal(size=(50, n_classes)), axis=1)
    label = rng.integers(n_classes, size=50)
    ours = losses(p[:, 1] if n_classes == 2 else p, score)[np.arange(50), label].mean()
    if score == "log_loss":
        assert ours == pytest.approx(metrics.log_loss(label, p, labels=range(n_classes)))
    else:
        expected = ((p - np.eye(n_classes)[label]) ** 2).sum(axis=1).mean()
        assert ours == pytest.approx(expected / 2 if n_classes == 2 else expected)


@pytest.mark.parametrize("score", ["brier", "log_loss"])
def test_the_variance_by_chance_is_that_of_drawn_labels(score):
    rng = np.random.default_rng(0)
    model, candidate = softmax(rng.normal(size=(2, 30, 3)), axis=2)
    every = [gain_over(model, candidate, np.full(30, k), score).value for k in range(3)]
    mean = sum(model[:, k] * every[k] for k in range(3))
    variance = sum(model[:, k] * (every[k] - mean) ** 2 for k in range(3))
    found = gain_over(model, candidate, np.zeros(30, dtype=int), score)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-9)
    assert (mean <= 0).all()  # a proper score: the truth cannot be improved on
    rows = FitRows.read(np.zeros(30, dtype=int), model, "probabilities", **NO_OPTIONS)
    value, chance = found.summarize(rows)
    assert value == pytest.approx(found.value.mean())
    assert chance == pytest.approx(np.sqrt(variance.sum()) / 30)


def test_two_columns_have_the_gain_of_one():
    p, q = expit(np.array([-1.0, 0.3])), expit(np.array([-2.0, 1.0]))
    one = gain_over(p, q, np.array([0, 1]), "log_loss")
    two = gain_over(np.column_stack([1 - p, p]), np.column_stack([1 - q, q]), np.array([0, 1]), "log_loss")
    np.testing.assert_allclose(one.value, two.value)
    np.testing.assert_allclose(one.variance, two.variance)


# --- Samples and clusters --------------------------------------------------------------------------


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
        (sample, {"clusters": y}, "already holds .* Leave out clusters"),
        (sample, {"y_proba": p}, "Leave out y_proba"),
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
