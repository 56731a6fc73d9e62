"""Curves against their formulas, at the ends of [0, 1] and beyond what a float near 1 can tell."""

from decimal import Decimal, getcontext

import numpy as np
import pytest

from truecal.simulation import FunctionCurve, GLMCurve, IdentityCurve, LogisticCurve, PowerCurve, StepCurve
from truecal.simulation._curves import LINKS, inverse_link, transform_score

getcontext().prec = 60

ALL = [
    IdentityCurve(),
    PowerCurve(0),
    PowerCurve(0.5),
    PowerCurve(7),
    LogisticCurve(10, -5),
    LogisticCurve(-1e4, 30),
    StepCurve([0.2, 0.7], [0.1, 0.5, 0.4]),
    FunctionCurve(np.sqrt),
    *[
        GLMCurve(g, t, b0, b1)
        for g in LINKS
        for t in LINKS
        for b0, b1 in [(-0.24, 0.3), (None, -0.4), (0.5, None)]
    ],
]
ENDS = np.array([0.0, 5e-324, 1e-300, 1e-17, 0.5, 1 - 1e-16, 1.0, 1.0, 1.0])
ENDS_COMPLEMENT = np.array([1.0, 1.0, 1.0, 1.0, 0.5, 1.1e-16, 1e-300, 5e-324, 0.0])


@pytest.mark.parametrize("curve", ALL, ids=repr)
class TestEveryCurve:
    def test_gives_probabilities_at_the_ends_without_a_warning(self, curve):
        with np.errstate(all="raise"):
            value = curve(ENDS, ENDS_COMPLEMENT)
            gap = curve.gap(ENDS, ENDS_COMPLEMENT)
        assert ((value >= 0) & (value <= 1)).all()
        np.testing.assert_allclose(gap, value - ENDS, atol=2e-16)

    def test_complement_is_optional(self, curve):
        score = np.linspace(0, 1, 17)
        assert (curve(score) == curve(score, 1 - score)).all()
        assert (curve(score.tolist()) == curve(score)).all()

    def test_keeps_the_shape_and_the_input(self, curve):
        score = np.random.default_rng(0).random((3, 5))
        before = score.copy()
        value = curve(score, 1 - score)
        assert value.shape == score.shape
        assert (score == before).all()
        assert not np.shares_memory(value, score)
        assert (value[1] == curve(score[1], 1 - score[1])).all()
        assert curve(0.25) == curve([0.25])[0]
        assert np.ndim(curve(0.25)) == 0
        assert curve.gap(score).shape == score.shape

    def test_float32_scores_are_taken_for_what_they_are(self, curve):
        score = np.float32([0.1, 0.3, 0.9])
        assert (curve(score) == curve(score.astype(float))).all()
        assert curve(score).dtype == np.float64

    def test_equal_parameters_make_equal_curves(self, curve):
        twin = type(curve)(*[getattr(curve, name) for name in curve.__dataclass_fields__])
        assert twin == curve
        assert hash(twin) == hash(curve)


class TestGLM:
    @pytest.mark.parametrize("link", LINKS)
    def test_inverse_link_undoes_the_transform(self, link):
        p = np.linspace(0.01, 0.99, 33)
        assert inverse_link(link, transform_score(link, p, 1 - p)) == pytest.approx(p, abs=1e-15)

    def test_against_high_precision(self):
        """The paper's three forms, near 1 where log(1 - score) of the float would be -inf."""
        for t in ["0.3", "1e-12", "1e-40", "1e-200"]:
            c, u = 1 - Decimal(t), Decimal(t)
            q = (Decimal("-0.24") + Decimal("0.3") * u.ln()).exp()
            got = GLMCurve("logflip", "logflip", -0.24, 0.3)(float(c), float(u))
            assert 1 - got == pytest.approx(float(q), abs=2e-16)
            odds = (Decimal("-0.88") + Decimal("0.49") * (c.ln() - u.ln())).exp()
            got = GLMCurve("logit", "logit", -0.88, 0.49)(float(c), float(u))
            assert got == pytest.approx(float(odds / (1 + odds)), abs=2e-16)
            got = GLMCurve("log", "log", -0.03, 1.27)(float(c), float(u))
            exact = (Decimal("-0.03") + Decimal("1.27") * c.ln()).exp()
            assert got == pytest.approx(float(exact), abs=3e-16)

    def test_a_score_that_rounds_to_one_keeps_its_complement(self):
        curve = GLMCurve("logflip", "logflip", b1=0.1)
        assert 1 - curve(1.0, 1e-100) == pytest.approx(1e-10, rel=1e-5)
        assert curve(1.0) == 1

    def test_missing_terms(self):
        assert GLMCurve("logit", "log", b0=0.0)([0.0, 0.3, 1.0]).tolist() == [0.5, 0.5, 0.5]
        assert GLMCurve("log", "log", b1=2)(0.3) == pytest.approx(0.09)
        assert GLMCurve("logflip", "logit", b0=-1, b1=0)([0.0, 1.0]) == pytest.approx([1 - np.exp(-1)] * 2)

    def test_leaving_the_range_is_clipped_and_kept_apart(self):
        curve = GLMCurve("log", "log", 0.5, 1.0)
        assert curve(1.0) == 1
        assert curve.unclipped(1.0) == pytest.approx(np.exp(0.5))
        assert not curve.is_bounded
        assert GLMCurve("logit", "log", 0.5, 1.0).is_bounded
        assert GLMCurve("logflip", "logflip", b1=-0.5)(1.0) == 0

    def test_complaints(self):
        with pytest.raises(ValueError, match=r"link must be one of 'log', 'logit', 'logflip'. Got 'probit'"):
            GLMCurve("probit", "log", 1, 1)
        with pytest.raises(ValueError, match=r"transform must be .* Did you mean 'logit'"):
            GLMCurve("log", "logits", 1, 1)
        with pytest.raises(ValueError, match="cannot both be None"):
            GLMCurve("log", "log")
        with pytest.raises(ValueError, match="b1 must be a finite number"):
            GLMCurve("log", "log", 1, float("inf"))


class TestPower:
    @pytest.mark.parametrize("d", [0.5, 1 - 1e-9, 1 + 1e-12, 1.5, 7.0])
    def test_gap_keeps_its_digits(self, d):
        """c^d - c as it stands loses everything near d = 1 and near c = 1."""
        for t in ["0.7", "0.3", "1e-9", "1e-30"]:
            c = 1 - Decimal(t)
            exact = (Decimal(d) * c.ln()).exp() - c
            assert PowerCurve(d).gap(float(c), float(t)) == pytest.approx(float(exact), rel=5e-15)

    def test_complaint(self):
        with pytest.raises(ValueError, match=r"d must be a finite number >= 0. Got -1 instead"):
            PowerCurve(-1)


class TestSteps:
    def test_a_step_begins_at_its_edge(self):
        curve = StepCurve([0.25, 0.5], [0.1, 0.2, 0.3])
        assert curve([0, np.nextafter(0.25, 0), 0.25, 0.4, 0.5, 1]).tolist() == [0.1, 0.1, 0.2, 0.2, 0.3, 0.3]
        assert curve.breakpoints == (0.25, 0.5)

    def test_one_step_is_a_constant(self):
        assert StepCurve([], [0.3])([0, 1]).tolist() == [0.3, 0.3]

    def test_complaints(self):
        with pytest.raises(
            ValueError, match=r"values must have one value more than edges \(1\). Got 1 instead"
        ):
            StepCurve([0.5], [0.5])
        with pytest.raises(ValueError, match="edges must be strictly increasing"):
            StepCurve([0.5, 0.5], [0.1, 0.2, 0.3])
        with pytest.raises(ValueError, match=r"values has 1 value outside \[0, 1\]"):
            StepCurve([0.5], [0.5, 1.5])
        with pytest.raises(ValueError, match=r"edges has 1 value outside \[0, 1\]"):
            StepCurve([-0.5], [0.5, 1])


class TestFunction:
    def test_with_and_without_the_complement(self):
        assert FunctionCurve(lambda c: c**2)(0.5) == 0.25
        assert FunctionCurve(lambda c, t: 1 - t**0.5, takes_complement=True)(1.0, 1e-20) == 1 - 1e-10

    def test_does_not_write_into_what_the_function_returns(self):
        table = np.array([-1.0, 0.5, 2.0])
        assert FunctionCurve(lambda c: table)([0.1, 0.2, 0.3]).tolist() == [0, 0.5, 1]
        assert table.tolist() == [-1, 0.5, 2]

    def test_a_constant_function(self):
        assert FunctionCurve(lambda c: 0.3)([0.1, 0.9]).tolist() == [0.3, 0.3]

    def test_complaints(self):
        with pytest.raises(
            ValueError, match=r"one value for each score. Got shape \(3,\) for scores of shape \(2,\)"
        ):
            FunctionCurve(lambda c: np.zeros(3))([0.1, 0.2])
        with pytest.raises(ValueError, match="function must be callable"):
            FunctionCurve(0.5)


def test_repr_reads_well():
    assert repr(GLMCurve("log", "logit", b1=2)) == "GLMCurve(link='log', transform='logit', b0=None, b1=2.0)"
    assert repr(StepCurve([0.5], [0, 1])) == "StepCurve(edges=(0.5,), values=(0.0, 1.0))"
