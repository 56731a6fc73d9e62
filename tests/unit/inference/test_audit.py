"""The audit: segments, exact family-wise error, power, dependence."""

import math

import numpy as np
import pytest

import truecal
from truecal.inference.audit import audit


def calibrated(rng, n, n_features=4):
    p = rng.beta(0.5, 2, n)
    return rng.random(n) < p, p, {f"x{k}": rng.normal(size=n) for k in range(n_features)}


def test_the_segment_that_is_off_comes_first():
    rng = np.random.default_rng(0)
    n = 4000
    region, sex, p = rng.integers(0, 4, n), rng.choice(["f", "m"], n), rng.uniform(0.2, 0.8, n)
    y = rng.random(n) < p + 0.15 * ((region == 2) & (sex == "m"))
    result = audit(y, p, {"region": region, "sex": sex}, rng=0)
    best = result.segments[0]
    inside = (region == 2) & (sex == "m")
    assert best.conditions == {"region": "2", "sex": "'m'"}
    assert best.n == inside.sum()
    assert best.difference == pytest.approx(y[inside].mean() - p[inside].mean())
    assert best.low < 0.15 < best.high
    assert best.adjusted_pvalue == pytest.approx(1 / 1000)
    assert result.n_searched == 4 + 2 + 8
    assert all(
        a.adjusted_pvalue <= b.adjusted_pvalue
        for a, b in zip(result.segments, result.segments[1:], strict=False)
    )


def test_a_slope_inside_a_segment_is_found_too():
    rng = np.random.default_rng(1)
    n = 6000
    group, p = rng.integers(0, 3, n), rng.uniform(0.05, 0.95, n)
    mean = np.where(group == 1, 0.5 + 0.5 * (p - 0.5), p)  # right on average, too extreme
    result = audit(rng.random(n) < mean, p, {"group": group}, rng=0)
    assert [segment.name for segment in result.found] == ["group: 1"]
    assert abs(result.found[0].difference) < 0.05


@pytest.mark.slow
def test_the_family_wise_error_is_exact():
    """300 calibrated data sets, about 100 overlapping segments: at most alpha of them report anything."""
    rng = np.random.default_rng(2)
    wrong = sum(
        bool(audit(*calibrated(rng, 800), n_resamples=99, min_rows=30, rng=seed).found) for seed in range(300)
    )
    assert wrong / 300 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)
    assert wrong > 0  # an audit that never reports would pass, too


@pytest.mark.parametrize("clustered", [False, True])
def test_repeated_rows_need_clusters(clustered):
    """Six copies of each row: without clusters nearly every audit reports something, with them few do."""
    rng = np.random.default_rng(3)
    wrong = 0
    for seed in range(60):
        y, p, features = calibrated(rng, 400, 2)
        y, p = np.repeat(y, 6), np.repeat(p, 6)
        columns = {name: np.repeat(column, 6) for name, column in features.items()}
        who = np.repeat(np.arange(400), 6) if clustered else None
        wrong += bool(audit(y, p, columns, clusters=who, n_resamples=99, rng=seed).found)
    assert wrong <= 9 if clustered else wrong >= 40


def test_the_same_rows_are_one_hypothesis_and_small_segments_are_counted():
    rng = np.random.default_rng(4)
    p, a = rng.random(400), np.repeat([0, 1], 200)
    y = rng.random(400) < p
    result = audit(y, p, {"a": a, "copy": a, "rare": np.r_[np.ones(10), np.zeros(390)]}, min_rows=50, rng=0)
    assert result.n_searched == 4  # a, not a, rare = 0, and rare = 0 within one of them
    assert result.n_skipped > 0


def test_the_seed_decides_and_arrays_of_any_kind_are_taken():
    y, p, features = calibrated(np.random.default_rng(5), 500)
    one, other = (
        audit(y, p, features, rng=1),
        audit(y.tolist(), p.tolist(), np.column_stack([*features.values()]), rng=1),
    )
    assert [s.adjusted_pvalue for s in one.segments] == [s.adjusted_pvalue for s in other.segments]


def test_a_model_that_is_off_everywhere_is_called_off_first():
    rng = np.random.default_rng(7)
    p, x = rng.uniform(0.2, 0.6, 3000), rng.integers(0, 4, 3000)
    result = audit(rng.random(3000) < p + 0.15, p, {"x": x}, n_resamples=99, rng=0)
    assert result.off
    assert result.whole.n == 3000
    assert result.whole.difference == pytest.approx(0.15, abs=0.03)
    assert str(result).startswith("The model is off as a whole (mean prediction 0.4")
    for segment in (result.whole, *result.segments):
        assert segment.statistic == pytest.approx(segment.level_z**2 + segment.slope_z**2, rel=1e-5)
    one = audit(rng.random(3000) < p + 0.25 * (x == 1), p + 0.0625, {"x": x}, n_resamples=99, rng=0)
    assert not one.off
    assert one.found


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("id", np.arange(600) // 2),
        ("patientId", np.random.default_rng(0).integers(0, 10**6, 600)),
        ("x", np.random.default_rng(1).permutation(600)),
        ("x", [f"user {k}" for k in range(600)]),
    ],
    ids=["called id", "called patientId", "counts rows", "text"],
)
def test_columns_that_only_name_rows_are_left_out_and_listed(name, values):
    rng = np.random.default_rng(8)
    p = rng.random(600)
    y, age = rng.random(600) < p, rng.integers(20, 90, 600)
    result = audit(y, p, {name: values, "age": age, "hospital_id": np.arange(600) % 4}, n_resamples=19, rng=0)
    assert result.identifiers == (name,)
    assert {key for segment in result.segments for key in segment.conditions} == {"age", "hospital_id"}
    assert f"Not searched, because the values only name rows: {name}." in str(result)
    with pytest.raises(truecal.InputError, match="only name rows"):
        audit(y, p, {name: values})


def test_ten_thousand_features_are_refused_at_once():
    rng = np.random.default_rng(9)
    p = rng.random(60)
    with pytest.raises(truecal.InputError, match=r"10,000, which have 50,005,000 combinations of up to 2"):
        audit(rng.random(60) < p, p, rng.integers(0, 2, (60, 10_000)))


def test_segments_with_too_many_rows_in_total_are_refused(monkeypatch):
    monkeypatch.setattr("truecal.inference.audit._MOST_PLACES", 1000)
    rng = np.random.default_rng(12)
    p, few = rng.random(300), {f"x{k}": rng.integers(0, 2, 300) for k in range(3)}
    y = rng.random(300) < p
    assert audit(y, p, few, max_depth=1, n_resamples=19, rng=0).n_searched == 6
    with pytest.raises(truecal.InputError, match="more than 1,000 rows of segments"):
        audit(y, p, few | {"x3": rng.integers(0, 2, 300)}, max_depth=1)


def test_many_columns_that_only_name_rows_are_not_all_printed():
    rng = np.random.default_rng(13)
    p, text = rng.random(200), [f"row {k}" for k in range(200)]
    names = {f"name {k}": text for k in range(50)}
    result = audit(rng.random(200) < p, p, names | {"x": np.arange(200) % 2}, n_resamples=19, rng=0)
    assert len(result.identifiers) == 50
    assert "name 4, name 5 and 44 others." in str(result)


def test_a_segment_holds_no_more_information_than_all_rows():
    # One cluster has most of the events, and none of them in the second half of its rows.
    rng = np.random.default_rng(14)
    who, half = np.arange(6000) // 300, np.arange(6000) % 300 < 150
    p = np.full(6000, 0.1)
    y = rng.random(6000) < np.where(who == 0, 0.95 * half, 0.06)
    result = audit(y, p, {"half": half}, clusters=who, n_resamples=199, rng=0)
    assert not result.whole.tested
    assert not any(segment.tested for segment in result.segments)
    assert truecal.calibration_test(y[~half], p[~half], clusters=who[~half], rng=0).tested


@pytest.mark.parametrize("clustered", [False, True])
def test_an_adjusted_pvalue_is_never_below_the_unadjusted_one(clustered):
    rng = np.random.default_rng(10)
    for seed in range(10):
        y, p, features = calibrated(rng, 400, 2)
        who = rng.integers(0, 20, 400) if clustered else None
        result = audit(y, p * 0.3, features, clusters=who, n_resamples=49, min_rows=20, rng=seed)
        assert all(one.adjusted_pvalue >= one.pvalue for one in (result.whole, *result.segments))


def test_segments_without_events_are_not_tested():
    rng = np.random.default_rng(11)
    p, x = rng.beta(2, 198, 3000), rng.integers(0, 4, 3000)
    y = (rng.random(3000) < p) & (x > 0)
    result = audit(y, p, {"x": x}, clusters=np.arange(3000) % 30, n_resamples=99, rng=0)
    (empty,) = [segment for segment in result.segments if segment.name == "x: 0"]
    assert (empty.tested, empty.pvalue, empty.adjusted_pvalue) == (False, 1, 1)
    assert "not tested" in str(empty)
    assert "1 segment not tested" in str(result)
    assert not result.found


def test_bad_input_is_refused():
    y, p, features = calibrated(np.random.default_rng(6), 100)
    with pytest.raises(truecal.InputError, match="max_depth"):
        audit(y, p, features, max_depth=4)
    with pytest.raises(truecal.InputError, match="min_rows"):
        audit(y, p, features, min_rows=1000)
    with pytest.raises(truecal.InputError, match="shape"):
        audit(y, p, {"x": [1, 2]})
