import numpy as np
import pytest
from scipy.special import expit, logit

import truecal
from truecal.exceptions import InputError
from truecal.inference.reliability import KINDS, bin_confidence_band, confidence_band, reliability_curve
from truecal.multiscale import clopper_pearson

POPULATIONS = {
    "smooth": truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2)),
    "atoms": truecal.Population(
        truecal.simulation.AtomScores([0.1, 0.5, 0.9], [0.2, 0.3, 0.5]), truecal.simulation.IdentityCurve()
    ),
}


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_coverage(name, kind):
    population, repeats = POPULATIONS[name], 300
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(repeats):
        band = confidence_band(*population.sample(300, rng=rng), kind=kind, confidence_level=0.9)
        truth = population.curve(band.score, 1 - band.score)
        covered = (band.lower <= truth) & (truth <= band.upper)
        # Pointwise: at one score, the one nearest to the middle.
        inside.append(covered.all() if kind == "simultaneous" else covered[np.abs(band.score - 0.5).argmin()])
    # Guaranteed, so it may only be too large; three Monte Carlo standard errors below.
    assert np.mean(inside) >= 0.9 - 3 * np.sqrt(0.09 / repeats)
    if kind == "pointwise" and name == "atoms":
        assert np.mean(inside) < 0.99  # and not vacuous


def test_simultaneous_is_wider_and_both_hold_the_curve(golden):
    y, p = golden(3000)
    sample = truecal.Sample.from_predictions(y, p)
    at = {kind: confidence_band(sample, kind=kind) for kind in KINDS}
    width = {
        kind: np.interp(np.linspace(0.1, 0.9, 50), b.score, b.upper - b.lower).mean()
        for kind, b in at.items()
    }
    assert 0 < width["pointwise"] < width["simultaneous"] < 1
    for band in at.values():
        fitted = np.interp(band.score, sample.score, sample.isotonic)
        assert (band.lower <= fitted + 1e-12).all()
        assert (fitted <= band.upper + 1e-12).all()
        assert band.assumption == "the curve rises"
        assert len(band.score) <= 1000


def test_a_level_nearer_to_one_is_wider(golden):
    y, p = golden(500)
    narrow, wide = (confidence_band(y, p, kind="pointwise", confidence_level=level) for level in (0.5, 0.99))
    assert (wide.upper - wide.lower).mean() > (narrow.upper - narrow.lower).mean()


def test_bins_have_exact_intervals_and_bonferroni(golden):
    y, p = golden(1000)
    curve = reliability_curve(y, p, n_bins=8, band=False)
    each, together = (bin_confidence_band(curve, kind) for kind in KINDS)
    np.testing.assert_array_equal(each.lower, curve.interval_lower)
    np.testing.assert_array_equal(each.upper, curve.interval_upper)
    positives = curve.bins.count * curve.bins.mean_label
    expected = clopper_pearson(positives, curve.bins.count, 0.025 / 8)
    np.testing.assert_allclose([together.lower, together.upper], expected)


def test_one_row_and_one_score():
    band = confidence_band([1], [0.3], kind="pointwise")
    np.testing.assert_allclose([band.lower, band.upper], [[0.025], [1]])
    band = confidence_band([0, 1] * 50, [0.5] * 100, kind="pointwise")
    np.testing.assert_allclose([band.lower[0], band.upper[0]], [0.3983, 0.6017], atol=1e-4)


def of_hospitals(n, size, rng, sd=0.8):
    """Return labels, scores and clusters of a calibrated model with random effects of clusters."""
    score, cluster = rng.beta(2, 3, n * size), np.repeat(np.arange(n), size)
    grid = np.linspace(-9, 9, 400)
    marginal = expit(grid[:, np.newaxis] + sd * np.sqrt(2) * np.polynomial.hermite.hermgauss(30)[0])
    marginal = marginal @ np.polynomial.hermite.hermgauss(30)[1] / np.sqrt(np.pi)
    eta = np.interp(score, marginal, grid) + rng.normal(0, sd, n)[cluster]
    return (rng.random(n * size) < expit(eta)).astype(int), score, cluster


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["clusters", "weights", "fewer negatives"])
def test_coverage_with_clusters_and_weights(case, kind):
    repeats, rng, inside, naive = 60, np.random.default_rng(4), [], []
    for _ in range(repeats):
        if case == "clusters":
            y, p, cluster = of_hospitals(30, 100, rng)
            more, truth = {"clusters": cluster}, lambda score: score
        else:
            p = rng.random(1500)
            y, truth = (rng.random(1500) < p**2).astype(int), lambda score: score**2
            more = {"sample_weight": rng.lognormal(0, 0.8, 1500)}
            if case == "fewer negatives":
                kept = (y == 1) | (rng.random(1500) < 0.2)
                y, p = y[kept], p[kept]
                more = {"sample_weight": np.where(y == 1, 1.0, 5.0)}
        for options, found in ((more, inside), ({}, naive)):
            band = confidence_band(y, p, kind=kind, confidence_level=0.9, **options)
            curve = truth(band.score)
            covered = (band.lower <= curve) & (curve <= band.upper)
            found.append(
                covered.all() if kind == "simultaneous" else covered[np.abs(band.score - 0.5).argmin()]
            )
    assert np.mean(inside) >= 0.9 - 3 * np.sqrt(0.09 / repeats)
    if (case, kind) in (("clusters", "pointwise"), ("fewer negatives", "simultaneous")):
        assert np.mean(naive) < 0.9


def test_equal_weights_and_clusters_of_one_row_change_little(golden):
    y, p = golden(2000)
    for kind in KINDS:
        plain = confidence_band(y, p, kind=kind)
        for more in ({"sample_weight": np.full(2000, 2.5)}, {"clusters": np.arange(2000)}):
            band = confidence_band(y, p, kind=kind, **more)
            at = np.linspace(0.05, 0.95, 30)
            for name in ("lower", "upper"):
                one, other = (np.interp(at, b.score, getattr(b, name)) for b in (plain, band))
                np.testing.assert_allclose(one, other, atol=0.02)


def test_copies_of_rows_add_nothing(golden):
    y, p = golden(800)
    once = confidence_band(y, p, clusters=np.arange(800))
    copies = confidence_band(np.repeat(y, 3), np.repeat(p, 3), clusters=np.repeat(np.arange(800), 3))
    np.testing.assert_allclose(once.lower, copies.lower, atol=1e-6)
    np.testing.assert_allclose(once.upper, copies.upper, atol=1e-6)


def test_what_cannot_be_done_is_refused():
    with pytest.raises(InputError, match="needs true labels"):
        confidence_band(truecal.labels.soft([0.5, 1.0]), [0.2, 0.4])
    with pytest.raises(InputError, match="kind must be"):
        confidence_band([0, 1], [0.2, 0.4], kind="both")


def test_sharper_than_all_intervals_of_rounded_scores():
    """On the example of R's calibrationband, whose method "round" takes all intervals of 1,000 rounded scores."""
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(10_000))
    y = (rng.random(10_000) < expit(1.8 * logit(p))).astype(int)
    band = confidence_band(y, p)
    low, high = np.interp(p, band.score, band.lower), np.interp(p, band.score, band.upper)
    # By all intervals: mean width 0.173, and 45% of the scores outside (experiments/bands.py).
    assert (high - low).mean() < 0.165
    assert ((p < low) | (p > high)).mean() > 0.5
