"""Decision curves against their definition and by coverage."""

import numpy as np
import pytest
from scipy.special import expit, logit

import truecal
from truecal.inference.thresholds import net_benefit


def by_definition(y, p, t):
    act = p >= t
    return np.mean(act & (y == 1)) - t / (1 - t) * np.mean(act & (y == 0))


def draw(rng, n, slope=1.0):
    p = rng.uniform(0.02, 0.98, n)
    return (rng.random(n) < expit(slope * logit(p))).astype(int), p


@pytest.mark.parametrize("decimals", [1, 17])
def test_it_is_the_definition(decimals):
    y, p = draw(np.random.default_rng(0), 500)
    p = p.round(decimals)
    thresholds = [0.1, 0.3, 0.5, 0.85]
    curve = net_benefit(y, p, thresholds=thresholds)
    assert curve.net_benefit == pytest.approx([by_definition(y, p, t) for t in thresholds], abs=1e-12)
    assert curve.treat_all == pytest.approx(
        [by_definition(y, np.ones(500), t) for t in thresholds], abs=1e-12
    )
    assert curve.gain == pytest.approx(curve.net_benefit - np.maximum(curve.treat_all, 0), abs=1e-12)
    avoided = (curve.net_benefit - curve.treat_all) / (curve.thresholds / (1 - curve.thresholds)) * 100
    assert curve.interventions_avoided == pytest.approx(avoided)


def test_dcurves_example(shared):
    """The data of dcurves; its net benefit follows the same definition (risk at least the threshold)."""
    data = np.genfromtxt(shared / "external" / "dcurves_dca.csv", delimiter=",", names=True)
    y, p = data["cancer"].astype(int), data["cancerpredmarker"]
    curve = net_benefit(y, p, thresholds=[0.05, 0.2])
    assert curve.net_benefit == pytest.approx([by_definition(y, p, t) for t in (0.05, 0.2)])


def test_intervals_cover_the_population():
    rng = np.random.default_rng(1)
    y, p = draw(rng, 400_000)
    t = np.array([0.2, 0.6])
    truth = net_benefit(y, p, thresholds=t)
    hits = np.zeros((2, 2))
    for _ in range(400):
        curve = net_benefit(*draw(rng, 300), thresholds=t)
        hits[0] += (curve.low <= truth.net_benefit) & (truth.net_benefit <= curve.high)
        hits[1] += (curve.gain_low <= truth.gain) & (truth.gain <= curve.gain_high)
    assert (hits / 400 > 0.95 - 3.5 * 0.011).all()


@pytest.mark.parametrize("label", [0, 1])
def test_equal_labels_above_the_threshold_leave_doubt(label):
    curve = net_benefit([label] * 30, [0.8] * 30, thresholds=[0.5])
    assert curve.low[0] < curve.net_benefit[0] - 0.05 or curve.high[0] > curve.net_benefit[0] + 0.05


def test_miscalibration_costs_and_calibration_does_not():
    y, p = draw(np.random.default_rng(2), 40_000, slope=0.4)
    curve = net_benefit(y, p, thresholds=[0.2, 0.8])
    assert (curve.cost_low > 0).all()
    assert curve.recalibrated == pytest.approx(curve.net_benefit + curve.cost)
    y, p = draw(np.random.default_rng(3), 40_000)
    assert np.abs(net_benefit(y, p, thresholds=[0.2, 0.8]).cost).max() < 5e-4


def test_weights_counts_clusters_and_samples():
    rng = np.random.default_rng(4)
    y, p = draw(rng, 400)
    w = rng.integers(1, 4, 400)
    counted = net_benefit(y, p, sample_weight=w, weighting="counts")
    repeated = net_benefit(np.repeat(y, w), np.repeat(p, w))
    assert counted.low == pytest.approx(repeated.low, abs=1e-12)
    scaled = net_benefit(y, p, sample_weight=w / w.sum())
    assert scaled.net_benefit == pytest.approx(repeated.net_benefit, abs=1e-12)
    plain, alone = net_benefit(y, p), net_benefit(y, p, clusters=np.arange(400))
    assert alone.low == pytest.approx(plain.low, abs=2e-3, rel=0.01)
    tripled = net_benefit(np.repeat(y, 3), np.repeat(p, 3), clusters=np.repeat(np.arange(400), 3))
    assert tripled.low == pytest.approx(alone.low, abs=1e-9)
    assert net_benefit(truecal.Sample.from_predictions(y, p)).high == pytest.approx(plain.high)


@pytest.mark.parametrize("thresholds", [[0.0], [1.0], [0.5, float("nan")], []])
def test_bad_thresholds_are_refused(thresholds):
    with pytest.raises(truecal.InputError, match="thresholds"):
        net_benefit([0, 1], [0.2, 0.8], thresholds=thresholds)


def test_odd_data():
    for y, p in ([0, 0], [0.0, 1.0]), ([1, 1], [0.5, 0.5]), ([1], [0.3]):
        curve = net_benefit(y, p)
        assert np.isfinite(curve.net_benefit).all()
        assert np.isfinite(curve.cost).all()


def test_rounding_does_not_decide_at_the_prevalence():
    """Acting always and never are alike there; which of two intervals the gain had depended on the last digit."""
    rng = np.random.default_rng(0)
    for n, events in ((200, 42), (100, 21), (50, 7), (400, 28)):
        y = np.arange(n) < events
        p = np.clip(0.5 * y + 0.5 * rng.random(n), 0, 1)
        at, beside = truecal.net_benefit(y, p, thresholds=[events / n, events / n + 1e-9]), None
        beside = slice(1, 2)
        assert at.gain_low[0] == pytest.approx(at.gain_low[beside][0], abs=1e-6)
        assert at.gain_high[0] == pytest.approx(at.gain_high[beside][0], abs=1e-6)


def test_few_moved_rows_of_clusters_have_a_short_interval_of_the_cost():
    """A share of 0 among few moved rows is at most the share of these rows, however few clusters there are."""
    rng = np.random.default_rng(1)
    hospital = np.repeat(np.arange(40), 50)
    risk = rng.beta(1.6, 4.5, 2000)
    chance = expit(-0.6 + 0.75 * logit(risk) + rng.normal(0, 0.25, 40)[hospital])
    outcome = (rng.random(2000) < chance).astype(int)
    curve = truecal.net_benefit(outcome, risk, clusters=hospital, thresholds=[0.14, 0.15, 0.16])
    length = curve.cost_high - curve.cost_low
    assert length[1] < 2 * max(length[0], length[2])  # it was thirteen times as long
