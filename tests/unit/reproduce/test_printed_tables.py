"""The tables printed in the paper."""

from __future__ import annotations

import truecal
from truecal.reproduce.printed_tables import table2, table3, table4

SQUARE = truecal.Population(truecal.simulation.BetaScores(1, 1), truecal.simulation.PowerCurve(2))


def test_printed_tables_are_the_populations_of_the_library():
    assert tuple(table2()) == tuple(table3()) == tuple(table4()) == truecal.paper.NAMES
    for name in truecal.paper.NAMES:
        population = truecal.paper.population(name)
        assert table2()[name] == (population.scores.a, population.scores.b)
        best = next(model for model in table3()[name] if model.selected)
        curve = population.curve
        assert (best.link, best.transform, best.b0, best.b1) == (
            curve.link,
            curve.transform,
            curve.b0,
            curve.b1,
        )
        assert len(table3()[name]) == 12
        assert best.aic == min(model.aic for model in table3()[name])
