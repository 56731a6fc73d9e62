import math

import pytest

import truecal
from truecal.simulation import population_with_error
from truecal.simulation.alternatives import ALTERNATIVES, describe, largest_error

# -- the family c^d --------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [1, 2, 3])
@pytest.mark.parametrize("error", [1e-6, 0.001, 0.02, 0.1])
@pytest.mark.parametrize(
    "scores",
    [
        None,
        truecal.simulation.BetaScores(2.8, 0.05),
        truecal.simulation.BetaScores(0.4, 0.3),
        truecal.simulation.AtomScores([0.2, 0.9, 1.0]),
    ],
    ids=["uniform", "skewed", "u-shaped", "atoms"],
)
def test_the_population_has_the_error_that_was_asked_for(scores, error, norm):
    population = population_with_error(error, scores, norm)
    assert population.true_error(norm) == pytest.approx(error, rel=1e-6)
    assert population.curve.d > 1


def test_no_error_is_the_calibrated_member():
    assert population_with_error(0).curve.d == 1


def test_the_greatest_error_on_uniform_scores_is_that_of_a_curve_at_zero():
    assert largest_error(truecal.simulation.UniformScores(), 2) == pytest.approx(1 / math.sqrt(3), abs=1e-4)
    assert largest_error(truecal.simulation.UniformScores(), 1) == pytest.approx(1 / 2, abs=1e-4)


@pytest.mark.parametrize("error", [0.6, 1, 50])
def test_an_error_beyond_reach_is_refused_with_the_range(error):
    with pytest.raises(ValueError, match=r"true_error must lie between 0 and 0\.577"):
        population_with_error(error)


@pytest.mark.parametrize("error", [-0.1, math.nan, "0.1", None])
def test_what_is_no_error_is_refused(error):
    with pytest.raises(ValueError, match="true_error must be a finite number >= 0"):
        population_with_error(error)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_every_alternative_has_the_error_that_was_asked_for(alternative):
    population = population_with_error(0.03, alternative=alternative)
    assert population.true_error() == pytest.approx(0.03, rel=1e-6)


def test_alternatives_are_described():
    assert "slope" in describe("slope")
    with pytest.raises(ValueError, match="alternative must be one of"):
        describe("none")
