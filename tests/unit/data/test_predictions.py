"""What `as_sample` and `as_samples` take: containers, shapes, labels, weights. And what they refuse."""

import array
from decimal import Decimal
from fractions import Fraction

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truecal
from support.refusals import FIX, FOUR_LABELS, FOUR_SCORES, OUTSIDE, ROUNDING, THREE, refused
from truecal.data import as_sample, as_samples, probabilities_from_logits, read_rows
from truecal.exceptions import CalibrationWarning, InputError, Remedy

Y = [0, 0, 1, 1, 0]
P = [0.1, 0.4, 0.35, 0.8, 0.8]
WORDS = ["no", "no", "yes", "yes", "no"]
SCORE, COUNT, POSITIVES = [0.1, 0.35, 0.4, 0.8], [1, 1, 1, 2], [0, 1, 0, 1]
PAIRS = pd.MultiIndex.from_tuples([(0, "a"), (0, "b"), (1, "a"), (1, "b"), (2, "a")])
SHUFFLED = [3, 1, 4, 0, 2]


def assert_expected(samples, target="P(y = 1)", tolerance=1e-15):
    (sample,) = samples
    np.testing.assert_allclose(sample.score, SCORE, rtol=0, atol=tolerance)
    assert sample.count.tolist() == COUNT
    assert sample.positives.tolist() == POSITIVES
    assert sample.target == target
    assert sample.positives.dtype == np.float64


# --- Containers -----------------------------------------------------------------------------------


class FakeTensor:
    """What `read` uses of a torch tensor, on a machine without torch."""

    def __init__(self, values, dtype="torch.float32", moved=False):
        self.values, self.dtype, self.moved = values, dtype, moved

    def detach(self):
        return self

    def cpu(self):
        return FakeTensor(self.values, self.dtype, moved=True)

    def float(self):
        return FakeTensor(self.values, "torch.float32", self.moved)

    def __array__(self, dtype=None, copy=None):
        assert self.moved, "a tensor on another device or with a gradient has no array"
        if "bfloat16" in self.dtype:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return np.asarray(self.values, dtype=np.float32)


FakeTensor.__module__ = "torch"

CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "read-only": lambda values: (lambda x: x.setflags(write=False) or x)(np.array(values)),
    "reversed view": lambda values: np.array(values[::-1])[::-1],
    "strided view": lambda values: np.repeat(np.array(values), 3)[::3],
    "column of a matrix": lambda values: np.column_stack([values, values])[:, 1],
    "(n, 1)": lambda values: np.array(values)[:, np.newaxis],
    "list of lists": lambda values: [[value] for value in values],
    "objects": lambda values: np.array(values, dtype=object),
    "masked array without a mask": np.ma.array,
    "masked array, nothing masked": lambda values: np.ma.array(values, mask=[False] * len(values)),
    "pandas Series": pd.Series,
    "pandas Series, shuffled index": lambda values: pd.Series(values, index=SHUFFLED),
    "pandas Series, nullable": lambda values: pd.Series(values).convert_dtypes(),
    "pandas Series, pyarrow": lambda values: pd.Series(values).convert_dtypes(dtype_backend="pyarrow"),
    "pandas Series, category": lambda values: pd.Series(values, dtype="category"),
    "pandas Series, sparse": lambda values: pd.Series(pd.arrays.SparseArray(values)),
    "pandas Index": pd.Index,
    "pandas array": pd.array,
    "pandas DataFrame of one column": lambda values: pd.DataFrame({"a": values}, index=SHUFFLED),
    "polars Series": pl.Series,
    "polars Series in chunks": lambda values: pl.concat(
        [pl.Series(values[:2]), pl.Series(values[2:])], rechunk=False
    ),
    "polars DataFrame of one column": lambda values: pl.DataFrame({"a": values}),
    "pyarrow array": pa.array,
    "pyarrow slice": lambda values: pa.array([values[0], *values])[1:],
    "pyarrow chunked array": lambda values: pa.chunked_array(
        [values[:2], [], values[2:]], pa.array(values).type
    ),
    "pyarrow table of one column": lambda values: pa.table({"a": values}),
    "narwhals Series": lambda values: nw.from_native(pl.Series(values), series_only=True),
    "dataframe column": lambda values: pd.DataFrame({"a": values, "b": values})["a"],
}  # fmt: skip


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_every_container_by_position(container):
    assert_expected(as_samples(container(Y), container(P)))
    assert_expected(as_samples(container(Y), container(P), sample_weight=container([1, 1, 1, 1, 1])))
    assert_expected(as_samples(Y, container(P)))
    assert_expected(as_samples(container(Y), P))
    assert_expected(as_samples(container([bool(y) for y in Y]), P))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("y_proba", lambda y, p, other: truecal.estimate(y, other)),
        ("y_proba", lambda y, p, other: truecal.calibration_test(y, other.to_frame(), n_resamples=9)),
        ("y_proba", lambda y, p, other: truecal.compare(y, p, other)),
        ("sample_weight", lambda y, p, other: truecal.estimate(y, p, sample_weight=other)),
        ("clusters", lambda y, p, other: truecal.Sample.from_predictions(y.to_numpy(), p, clusters=other)),
        ("clusters", lambda y, p, other: truecal.select_recalibrator(y, p, clusters=other)),
        ("by", lambda y, p, other: truecal.assess(y, p, by={"region": other}, n_resamples=9)),
        ("by", lambda y, p, other: truecal.display.ComparisonDisplay.from_groups(y, p, other, n_resamples=9)),
    ],
)
def test_indexes_in_another_order_are_named(name, call):
    """Position counts, so a column that was sorted on its own would be paired with the wrong rows in silence."""
    tenth = np.tile(np.arange(1, 11) / 11, 20)
    label = (np.random.default_rng(0).random(200) < tenth).astype(int)
    y, p = pd.Series(label), pd.Series(np.roll(tenth, 1))
    with pytest.warns(
        CalibrationWarning, match=f"{name} has the index of y_(true|proba) in another"
    ) as caught:
        call(y, p, pd.Series(tenth, index=range(199, -1, -1)))
    assert caught[0].filename == __file__


def test_other_indexes_are_nobodys_business():
    for index in ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [0, 1, 2, 3, 5], list("abcde"), [0, 4, 4, 1, 1], PAIRS):
        assert_expected(as_samples(pd.Series(Y), pd.Series(P, index=index)))
    assert_expected(as_samples(pd.Series(Y), pd.Series(P, index=SHUFFLED).to_numpy()))


@pytest.mark.parametrize(
    "container", [c for name, c in CONTAINERS.items() if "sparse" not in name],
    ids=[name for name in CONTAINERS if "sparse" not in name],
)  # fmt: skip
def test_words_in_every_container(container):
    assert_expected(as_samples(container(WORDS), P, pos_label="yes"), "P(y = 'yes')")


@pytest.mark.parametrize(
    "words",
    [
        np.array(WORDS, dtype=np.dtypes.StringDType()),
        np.array(WORDS, dtype=object),
        [np.str_(word) for word in WORDS],
        pd.Series(WORDS, dtype="string[pyarrow]"),
        pd.Series(WORDS, dtype="string[python]"),
        pd.Series(WORDS, dtype=object),
        pd.Categorical(WORDS, categories=["yes", "maybe", "no"]),
        pl.Series(WORDS, dtype=pl.Categorical),
        pl.Series(WORDS, dtype=pl.Enum(["yes", "no"])),
        pa.array(WORDS).dictionary_encode(),
        pa.chunked_array([WORDS[:3], WORDS[3:]]).dictionary_encode(),
        pa.array(WORDS, pa.large_string()),
    ],
    ids=lambda words: f"{type(words).__module__}.{type(words).__name__} {getattr(words, 'dtype', '')}",
)
def test_every_kind_of_text(words):
    assert_expected(as_samples(words, P, pos_label="yes"), "P(y = 'yes')")
    assert_expected(as_samples(words, P, pos_label=np.str_("yes")), "P(y = 'yes')")


@pytest.mark.parametrize(
    "kind", ["?", *np.typecodes["AllInteger"], "e", "f", "d", "g", ">i4", ">u2", ">f4", "O"]
)
def test_every_type_of_label(kind):
    assert_expected(as_samples(np.array(Y, dtype=kind), P))
    assert_expected(as_samples(np.array(Y, dtype=kind), P, sample_weight=[1.0] * 5))
    assert_expected(as_samples(np.array(Y, dtype=kind), P, pos_label=1))
    assert_expected(as_samples(np.array(Y, dtype=kind), np.column_stack([1 - np.array(P), P])))


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", ">f2", ">f4", ">f8", "g"])
@pytest.mark.parametrize("weight", [None, [1.0] * 5])
def test_every_type_of_score_keeps_its_precision(kind, weight):
    score = np.array(P, dtype=kind)
    sample = as_sample(Y, score, sample_weight=weight)
    assert sample.score.tolist() == sorted(set(score.astype(np.float64).tolist()))
    assert sample.positives.tolist() == POSITIVES
    assert sample.dtype == (np.float64 if kind == "g" else np.dtype(kind).newbyteorder("="))


@pytest.mark.parametrize(
    "scores",
    [
        pd.Series(P, dtype="float32"),
        pd.Series(P, dtype="Float32"),
        pd.Series(P, dtype="float32[pyarrow]"),
        pl.Series(P, dtype=pl.Float32),
        pl.DataFrame({"p": pl.Series(P, dtype=pl.Float32)}),
        pa.array(P, pa.float32()),
        pa.chunked_array([P], pa.float32()),
    ],
)
def test_single_precision_columns_stay_so(scores):
    sample = as_sample(Y, scores)
    assert sample.dtype == np.float32
    assert sample.score[0] == np.float32(0.1)


@pytest.mark.parametrize("kind", ["?", "i1", "u1", "i8", "O"])
def test_scores_of_whole_numbers(kind):
    sample = as_sample([0, 1, 1], np.array([0, 1, 1], dtype=kind))
    assert (sample.score.tolist(), sample.count.tolist()) == ([0, 1], [1, 2])


def test_exact_numbers_of_the_standard_library():
    half, third = Fraction(1, 2), Decimal("0.1")
    sample = as_sample([Decimal(0), Decimal(1), Decimal(1)], [half, third, half])
    assert sample.score.tolist() == [0.1, 0.5]
    assert sample.positives.tolist() == [1, 1]
    sample = as_sample(array.array("b", [0, 1]), array.array("d", [0.25, 0.5]))
    assert sample.score.tolist() == [0.25, 0.5]
    assert (
        as_sample(pl.Series([0, 1]).cast(pl.Decimal(3, 1)), pa.array([0.5, 0.5]).cast(pa.decimal128(3, 1))).n
        == 2
    )


@pytest.mark.parametrize("dtype", ["torch.float32", "torch.bfloat16"])
def test_tensors_are_brought_over(dtype):
    assert_expected(as_samples(FakeTensor(Y), FakeTensor(P, dtype)), tolerance=1e-7)
    assert_expected(as_samples(Y, P, sample_weight=FakeTensor([1] * 5)))


def test_torch_itself():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float16, torch.float32, torch.float64):
        scores = torch.tensor(P, dtype=dtype, requires_grad=True)
        assert_expected(as_samples(torch.tensor(Y), scores), tolerance=1e-3)
    assert_expected(as_samples(torch.tensor(Y).bool(), torch.tensor(P)[:, None]), tolerance=1e-7)


def test_lists_inside_a_column_are_rows():
    rows = np.column_stack([1 - np.array(P), P])
    for column in (
        pd.Series(rows.tolist()),
        pl.Series(rows.tolist()),
        pl.Series(rows, dtype=pl.Array(pl.Float64, 2)),
        pa.array(rows.tolist()),
        pa.array(rows.tolist(), pa.list_(pa.float64(), 2)),
    ):
        assert_expected(as_samples(Y, column))


def test_the_callers_data_stay_as_they_were():
    y, p, w = np.array(Y), np.column_stack([1 - np.array(P), P]), np.array([1.0, 0, 2, 1, 1])
    labels = [0, 1]
    kept = [y.copy(), p.copy(), w.copy()]
    for options in (
        {},
        {"sample_weight": w},
        {"multiclass": "classwise"},
        {"pos_label": 0, "labels": labels},
    ):
        as_samples(y, p, **options)
        as_samples(y, p[:, 1], **options)
        as_samples(y, p, **options, logits=True)
    for now, before in zip((y, p, w), kept, strict=True):
        assert (now == before).all()
        assert now.flags.writeable
    assert labels == [0, 1]


# --- Shapes ---------------------------------------------------------------------------------------


def test_one_column_and_two_give_the_same_answer(golden):
    y, p = golden(500)
    both = np.column_stack([1 - p, p])
    for spec in truecal.list_estimators():
        values = {truecal.calibration_error(y, q, estimator=spec.name) for q in (p, p[:, None], both)}
        assert len(values) == 1
    for dtype in (np.float16, np.float32):
        one, two = as_sample(y, both[:, 1].astype(dtype)), as_sample(y, both.astype(dtype))
        assert (one.score == two.score).all()
        assert one.dtype == two.dtype == dtype


def test_two_columns_need_not_be_exact_complements():
    sample = as_sample([0, 1], [[0.5001, 0.5], [0.3, 0.6999]])
    assert sample.score.tolist() == [0.5, 0.6999]


@pytest.fixture
def three():
    proba = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.5, 0.3, 0.2], [0.1, 0.3, 0.6]])
    return np.array([0, 1, 1, 2, 2]), proba


def groups(sample):
    return dict(zip(sample.score.tolist(), sample.positives.tolist(), strict=True))


def test_three_columns_are_the_top_label(three):
    sample = as_sample(*three)
    assert groups(sample) == {0.5: 0, 0.6: 1, 0.7: 1, 0.8: 1}
    assert sample.count.tolist() == [2, 1, 1, 1]
    assert sample.target == "top label of 3 classes"
    assert groups(as_sample(*three, multiclass="top")) == groups(sample)


def test_classwise_is_every_class_against_the_rest(three):
    y, proba = three
    samples = as_samples(y, proba, multiclass="classwise")
    assert [sample.target for sample in samples] == [f"P(y = {k}) against the rest" for k in range(3)]
    for k, sample in enumerate(samples):
        for one in (as_sample(y == k, proba[:, k]), as_sample(y, proba, pos_label=k)):
            assert (one.score == sample.score).all()
            assert (one.positives == sample.positives).all()
        chosen = as_sample(y, proba, pos_label=k, multiclass="classwise")
        assert (chosen.target, groups(chosen)) == (sample.target, groups(sample))


def test_two_columns_by_their_top_label_and_classwise():
    y, p = [0, 1, 0], np.array([0.2, 0.7, 0.9])
    both = np.column_stack([1 - p, p])
    for scores in (p, p[:, None], both):
        top = as_sample(y, scores, multiclass="top")
        assert groups(top) == {0.8: 1, 0.7: 1, 0.9: 0}
        assert top.target == "top label of 2 classes"
        zero, one = as_samples(y, scores, multiclass="classwise")
        assert (zero.target, one.target) == ("P(y = 0)", "P(y = 1)")
        assert groups(one) == {0.2: 0, 0.7: 1, 0.9: 0}
        assert groups(zero) == pytest.approx({1 - 0.9: 1, 1 - 0.7: 0, 0.8: 1})


def test_a_tie_at_the_top_goes_to_the_first_column():
    assert groups(as_sample([0, 1], [[0.4, 0.4, 0.2]] * 2)) == {0.4: 1}


@pytest.mark.parametrize("kind", [bool, int, float, object])
def test_one_hot_labels(three, kind):
    y, proba = three
    two = np.column_stack([1 - proba[:, 1], proba[:, 1]])
    for labels, columns in ((y, proba), ((y == 1) * 1, two)):
        hot = np.eye(columns.shape[1])[labels].astype(kind)
        for options in ({}, {"multiclass": "top"}, {"multiclass": "classwise"}, {"pos_label": 1}):
            pairs = zip(
                as_samples(hot, columns, **options), as_samples(labels, columns, **options), strict=True
            )
            assert all((groups(one), one.target) == (groups(two), two.target) for one, two in pairs)
    hot = np.eye(2)[(y == 1) * 1].astype(kind)
    assert groups(as_sample(hot, proba[:, 1])) == groups(as_sample(y == 1, proba[:, 1]))


def test_one_hot_labels_go_with_named_columns(three):
    y, proba = three
    hot = np.eye(3)[y]
    by_labels = as_sample(hot, proba, labels=["a", "b", "c"], pos_label="b")
    by_frame = as_sample(
        pd.DataFrame(hot, columns=list("abc")), pd.DataFrame(proba, columns=list("abc")), pos_label="b"
    )
    assert groups(by_labels) == groups(by_frame) == groups(as_sample(y, proba, pos_label=1))
    assert by_labels.target == by_frame.target == "P(y = 'b') against the rest"
    dummies = pd.get_dummies(pd.Series(["a", "b", "b", "c", "c"]))
    assert groups(as_sample(dummies, proba)) == groups(as_sample(y, proba))


# --- Labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "positive", "shown"),
    [
        ([-1, -1, 1, 1, -1], 1, "1"),
        ([1, 1, 2, 2, 1], 2, "2"),
        ([2, 2, 1, 1, 2], np.int8(1), "1"),
        ([1, 1, 0, 0, 1], 0, "0"),
        ([0.5, 0.5, 1.5, 1.5, 0.5], 1.5, "1.5"),
        ([True, True, False, False, True], False, "False"),
        ([b"n", b"n", b"y", b"y", b"n"], b"y", "b'y'"),
        ([Decimal(7), Decimal(7), Decimal(9), Decimal(9), Decimal(7)], 9, "9"),
    ],
)
def test_any_two_labels_with_pos_label(labels, positive, shown):
    assert_expected(as_samples(labels, P, pos_label=positive), f"P(y = {shown})")
    assert_expected(as_samples(np.array(labels), P, pos_label=positive), f"P(y = {shown})")


@pytest.mark.parametrize(
    ("labels", "positive", "share"),
    [
        ([0, 0], None, 0),
        ([1, 1], None, 1),
        (["no", "no"], "yes", 0),
        (["yes", "yes"], "yes", 1),
        ([False, False], 1, 0),
        ([0.0, 0.0], 1.0, 0),
        ([2, 2], 1, 0),
    ],
)
def test_one_class_only(labels, positive, share):
    sample = as_sample(labels, [0.2, 0.9], pos_label=positive)
    assert sample.label.tolist() == [share, share]


CLASSES = ["cat", "ant", "bee"]


def test_named_classes_in_any_order(three):
    y, proba = three
    words = np.array(CLASSES)[y]
    expected = as_sample(y, proba), *as_samples(y, proba, multiclass="classwise")
    frames = (pd.DataFrame(proba, columns=CLASSES), pl.DataFrame(proba, schema=CLASSES))
    frames += (
        pa.table(dict(zip(CLASSES, proba.T, strict=True))),
        pd.DataFrame(proba, columns=CLASSES, index=SHUFFLED),
    )
    for columns, labels in [
        (proba, CLASSES),
        (proba, tuple(CLASSES)),
        (proba, np.array(CLASSES)),
        (proba, pd.Index(CLASSES)),
        (proba, pl.Series(CLASSES)),
        (proba, pa.array(CLASSES)),
        *((frame, None) for frame in frames),
    ]:
        got = (
            as_sample(words, columns, labels=labels),
            *as_samples(words, columns, labels=labels, multiclass="classwise"),
        )
        assert [groups(sample) for sample in got] == [groups(sample) for sample in expected]
        assert [sample.target for sample in got[1:]] == [
            f"P(y = {name!r}) against the rest" for name in CLASSES
        ]
        ant = as_sample(words, columns, labels=labels, pos_label="ant")
        assert (groups(ant), ant.target) == (groups(expected[2]), "P(y = 'ant') against the rest")


def test_without_names_strings_are_in_the_order_of_scikit_learn(three):
    y, proba = three
    with pytest.warns(CalibrationWarning, match="in the order of the sorted labels"):
        samples = as_samples(np.array(sorted(CLASSES))[y], proba, multiclass="classwise")
    assert [sample.target for sample in samples] == [
        f"P(y = {n!r}) against the rest" for n in sorted(CLASSES)
    ]
    assert [groups(s) for s in samples] == [groups(s) for s in as_samples(y, proba, multiclass="classwise")]


def test_a_class_may_be_absent_from_the_labels(three):
    _, proba = three
    assert as_sample([0, 0, 1, 1, 0], proba).n == 5
    assert as_sample(["ant", "ant", "bee", "bee", "bee"], proba, labels=CLASSES).n == 5
    absent = as_sample([0, 0, 1, 1, 0], proba, pos_label=2)
    assert not absent.positives.any()


@pytest.mark.parametrize(
    "frame",
    [lambda p: pd.DataFrame(p, columns=[20, 10, 30]), lambda p: pl.DataFrame(p, schema=["20", "10", "30"])],
)
def test_columns_named_by_numbers(three, frame):
    y, proba = three
    sample = as_sample(np.array([20, 10, 30])[y], frame(proba), pos_label=10)
    assert groups(sample) == groups(as_sample(y, proba, pos_label=1))
    assert sample.target == "P(y = 10) against the rest"


def test_other_columns_names_leave_numbers_to_positions(three):
    y, proba = three
    for frame in (pd.DataFrame(proba), pl.DataFrame(proba), pd.DataFrame(proba, columns=list("cab"))):
        assert groups(as_sample(y, frame, pos_label=2)) == groups(as_sample(y, proba, pos_label=2))


def test_whole_floats_and_booleans_are_class_numbers(three):
    y, proba = three
    for labels in (y.astype(float), y.astype(object), y.astype(np.uint8), y.astype(">i4"), y.tolist()):
        assert groups(as_sample(labels, proba)) == groups(as_sample(y, proba))
    two = np.column_stack([1 - proba[:, 0], proba[:, 0]])
    assert groups(as_sample(y == 0, two)) == groups(as_sample((y == 0) * 1, two))


def test_labels_name_the_classes_of_one_column_too():
    assert_expected(as_samples(WORDS, P, labels=["no", "yes"]), "P(y = 'yes')")
    assert_expected(as_samples(Y, P, labels=[0, 1]))
    assert_expected(as_samples(WORDS, P, labels=["no", "yes"], pos_label="yes"), "P(y = 'yes')")
    swapped = ["yes" if word == "no" else "no" for word in WORDS]
    assert_expected(as_samples(swapped, P, labels=["no", "yes"], pos_label="no"), "P(y = 'no')")
    assert_expected(as_samples(swapped, P, pos_label="no"), "P(y = 'no')")
    assert_expected(as_samples(swapped, P, pos_label="no", multiclass="classwise"), "P(y = 'no')")
    assert_expected(as_samples(swapped, P, labels=["yes", "no"]), "P(y = 'no')")


def test_two_named_columns():
    both = np.column_stack([1 - np.array(P), P])
    assert_expected(as_samples(WORDS, both, labels=["no", "yes"]), "P(y = 'yes')")
    assert_expected(as_samples(WORDS, both, pos_label="yes"), "P(y = 'yes')")
    assert_expected(as_samples(WORDS, pl.DataFrame(both, schema=["no", "yes"])), "P(y = 'yes')")
    assert_expected(
        as_samples(WORDS, pl.DataFrame(both[:, ::-1], schema=["yes", "no"]), pos_label="yes"), "P(y = 'yes')"
    )


# --- Weights --------------------------------------------------------------------------------------


def test_weights_are_frequencies():
    weight = [2, 0, 1, 3, 1]
    weighted = as_sample(Y, P, sample_weight=weight)
    repeated = as_sample(np.repeat(Y, weight), np.repeat(P, weight))
    for name in ("score", "count", "positives"):
        assert (getattr(weighted, name) == getattr(repeated, name)).all()
    assert weighted.n == repeated.n == 7


def test_a_weight_of_zero_leaves_the_row_out(three):
    y, proba = three
    kept = [True, False, True, True, False]
    for options in ({}, {"multiclass": "classwise"}, {"pos_label": 1}):
        weighted = as_samples(y, proba, sample_weight=kept, **options)
        short = as_samples(y[kept], proba[kept], **options)
        assert [groups(sample) for sample in weighted] == [groups(sample) for sample in short]


@pytest.mark.parametrize("scale", [1e-9, 0.1, 3, 1e9])
def test_scaled_weights_scale_the_counts_alone(scale, golden):
    y, p = golden(200)
    weight = np.arange(1, 201) / 7
    one, scaled = as_sample(y, p, sample_weight=weight), as_sample(y, p, sample_weight=weight * scale)
    np.testing.assert_allclose(scaled.count, one.count * scale, rtol=1e-12)
    np.testing.assert_allclose(scaled.label, one.label, rtol=1e-12)
    assert scaled.n == pytest.approx(weight.sum() * scale)
    for name in ("ew_bin", "em_bin", "ew_label", "em_label", "ks", "em_sweep", "ew_sweep"):
        values = [truecal.calibration_error(sample, estimator=name) for sample in (one, scaled)]
        assert values[0] == pytest.approx(values[1], abs=1e-12)


@pytest.mark.parametrize("kind", ["?", "i1", "u8", "f2", "f4", ">f8", "g", "O"])
def test_weights_of_every_type(kind):
    sample = as_sample(Y, P, sample_weight=np.array([1, 0, 1, 1, 1], dtype=kind))
    assert sample.count.tolist() == [1, 1, 2]
    assert sample.count.dtype == np.float64


# --- Logits ---------------------------------------------------------------------------------------


def test_logits_of_one_column_are_squashed_and_several_shared_out():
    logit = np.log(np.array(P) / (1 - np.array(P)))
    both = np.column_stack([np.zeros(5), logit])
    for logits in (logit, logit[:, None], logit.tolist(), both, both + 1000, pd.DataFrame(both)):
        assert_expected(as_samples(Y, logits, logits=True), tolerance=1e-12)
    np.testing.assert_allclose(
        probabilities_from_logits(both), np.column_stack([1 - np.array(P), P]), atol=1e-15
    )


def test_extreme_logits_neither_overflow_nor_warn():
    most = np.finfo(np.float64).max
    np.testing.assert_array_equal(
        probabilities_from_logits([-most, -800.0, 0.0, 800.0, most]), [0, 0, 0.5, 1, 1]
    )
    for logits in ([[most, -most], [-most, most]], [[1e4, -1e4], [-1e4, 1e4]]):
        np.testing.assert_array_equal(probabilities_from_logits(logits), [[1, 0], [0, 1]])
    np.testing.assert_array_equal(probabilities_from_logits([[most] * 4, [-most] * 4]), np.full((2, 4), 0.25))
    assert 0 < probabilities_from_logits([-700.0])[0] < 1e-300


@pytest.mark.parametrize("kind", ["f2", "f4", ">f4", "i1", "g", "O"])
def test_logits_are_worked_out_in_double_precision(kind):
    logits = np.array([[0, 11], [11, 0], [3, 1]], dtype=kind)
    sample = as_sample([1, 0, 0], logits, logits=True)
    assert sample.dtype == np.float64
    assert sample.score[-1] == pytest.approx(1 / (1 + np.exp(-11.0)), abs=1e-15)
    assert sample.score[-1] < 1


def test_logits_take_the_options_of_read(three):
    y, proba = three
    logits = np.log(proba)
    for options in ({"multiclass": "classwise"}, {"pos_label": 1}, {"sample_weight": [1, 2, 0, 1, 1]}):
        pairs = zip(
            as_samples(y, logits, **options, logits=True),
            as_samples(y, probabilities_from_logits(logits), **options),
            strict=True,
        )
        assert all((groups(one), one.target) == (groups(two), two.target) for one, two in pairs)
    with pytest.raises(TypeError, match="colour"):
        as_samples(y, logits, colour="red", logits=True)


def test_logits_keep_the_names_of_their_columns(three):
    y, proba = three
    words = np.array(CLASSES)[y]
    named = as_sample(words, pd.DataFrame(np.log(proba), columns=CLASSES), logits=True)
    assert (
        named.positives.tolist() == as_sample(words, pd.DataFrame(proba, columns=CLASSES)).positives.tolist()
    )


# --- Size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_million_rows_are_counted_exactly(dtype):
    n = 1_000_000
    score = (np.arange(n) * 0.6180339887498949 % 1.0).astype(dtype)
    label = np.arange(n) % 3 == 0
    sample = as_sample(label, score)
    assert (sample.count.sum(), sample.positives.sum()) == (n, label.sum())
    assert (np.diff(sample.score) > 0).all()
    total = float(np.sum(sample.score * sample.count))
    assert total == pytest.approx(float(np.sum(score, dtype=np.longdouble)), rel=1e-13)


@pytest.mark.parametrize("value", [1.2, -0.1, 1000.0, np.inf, -np.inf])
@pytest.mark.parametrize("weight", [None, [1, 1, 1, 1], [1, 1, 0, 1]])
def test_a_score_outside_the_unit_interval(value, weight):
    refused(
        f"y_proba has 1 value outside [0, 1] (first at row 2: {value}). {OUTSIDE}",
        FOUR_LABELS,
        [0.1, 0.4, value, 0.8],
        sample_weight=weight,
    )
    refused(
        f"y_proba has 2 values outside [0, 1] (first at row 1: {value}). {OUTSIDE}",
        FOUR_LABELS,
        [0.1, value, 0.5, value],
    )
    refused(
        f"y_proba has 1 value outside [0, 1] (first at row 0: {value}). {OUTSIDE}",
        FOUR_LABELS,
        [[0.5, value], *[[0.5, 0.5]] * 3],
    )


@pytest.mark.parametrize("value", [1 + 1e-7, np.nextafter(1, 2), 1.0005, -1e-300, -0.0005])
def test_a_score_outside_by_rounding_is_refused_too_but_with_other_advice(value):
    refused(
        f"y_proba has 1 value outside [0, 1] (first at row 2: {value}). {ROUNDING}",
        FOUR_LABELS,
        [0.1, 0.4, value, 0.8],
    )
    refused(
        f"y_proba has 2 values outside [0, 1] (first at row 2: {value}). {OUTSIDE}",
        FOUR_LABELS,
        [0.1, 0.4, value, 1.8],
    )
    assert as_samples(FOUR_LABELS, np.clip([0.1, 0.4, value, 0.8], 0, 1))[0].n == 4


def test_percentages():
    advice = Remedy.PERCENT.value
    refused(
        f"y_proba has 3 values outside [0, 1] (first at row 1: 40.0). {advice}",
        FOUR_LABELS,
        [0.1, 40, 35, 80],
    )


def test_the_fields_of_an_error():
    with pytest.raises(InputError) as info:
        as_sample(FOUR_LABELS, [0.1, 1.2, 0.5, 1.3])
    error = info.value
    fields = error.argument, error.count, error.first_row, error.value, error.remedy
    assert fields == ("y_proba", 2, 1, 1.2, Remedy.LOGITS)


def test_an_excess_too_small_for_double_precision():
    if np.finfo(np.longdouble).eps == np.finfo(np.float64).eps:
        pytest.skip("long doubles are doubles here")
    refused(
        f"y_proba has 4 values outside [0, 1] (first at row 0: 1.0000000000000000...). {ROUNDING}",
        FOUR_LABELS,
        np.ones(4, "g") + 1e-18,
    )


def test_rows_that_do_not_sum_to_one():
    rows = [[0.5, 0.5], [0.2, 0.7], [0.5, 0.5], [0.6, 0.9]]
    refused(
        f"y_proba has 2 rows whose sum is not 1 (first at row 1: 0.8999999999999999). {Remedy.NORMALIZE.value}",
        FOUR_LABELS,
        rows,
    )
    refused(
        "y_proba has 1 row whose sum is not 1 (first at row 0: 0.998). ...",
        FOUR_LABELS,
        [[0.5, 0.498], *[[0.5, 0.5]] * 3],
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 10, 1000])
def test_a_softmax_of_any_precision_sums_to_one(dtype, k):
    rng = np.random.default_rng(k)
    proba = probabilities_from_logits(rng.normal(scale=3, size=(200, k))).astype(dtype)
    assert as_samples(rng.integers(k, size=200), proba)[0].n == 200


def test_top_label_has_no_positive_class():
    refused(
        "pos_label cannot be combined with multiclass='top': the top class differs from row to row.",
        [0, 1, 2, 2],
        THREE,
        pos_label=1,
        multiclass="top",
    )
    refused(
        "multiclass must be one of 'top', 'classwise', 'top_k', 'top_by_class', 'multilabel', 'canonical'. "
        "Got 'all' instead.",
        [0, 1, 2, 2],
        THREE,
        multiclass="all",
    )


def test_one_hot_columns_in_another_order():
    proba = pd.DataFrame(THREE, columns=["a", "b", "c"])
    hot = pd.DataFrame(np.eye(3)[[0, 1, 2, 2]], columns=["c", "b", "a"])
    refused("y_true and y_proba have the same columns in another order. Give them one order.", hot, proba)
    assert as_samples(hot[["a", "b", "c"]], proba)[0].n == 4


@pytest.mark.parametrize("value", [-1.0, -1e-300, 5e-324, np.nan, np.inf, 1e101])
def test_a_weight_out_of_range(value):
    refused(
        f"sample_weight has 2 values missing or outside [1e-100, 1e+100] (first at row 1: {value}). "
        f"A weight of 2 counts a row twice, and 0 leaves it out.",
        FOUR_LABELS,
        FOUR_SCORES,
        sample_weight=[1, value, value, 0],
    )


def test_other_bad_weights():
    refused(
        "sample_weight is zero in every row. At least one row must count.",
        FOUR_LABELS,
        FOUR_SCORES,
        sample_weight=[0] * 4,
    )
    refused(
        "sample_weight has 1 non-numeric value (first at row 1: 'b').",
        FOUR_LABELS,
        FOUR_SCORES,
        sample_weight=[1, "b", 1, 1],
    )
    refused(
        "sample_weight has 1 value missing or outside ... (first at row 2: nan). ...",
        FOUR_LABELS,
        FOUR_SCORES,
        sample_weight=[1, 1, None, 1],
    )
    refused(
        "sample_weight must be a list, an array or a column. Got 2 instead.",
        FOUR_LABELS,
        FOUR_SCORES,
        sample_weight=2,
    )
    for shape in ((3,), (5,), (2, 2), (1, 4), (4, 2), (0,)):
        refused(
            f"sample_weight has shape {shape}. One weight is needed for each of 4 rows.",
            FOUR_LABELS,
            FOUR_SCORES,
            sample_weight=np.ones(shape),
        )


def test_the_largest_weights_do_not_overflow():
    for name in ("em_sweep", "ew_bin", "ks", "skce"):
        assert (
            0
            <= truecal.calibration_error(FOUR_LABELS, FOUR_SCORES, sample_weight=[1e100] * 4, estimator=name)
            <= 1
        )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_logits_must_be_finite(value):
    for logits in ([0.0, 1.0, value, 2.0], [[0.0, 1.0], [0.0, 1.0], [value, 0.0], [0.0, 1.0]]):
        refused(
            f"logits has 1 infinite or NaN value (first at row 2: {value}). {FIX}",
            FOUR_LABELS,
            logits,
            logits=True,
        )


def test_other_bad_logits():
    refused("logits is empty: 0 sample(s) (shape=...) while a minimum of 1 is required.", [], [], logits=True)
    refused(
        "logits is empty: 0 sample(s) (shape=...) while a minimum of 1 is required.",
        [],
        np.empty((0, 3)),
        logits=True,
    )
    refused(
        "logits has 1 non-numeric value (first at row 0: 'a').",
        ["a", 1.0],
        function=probabilities_from_logits,
    )
    refused(
        "logits must have shape (n,) or (n, K). Got shape (1, 2, 2) instead. Reshape your data.",
        np.ones((1, 2, 2)),
        function=probabilities_from_logits,
    )
    refused(
        "y_true has 2 rows, y_proba has 3. They must have the same length.",
        [0, 1],
        [1.0, 2.0, 3.0],
        logits=True,
    )


def test_logits_are_never_taken_for_probabilities_by_themselves():
    refused(
        f"y_proba has 4 values outside [0, 1] (first at row 0: -1.0). {OUTSIDE}",
        FOUR_LABELS,
        [-1.0, 2.0, 3.0, -4.0],
    )
    refused(
        f"y_proba has 4 values outside [0, 1] (first at row 0: -1.0). {OUTSIDE}",
        FOUR_LABELS,
        [[-1.0, 2.0], [0.5, 0.5], [3.0, -4.0], [0.5, 0.5]],
    )


def test_as_sample_is_one():
    (sample,) = as_samples(FOUR_LABELS, FOUR_SCORES)
    assert as_sample(sample) is sample
    assert as_sample([0, 1, 2, 2], THREE, multiclass="top").target == "top label of 3 classes"
    refused(
        f"multiclass 'classwise' gives 3 samples, and only one can be used here. {Remedy.ONE_CLASS.value}",
        [0, 1, 2, 2],
        THREE,
        multiclass="classwise",
        function=as_sample,
    )
    refused(
        "y_proba and pos_label cannot be given beside a Sample, ...",
        sample,
        FOUR_SCORES,
        pos_label=1,
        function=as_sample,
    )
    refused(
        "y_proba is missing. Pass labels and probabilities, or one Sample.", FOUR_LABELS, function=as_sample
    )


def test_an_unknown_keyword_is_named_and_a_near_one_suggested():
    with pytest.raises(
        TypeError, match=r"^unexpected keyword argument 'cluster'\. Did you mean 'clusters'\?$"
    ):
        truecal.confidence_interval([0, 1], [0.2, 0.7], cluster=[1, 2])
    with pytest.raises(TypeError, match=r"^unexpected keyword argument 'fast'$"):
        truecal.confidence_interval([0, 1], [0.2, 0.7], fast=True)


def test_rows_of_classes_are_a_sequence():
    proba = np.array([[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]])
    classes = read_rows([2, 0], proba, multiclass="classwise")
    assert len(classes) == 3
    assert [rows.label.tolist() for rows in classes] == [[False, True], [False, False], [True, False]]
    assert classes[-1].score.tolist() == [0.5, 0.3]
    assert classes[-1].target == classes[2].target == "P(y = 2) against the rest"
    assert [rows.target for rows in classes[1:]] == [rows.target for rows in classes][1:]
    with pytest.raises(IndexError):
        classes[3]
