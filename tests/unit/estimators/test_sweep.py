"""ew_sweep and em_sweep against Algorithm 1 of the paper, every b with every row."""

import warnings

import numpy as np
import pytest

import truecal
from support import naive

CUTS = {"ew_sweep": naive.equal_width, "em_sweep": naive.equal_mass}
QUIET = pytest.mark.filterwarnings("ignore:.*not monotone:UserWarning")


def labels(rng, p):
    threshold = rng.random()
    match rng.integers(4):
        case 0:
            return rng.random(len(p)) < p
        case 1:
            return p > threshold
        case 2:
            return (p > threshold) ^ (np.arange(len(p)) == rng.integers(len(p)))
        case _:
            return p < threshold


@QUIET
@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("norm", [1, 1.5, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_is_algorithm_1(name, norm, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 26))
    p = np.round(rng.random(n), [17, 1, 2, 0][seed % 4])
    y = labels(rng, p)
    for weight in (None, rng.integers(1, 4, n)):
        b, bins = naive.sweep(naive.rows_of(y, p, weight), CUTS[name])
        estimate = truecal.estimate(y, p, estimator=name, norm=norm, sample_weight=weight)
        assert estimate.value == pytest.approx(naive.binned(bins, norm), abs=1e-14)
        assert len(estimate.bins) == len(bins)
        # Once every score is alone, more bins change nothing, and truecal names the fewest.
        assert estimate.n_bins == b or len(bins) == len(np.unique(p))


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("label", [0, 1])
def test_separable_labels_leave_every_row_alone(name, label):
    p = np.linspace(0.05, 0.95, 19)
    y = p > 0.5 if label else np.zeros(19)
    estimate = truecal.estimate(y, p, estimator=name, norm=1)
    assert len(estimate.bins) == 19
    assert estimate.value == pytest.approx(np.abs(p - y).mean())


@pytest.mark.parametrize("name", CUTS)
def test_a_hundred_thousand_nearly_separable_rows(name):
    # Trying every b with every row would take 10^10 steps.
    p = (np.arange(100_000) + 0.5) / 100_000
    y = p > 0.5
    y[50_003] = False
    estimate = truecal.estimate(y, p, estimator=name, norm=1)
    assert 10_000 < estimate.n_bins < 100_000
    assert estimate.value == pytest.approx(0.25, abs=1e-4)


@pytest.mark.parametrize("name", CUTS)
def test_ones_are_parted_from_the_scores_below(name):
    # Two equal-width bins keep 0.5 and 1.0 together; the sweep must go on to three.
    y, p = np.repeat([0, 1], 10), np.repeat([0.5, 1.0], 10)
    assert truecal.calibration_error(y, p, estimator=name, norm=1) == pytest.approx(0.25)


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize(
    ("y", "p"),
    [
        (np.repeat([1, 0], 100), np.repeat([0.0, 1.0], 100)),
        ([1, 0], [0.0, 1.0]),
        (np.repeat([1, 0, 0, 0], 50), np.repeat([0.1, 0.3, 0.6, 0.9], 50)),
    ],
)
def test_labels_that_fall_with_two_bins_warn(name, y, p):
    with pytest.warns(UserWarning, match="not monotone: even with two bins"):
        estimate = truecal.estimate(y, p, estimator=name)
    assert estimate.n_bins == 1
    assert estimate.value == pytest.approx(abs(np.mean(p) - np.mean(y)))


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize(
    ("y", "p", "value"),
    [
        ([1], [0.3], 0.7),
        ([1, 0, 1], [0.3] * 3, 11 / 30),
        ([0, 1], [0.3, 0.4], 0.45),
        ([0, 0, 0], [0.0, 1.0, 0.5], 0.5),
    ],
)
def test_edges_do_not_warn(name, y, p, value):
    if name == "ew_sweep" and y == [0, 1]:
        value = 0.15  # two bins keep 0.3 and 0.4 together, and there are no more than two rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert truecal.calibration_error(y, p, estimator=name, norm=1) == pytest.approx(value)


@QUIET
@pytest.mark.parametrize("factor", [0.1, 1 / 3, 7.0])
def test_scaled_weights_give_the_same_bins(factor):
    rng = np.random.default_rng(3)
    p = np.round(rng.random(400), 2)
    y = rng.random(400) < p
    plain = truecal.estimate(y, p, estimator="em_sweep")
    scaled = truecal.estimate(y, p, estimator="em_sweep", sample_weight=np.full(400, factor))
    assert scaled.n_bins == plain.n_bins
    assert scaled.value == pytest.approx(plain.value, rel=1e-12)


def test_very_uneven_weights_do_not_take_minutes():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = rng.random(300) < p
    weight = np.full(300, 0.5)
    weight[3] = 1e12
    result = truecal.estimate(y, p, estimator="ew_sweep", sample_weight=weight)
    assert result.n_bins < 1 << 17  # a million, and minutes, before there was a limit


def scores_and_labels(kind, rng, n=30_000):
    score = rng.random(n)
    if kind == "rounded":
        score = np.round(score, 2)
    elif kind == "half rounded":
        score[::2] = np.round(score[::2], 3)
    elif kind == "mostly certain":
        score = 1 / (1 + np.exp(-rng.normal(7, 10, n)))
    elif kind == "near edges":
        score = np.nextafter(rng.integers(0, 31, n) / 30, rng.integers(0, 2, n))
    elif kind == "few":
        score = rng.choice([0.1, 0.4, 0.7], n)
    elif kind == "one":
        score = np.full(n, 0.3)
    if kind == "separable":
        return score, score > 0.5
    if kind == "one flipped":
        return score, (score > 0.5) ^ (np.arange(n) == 0)
    return score, rng.random(n) < (1 - score if kind == "falling" else score**1.2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    "kind",
    [
        *("uniform", "rounded", "half rounded", "mostly certain", "near edges", "few", "one"),
        *("separable", "one flipped", "falling"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*not monotone")
@pytest.mark.parametrize("name", ["ew_sweep", "em_sweep"])
def test_the_order_of_rows_changes_no_bit_of_a_sweep(name, kind, dtype):
    rng = np.random.default_rng(0)
    score, label = scores_and_labels(kind, rng, 5000)
    order, score = rng.permutation(len(score)), score.astype(dtype)
    one = truecal.estimate(label, score, estimator=name)
    other = truecal.estimate(label[order], score[order], estimator=name)
    assert (one.value, one.n_bins, one.n, one.target, one.notes) == (
        *(other.value, other.n_bins, other.n, other.target, other.notes),
    )
    for column in ("lower", "upper", "count", "mean_label", "mean_score"):
        np.testing.assert_array_equal(getattr(one.bins, column), getattr(other.bins, column))
