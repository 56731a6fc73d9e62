"""The paper's ten populations: their parameters and their true errors."""

import importlib

import pytest

from truecal import paper, simulation
from truecal.simulation import IdentityCurve

# True calibration error (l2, l1) in percent, by an independent quadrature to three decimals.
KNOWN = {
    "resnet110_c10": (10.709, 5.837),
    "resnet110_SD_c10": (9.531, 4.887),
    "resnet_wide32_c10": (10.126, 5.624),
    "densenet40_c10": (10.372, 5.900),
    "resnet110_c100": (20.366, 15.306),
    "resnet110_SD_c100": (18.519, 13.071),
    "resnet_wide32_c100": (21.261, 14.750),
    "densenet40_c100": (23.359, 16.437),
    "resnet152_imgnet": (8.605, 6.744),
    "densenet161_imgnet": (5.468, 4.929),
}

# Table 2 of the paper, and the selected rows of its Table 3.
PRINTED = """
resnet110_c10       2.7752 0.0478 logflip logflip -0.24  0.30
resnet110_SD_c10    2.1714 0.0394 logit   logflip -0.27 -0.35
resnet_wide32_c10   2.3806 0.0379 logit   logit    -     0.26
densenet40_c10      1.9824 0.0397 logit   logflip  -    -0.26
resnet110_c100      1.1823 0.1081 logflip logflip -0.11  0.28
resnet110_SD_c100   1.1233 0.1147 logit   logit   -0.88  0.49
resnet_wide32_c100  1.0611 0.0650 logflip logflip -0.13  0.21
densenet40_c100     1.0805 0.0808 logit   logit   -0.97  0.34
resnet152_imgnet    1.1359 0.2069 logflip logflip -0.12  0.58
densenet161_imgnet  1.1928 0.2206 log     log     -0.03  1.27
"""


def test_names():
    assert set(paper.NAMES) == set(KNOWN)


@pytest.mark.parametrize("row", PRINTED.strip().splitlines(), ids=lambda row: row.split()[0])
def test_parameters(row):
    name, a, b, link, transform, b0, b1 = row.split()
    population = paper.population(name)
    assert (population.scores.a, population.scores.b) == (float(a), float(b))
    assert (population.curve.link, population.curve.transform) == (link, transform)
    assert population.curve.b0 == (None if b0 == "-" else float(b0))
    assert population.curve.b1 == float(b1)


@pytest.mark.parametrize("name", KNOWN)
def test_true_errors(name):
    population = paper.population(name)
    l2, l1 = KNOWN[name]
    assert 100 * population.true_error(norm=2) == pytest.approx(l2, abs=0.00051)
    assert 100 * population.true_error(norm=1) == pytest.approx(l1, abs=0.00051)


@pytest.mark.parametrize("name", KNOWN)
def test_calibrated_twin(name):
    twin = paper.population(name, calibrated=True)
    assert twin.curve == IdentityCurve()
    assert twin.scores == paper.population(name).scores
    assert twin.true_error() == 0


def test_unknown_name():
    with pytest.raises(ValueError, match=r"name must be one of .* Did you mean 'resnet110_c10'\?"):
        paper.population("resnet110_c1O")


def test_it_is_a_module_below_truecal():
    assert importlib.import_module("truecal.paper") is paper is simulation.paper
