"""`summarize` on frames in memory, by the contract that all engines share."""

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truecal
from support import engine_contract as contract
from support.frames import FRAME
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


def test_groups_of_many_rows_are_added_up_in_parts(monkeypatch):
    monkeypatch.setattr("truecal.data.frames._ROWS_AT_ONCE", 100)
    contract.check_groups(pl.from_arrow)


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
    contract.check_labels_counted_from_one(make)


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


def test_no_frame_at_all():
    with pytest.raises(ValueError, match=r"must be a data frame of Polars, .* Got list instead"):
        summarize([0.1, 0.2], score="score", label="label")


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


def test_a_value_next_to_one_is_shown_in_full():
    frame = pl.DataFrame({"p": [0.1, 1.000000000001], "y": [0, 1]})
    with pytest.raises(ValueError, match=r"outside \[0, 1\] \(1\.000000000001\)"):
        summarize(frame, score="p", label="y")


@pytest.mark.skipif(not hasattr(nw, "Float16"), reason="this narwhals refuses columns of half precision")
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
    columns = {"label": "y", "score": "p", "weight": "w"}
    cells = summarize(pl.DataFrame({"y": y, "p": p, "w": weight}), **columns)
    for name in ("count", "positives", "squares", "positive_squares"):
        assert getattr(cells, name) == pytest.approx(getattr(sample, name), rel=1e-12)
    one, two = (truecal.confidence_interval(part) for part in (sample, cells))
    assert (two.low, two.high) == pytest.approx((one.low, one.high), rel=1e-9)
    whole = pl.DataFrame({"y": y, "p": p, "w": np.ceil(weight)})
    assert summarize(whole, **columns, weighting="counts").squares is None
    with pytest.raises(InputError, match="weighting must be one of"):
        summarize(pl.DataFrame({"y": y, "p": p}), label="y", score="p", weighting="frequencies")
