import json
import math

import numpy as np
import pytest

import truecal
from truecal.data import read


def draw(n, curve, rng=1):
    rng = np.random.default_rng(rng)
    p = rng.random(n)
    return (rng.random(n) < curve(p)).astype(int), p


def assess(y, p, **options):
    return truecal.assess(y, p, **{"simulate": False, "n_resamples": 199, "rng": 0, **options})


# --- Verdicts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("curve", "says"),
    [
        (lambda p: p**2, "On the whole they are too high"),
        (lambda p: p**0.5, "On the whole they are too low"),
        (lambda p: 0.5 + 0.5 * (p - 0.5), "They are over-confident"),
        (lambda p: p**2.5 / (p**2.5 + (1 - p) ** 2.5), "They are under-confident"),
        (lambda p: p + 0.15 * np.sin(4 * np.pi * p) * (p < 1), "Some are too high and others too low"),
        (lambda p: 1 - p, "the wrong way round"),
    ],
)
def test_the_verdict_tells_the_kind_of_error(curve, says):
    assessment = assess(*draw(4000, curve))
    assert assessment.miscalibrated
    assert assessment.verdict.startswith("These probabilities are miscalibrated, by about")
    assert says in assessment.verdict


@pytest.mark.parametrize(
    ("curve", "says"), [(lambda p: p**2, "over-confident"), (lambda p: p**0.3, "under-confident")]
)
def test_a_top_label_is_over_or_under_confident(curve, says):
    label, top = draw(3000, lambda p: curve(0.4 + 0.6 * p))
    proba = np.column_stack([0.4 + 0.6 * top, 0.35 - 0.35 * top, 0.25 - 0.25 * top])
    assessment = assess(1 - label, proba)
    assert f"The model is {says}" in assessment.verdict


def test_nothing_found_says_what_could_be_hidden():
    many = assess(*draw(4000, lambda p: p))
    assert not many.miscalibrated
    assert "could still be hidden (95 % interval 0.0 % to" in many.verdict
    few = assess(*draw(30, lambda p: p))
    assert "That says little" in few.verdict


def test_labels_that_fall_are_seen_though_the_sweep_is_blind():
    # The base rate is right, one bin is left to the sweep, and its estimate is near 0.
    assessment = assess(*draw(3000, lambda p: 1 - p))
    assert assessment.test.estimator == "em_debias"
    assert assessment.test.pvalue < 0.01


# --- Unusual data ----------------------------------------------------------------------------------

ODD = {
    "one row": ([1], [0.7]),
    "two equal rows": ([1, 0], [0.7, 0.7]),
    "three rows": ([1, 0, 1], [0.7, 0.2, 0.9]),
    "one outcome": (np.ones(100, int), np.linspace(0.1, 0.9, 100)),
    "only 0 and 1": (np.arange(100) % 2, np.arange(100) // 2 % 2.0),
    "only 0 and 1, right": (np.arange(100) % 2, np.arange(100) % 2.0),
    "one score": (np.arange(100) % 2, np.full(100, 0.5)),
    "certain and right": (np.ones(50, int), np.ones(50)),
    "certain and wrong": (np.ones(50, int), np.zeros(50)),
    "rounded": (lambda y, p: (y, np.round(p, 1)))(*draw(500, lambda p: p)),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_data_is_assessed(name):
    assessment = assess(*ODD[name], simulate=True)
    text = json.dumps(assessment.to_dict(), allow_nan=False)
    assert json.loads(text)["schema_version"] == 1
    assert assessment.verdict in " ".join(str(assessment).split("\n"))
    assert assessment.verdict[:30] in assessment.to_html().replace("\u00a0", " ")
    assert 0 <= assessment.interval.low <= assessment.interval.high <= 1


def test_an_infinite_log_loss_is_none_and_said():
    assessment = assess(*ODD["certain and wrong"])
    (log_loss,) = (part for part in assessment.to_dict()["decompositions"] if part["name"] == "log_loss")
    assert log_loss["score"] is None
    assert math.isinf(assessment.decompositions[1].score)
    assert "The log loss is infinite" in " ".join(assessment.warnings)
    assert "infinite" in assessment.to_html()


def test_fractional_weights_degrade_and_say_so():
    y, p = draw(1000, lambda p: p**2)
    assessment = assess(y, p, sample_weight=np.linspace(0.5, 1.5, 1000), simulate=True)
    assert assessment.test is None
    assert not assessment.reliability.has_band
    assert assessment.miscalibrated  # by the interval
    assert "The weights have fractions" in assessment.warnings[0]
    assert assessment.to_dict()["test"] is None
    json.dumps(assessment.to_dict(), allow_nan=False)
    assert "test of calibration" not in str(assessment)


def test_whole_weights_equal_repetition():
    y, p = draw(300, lambda p: p**2)
    weight = np.arange(300) % 3 + 1
    once = assess(y, p, sample_weight=weight)
    twice = assess(np.repeat(y, weight), np.repeat(p, weight))
    assert once.to_dict() == twice.to_dict()


# --- Ways in and out -------------------------------------------------------------------------------


def test_samples_and_cells_are_taken():
    y, p = draw(2000, lambda p: p**2)
    (sample,) = read(y, p)
    whole, cells = assess(sample, None), assess(truecal.Cells.from_sample(sample), None)
    assert whole.to_dict() == assess(y, p).to_dict()
    assert cells.estimate.value == pytest.approx(whole.estimate.value, abs=2e-3)
    assert cells.verdict[:45] == whole.verdict[:45]


def test_the_same_seed_gives_the_same_answer():
    y, p = draw(500, lambda p: p**2)
    one, two = (assess(y, p, simulate=True, rng=7).to_dict() for _ in range(2))
    assert one == two


def test_a_hundred_thousand_rows_are_seen_through_cells():
    y, p = draw(100_000, lambda p: p)
    assessment = assess(y, p, n_resamples=99)
    assert assessment.test.n == 100_000
    assert len(assessment.reliability.score) < 5000


def test_notebook_and_picture():
    assessment = assess(*draw(300, lambda p: p))
    html = assessment._repr_html_()
    assert html.startswith("<iframe srcdoc=")
    assert "<svg" not in html  # escaped within the attribute
    assert assessment.plot().ax_ is not None
    assert repr(assessment) == f"<Assessment: {assessment.verdict}>"


def test_no_warning_escapes(recwarn):
    assess(*ODD["only 0 and 1"], simulate=True)
    assess(*draw(300, lambda p: 1 - p), simulate=True)
    assert not recwarn.list


def test_classwise_is_refused():
    with pytest.raises(ValueError, match="takes one"):
        truecal.assess([0, 1, 2], np.eye(3), multiclass="classwise")


def test_the_first_estimator_is_quoted():
    assessment = assess(*draw(2000, lambda p: p**2), estimators=("ew_bin", "ks"))
    assert assessment.estimate.estimator == "ew_bin"
    assert f"by about {100 * assessment.estimate.value:.1f} %" in assessment.verdict
