"""`select_recalibrator` on populations whose truth is known: calibrated models are kept, others are improved."""

from __future__ import annotations

import numpy as np
import pytest

from truecal import paper
from truecal.recalibration.selection import select_recalibrator
from truecal.simulation import BetaScores, IdentityCurve, Population, PowerCurve

CALIBRATED = {
    "uniform": Population(BetaScores(1, 1), IdentityCurve()),
    "extreme": Population(BetaScores(0.5, 0.5), IdentityCurve()),
    "rare": Population(BetaScores(0.3, 10), IdentityCurve()),
    "resnet110_c10": paper.population("resnet110_c10", calibrated=True),
}

REPEATS = 40


def share_kept(population, n, **design):
    """The share of samples on which the model is kept."""
    kept = 0
    for seed in range(REPEATS):
        rng = np.random.default_rng([n, seed])
        y, p = population.sample(n, rng=rng)
        if design.get("split"):
            held_out = population.sample(n // 2, rng=rng)
            kept += select_recalibrator(y, p, validation=held_out, n_resamples=1, rng=rng).leave_alone
        else:
            kept += select_recalibrator(y, p, n_resamples=1, rng=rng).leave_alone
    return kept / REPEATS


@pytest.mark.parametrize("split", [False, True], ids=["folds", "validation"])
@pytest.mark.parametrize("n", [100, 800])
def test_calibrated_models_are_left_alone(n, split):
    shares = [share_kept(population, n, split=split) for population in CALIBRATED.values()]
    # The target is 95%; with 160 samples the standard error is 1.7%, and the tolerance is 3 of them.
    assert np.mean(shares) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / (REPEATS * len(shares)))


def test_ties_do_not_hide_or_make_evidence():
    kept = 0
    for seed in range(REPEATS):
        rng = np.random.default_rng(seed)
        p = rng.choice(np.arange(11) / 10, size=400)
        y = (rng.random(400) < p).astype(int)
        kept += select_recalibrator(y, p, n_resamples=1, rng=rng).leave_alone
    assert kept >= 0.85 * REPEATS


@pytest.mark.parametrize(
    ("population", "n"),
    [
        *((paper.population(name), 2000) for name in paper.NAMES),
        (Population(BetaScores(1, 1), PowerCurve(1.5)), 2000),
    ],
    ids=[*paper.NAMES, "power"],
)
def test_miscalibrated_models_come_nearer_to_the_truth(population, n):
    y, p = population.sample(n, rng=0)
    selection = select_recalibrator(y, p, n_resamples=1, rng=0)
    assert not selection.leave_alone
    fresh = population.sample(20_000, rng=1)[1]
    truth = population.curve(fresh, 1 - fresh)
    before = np.sqrt(np.mean((fresh - truth) ** 2))
    after = np.sqrt(np.mean((selection.transform(fresh) - truth) ** 2))
    assert after < 0.6 * before
