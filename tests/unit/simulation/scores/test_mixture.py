"""Mixtures of score distributions."""

import numpy as np
import pytest

from truecal.simulation import AtomScores, BetaScores, MixtureScores, RoundedScores, UniformScores, with_atoms


def test_is_linear():
    parts = [BetaScores(2, 0.3), UniformScores(0.2, 0.4), AtomScores([0.1])]
    weights = [0.5, 0.3, 0.2]
    scores = MixtureScores(parts, weights)
    for name in ["mean", "cdf", "pdf", "expect"]:
        argument = (lambda c, t: t**0.4,) if name == "expect" else (0.3,)
        each = [p.mean if name == "mean" else getattr(p, name)(*argument) for p in parts]
        whole = scores.mean if name == "mean" else getattr(scores, name)(*argument)
        assert whole == pytest.approx(np.dot(weights, each), abs=1e-14)


def test_point_masses_are_merged():
    atoms = AtomScores([0.0, 1.0], [0.4, 0.6])
    values, masses = MixtureScores([atoms, AtomScores([1.0]), UniformScores()], [0.5, 0.2, 0.3]).point_masses
    assert values.tolist() == [0, 1]
    assert masses == pytest.approx([0.2, 0.5])


def test_shares_at_zero_and_one():
    scores = with_atoms(BetaScores(2, 2), at_zero=0.1, at_one=0.25)
    score, complement = scores.draw(20_000, np.random.default_rng(0))
    for found, share in [((score == 0).mean(), 0.1), ((complement == 0).mean(), 0.25)]:
        assert found == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 20_000))
    assert scores.mean == pytest.approx(0.25 + 0.65 * 0.5)
    assert scores.expect(lambda c, t: c == 1) == pytest.approx(0.25)


def test_exact_ends_do_not_widen_float32():
    rounded = RoundedScores(BetaScores(2, 2), dtype="float32")
    assert with_atoms(rounded, at_one=0.3).output_dtype == np.float32
    assert MixtureScores([rounded, AtomScores([0.3])], [0.5, 0.5]).output_dtype == np.float64


def test_bad_parameters():
    with pytest.raises(ValueError, match=r"components must be score distributions. Got 3 instead"):
        MixtureScores([3], [1.0])
    with pytest.raises(ValueError, match=r"at_one must be a finite number >= 0 and <= 0.4. Got 0.7 instead"):
        with_atoms(UniformScores(), at_zero=0.6, at_one=0.7)
