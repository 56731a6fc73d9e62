import pytest

import truecal
from truecal import paper
from truecal.estimators._registry import TRUE_ERROR, get_estimator
from truecal.simulation.suites import NAMES, suite, suite_study


def test_suite_a_is_the_paper_and_b_its_calibrated_version():
    assert tuple(suite("A")) == paper.NAMES
    assert [population.true_error() for population in suite("B").values()] == [0] * 10
    for fitted, calibrated in zip(suite("A").values(), suite("B").values(), strict=True):
        assert fitted.scores == calibrated.scores


@pytest.mark.parametrize("name", ["C", "D"])
def test_the_halves_of_a_suite_are_disjoint_and_complete(name):
    first, second = suite(f"{name}1"), suite(f"{name}2")
    assert not set(first) & set(second)
    assert list(suite(name)) == [*first, *second]


@pytest.mark.parametrize("name", NAMES)
def test_every_population_can_be_drawn_from(name):
    for population in suite(name).values():
        y, p = population.sample(20, rng=0)
        assert set(y.tolist()) <= {0, 1}
        assert 0 <= p.min() <= p.max() <= 1


def test_an_unknown_suite_is_refused():
    with pytest.raises(truecal.InputError, match="suite must be one of 'A', 'B'"):
        suite("Z")


def test_a_study_of_suites_has_all_estimators_of_the_true_error():
    arguments = suite_study(["A", "B"])
    assert len(arguments["populations"]) == 20
    assert all(name.startswith(("A: ", "B: ")) for name in arguments["populations"])
    assert {get_estimator(name).estimand for name in arguments["estimators"]} == {TRUE_ERROR}
    assert "ks" not in arguments["estimators"]
