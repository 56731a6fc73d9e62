"""Laws of the estimators over generated data: weights, symmetry, refinement, and the naive sweep.

The order of rows and the range of values are part of the contract tests.
"""

import itertools
import os

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import truecal
from support import naive
from truecal.data import as_sample
from truecal.data.sample import Block

#: The same examples every time, so that the tests are deterministic; TRUECAL_EXPLORE=1 looks for new ones.
LAWS = settings(deadline=None, derandomize="TRUECAL_EXPLORE" not in os.environ, database=None)
SPECS = truecal.list_estimators()
NORMS = st.sampled_from([1, 1.5, 2, 3])
BINNINGS = st.sampled_from(["ew", "em"])
BINS = st.integers(1, 40)

every_estimator = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
pytestmark = pytest.mark.filterwarnings("ignore:.* of P.y = 1.*:UserWarning")

#: Scores of various types: any float, decimals, few values, the ends.
scores = st.one_of(
    st.floats(0, 1),
    st.integers(0, 10).map(lambda k: k / 10),
    st.integers(0, 100).map(lambda k: k / 100),
    st.sampled_from([0.0, 0.5, 1.0, 1 - 2**-53, 2**-60]),
)
rows = st.lists(st.tuples(st.integers(0, 1), scores), min_size=2, max_size=30)
#: Odd multiples of 1/256: no equal-width edge up to 255 bins meets them, and 1 - p is exact.
odd_rows = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 127).map(lambda k: (2 * k + 1) / 256)),
    min_size=2,
    max_size=30,
)


def columns(data):
    y, p = zip(*data, strict=True)
    return np.array(y), np.array(p)


def error(name, y, p, **options):
    return truecal.calibration_error(y, p, estimator=name, **options)


# --- Rows and weights ------------------------------------------------------------------------------


@every_estimator
@settings(LAWS, max_examples=30)
@given(data=st.lists(st.tuples(st.integers(0, 1), scores, st.integers(0, 4)), min_size=2, max_size=25))
def test_weights_are_repetition(spec, data):
    y, p, weight = (np.array(column) for column in zip(*data, strict=True))
    assume(weight.sum() >= 2)
    repeated = error(spec.name, np.repeat(y, weight), np.repeat(p, weight))
    assert error(spec.name, y, p, sample_weight=weight, weighting="counts") == pytest.approx(
        repeated, abs=1e-9
    )


@every_estimator
@settings(LAWS, max_examples=30)
@given(
    data=st.integers(2, 40).flatmap(
        lambda n: st.lists(
            st.lists(st.tuples(st.integers(0, 1), scores), min_size=n, max_size=n), min_size=1, max_size=4
        )
    ),
    norm=NORMS,
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_a_block_gives_what_its_samples_give(spec, data, norm, dtype):
    rows = [columns(sample) for sample in data]
    label, score = np.array([y for y, _ in rows]), np.array([p for _, p in rows], dtype=dtype)
    many = spec.many(Block.from_rows(label, score), norm=norm)
    assert len(many) == len(rows)
    for one, y, p in zip(many, label, score, strict=True):
        alone = spec(as_sample(y, p), norm=norm)
        assert (one.n_bins, one.notes) == (alone.n_bins, alone.notes)
        for name in ("value", "signed_square", "rank_value"):
            expected = getattr(alone, name)
            if spec.name == "multiscale":  # its fits stop when they are close enough
                expected = pytest.approx(expected, abs=1e-4)
            assert getattr(one, name) == expected
        if one.bins is not None:
            assert one.bins.to_rows() == alone.bins.to_rows()


@settings(LAWS, max_examples=60)
@given(data=rows, factor=st.sampled_from([0.1, 0.3, 1 / 3, 7.0, 1e-6]), n_bins=BINS, norm=NORMS)
def test_equal_mass_bins_do_not_depend_on_the_scale_of_weights(data, factor, n_bins, norm):
    y, p = columns(data)
    weight = np.arange(len(y)) % 3 + 1.0
    for name, options in (("em_bin", {"n_bins": n_bins}), ("em_label", {"n_bins": n_bins}), ("em_sweep", {})):
        plain, scaled = (
            error(name, y, p, norm=norm, sample_weight=w, **options) for w in (weight, weight * factor)
        )
        assert scaled == pytest.approx(plain, rel=1e-9, abs=1e-12)


@pytest.mark.filterwarnings("ignore::truecal.CalibrationWarning")  # copies look like clusters
@settings(LAWS, max_examples=25)
@given(
    n=st.sampled_from([60, 400, 2000]),
    most=st.integers(1, 8),
    decimals=st.sampled_from([1, 2, 4, 5, 16]),
    seed=st.integers(0, 2**32 - 1),
)
def test_counts_repeated_rows_and_cells_agree(n, most, decimals, seed):
    """Labels are copied with their rows, so that distinct scores matter: they are merged alike, or for no route."""
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(decimals)
    y = (rng.random(n) < p**1.2).astype(int)
    times = rng.integers(1, most + 1, n)
    counts = truecal.estimate(y, p, sample_weight=times, weighting="counts")
    repeated = truecal.estimate(np.repeat(y, times), np.repeat(p, times))
    frame = pl.DataFrame({"y": y, "p": p, "w": times})
    cells = truecal.estimate(truecal.summarize(frame, label="y", score="p", weight="w", weighting="counts"))
    assert repeated.value == pytest.approx(counts.value, abs=1e-9)
    assert cells.value == pytest.approx(counts.value, abs=1e-4 + cells.cell_error)


@every_estimator
@settings(LAWS, max_examples=15)
@given(
    n=st.sampled_from([3, 20, 300, 1000]),
    n_large=st.integers(1, 3),
    large=st.integers(0, 12).map(lambda k: 10.0**k),
    decimals=st.sampled_from([2, 16]),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_few_weights_may_outweigh_all_others(spec, n, n_large, large, decimals, seed):
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(decimals)
    y = rng.random(n) < p
    weight = np.ones(n)
    weight[rng.integers(0, n, n_large)] = large
    value = error(spec.name, y, p, sample_weight=weight)
    assert spec.range[0] <= value <= spec.range[1]
    if spec.name == "multiscale":  # the others take weights as numbers of rows
        assert error(spec.name, y, p, sample_weight=weight / 1024) == pytest.approx(value, abs=1e-9)


# --- Orders between estimators ---------------------------------------------------------------------


@settings(LAWS, max_examples=100)
@given(data=rows, binning=BINNINGS, n_bins=BINS, norm=NORMS)
def test_debiased_below_binned_below_label_binned(data, binning, n_bins, norm):
    # Jensen's inequality, once for the noise of labels and once for the spread of scores in a bin.
    y, p = columns(data)
    debiased, binned, labelled = (
        error(f"{binning}_{name}", y, p, n_bins=n_bins, norm=norm) for name in ("debias", "bin", "label")
    )
    assert debiased <= binned + 1e-7  # the root turns a rounding error of 1e-14 into this
    assert binned <= labelled + 1e-12


@settings(LAWS, max_examples=100)
@given(data=rows, binning=BINNINGS, n_bins=BINS, norm=NORMS)
def test_splitting_every_bin_never_lowers_the_binned_error(data, binning, n_bins, norm):
    # Bin k of b is made of bins 2k and 2k + 1 of 2b.
    y, p = columns(data)
    coarse, fine = (error(f"{binning}_bin", y, p, n_bins=b, norm=norm) for b in (n_bins, 2 * n_bins))
    assert coarse <= fine + 1e-12


@settings(LAWS, max_examples=100)
@given(data=rows, binning=BINNINGS, n_bins=BINS)
def test_norms_rise_to_the_largest_gap(data, binning, n_bins):
    y, p = columns(data)
    values = [error(f"{binning}_bin", y, p, n_bins=n_bins, norm=norm) for norm in (1, 1.5, 2, 3, 20)]
    values.append(error(f"{binning}_mce", y, p, n_bins=n_bins))
    assert all(low <= high + 1e-12 for low, high in itertools.pairwise(values))


@pytest.mark.parametrize("name", ["ew_sweep", "em_sweep", "ew_label", "em_label", "neighbor", "kde"])
@settings(LAWS, max_examples=25)
@given(data=rows)
def test_norms_rise(name, data):
    y, p = columns(data)
    values = [error(name, y, p, norm=norm) for norm in (1, 1.5, 2, 3)]
    assert all(low <= high + 1e-12 for low, high in itertools.pairwise(values))


@settings(LAWS, max_examples=60)
@given(data=rows)
def test_every_estimate_of_gaps_is_at_least_the_gap_of_the_means(data):
    y, p = columns(data)
    gap = abs(p.mean() - y.mean())
    for name in ("ew_bin", "em_bin", "ew_sweep", "em_sweep", "ew_label", "em_label"):
        assert error(name, y, p, norm=1) >= gap - 1e-12
    assert error("ks", y, p) >= gap - 1e-12
    assert error("em_bin", y, p, n_bins=1) == pytest.approx(gap, abs=1e-12)


# --- Symmetry and transforms -----------------------------------------------------------------------


@settings(LAWS, max_examples=60)
@given(data=odd_rows, norm=NORMS)
def test_the_other_class_has_the_same_error(data, norm):
    # 1 - y with 1 - p: every gap changes its sign. Equal-width bins mirror where no score is on an edge.
    y, p = columns(data)
    for name, options in (
        ("ew_bin", {"n_bins": 15}),
        ("ew_label", {"n_bins": 16}),
        ("ew_debias", {"n_bins": 7}),
        ("ew_mce", {"n_bins": 4}),
        ("ew_sweep", {}),
        ("neighbor", {"n_neighbors": 3}),
        ("kde", {"bandwidth": 0.1}),
        ("skce", {}),
    ):
        one, other = error(name, y, p, norm=norm, **options), error(name, 1 - y, 1 - p, norm=norm, **options)
        assert one == pytest.approx(other, abs=1e-7)


@settings(LAWS, max_examples=40)
@given(
    labels=st.lists(st.integers(0, 1), min_size=12, max_size=12), n_bins=st.sampled_from([1, 2, 3, 4, 6, 12])
)
def test_the_other_class_has_the_same_error_in_even_bins_of_equal_mass(labels, n_bins):
    # Bins mirror if all have the same number of rows and no scores tie.
    y, p = np.array(labels), (np.arange(12) ** 2 + 0.5) / 256
    for name in ("em_bin", "em_label", "em_debias", "em_mce"):
        one, other = error(name, y, p, n_bins=n_bins), error(name, 1 - y, 1 - p, n_bins=n_bins)
        assert one == pytest.approx(other, abs=1e-7)


@settings(LAWS, max_examples=60)
@given(data=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 64)), min_size=1, max_size=30), n_bins=BINS)
def test_equal_mass_bins_depend_on_the_order_of_scores_only(data, n_bins):
    # Squares of multiples of 1/64, and halves, are exact: the transform keeps order and ties.
    y, k = columns(data)
    bins = [
        truecal.estimate(y, p, estimator="em_bin", n_bins=n_bins).bins
        for p in (k / 64, (k / 64) ** 2, 0.5 + k / 128)
    ]
    for other in bins[1:]:
        np.testing.assert_array_equal(other.count, bins[0].count)
        np.testing.assert_array_equal(other.mean_label, bins[0].mean_label)
    chosen = {
        truecal.estimate(y, p, estimator="em_sweep").n_bins for p in (k / 64, (k / 64) ** 2, 0.5 + k / 128)
    }
    assert len(chosen) == 1


@settings(LAWS, max_examples=40)
@given(data=rows, norm=NORMS)
def test_perfect_scores_have_no_error(data, norm):
    y, _ = columns(data)
    for spec in SPECS:
        if spec.name != "kde":  # its kernels reach beyond the ends
            assert error(spec.name, y, y.astype(float), norm=norm) == pytest.approx(0.0, abs=1e-12)


# --- The sweep -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "cut"), [("ew_sweep", naive.equal_width), ("em_sweep", naive.equal_mass)])
@settings(LAWS, max_examples=50)
@given(data=st.lists(st.tuples(st.integers(0, 1), scores), min_size=1, max_size=14), sort=st.booleans())
def test_the_sweep_is_algorithm_1(name, cut, data, sort):
    y, p = columns(data)
    if sort:  # labels that rise with the scores, but for ties, sweep far
        y, p = np.sort(y), np.sort(p)
    b, bins = naive.sweep(naive.rows_of(y, p), cut)
    estimate = truecal.estimate(y, p, estimator=name)
    assert estimate.value == pytest.approx(naive.binned(bins, 2), abs=1e-12)
    assert bool(estimate.notes) == (b == 1 and len(set(p)) > 1)


@settings(LAWS, max_examples=60)
@given(data=rows, binning=BINNINGS)
def test_the_labels_of_a_sweep_rise(data, binning):
    sample = as_sample(*columns(data))
    bins = truecal.estimate(sample, estimator=f"{binning}_sweep").bins
    assert np.all(np.diff(bins.mean_label) >= 0)
