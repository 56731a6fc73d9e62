import numpy as np
import pytest

import truecal
from truecal.exceptions import InputError
from truecal.inference.reliability import (
    KINDS,
    bin_confidence_band,
    clopper_pearson,
    confidence_band,
    reliability_curve,
)

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
    expected = clopper_pearson(positives, curve.bins.count, 1 - 0.05 / 8)
    np.testing.assert_array_equal([together.lower, together.upper], expected)


def test_one_row_and_one_score():
    band = confidence_band([1], [0.3], kind="pointwise")
    np.testing.assert_allclose([band.lower, band.upper], [[0.025], [1]])
    band = confidence_band([0, 1] * 50, [0.5] * 100, kind="pointwise")
    np.testing.assert_allclose([band.lower[0], band.upper[0]], [0.3983, 0.6017], atol=1e-4)


@pytest.mark.parametrize("more", [{"clusters": [0, 0, 1, 1]}, {"sample_weight": [0.5, 1, 1, 2]}])
def test_dependent_rows_are_refused(more):
    with pytest.raises(InputError, match="independent"):
        confidence_band([0, 1, 1, 0], [0.2, 0.4, 0.6, 0.8], **more)
    with pytest.raises(InputError, match="kind must be"):
        confidence_band([0, 1], [0.2, 0.4], kind="both")
