"""The decision curve of the report."""

import re

import numpy as np
import pytest

import truecal
from truecal.report.decision import decision_curve


@pytest.fixture(scope="module")
def curve():
    population = truecal.Population(truecal.simulation.BetaScores(2, 5), truecal.simulation.PowerCurve(1.2))
    return truecal.net_benefit(*population.sample(800, rng=0))


def points(svg, name):
    (path,) = re.findall(rf'<path class="{name}" d="M([^"]*)"', svg)
    return np.array([pair.split() for pair in path.rstrip("Z").split("L")], dtype=float)


def test_the_lines_are_those_of_the_curve(curve):
    svg = decision_curve(curve)
    model, everyone = points(svg, "isotonic"), points(svg, "all")
    assert len(model) == len(everyone) < 99  # thresholds beyond the largest risk are left out
    # Both lines share one scale, so that differences of heights are differences of net benefit.
    drop = (everyone[0, 1] - everyone[20, 1]) / (curve.treat_all[0] - curve.treat_all[20])
    expected = model[0, 1] + drop * (curve.net_benefit[30] - curve.net_benefit[0])
    assert model[30, 1] == pytest.approx(expected, abs=0.2)
    assert len(points(svg, "band")) == 2 * len(model)
    assert points(svg, "none")[0, 1] == points(svg, "none")[1, 1]


def test_it_is_described_in_words(curve):
    svg = decision_curve(curve)
    assert "<title" in svg
    assert "Net benefit at thresholds from 1%" in svg


def test_nobody_above_any_threshold():
    svg = decision_curve(truecal.net_benefit([0, 0, 1], [0.001, 0.002, 0.003]))
    assert svg.count("<svg") == 1
    assert "nan" not in svg
