"""What `truecal.summarize` must do on every engine: the same cells as from arrays, and the same complaints.

`tests/unit` runs it on what lies in memory, `tests/engines` on DuckDB, Dask and Spark. An engine is a function
from a PyArrow table to a frame of its own.
"""

import numpy as np
import pyarrow as pa
import pytest

import truecal
from truecal.data import as_sample, as_samples
from truecal.data.cells import Cells
from truecal.data.frames import summarize

N = 3000
CLASSES = ["ant", "bee", "cat", "dog"]
PARTS = ["p0", "p1", "p2", "p3"]


def make_columns():
    rng = np.random.default_rng(0)
    score = 1 - rng.beta(0.05, 2.8, N)
    score[:3] = 0.0, 0.5, 1e-200
    label = (rng.random(N) < score).astype(np.int64)
    proba = rng.dirichlet([0.3] * 4, N)
    proba[:50] = [0.4, 0.4, 0.1, 0.1]  # a tie: the first column counts
    proba[50:80] = [0, 0, 1, 0]
    kind = (rng.random((N, 1)) > proba.cumsum(axis=1)).sum(axis=1).clip(0, 3)
    columns = {
        "score": score,
        "single": score.astype(np.float32),
        "tenth": score.round(1),
        "label": label,
        "tiny": label.astype(np.int8),
        "real": label.astype(np.float64),
        "truth": label == 1,
        "answer": np.where(label, "yes", "no"),
        "weight": rng.integers(0, 4, N) / 2,
        "times": np.arange(N) % 4,
        "site": rng.choice(["north", "south", None], N),
        "day": rng.integers(0, 3, N),
        "patient": np.array([f"patient {k}" for k in np.arange(N) // 7]),
        "visit": np.arange(N) // 7 * 1000,
        "kind": kind,
        "animal": np.array(CLASSES)[kind],
        "logit": rng.normal(0, 20, N),
        "three": rng.integers(0, 3, N),
        "x0": rng.normal(0, 3, N),
        "x1": rng.normal(0, 3, N),
    }
    columns |= dict(zip(PARTS, proba.T, strict=True))
    return columns | dict(zip(CLASSES, proba.T, strict=True))


COLUMNS = make_columns()


def make_table(changes=None, row=N // 2):
    """Return the columns as a table, with other values in one row in the middle."""
    columns = {name: pa.array(column.tolist(), from_pandas=False) for name, column in COLUMNS.items()}
    columns["single"] = pa.array(COLUMNS["single"], type=pa.float32())
    columns["tiny"] = pa.array(COLUMNS["tiny"], type=pa.int8())
    for name, value in (changes or {}).items():
        values = columns[name].to_pylist()
        values[row] = value
        columns[name] = pa.array(values, type=columns[name].type, from_pandas=False)
    return pa.table(columns)


def from_arrays(y, p, **options):
    return Cells.from_sample(as_sample(COLUMNS[y], p if isinstance(p, np.ndarray) else COLUMNS[p], **options))


PROBA = np.column_stack([COLUMNS[name] for name in PARTS])
LOGITS = np.column_stack([COLUMNS[name] for name in ("x0", "x1", "logit")])

#: What is asked of the engine, and the same from arrays.
CASES = {
    "plain": (["score", "label"], {}, lambda: from_arrays("label", "score")),
    "int8": (["score", "tiny"], {}, lambda: from_arrays("label", "score")),
    "float labels": (["score", "real"], {}, lambda: from_arrays("label", "score")),
    "booleans": (["score", "truth"], {}, lambda: from_arrays("label", "score")),
    "float32": (["single", "label"], {}, lambda: from_arrays("label", "single")),
    "rounded": (["tenth", "label"], {}, lambda: from_arrays("label", "tenth")),
    "text": (
        ["score", "answer"],
        {"pos_label": "yes"},
        lambda: from_arrays("answer", "score", pos_label="yes"),
    ),
    "other": (["score", "label"], {"pos_label": 0}, lambda: from_arrays("label", "score", pos_label=0)),
    "true": (["score", "truth"], {"pos_label": True}, lambda: from_arrays("truth", "score", pos_label=True)),
    "weights": (
        ["score", "label"],
        {"weight": "weight"},
        lambda: from_arrays("label", "score", sample_weight=COLUMNS["weight"]),
    ),
    "top label": ([PARTS, "kind"], {}, lambda: from_arrays("kind", PROBA)),
    "top label by name": ([CLASSES, "animal"], {}, lambda: from_arrays("kind", PROBA)),
    "top label by labels": ([PARTS, "animal"], {"labels": CLASSES}, lambda: from_arrays("kind", PROBA)),
    "top label, weights": (
        [PARTS, "kind"],
        {"weight": "weight"},
        lambda: from_arrays("kind", PROBA, sample_weight=COLUMNS["weight"]),
    ),
    "one against the rest": (
        [CLASSES, "animal"],
        {"pos_label": "cat"},
        lambda: from_arrays("animal", PROBA, pos_label="cat", labels=CLASSES),
    ),
    "top label of two": (
        ["score", "label"],
        {"multiclass": "top"},
        lambda: from_arrays("label", "score", multiclass="top"),
    ),
}

#: A change in one row, what is then asked, and the complaint.
FAULTS = {
    "null": (
        {"score": None},
        ["score", "label"],
        {},
        r"column 'score' has 1 missing \(NaN\) value\. Remove",
    ),
    "NaN": (
        {"score": float("nan")},
        ["score", "label"],
        {},
        r"column 'score' has 1 missing \(NaN\) value\. Remove",
    ),
    "above 1": (
        {"score": 1.2},
        ["score", "label"],
        {},
        r"'score' has 1 value outside \[0, 1\] \(1\.2\)\. Pass prob",
    ),
    "below 0": ({"score": -1e-9}, ["score", "label"], {}, r"'score' has 1 value outside \[0, 1\] \(-1e-09\)"),
    "label 2": (
        {"label": 2},
        ["score", "label"],
        {},
        r"column 'label' must hold 0 and 1\. It has 1 other label \(2\)\. Choose the positive class with pos_label",
    ),
    "label null": (
        {"label": None},
        ["score", "label"],
        {},
        r"column 'label' has 1 missing \(NaN\) label",
    ),
    "label NaN": (
        {"real": float("nan")},
        ["score", "real"],
        {},
        r"column 'real' has 1 missing \(NaN\) label",
    ),
    "truth null": (
        {"truth": None},
        ["score", "truth"],
        {},
        r"column 'truth' has 1 missing \(NaN\) label",
    ),
    "third label": (
        {"answer": "maybe"},
        ["score", "answer"],
        {"pos_label": "yes"},
        r"column 'answer' must hold two labels, 'yes' and 'no'\. It has 1 other label \('maybe'\)\. For one class",
    ),
    "text null": (
        {"answer": None},
        ["score", "answer"],
        {"pos_label": "yes"},
        r"column 'answer' has 1 missing \(NaN\) label\. Remove",
    ),
    "weight": (
        {"weight": -1.0},
        ["score", "label"],
        {"weight": "weight"},
        r"column 'weight' has 1 value missing or outside \[1e-100, 1e\+100\] \(-1\)\. A weight of 2",
    ),
    "part of a row": (
        {},
        ["score", "label"],
        {"weight": "weight", "weighting": "counts"},
        r"column 'weight' has [0-9,]+ values with a fractional part, which cannot count rows \(from 0\.5 to 1\.5\)",
    ),
    "weight null": (
        {"weight": None},
        ["score", "label"],
        {"weight": "weight"},
        r"column 'weight' has 1 value missing or outside",
    ),
    "sum": (
        {"p0": 0.9, "p1": 0.9, "p2": 0.0, "p3": 0.0},
        [PARTS, "kind"],
        {},
        r"columns 'p0', 'p1', 'p2', 'p3' have 1 row whose sum is not 1 \(sum 1\.8\)\. Pass one",
    ),
    "one null of several": (
        {"p2": None},
        [PARTS, "kind"],
        {},
        r"columns 'p0', 'p1', 'p2', 'p3' have 1 row with missing \(NaN\) values",
    ),
    "one outside of several": (
        {"p0": -0.5, "p1": 0.5},
        [PARTS, "kind"],
        {},
        r"have 1 row with values outside \[0, 1\] \(-0\.5\)",
    ),
    "class 7": (
        {"kind": 7},
        [PARTS, "kind"],
        {},
        r"column 'kind' has 1 label \(7\) outside the classes 0, 1, 2, 3 of the scores\. Name",
    ),
    "class zebra": (
        {"animal": "zebra"},
        [CLASSES, "animal"],
        {},
        r"column 'animal' has 1 label \('zebra'\) outside the classes 'ant', 'bee'",
    ),
    "logit": (
        {"logit": float("inf")},
        ["logit", "label"],
        {"logits": True},
        r"column 'logit' has 1 infinite or NaN value\. Remove",
    ),
    "two faults": (
        {"score": 2.0, "label": None, "weight": -2.0},
        ["score", "label"],
        {},
        r"column 'score' has 1 value outside",
    ),
}


def assert_same(cells, exact, *, rounding=1e-12):
    """Counts and positives exactly, mean scores but for the order of additions."""
    assert np.array_equal(cells.cell, exact.cell)
    assert np.array_equal(cells.lower, exact.lower)
    assert np.array_equal(cells.count, exact.count)
    assert np.array_equal(cells.positives, exact.positives)
    assert cells.score == pytest.approx(exact.score, rel=rounding)
    assert (cells.target, cells.dtype) == (exact.target, exact.dtype)


def check_case(make, case):
    columns, options, exact = CASES[case]
    assert_same(summarize(make(make_table()), score=columns[0], label=columns[1], **options), exact())


def check_fault(make, fault):
    changes, columns, options, says = FAULTS[fault]
    with pytest.raises(ValueError, match=says):
        summarize(make(make_table(changes)), score=columns[0], label=columns[1], **options)


def check_groups(make):
    """One pass, one summary for each group; rows without a group are a group."""
    frame = make(make_table())
    sites = COLUMNS["site"]
    by_site = summarize(frame, score="score", label="label", by="site")
    assert list(by_site) == ["north", "south", None]
    for site, cells in by_site.items():
        rows = np.array([value == site for value in sites])
        assert_same(cells, Cells.from_sample(as_sample(COLUMNS["label"][rows], COLUMNS["score"][rows])))
    by_both = summarize(frame, score="score", label="label", by=["site", "day"], weight="weight")
    assert len(by_both) == 9
    rows = (sites == "south") & (COLUMNS["day"] == 2)
    weight = COLUMNS["weight"][rows]
    exact = as_samples(COLUMNS["label"][rows], COLUMNS["score"][rows], sample_weight=weight)
    assert_same(by_both["south", 2], Cells.from_sample(*exact))


def check_logits(make):
    """Exponentials differ in their last digit from engine to engine, so that a score may change its cell."""
    frame = make(make_table())
    for columns, label, exact in (
        (["logit"], "label", as_samples(COLUMNS["label"], COLUMNS["logit"], logits=True)),
        (["x0", "x1", "logit"], "three", as_samples(COLUMNS["three"], LOGITS, logits=True)),
    ):
        cells, (sample,) = summarize(frame, score=columns, label=label, logits=True), exact
        assert cells.n == N
        assert cells.positives.sum() == sample.positives.sum()
        assert cells.score @ cells.count == pytest.approx(sample.score @ sample.count, rel=1e-13)
        assert cells.target == sample.target
        error = truecal.calibration_error(sample, estimator="ew_bin")
        assert truecal.calibration_error(cells, estimator="ew_bin") == pytest.approx(error, abs=1e-9)


def check_several_rows(make):
    """Faults of different kinds, each with its count and the range of its values."""
    table = make_table()
    score = COLUMNS["score"].copy()
    score[[10, 20, 2000]] = -0.25, 1.5, 1.25
    score[[30, 40]] = np.nan
    label = COLUMNS["label"].copy()
    label[[50, 60]] = 3, 2
    table = table.set_column(0, "score", pa.array(score)).set_column(3, "label", pa.array(label))
    with pytest.raises(ValueError, match="missing") as caught:
        summarize(make(table), score="score", label="label")
    message = " ".join([str(caught.value), *caught.value.__notes__])
    assert "column 'score' has 2 missing (NaN) values." in message
    assert "column 'score' has 3 values outside [0, 1] (from -0.25 to 1.5)." in message
    assert "It has 2 other labels (" in message


def check_empty(make):
    with pytest.raises(ValueError, match="frame is empty"):
        summarize(make(make_table().slice(0, 0)), score="score", label="label")


def check_many_classes(make, n_classes=30):
    rng = np.random.default_rng(1)
    proba = rng.dirichlet([0.3] * n_classes, 500)
    label = rng.integers(0, n_classes, 500)
    names = [f"class {k}" for k in range(n_classes)]
    table = pa.table({**dict(zip(names, proba.T, strict=True)), "label": label})
    exact = Cells.from_sample(as_sample(label, proba))
    assert_same(summarize(make(table), score=names, label="label"), exact)


def check_labels_counted_from_one(make):
    """Without the last class they are within 0 to K - 1, and the probabilities show that they are one too high."""
    rng = np.random.default_rng(2)
    proba = rng.dirichlet([0.5] * 4, 500)
    label = (proba.cumsum(axis=1) < rng.random((500, 1))).sum(axis=1)
    proba, label = proba[label < 3], label[label < 3]
    for names in (PARTS, CLASSES):
        columns = dict(zip(names, proba.T, strict=True))
        right = make(pa.table({**columns, "label": label}))
        wrong = make(pa.table({**columns, "label": label + 1}))
        with pytest.raises(ValueError, match=r"column 'label' has no label 0, .* counted from 1"):
            summarize(wrong, score=names, label="label")
        named = summarize(wrong, score=names, label="label", labels=[1, 2, 3, 4])
        assert_same(summarize(right, score=names, label="label"), named)


def check_kinds_of_labels(make):
    """Large integers are told apart, classes are named as labels are, and what is missing is not a label."""
    table = pa.table({"p": [0.1, 0.9, 0.4, 0.6], "y": [2**60, 2**60 + 1, 2**60, 2**60]})
    cells = summarize(make(table), score="p", label="y", pos_label=2**60 + 1)
    assert cells.positives.tolist() == [0, 0, 0, 1]
    # Small integers are compared as they are, also with numbers that they cannot hold.
    small = {"p": pa.array([0.1, 0.9, 0.4, 0.6]), "y": pa.array([-128, 127, -128, -128], pa.int8())}
    assert summarize(make(pa.table(small)), score="p", label="y", pos_label=127).positives.sum() == 1
    with pytest.raises(ValueError, match="must hold two labels, 300 and"):
        summarize(make(pa.table(small)), score="p", label="y", pos_label=300)

    frame = make(pa.table({"a": [0.2], "b": [0.3], "c": [0.5], "number": [2], "name": ["c"]}))
    for labels, column, kind in ((["a", "b", "c"], "number", "numbers"), ([0, 1, 2], "name", "text")):
        with pytest.raises(
            ValueError, match=f"labels names the classes .*, but column '{column}' holds {kind}"
        ):
            summarize(frame, score=["a", "b", "c"], label=column, labels=labels)

    frame = make(pa.table({"p": [0.1, 0.9, 0.4], "y": ["no", "yes", "no"]}))
    assert summarize(frame, score="p", label="y", pos_label="yes").n == 3
    frame = make(pa.table({"p": [0.1, 0.9, 0.4], "y": [None, "yes", "no"]}))
    said = r"^column 'y' has 1 missing \(NaN\) label\. Remove these rows .*truecal\.labels\.judged\.$"
    with pytest.raises(ValueError, match=said):
        summarize(frame, score="p", label="y", pos_label="yes")


def _interval(sample):
    found = truecal.estimate(sample, confidence_level=0.95)
    return [found.value, found.interval.low, found.interval.high]


def check_clusters(make, *, few=False):
    """The answers are those of rows in memory if cells are exact, and near them otherwise; `few` of them are quick."""
    frame, label = make(make_table()), COLUMNS["label"]
    crossed = np.column_stack([COLUMNS["visit"], COLUMNS["day"]])
    weight = COLUMNS["weight"]
    for score, tolerance in (("tenth", 1e-9), ("score", 2e-3)):
        cases = (
            ("patient", COLUMNS["patient"], {}, {}),
            (["visit", "day"], crossed, {}, {}),
            (
                "visit",
                COLUMNS["visit"],
                {"weight": "times", "weighting": "counts"},
                {"sample_weight": COLUMNS["times"], "weighting": "counts"},
            ),
            (
                "visit",
                COLUMNS["visit"],
                {"weight": "weight", "weighting": "sampling"},
                {"sample_weight": weight},
            ),
            ("patient", COLUMNS["patient"], {"weighting": "clusters"}, {"weighting": "clusters"}),
            (
                "visit",
                COLUMNS["visit"],
                {"weight": "weight", "weighting": "clusters"},
                {"sample_weight": weight, "weighting": "clusters"},
            ),
        )
        for columns, given, options, reading in cases[2:4] if few else cases:
            cells = summarize(frame, score=score, label="label", cluster=columns, **options)
            exact = as_sample(label, COLUMNS[score], clusters=given, **reading)
            assert cells.clusters.n_clusters == exact.clusters.n_clusters
            assert sorted(cells.clusters.sizes) == sorted(exact.clusters.sizes)
            assert cells.target == exact.target
            assert cells.effective_size == pytest.approx(exact.effective_size)
            assert _interval(cells) == pytest.approx(_interval(exact), abs=tolerance)
            described, known = truecal.describe_clusters(cells), truecal.describe_clusters(exact)
            assert described.standard_error == pytest.approx(known.standard_error, rel=1e-9)
            assert described.design_effect == pytest.approx(known.design_effect, rel=100 * tolerance)
    by_day = summarize(frame, score="tenth", label="label", cluster="patient", by="day")
    rows = COLUMNS["day"] == 1
    exact = as_sample(label[rows], COLUMNS["tenth"][rows], clusters=COLUMNS["patient"][rows])
    assert _interval(by_day[1]) == pytest.approx(_interval(exact), abs=1e-9)
    assert by_day[0].merge(by_day[1], by_day[2]).clusters.n_clusters == len(set(COLUMNS["patient"]))


def check_blocks(make, monkeypatch):
    """Where there are too many sums, whole clusters are merged: sums stay, and rows of a cluster stay together."""
    frame = make(make_table())
    monkeypatch.setattr("truecal.data.frames.MOST_PAIRS", 1000)
    cells = summarize(frame, score="score", label="label", cluster=["patient", "visit"])
    table, n_clusters = cells.clusters, len(set(COLUMNS["patient"]))
    assert table.n_named == n_clusters
    assert np.bincount(table.merged.astype(int))[7] == N // 7
    assert 150 < table.n_clusters <= 256  # 429 clusters at random in 256 blocks: 208 are expected
    assert set(table.sizes % 7) <= {0.0, N % 7}
    assert np.bincount(table.group, table.weight) == pytest.approx(cells.count)
    assert np.bincount(table.group, table.positives) == pytest.approx(cells.positives)
    assert np.bincount(table.group, table.scores) == pytest.approx(cells.count * cells.score)
    assert "in 429 clusters" in str(truecal.estimate(cells, confidence_level=0.95))
    with pytest.raises(ValueError, match="429 are too many for memory"):
        summarize(frame, score="score", label="label", cluster="patient", weighting="clusters")
    with pytest.raises(ValueError, match="cannot be merged"):
        cells.merge(cells)
    check_blocks_of_groups(frame)


def check_blocks_of_groups(frame):
    """The clusters of each group are those of its own rows."""
    for by, options in (("day", {}), (["day", "site"], {"weight": "weight"})):
        groups = summarize(frame, score="score", label="label", cluster="patient", by=by, **options)
        keys = list(
            zip(*(COLUMNS[name].tolist() for name in ([by] if isinstance(by, str) else by)), strict=True)
        )
        for key, cells in groups.items():
            mine = np.array([row == (key if isinstance(key, tuple) else (key,)) for row in keys])
            mine &= COLUMNS["weight"] > 0 if options else True
            sizes = np.unique(COLUMNS["patient"][mine], return_counts=True)[1]
            assert cells.clusters.merged.tolist() == sorted(sizes)
            assert truecal.describe_clusters(cells).n_clusters == len(sizes)


def check_bad_clusters(make):
    frame = make(make_table({"patient": None}))
    with pytest.raises(ValueError, match=r"column 'patient' has 1 missing \(NaN\) value"):
        summarize(frame, score="score", label="label", cluster="patient")
    with pytest.raises(ValueError, match="no column 'patients'"):
        summarize(frame, score="score", label="label", cluster="patients")
    with pytest.raises(ValueError, match="'clusters' needs cluster"):
        summarize(frame, score="score", label="label", weighting="clusters")
