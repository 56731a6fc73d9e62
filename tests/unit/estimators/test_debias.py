"""ew_debias and em_debias: the formula row by row, unbiasedness by enumeration, and the noise for other p."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import foldnorm

import truecal
from support import naive
from support.grouped import sample_of

CUTS = {"ew_debias": naive.equal_width, "em_debias": naive.equal_mass}
QUIET = pytest.mark.filterwarnings("ignore:.*most rows are in bins of their own:UserWarning")


def data(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    p = np.round(rng.random(n), [17, 1, 2][seed % 3])
    return (rng.random(n) < p**2).astype(int), p, rng


def one_bin(gap, hits, rows):
    """One bin: `hits` positives of `rows`, all with the same score, `gap` above their frequency."""
    score, count, positives = ([hits / rows + gap], [rows], [hits])
    return sample_of(score, count, positives)


def debias(sample, norm):
    return truecal.calibration_error(sample, estimator="em_debias", norm=norm, n_bins=1)


# --- p = 2 -----------------------------------------------------------------------------------------


@QUIET
@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("seed", range(12))
def test_is_the_formula(name, seed):
    y, p, rng = data(seed)
    for weight in (None, rng.integers(1, 5, len(y))):
        for n_bins in (1, 7, 15, 100):
            expected = naive.debiased_square(CUTS[name](naive.rows_of(y, p, weight), n_bins))
            got = truecal.estimate(y, p, estimator=name, n_bins=n_bins, sample_weight=weight)
            assert got.signed_square == pytest.approx(expected, abs=1e-14)
            assert got.value == pytest.approx(math.sqrt(max(expected, 0)), abs=1e-7)


def test_the_sum_is_clipped_and_not_each_bin():
    # Two bins without a gap, of which only the noise is subtracted, and one with a large gap.
    y = np.repeat([0, 1, 0, 1, 0, 1], [3, 1, 1, 3, 8, 2])
    p = np.repeat([0.25, 0.75, 0.9], [4, 4, 10])
    signed = (2 * 4 * -(0.25 * 0.75) / 3 + 10 * (0.7**2 - 0.2 * 0.8 / 9)) / 18
    estimate = truecal.estimate(y, p, estimator="ew_debias", n_bins=10)
    assert estimate.signed_square == pytest.approx(signed)
    assert estimate.value == pytest.approx(math.sqrt(signed))


def test_it_is_unbiased_over_all_labels_of_a_bin():
    # Every outcome of five labels with probability 0.3, each with its probability: exact expectation.
    p, rate = np.array([0.4, 0.45, 0.5, 0.55, 0.6]), 0.3
    mean = sum(
        rate ** sum(y)
        * (1 - rate) ** (5 - sum(y))
        * truecal.estimate(y, p, estimator="em_debias", n_bins=1).signed_square
        for y in itertools.product([0, 1], repeat=5)
    )
    assert mean == pytest.approx((0.5 - rate) ** 2, abs=1e-15)


# --- Other p ---------------------------------------------------------------------------------------


@QUIET
@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("norm", [1, 1.5, 3])
@pytest.mark.parametrize("seed", range(6))
def test_other_norms_are_the_formula(name, norm, seed):
    y, p, _ = data(seed)
    for n_bins in (2, 7):
        expected = naive.debiased(CUTS[name](naive.rows_of(y, p), n_bins), norm)
        got = truecal.calibration_error(y, p, estimator=name, norm=norm, n_bins=n_bins)
        assert got**norm == pytest.approx(expected**norm, abs=1e-9)


@pytest.mark.filterwarnings("ignore:.*Use a norm of at most 4")
@pytest.mark.parametrize("norm", [1, 1.5, 2.5, 3, 5])
@pytest.mark.parametrize(
    ("gap", "hits", "rows"), [(0.1, 30, 100), (0.35, 10, 40), (-0.2, 5, 9), (0.05, 3, 300)]
)
def test_noise_is_the_moment_of_a_folded_normal(norm, gap, hits, rows):
    sample = one_bin(gap, hits, rows)
    sd = math.sqrt(hits / rows * (1 - hits / rows) / rows)
    moment = foldnorm(abs(gap) / sd, scale=sd).expect(lambda z: z**norm)
    expected = max(2 * abs(gap) ** norm - moment, 0.0)
    got = debias(sample, norm)
    assert got**norm == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("norm", [1, 1.5, 3])
def test_noise_is_what_resampling_gives(norm):
    # Kumar et al. (2019) resample the mean label of each bin from a normal distribution.
    gap, hits, rows, draws = 0.15, 12, 40, 400_000
    sd = math.sqrt(hits / rows * (1 - hits / rows) / rows)
    powers = np.abs(gap + sd * np.random.default_rng(0).standard_normal(draws)) ** norm
    sample = one_bin(gap, hits, rows)
    got = debias(sample, norm) ** norm
    assert abs(got - (2 * gap**norm - powers.mean())) < 4.5 * powers.std() / math.sqrt(draws)


@pytest.mark.parametrize("rows", [10, 100, 10_000, 30_000, 100_000, 1_000_000])
def test_the_fourth_power_has_a_plain_moment_however_small_the_noise(rows):
    # E Z^4 = g^4 + 6 g^2 v + 3 v^2; beyond some 20,000 rows the noise comes from a series.
    sample = one_bin(0.3, rows // 2, rows)
    gap, variance = 0.3, 0.25 / rows
    expected = gap**4 - 6 * gap**2 * variance - 3 * variance**2
    got = debias(sample, 4)
    assert got**4 == pytest.approx(max(expected, 0.0), rel=1e-7 if rows > 20_000 else 1e-12)


@pytest.mark.parametrize("norm", [1, 1.0001, 1.5, 2.5, 3, 10, 50])
def test_no_step_where_the_series_takes_over(norm):
    # Squared gap over twice the variance, 2 g^2 m, crosses 1000 p^2 between the two.
    edge = 1000 * norm**2 / (2 * 0.25**2)
    values = []
    for rows in (2 * math.floor(edge / 2) - 2, 2 * math.ceil(edge / 2) + 2):
        sample = one_bin(0.25, rows // 2, rows)
        values.append(debias(sample, norm))
    assert values[0] == pytest.approx(values[1], rel=1e-6)


@pytest.mark.filterwarnings("ignore:.*Use a norm of at most 4")
def test_norms_out_of_range_are_refused():
    sample = one_bin(0.1, 3, 10)
    assert debias(sample, 50) >= 0
    with pytest.raises(ValueError, match="norm must be at most 50 for debiased estimators"):
        debias(sample, 51)


# --- Edges -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("norm", [1, 1.5, 2, 3])
class TestEdges:
    def test_bins_of_one_row_keep_their_gap_and_a_note_says_so(self, name, norm):
        with pytest.warns(UserWarning, match="most rows are in bins of their own"):
            got = truecal.calibration_error([0, 1, 1], [0.2, 0.5, 0.95], estimator=name, norm=norm)
        assert got == pytest.approx((np.array([0.2, 0.5, 0.05]) ** norm).mean() ** (1 / norm))

    @pytest.mark.parametrize("label", [0, 1])
    def test_one_class_shows_no_noise(self, name, norm, label):
        p = np.linspace(0, 1, 60)
        y = np.full(60, label)
        got = truecal.calibration_error(y, p, estimator=name, norm=norm)
        plain = truecal.calibration_error(y, p, estimator=name.replace("debias", "bin"), norm=norm)
        assert got == pytest.approx(plain)

    def test_all_scores_equal(self, name, norm):
        y = np.arange(1000) < 700
        sd = math.sqrt(0.7 * 0.3 / (999 if norm == 2 else 1000))
        got = truecal.calibration_error(y, np.full(1000, 0.3), estimator=name, norm=norm)
        assert got**norm == pytest.approx(2 * 0.4**norm - naive.folded_moment(0.4, sd, norm), rel=1e-6)

    def test_fractional_weights_of_one_class(self, name, norm):
        # Rounding must not make a mean label above 1, whose variance would be negative.
        rng = np.random.default_rng(0)
        for _ in range(20):
            p, weight = rng.random(300), rng.random(300)
            got = truecal.calibration_error(np.ones(300), p, estimator=name, norm=norm, sample_weight=weight)
            assert 0 <= got <= 1


def test_weights_that_add_up_to_little_more_than_one_row_do_not_blow_up():
    # y (1 - y) / (m - 1) grows without bound as m falls to 1, as rounding alone can make it.
    y, p = [0, 1], [0.1, 0.9]
    for weight in (1 + 1e-12, 1.1, 1.5, 1.9999, 2.0):
        weights = [weight / 2, weight / 2]
        estimate = truecal.estimate(y, p, estimator="em_debias", n_bins=1, sample_weight=weights)
        assert estimate.signed_square == pytest.approx(-0.25 * (weight - 1), abs=1e-12)


def test_a_large_norm_that_leaves_nothing_is_noted(golden):
    y, p = golden(300)
    for name in ("ew_debias", "em_debias"):
        with pytest.warns(truecal.CalibrationWarning, match="Use a norm of at most 4"):
            assert truecal.calibration_error(y, p, estimator=name, norm=50) == 0
        assert truecal.calibration_error(y, p, estimator=name, norm=3) > 0.1
