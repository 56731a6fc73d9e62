"""`summarize` on frames in memory, by the contract that all engines share."""

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truecal
from support import engine_contract as contract
from truecal.data import as_sample
from truecal.data.cells import Cells
from truecal.data.frames import summarize
from truecal.exceptions import InputError

# An older narwhals asks pandas in a way that a newer pandas warns of.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in:DeprecationWarning")


def nullable(frame):
    with np.errstate(invalid="ignore"):  # pandas casts infinite values on its way, which older NumPy tells
        return frame.convert_dtypes()


ENGINES = {
    "polars": pl.from_arrow,
    "polars lazy": lambda table: pl.from_arrow(table).lazy(),
    "pandas": lambda table: table.to_pandas(),
    "pandas nullable": lambda table: nullable(table.to_pandas()),
    "pandas arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pyarrow": lambda table: table,
    "narwhals": nw.from_native,
}


@pytest.fixture(params=ENGINES)
def make(request):
    return ENGINES[request.param]


@pytest.mark.parametrize("case", contract.CASES)
def test_the_same_cells_as_from_arrays(make, case):
    contract.check_case(make, case)


@pytest.mark.parametrize("fault", contract.FAULTS)
def test_one_bad_row_in_the_middle_is_found(make, fault):
    if fault == "truth null" and make is ENGINES["pandas"]:
        # Booleans and None are a column of objects there, which is refused as a whole.
        frame = make(contract.make_table({"truth": None}))
        with pytest.raises(ValueError, match=r"must hold numbers, booleans or text\. Its type is Object"):
            summarize(frame, score="score", label="truth")
    else:
        contract.check_fault(make, fault)


def test_groups(make):
    contract.check_groups(make)


def test_logits(make):
    contract.check_logits(make)


def test_many_classes(make):
    contract.check_many_classes(make)


def test_every_fault_is_counted(make):
    contract.check_several_rows(make)


def test_an_empty_frame(make):
    contract.check_empty(make)


def test_labels_of_every_kind(make):
    contract.check_kinds_of_labels(make)


# --- What does not depend on the engine ------------------------------------------------------------

FRAME = pl.from_arrow(contract.make_table())


def test_files_are_streamed(tmp_path):
    y, p = truecal.paper.population("densenet40_c10").sample(50_000, rng=0)
    for k in range(5):
        part = pl.DataFrame({"p": p[k::5], "y": y[k::5]})
        part.write_parquet(tmp_path / f"part-{k}.parquet")
    cells = summarize(pl.scan_parquet(tmp_path / "part-*.parquet"), score="p", label="y")
    contract.assert_same(cells, Cells.from_sample(as_sample(y, p)))


def test_answers_do_not_depend_on_the_order_of_rows():
    shuffled = FRAME.sample(fraction=1, shuffle=True, seed=0)
    contract.assert_same(
        summarize(shuffled, score="score", label="label"), summarize(FRAME, score="score", label="label")
    )


def test_a_group_may_have_any_name():
    frame = FRAME.rename({"site": "_y", "day": "_cell"})
    assert list(summarize(frame, score="score", label="label", by="_y")) == ["north", "south", None]
    assert list(summarize(frame, score="score", label="label", by=["_cell"])) == [(0,), (1,), (2,)]
    assert list(summarize(FRAME, score="score", label="label", by="label")) == [0, 1]


def test_not_a_number_is_a_group_of_its_own():
    frame = pl.DataFrame({"p": [0.1, 0.2, 0.3], "y": [0, 1, 1], "g": [1.0, float("nan"), None]})
    groups = summarize(frame, score="p", label="y", by="g")
    assert {key: cells.n for key, cells in groups.items()} == {1.0: 1, None: 2}


def test_groups_of_different_types_are_sorted():
    frame = pd.DataFrame({"p": [0.1, 0.2, 0.3, 0.4], "y": [0, 1, 1, 0], "g": ["b", "a", None, "b"]})
    assert list(summarize(frame, score="p", label="y", by="g")) == ["a", "b", None]


def test_labels_of_every_type_of_text():
    for dtype in (pl.Categorical, pl.Enum(["yes", "no"])):
        frame = FRAME.with_columns(pl.col("answer").cast(dtype))
        cells = summarize(frame, score="score", label="answer", pos_label="yes")
        contract.assert_same(cells, contract.CASES["text"][2]())


def test_only_one_label_is_there():
    frame = pl.DataFrame({"p": [0.1, 0.8], "y": ["no", "no"]})
    assert summarize(frame, score="p", label="y", pos_label="yes").positives.sum() == 0
    assert summarize(frame, score="p", label="y", pos_label="no").positives.sum() == 2


def test_the_class_of_each_column():
    proba = pl.DataFrame({"1": [0.7, 0.2], "2": [0.2, 0.2], "3": [0.1, 0.6], "y": [1, 2]})
    assert summarize(proba, score=["1", "2", "3"], label="y").positives.tolist() == [
        0,
        1,
    ]  # numbers of the columns' names
    renamed = proba.rename({"1": "a", "2": "b", "3": "c"})
    assert summarize(renamed, score=["a", "b", "c"], label="y").positives.tolist() == [1, 0]  # of 0, 1, 2
    two = summarize(proba.with_columns(a=1 - pl.col("3"), y=pl.Series([0, 1])), score=["a", "3"], label="y")
    assert two.target == "P(y = 1)"
    assert two.score.tolist() == [0.1, 0.6]
    text = proba.with_columns(a=1 - pl.col("3"), y=pl.Series(["a", "3"]))
    assert summarize(text, score=["a", "3"], label="y").target == "P(y = '3')"
    one = summarize(
        proba.with_columns(y=pl.Series(["no", "yes"])), score="3", label="y", labels=["no", "yes"]
    )
    assert one.target == "P(y = 'yes')"
    assert one.positives.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("columns", "options", "says"),
    [
        (
            ["scor", "label"],
            {},
            r"The frame has no column 'scor'. It has: 'score', .* Did you mean 'score'\?",
        ),
        (["score", "label"], {"by": "nowhere"}, "no column 'nowhere'"),
        (["score", "label"], {"weight": "wait"}, "no column 'wait'.*Did you mean 'weight'"),
        (["answer", "label"], {}, "column 'answer' must hold numbers. Its type is String"),
        (["score", "label"], {"weight": "site"}, "column 'site' must hold numbers"),
        ([[], "label"], {}, "score must name at least one column"),
        (
            ["score", "answer"],
            {},
            r"column 'answer' must hold 0 and 1. Got 'no', 'yes' instead. Choose the positive class",
        ),
        (
            ["score", "answer"],
            {"pos_label": 1},
            "pos_label 1 is not among the labels of column 'answer', which holds text",
        ),
        (
            ["score", "label"],
            {"pos_label": "1"},
            "pos_label '1' is not among the labels of column 'label', which holds numbers",
        ),
        (["score", "label"], {"pos_label": 7}, "must hold two labels, 7 and .*. It has .* other labels"),
        ([contract.PARTS, "animal"], {}, "has 3,000 labels .* outside the classes .*'p0'.* Name the class"),
        ([contract.PARTS, "kind"], {"labels": [1, 2]}, "labels must name 4 different classes"),
        ([contract.PARTS, "kind"], {"labels": [1, 2, 2, 3]}, "labels must name 4 different classes"),
        ([contract.PARTS, "kind"], {"pos_label": 9}, "pos_label 9 is not among the classes 0, 1, 2, 3"),
        (
            [contract.PARTS, "kind"],
            {"multiclass": "top", "pos_label": 1},
            "cannot be combined with multiclass='top'",
        ),
        (
            [contract.PARTS, "kind"],
            {"multiclass": "classwise"},
            "one class at a time. Choose a class with pos_label",
        ),
        ([contract.PARTS, "kind"], {"multiclass": "best"}, "multiclass must be one of 'top'"),
    ],
)
def test_what_cannot_be_asked(columns, options, says):
    with pytest.raises(ValueError, match=says):
        summarize(FRAME, score=columns[0], label=columns[1], **options)


def test_no_frame_at_all():
    with pytest.raises(ValueError, match=r"must be a data frame of Polars, .* Got list instead"):
        summarize([0.1, 0.2], score="score", label="label")


def test_columns_of_dates():
    frame = pl.DataFrame({"p": [0.1], "y": [None]}, schema={"p": pl.Float64, "y": pl.Date})
    with pytest.raises(
        ValueError, match=r"column 'y' must hold numbers, booleans or text\. Its type is Date"
    ):
        summarize(frame, score="p", label="y")


def test_all_weights_zero():
    frame = pl.DataFrame({"p": [0.1, 0.9], "y": [0, 1], "w": [0, 0]})
    with pytest.raises(ValueError, match="column 'w' is zero in every row"):
        summarize(frame, score="p", label="y", weight="w")


def test_a_group_whose_weights_are_all_zero_is_left_out():
    frame = pl.DataFrame({"p": [0.1, 0.9], "y": [0, 1], "w": [0, 3], "g": ["a", "b"]})
    groups = summarize(frame, score="p", label="y", weight="w", by="g")
    assert list(groups) == ["b"]
    assert groups["b"].n == 3


def test_decimal_and_integer_scores():
    frame = pa.table({"p": pa.array(["0.10", "0.90"]).cast(pa.decimal128(4, 2)), "one": [1, 0], "y": [1, 0]})
    assert summarize(frame, score="p", label="y").score.tolist() == [0.1, 0.9]
    assert summarize(frame, score="one", label="y").score.tolist() == [0, 1]


def test_huge_values_do_not_overflow():
    frame = pl.DataFrame({"p": [1e308, 1e308, -1e308], "y": [2**62, 2**62, 2**62]})
    with pytest.raises(ValueError, match=r"3 values outside \[0, 1\] \(from -1e\+308 to 1e\+308\)"):
        summarize(frame, score="p", label="y")


def test_estimates_from_a_frame_are_those_from_arrays():
    y, p = contract.COLUMNS["label"], contract.COLUMNS["score"]
    cells = summarize(FRAME, score="score", label="label")
    for estimator in ("ew_bin", "ew_debias"):
        exact = truecal.calibration_error(y, p, estimator=estimator)
        assert truecal.calibration_error(cells, estimator=estimator) == pytest.approx(exact, abs=1e-12)
    exact = truecal.calibration_error(y, p, estimator="em_bin")
    assert truecal.calibration_error(cells, estimator="em_bin") == pytest.approx(exact, abs=1e-3)
    assert np.isfinite(truecal.calibration_error(cells))


def test_names_that_are_no_text_and_groups_that_are_lists():
    frame = pd.DataFrame({0: [0.1, 0.9], 1: [0.9, 0.1], "y": [1, 0]})
    with pytest.raises(ValueError, match=r"Columns must be named by text\. Got 1 instead"):
        summarize(frame, score=1, label="y")
    with pytest.raises(ValueError, match=r"Columns must be named by text\. Got 0 instead"):
        summarize(frame, score=[0, 1], label="y")
    nested = pl.DataFrame({"p": [0.1, 0.9], "y": [0, 1], "site": [[1], [2]]})
    with pytest.raises(ValueError, match=r"column 'site' holds List.*cannot be a group"):
        summarize(nested, score="p", label="y", by="site")


def test_a_value_next_to_one_is_shown_in_full():
    frame = pl.DataFrame({"p": [0.1, 1.000000000001], "y": [0, 1]})
    with pytest.raises(ValueError, match=r"outside \[0, 1\] \(1\.000000000001\)"):
        summarize(frame, score="p", label="y")


def test_a_name_that_reads_as_a_regular_expression_is_refused():
    frame = pl.DataFrame({"^s.*$": [0.9, 0.1], "s": [0.5, 0.5], "y": [1, 0]})
    with pytest.raises(InputError, match="regular expression"):
        summarize(frame, score="^s.*$", label="y")


def test_labels_that_float64_would_round_are_refused():
    label = pl.Series([2**63 + 1, 2**63 + 1, 2**63, 2**63], dtype=pl.UInt64)
    frame = pl.DataFrame({"p": [0.9, 0.9, 0.1, 0.1], "y": label})
    with pytest.raises(InputError, match=r"4 labels beyond 2\^53"):
        summarize(frame, score="p", label="y", pos_label=2**63 + 1)
    small = frame.with_columns(y=pl.Series([7, 7, 3, 3], dtype=pl.UInt64))
    assert summarize(small, score="p", label="y", pos_label=7).positives.tolist() == [0, 2]


def test_columns_go_by_the_numbers_in_their_names():
    frame = pl.DataFrame({"p0": [0.9, 0.2, 0.4], "p1": [0.1, 0.8, 0.6], "y": [0, 1, 1]})
    expected = summarize(frame, score=["p0", "p1"], label="y")
    turned = summarize(frame, score=["p1", "p0"], label="y")
    assert (expected.target, turned.target) == ("P(y = 1)", "P(y = 0)")  # that of the second column
    np.testing.assert_allclose(turned.score, 1 - expected.score[::-1])
    assert turned.positives.tolist() == (expected.count - expected.positives)[::-1].tolist()
    three = pl.DataFrame({"p3": [0.2], "p1": [0.3], "p2": [0.5], "y": [1]})
    with pytest.raises(InputError, match="not in the order of their numbers"):
        summarize(three, score=["p3", "p1", "p2"], label="y")


def test_edges_are_compared_in_the_type_of_half_precision_scores():
    rng = np.random.default_rng(5)
    p = rng.integers(0, 16, 400).astype(np.float16) / np.float16(15)
    y = rng.random(400) < p
    cells = summarize(pl.DataFrame({"y": y, "p": pl.Series(p, dtype=pl.Float16)}), label="y", score="p")
    assert cells.dtype == np.float16
    assert truecal.calibration_error(cells, estimator="ew_bin") == pytest.approx(
        truecal.calibration_error(y, p, estimator="ew_bin"), abs=1e-12
    )


def test_sampling_weights_keep_their_squares():
    rng = np.random.default_rng(8)
    p, weight = np.round(rng.random(500), 2), rng.gamma(1.0, size=500)
    y = rng.random(500) < p
    sample = truecal.Sample.from_predictions(y, p, sample_weight=weight)
    cells = summarize(
        pl.DataFrame({"y": y, "p": p, "w": weight}), label="y", score="p", weight="w", weights="sampling"
    )
    for name in ("count", "positives", "squares", "positive_squares"):
        assert getattr(cells, name) == pytest.approx(getattr(sample, name), rel=1e-12)
    one, two = (truecal.confidence_interval(part) for part in (sample, cells))
    assert (two.low, two.high) == pytest.approx((one.low, one.high), rel=1e-9)
    counts = summarize(pl.DataFrame({"y": y, "p": p, "w": weight}), label="y", score="p", weight="w")
    assert counts.squares is None
    with pytest.raises(InputError, match="weights must be one of"):
        summarize(pl.DataFrame({"y": y, "p": p}), label="y", score="p", weights="frequencies")
