import numpy as np
import pytest

from truecal._lib.newton import maximise


def quadratic(top, curvature):
    def objective(x):
        rest = x - top
        return float(-rest @ curvature @ rest / 2), -curvature @ rest, -curvature

    return objective


COUPLED = np.array([[2.0, 1.8], [1.8, 2.0]])


def test_reaches_the_top_of_a_quadratic_in_one_step():
    found = maximise(quadratic(np.array([3.0, -1.0]), COUPLED), np.zeros(2), max_steps=2)
    assert found.converged
    assert found.x == pytest.approx([3.0, -1.0])
    assert not found.at_bound.any()


@pytest.mark.parametrize("top", [(-1.0, 2.0), (2.0, -1.0), (-1.0, -1.0), (-3.0, 2.5)])
def test_stops_on_the_boundary_where_the_best_feasible_point_is(top):
    objective = quadratic(np.array(top), COUPLED)
    found = maximise(objective, np.array([1.0, 1.0]), lower=0.0)
    grid = np.linspace(0, 3, 61)
    best = max(objective(np.array([u, v]))[0] for u in grid for v in grid)
    assert found.converged
    assert found.at_bound.any()
    assert found.value >= best - 1e-12


def test_a_bound_is_hit_exactly():
    found = maximise(quadratic(np.array([-1.0]), np.eye(1)), np.array([0.1]), lower=0.0)
    assert found.x[0] == 0.0


def test_the_objective_may_be_minus_infinity_beyond_a_wall():
    def objective(x):
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.log(x[0]) - x[0]), 1 / x - 1, np.diag(-1 / x**2)

    found = maximise(objective, np.array([50.0]), lower=0.0)
    assert found.converged
    assert found.x[0] == pytest.approx(1.0)


def test_climbs_out_of_a_region_of_the_wrong_curvature():
    def objective(x):  # a bell: convex beyond one standard deviation
        value = np.exp(-(x[0] ** 2) / 2)
        return float(value), -x * value, np.array([[(x[0] ** 2 - 1) * value]])

    found = maximise(objective, np.array([3.0]))
    assert found.x[0] == pytest.approx(0, abs=1e-4)


def test_says_when_the_steps_run_out():
    def ramp(x):
        return float(-np.exp(-x[0])), np.exp(-x), np.diag(-np.exp(-x))

    assert not maximise(ramp, np.zeros(1), max_steps=3).converged


def test_a_climb_ends_where_rounding_hides_every_gain():
    calls = 0

    def noisy(x):
        nonlocal calls
        calls += 1
        return -1e15 + float(calls % 3), np.array([1.0, -1.0]), -np.diag([1e12, 1e-12])

    assert not maximise(noisy, np.zeros(2)).converged
    assert calls <= 502
