import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

import truecal
from truecal.data import as_sample
from truecal.data.faults import CLASSES
from truecal.exceptions import CalibrationWarning, InputError


def draw(n, curve, rng=1):
    rng = np.random.default_rng(rng)
    p = rng.random(n)
    return (rng.random(n) < curve(p)).astype(int), p


def assess(y, p=None, **options):
    return truecal.assess(y, p, **{"recalibration": False, "n_resamples": 199, "rng": 0, **options})


# --- Unusual data ----------------------------------------------------------------------------------

ODD = {
    "one row": ([1], [0.7]),
    "one wrong row": ([0], [0.999]),
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
    assessment = assess(*ODD[name], recalibration=True)
    text = json.dumps(assessment.to_dict(), allow_nan=False)
    assert json.loads(text)["schema_version"] == 1
    assert assessment.verdict in " ".join(str(assessment).split("\n"))
    assert assessment.verdict[:30] in assessment.to_html()
    assert 0 <= assessment.interval.low <= assessment.estimate.value <= assessment.interval.high <= 1


def test_an_infinite_log_loss_is_none_and_reported():
    assessment = assess(*ODD["certain and wrong"])
    (log_loss,) = (part for part in assessment.to_dict()["decompositions"] if part["name"] == "log_loss")
    assert log_loss["score"] is None
    assert math.isinf(assessment.decompositions[1].score)
    assert "The log loss is infinite" in " ".join(assessment.warnings)
    assert "infinite" in assessment.to_html()


def test_sampling_weights_have_a_test_and_no_band():
    y, p = draw(1000, lambda p: p**2)
    weight = np.linspace(0.5, 1.5, 1000)
    assessment = assess(y, p, sample_weight=weight, recalibration=True)
    assert assessment.miscalibrated
    assert not assessment.reliability.has_band
    assert "sampling weights: intervals and the test are those of 923 rows" in " ".join(assessment.warnings)
    assert weight.sum() ** 2 / (weight @ weight) == pytest.approx(923, abs=0.5)
    assert assessment.recalibration.leave_alone


def test_fractional_counts_have_no_test_and_say_so():
    y, p = draw(1000, lambda p: p**2)
    sampling = as_sample(y, p, sample_weight=np.linspace(0.5, 1.5, 1000))
    assessment = assess(replace(sampling, squares=None, positive_squares=None), recalibration=True)
    assert assessment.test is None
    assert not assessment.reliability.has_band
    assert assessment.miscalibrated  # by the interval
    assert "The counts are fractional" in " ".join(assessment.warnings)
    assert assessment.to_dict()["test"] is None
    json.dumps(assessment.to_dict(), allow_nan=False)
    assert "p =" not in assessment.verdict


def test_whole_weights_equal_repetition():
    y, p = draw(300, lambda p: p**2)
    weight = np.arange(300) % 3 + 1
    once = assess(y, p, sample_weight=weight, weighting="counts")
    assert once.to_dict() == assess(np.repeat(y, weight), np.repeat(p, weight)).to_dict()


# --- Input and output ------------------------------------------------------------------------------


def test_samples_and_cells_are_accepted():
    y, p = draw(2000, lambda p: p**2)
    sample = as_sample(y, p)
    whole, cells = assess(sample, recalibration=True), assess(truecal.Cells.from_sample(sample))
    assert whole.to_dict() == assess(y, p, recalibration=True).to_dict()
    assert cells.estimate.value == pytest.approx(whole.estimate.value, abs=2e-3)
    assert cells.verdict[:45] == whole.verdict[:45]


def test_the_same_seed_gives_the_same_answer():
    y, p = draw(500, lambda p: p**2)
    by = np.arange(500) % 3
    one, two = (assess(y, p, by=by, recalibration=True, rng=7).to_dict() for _ in range(2))
    assert one == two


def test_the_test_is_the_default_one():
    y, p = draw(400, lambda p: p**1.3)
    assert assess(y, p).test.pvalue == truecal.calibration_test(y, p, n_resamples=199, rng=0).pvalue


def test_many_rows_are_drawn_in_blocks():
    y, p = draw(100_000, lambda p: p)
    assessment = assess(y, p, n_resamples=99)
    assert assessment.test.n == 100_000
    assert len(assessment.reliability.score) < 2000


def test_notebook_and_picture():
    assessment = assess(*draw(300, lambda p: p))
    html = assessment._repr_html_()
    assert html.startswith("<iframe srcdoc=")
    assert "<svg" not in html  # escaped within the attribute
    assert assessment.plot().ax_ is not None
    assert repr(assessment) == f"<Assessment: {assessment.verdict}>"


def test_only_warnings_about_the_input_escape(recwarn):
    assess(*ODD["only 0 and 1"], recalibration=True)
    assert {str(one.message) for one in recwarn.list} == {CLASSES}
    recwarn.clear()
    assess(*draw(300, lambda p: 1 - p), recalibration=True)
    assert not recwarn.list


def test_the_order_of_unnamed_columns_is_named():
    labels, proba = ["c", "a", "b"] * 10, np.full((30, 3), 1 / 3)
    with pytest.warns(CalibrationWarning, match="sorted labels: 'a', 'b', 'c'"):
        assess(labels, proba, recalibration=False)


def questions(n, size, rng, slope=1.0, icc=0.3):
    """Answers to questions that have one score each."""
    p = rng.beta(3, 2, n)
    curve, rest = expit(slope * logit(p)), (1 - icc) / icc
    who = np.repeat(np.arange(n), size)
    return (rng.random(n * size) < rng.beta(curve * rest, (1 - curve) * rest)[who]).astype(int), p[who], who


def test_clusters_change_the_verdict_and_are_described():
    y, p, who = questions(200, 5, np.random.default_rng(1))
    alone, together = assess(y, p), assess(y, p, clusters=who)
    assert alone.miscalibrated
    assert any("200 scores occur 5 times each" in note and "clusters" in note for note in alone.warnings)
    assert not together.miscalibrated
    assert together.warnings == ()
    assert together.clusters.n_clusters == 200
    assert 1.5 < together.clusters.design_effect < 3.2
    assert "1,000 rows in 200 clusters of 5" in str(together)
    assert together.weak.slope.interval.assumption == "cluster-robust variance, 200 clusters"
    # As many rows more are needed, except for the largest errors, where the smallest plan counts.
    ratio = together.plan[0].slope / alone.plan[0].slope
    assert ratio == pytest.approx(together.clusters.design_effect, rel=0.01)
    assert together.reliability.has_band
    width = together.reliability.interval_upper - together.reliability.interval_lower
    assert (width > alone.reliability.interval_upper - alone.reliability.interval_lower).mean() > 0.8
    assert json.loads(json.dumps(together.to_dict()))["clusters"]["weighting"] == "rows"


def test_groups_and_recalibration_with_clusters():
    y, p, who = questions(400, 5, np.random.default_rng(2), slope=0.4)
    found = assess(y, p, clusters=who, by={"half": who % 2}, recalibration=True)
    assert found.miscalibrated
    assert [row.n_clusters for row in found.groups.rows] == [200, 200]
    assert found.groups.difference.degrees == 2
    assert all(row.adjusted_pvalue >= row.pvalue for row in found.groups.rows)
    assert found.recalibration.advice


def test_each_cluster_can_count_the_same():
    y, p, who = questions(60, 4, np.random.default_rng(3))
    more = np.repeat(np.arange(len(y)), np.where(who < 5, 40, 1))  # five clusters of 160 rows
    equal = assess(y[more], p[more], clusters=who[more], weighting="clusters")
    assert equal.target == "P(y = 1), every cluster counted once"
    # Nearly so: the prior odds depend on the effective number of rows, 261 here and 240 there.
    assert equal.estimate.value == pytest.approx(truecal.calibration_error(y, p, clusters=who), abs=1e-3)
    assert equal.clusters.largest == 160


def test_five_clusters_give_no_confident_verdict(shared):
    """`clustertestdata` of the R package CalibrationCurves: 5,000 rows, and only five clusters."""
    data = np.genfromtxt(
        shared / "external" / "calibrationcurves_clusters.csv", delimiter=",", names=True, dtype=None
    )
    found = assess(data["y"].astype(int), data["p"], clusters=data["cluster"])
    assert found.state == "inconclusive"
    assert (found.interval.low, found.interval.high > 0.5) == (0, True)
    assert "5 clusters are too few for an interval" in found.verdict
    assert not found.reliability.has_band
    assert any("5 clusters cannot show how much clusters differ" in note for note in found.warnings)


# --- Groups and classes ----------------------------------------------------------------------------


def test_groups_are_named_in_the_verdict():
    y, p = draw(4000, lambda p: p, rng=2)
    by = np.where(np.arange(4000) % 4 == 0, "north", "south")
    y = np.where(by == "north", 1, y)
    assessment = assess(y, p, by=by)
    assert assessment.groups.miscalibrated == ("north",)
    assert "1 of 2 groups is shown to be miscalibrated: north." in assessment.verdict
    assert assessment.groups["north"].n == 1000
    assert assessment.groups.difference.pvalue < 1e-6


@pytest.mark.parametrize(
    ("n_groups", "end"), [(11, "g09, g10."), (12, "g09 and 2 more (see the table of groups).")]
)
def test_the_verdict_names_the_miscalibrated_groups_or_says_where_they_are(n_groups, end):
    y, p = draw(100, lambda p: 0.02 * p)
    parts = {f"g{k:02}": as_sample(y, p) for k in range(n_groups)}
    assessment = assess(as_sample(y, p), by=parts)
    assert f"{n_groups} of {n_groups} groups are shown to be miscalibrated: g00, g01," in assessment.verdict
    assert assessment.verdict.endswith(end)


def test_groups_of_samples_are_those_of_rows():
    y, p = draw(900, lambda p: p**1.2)
    by = np.arange(900) % 3
    parts = {str(k): as_sample(y[by == k], p[by == k]) for k in range(3)}
    sample = as_sample(y, p)
    rows, samples = assess(y, p, by={"third": by}), assess(sample, by={"third": parts})
    assert rows.groups.to_dict() == samples.groups.to_dict()
    assert samples.groups.columns == ("third",)
    assert assess(sample, by=parts).groups.columns == ("group",)
    with pytest.raises(InputError, match="by must map names of groups to Samples"):
        assess(sample, by=by)


def test_classwise_has_a_row_for_each_class():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 600)
    label = (proba.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1).clip(max=2)
    assessment = assess(label, proba, multiclass="classwise")
    assert [row.name for row in assessment.classes.rows] == ["0", "1", "2"]
    assert assessment.target == "top label of 3 classes"
    assert assessment.classes.n_hypotheses == 3
    assert assessment.classes.difference is None


def test_recalibration_is_not_advised_without_evidence():
    assessment = assess(*draw(2000, lambda p: p), recalibration=True)
    assert not assessment.miscalibrated
    assert assessment.recalibration.leave_alone
    assert assessment.recalibration.advice.startswith("Leave the model as it is")


def test_the_top_label_in_each_predicted_class():
    data = truecal.datasets.load("digits")
    common = {"labels": data.labels, "multiclass": "top_by_class"}
    assessment = truecal.assess(
        data.y_true, data.y_proba, **common, n_resamples=99, recalibration=False, rng=0
    )
    estimate = truecal.estimate(data.y_true, data.y_proba, **common)
    assert assessment.target == "top label of 10 classes"
    assert [row.name for row in assessment.classes.rows] == list(data.labels)
    assert [row.estimate.value for row in assessment.classes.rows] == [one.value for one in estimate.classes]
    assert sum(row.n for row in assessment.classes.rows) == len(data.y_true)
    assert all(row.adjusted_pvalue >= row.pvalue for row in assessment.classes.rows)


def topics(n=1500, rng=0):
    """Probabilities of three labels that occur together; those of the second are too extreme."""
    rng = np.random.default_rng(rng)
    logit = rng.normal(-1, 1, (n, 1)) + rng.normal(0, 1, (n, 3))
    probability = 1 / (1 + np.exp(-logit * [1.0, 0.4, 1.0]))
    return (rng.random((n, 3)) < probability).astype(int), 1 / (1 + np.exp(-logit))


def test_several_labels_have_a_joint_result_and_one_each():
    y, p = topics()
    common = {"labels": ["a", "b", "c"], "multiclass": "multilabel"}
    assessment = truecal.assess(y, p, **common, n_resamples=199, rng=0)
    assert assessment.estimate.value == truecal.estimate(y, p, **common).value
    assert assessment.interval == truecal.confidence_interval(y, p, **common)
    assert assessment.test.pvalue == assessment.classes.joint_pvalue <= 0.05
    assert assessment.target == "mean over 3 labels"
    assert assessment.n == 1500
    assert assessment.classes.miscalibrated == ("b",)
    assert all(row.adjusted_pvalue >= row.pvalue for row in assessment.classes.rows)
    alone = [truecal.estimate(y[:, k], p[:, k]).value for k in range(3)]
    assert [row.estimate.value for row in assessment.classes.rows] == alone
    assert "1 of 3 labels is shown to be miscalibrated: b." in assessment.verdict
    assert assessment.recalibration.advice == "Recalibrate these labels, each by itself: b."
    assert assessment.clusters is None
    page = assessment.to_html()
    assert "Each label by itself" in page
    assert "by Holm&#39;s method" in page
    assert "(joint test)" in page
    assert "Holm (1979)" in page
    assert "Westfall" not in page
    assert "If one acts" not in page


def test_labels_in_clusters_and_with_weights():
    y, p = topics(900)
    clusters = np.arange(900) // 10
    assessment = truecal.assess(y, p, multiclass="multilabel", clusters=clusters, n_resamples=99, rng=0)
    assert assessment.clusters.n_clusters == 90
    assert assessment.interval == truecal.confidence_interval(
        y, p, multiclass="multilabel", clusters=clusters
    )
    weight = np.random.default_rng(1).uniform(1, 2, 900)
    weighted = truecal.assess(y, p, multiclass="multilabel", sample_weight=weight, n_resamples=99, rng=0)
    assert (
        weighted.estimate.value == truecal.estimate(y, p, multiclass="multilabel", sample_weight=weight).value
    )


def test_one_label_is_an_ordinary_question():
    y, p = topics(300)
    one = truecal.assess(y[:, :1], p[:, :1], multiclass="multilabel", n_resamples=99, rng=0)
    plain = truecal.assess(y[:, 0], p[:, 0], n_resamples=99, rng=0)
    assert one.classes is None
    assert one.verdict == plain.verdict


@pytest.mark.parametrize("given", [{"by": np.arange(300) % 2}, {"time": np.arange(300)}, {"clinical": True}])
def test_several_labels_are_refused_where_one_event_is_needed(given):
    y, p = topics(300)
    with pytest.raises(truecal.InputError, match=r"multilabel.*Assess one label"):
        truecal.assess(y, p, multiclass="multilabel", **given)
