import itertools

import numpy as np
import pytest
from matplotlib.figure import Figure

from truecal.display._style import (
    CYCLE,
    FAMILIES,
    INK,
    estimator_style,
    percent_axis,
    scaled,
    score_axis,
    size_axis,
)

#: Machado, Oliveira, Fernandes (2009), severity 1: how linear RGB looks to colour-blind people.
BLINDNESS = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def linear(colour):
    value = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    light, dark = sorted((linear(c) @ [0.2126, 0.7152, 0.0722] for c in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def lab(rgb):
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = (
        np.cbrt(v) if v > 0.008856 else 7.787 * v + 16 / 116
        for v in matrix @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883]
    )
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("paper", ["#ffffff", "#121212"])
def test_every_colour_stands_out_from_light_and_dark_paper(paper):
    assert min(contrast(colour, paper) for colour in CYCLE) >= 3
    assert contrast(INK, paper) >= 4


@pytest.mark.parametrize("kind", ["normal", *BLINDNESS])
def test_colour_blind_people_can_tell_colours_apart(kind):
    matrix = np.array(BLINDNESS.get(kind, np.eye(3)))
    looks = [lab(matrix @ linear(colour)) for colour in CYCLE]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(looks, 2)) > 10


def test_estimators_of_a_kind_share_their_colour_and_differ_in_line_and_marker():
    equal_width, equal_mass = estimator_style("ew_sweep"), estimator_style("em_sweep")
    assert equal_width["color"] == equal_mass["color"]
    assert equal_mass["linestyle"] == "-" != equal_width["linestyle"]
    assert equal_width["markerfacecolor"] == "none"
    assert estimator_style("em_sweep(n_bins=3)") == equal_mass
    assert len({marker for _, marker in FAMILIES.values()}) == len(FAMILIES)


def test_an_unknown_estimator_gets_a_colour_of_its_own_place():
    assert estimator_style("mine", 1)["color"] == CYCLE[1]
    assert estimator_style("mine", 1 + len(CYCLE))["color"] == CYCLE[1]


def test_few_sizes_have_labels_and_all_have_ticks():
    ax = Figure().subplots()
    size_axis(ax, [200, 400, 800, 1600, 3200, 6400, 12800])
    assert ax.get_xticks().tolist() == [200, 400, 800, 1600, 3200, 6400, 12800]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["200", "", "800", "", "3,200", "", "12.8k"]


def test_a_single_size_has_one_labelled_tick():
    ax = Figure().subplots()
    size_axis(ax, [1000])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1,000"]


def test_percent_is_only_in_the_labels():
    ax = Figure().subplots()
    ax.plot([0, 1], [-0.02, 0.04])
    percent_axis(ax.yaxis, sign=True)
    assert ax.yaxis.get_major_formatter()(0.04, 0) == "+4"
    assert ax.yaxis.get_major_formatter()(-0.025, 0) == "\N{MINUS SIGN}2.5"
    assert ax.yaxis.get_major_formatter()(0.0, 0) == "0"
    percent_axis(ax.yaxis)
    assert ax.yaxis.get_major_formatter()(-0.0, 0) == "0"
    assert ax.lines[0].get_ydata().tolist() == [-0.02, 0.04]


@pytest.mark.parametrize("scale", ["logit", "complement"])
def test_stretched_axes_are_finite_and_rise(scale):
    grid = np.concatenate([[0], np.logspace(-16, -1, 50), [0.3, 0.5, 0.9], 1 - np.logspace(-1, -16, 50), [1]])
    place = scaled(np.sort(grid), scale, 1e-16)
    assert np.isfinite(place).all()
    assert (np.diff(place) >= 0).all()
    assert place[-1] == pytest.approx(16)
    assert place[0] == pytest.approx(-16 if scale == "logit" else 0)


@pytest.mark.parametrize("depth", [1, 2, 3, 5, 8, 17])
@pytest.mark.parametrize("scale", ["logit", "complement"])
@pytest.mark.parametrize("which", ["x", "y"])
def test_stretched_axes_name_their_ends_and_something_between(scale, depth, which):
    ax = Figure(figsize=(3.3, 3.3), layout="constrained").subplots()
    score_axis(ax, scale, 10.0**-depth, which)
    labels = [text.get_text() for text in getattr(ax, f"get_{which}ticklabels")()]
    assert labels[0] == "0"
    assert labels[-1] == "1"
    if depth > 2:
        assert len([label for label in labels if label]) >= 4
    ax.figure.draw_without_rendering()
    assert getattr(ax, f"get_{which}lim")() == (0, 1)
