"""Laws that hold for every population: norms are ordered, mirrors and mixtures agree, blocks are rows."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truecal.simulation import (
    AtomScores,
    BetaScores,
    EmpiricalScores,
    FunctionCurve,
    GLMCurve,
    LogisticCurve,
    MixtureScores,
    Population,
    PowerCurve,
    RoundedScores,
    StepCurve,
    UniformScores,
)
from truecal.simulation._curves import LINKS

shapes = st.floats(-3, 4).map(lambda x: float(np.exp(x)))
unit = st.floats(0, 1)
betas = st.builds(BetaScores, shapes, shapes)
uniforms = st.tuples(st.floats(0, 0.9), st.floats(0.05, 1)).map(
    lambda pair: UniformScores(pair[0], min(pair[0] + pair[1], 1.0))
)
discrete = st.lists(unit, min_size=1, max_size=6).map(AtomScores) | st.lists(
    unit, min_size=1, max_size=6
).map(EmpiricalScores)
simple = betas | uniforms | discrete
mixtures = st.builds(lambda x, y, w: MixtureScores([x, y], [w, 1 - w]), simple, simple, unit)
rounded = st.builds(lambda x, d: RoundedScores(x, decimals=d), simple, st.integers(0, 3)) | st.builds(
    lambda x: RoundedScores(x, dtype="float32"), simple
)
any_scores = simple | mixtures | rounded

coefficients = st.floats(-3, 3).map(lambda x: round(x, 3))
glms = st.builds(GLMCurve, st.sampled_from(LINKS), st.sampled_from(LINKS), coefficients, coefficients)
steps = st.lists(unit, min_size=1, max_size=5, unique=True).flatmap(
    lambda edges: st.lists(unit, min_size=len(edges) + 1, max_size=len(edges) + 1).map(
        lambda values: StepCurve(sorted(edges), values)
    )
)
any_curve = (
    glms
    | steps
    | st.floats(0, 9).map(PowerCurve)
    | st.builds(LogisticCurve, st.floats(-20, 20), st.floats(-20, 20))
)


def build(scores, curve):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The curve leaves")
        return Population(scores, curve)


@settings(max_examples=60, deadline=None)
@given(any_scores, any_curve, st.floats(1, 4), st.floats(0.1, 5))
def test_error_grows_with_the_norm_and_stays_below_the_largest_gap(scores, curve, norm, more):
    population = build(scores, curve)
    lower, upper = population.true_error(norm), population.true_error(norm + more)
    assert 0 <= lower <= upper + 1e-8
    assert upper <= 1 + 1e-8


@settings(max_examples=60, deadline=None)
@given(any_scores, any_curve)
def test_squared_error_from_three_means(scores, curve):
    """E(C - g)^2 = E C^2 - 2 E C g + E g^2."""
    population = build(scores, curve)
    points = curve.breakpoints
    parts = [
        scores.expect(f, points=points)
        for f in (lambda c, t: c * c, lambda c, t: c * curve(c, t), lambda c, t: curve(c, t) ** 2)
    ]
    expanded = parts[0] - 2 * parts[1] + parts[2]
    assert population.true_error(2) ** 2 == pytest.approx(expanded, abs=2e-9)
    # The mean gap is at least the gap of the means.
    assert abs(population.mean_label - scores.mean) <= population.true_error(1) + 1e-8


@settings(max_examples=40, deadline=None)
@given(shapes, shapes, glms, st.floats(1, 3))
def test_mirror_image_has_the_same_error(a, b, curve, norm):
    """Scores 1 - C with labels 1 - Y: an error at 1 - 1e-30 must count as one at 1e-30."""
    mirrored = FunctionCurve(lambda c, t: 1 - curve(t, c), takes_complement=True)
    one, other = build(BetaScores(a, b), curve), build(BetaScores(b, a), mirrored)
    assert one.true_error(norm) == pytest.approx(other.true_error(norm), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(simple, simple, unit, any_curve, st.floats(1, 3))
def test_mixture_of_populations(first, second, weight, curve, norm):
    parts = [build(scores, curve).true_error(norm) ** norm for scores in (first, second)]
    both = build(MixtureScores([first, second], [weight, 1 - weight]), curve).true_error(norm) ** norm
    assert both == pytest.approx(weight * parts[0] + (1 - weight) * parts[1], abs=1e-8)


@settings(max_examples=40, deadline=None)
@given(any_scores, any_curve, st.integers(1, 40), st.integers(0, 2**32))
def test_samples_are_reproducible_and_in_range(scores, curve, n, seed):
    population = build(scores, curve)
    y_true, y_proba = population.sample(n, rng=seed)
    again = population.sample(n, rng=np.random.default_rng(seed))
    label, score = population.sample_many(n, [np.random.default_rng(s) for s in (seed + 1, seed)])
    assert (y_true == again[0]).all()
    assert (y_proba == again[1]).all()
    assert (label[1] == y_true).all()
    assert (score[1] == y_proba).all()
    assert set(y_true) <= {0, 1}
    assert ((y_proba >= 0) & (y_proba <= 1)).all()


@settings(max_examples=60, deadline=None)
@given(any_scores, st.lists(unit, min_size=2, max_size=20))
def test_cdf_is_a_distribution_function_with_the_known_mean(scores, where):
    where = np.sort(where)
    cdf = scores.cdf(where)
    assert ((cdf >= -1e-12) & (cdf <= 1 + 1e-12)).all()
    assert (np.diff(cdf) >= -1e-12).all()
    assert scores.cdf(1.0) == pytest.approx(1, abs=1e-12)
    assert scores.expect(lambda c, t: c) == pytest.approx(scores.mean, abs=1e-10)
    assert scores.expect(lambda c, t: c + t) == pytest.approx(1, abs=1e-10)
    cut = float(where[0])
    jump = scores.expect(lambda c, t: c <= cut, points=[cut])
    assert jump == pytest.approx(float(scores.cdf(cut)), abs=1e-10)


@settings(max_examples=60, deadline=None)
@given(any_curve, st.lists(st.tuples(unit, st.floats(0, 1e-12)), min_size=1, max_size=20))
def test_curves_give_probabilities_everywhere(curve, pairs):
    plain = np.array([c for c, _ in pairs])
    tiny = np.array([t for _, t in pairs])
    for score, complement in [(plain, 1 - plain), (1 - tiny, tiny), (tiny, 1 - tiny)]:
        value = curve(score, complement)
        assert ((value >= 0) & (value <= 1)).all()
        assert curve.gap(score, complement) == pytest.approx(value - score, abs=1e-15)
