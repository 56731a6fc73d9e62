"""The decision curve and calibration over time as SVG."""

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import truecal
from truecal.assessment._sections import assess_over_time
from truecal.data import read_rows
from truecal.report._diagram import decision_curve, timeline


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


RNG = np.random.default_rng(0)
P = RNG.uniform(0.05, 0.85, 3000)
DAY = np.arange(3000) // 100
(CHANGED,) = read_rows(RNG.random(3000) < P + 0.15 * (DAY > 20), P)
(STEADY,) = read_rows(RNG.random(3000) < P, P)


@pytest.mark.parametrize("time", [DAY, np.datetime64("2026-03-01") + DAY, np.zeros(3000)])
@pytest.mark.parametrize("rows", [CHANGED, STEADY])
def test_svg(rows, time):
    part = assess_over_time(rows, time, 0.05)
    root = ElementTree.fromstring(str(timeline(part)))
    kinds = [element.get("class") for element in root.iter()]
    (stems,) = (element.get("d") for element in root.iter() if element.get("class") == "stem")
    assert stems.count("M") == len(part.history)
    assert kinds.count("since") == (3 if part.change else 0)
    assert next(text.text for text in root.iter("text") if text.get("class") == "axis") == "e-value"


def test_an_infinite_evalue_is_drawn():
    part = assess_over_time(CHANGED, DAY, 0.05)
    last = replace(part.history[-1], log_evalue=math.inf)
    svg = str(timeline(replace(part, history=(*part.history[:-1], last))))
    assert "↑ up to infinity" in svg
    assert "inf" not in svg.replace("infinity", "")
    assert "nan" not in svg


@pytest.mark.parametrize(("exponent", "noted"), [(5, False), (52.4, True)])
def test_an_evalue_above_the_scale_leaves_the_panel_and_is_noted(exponent, noted):
    part = assess_over_time(CHANGED, DAY, 0.05)
    last = replace(part.history[-1], log_evalue=exponent * math.log(10))
    root = ElementTree.fromstring(str(timeline(replace(part, history=(*part.history[:-1], last)))))
    texts = ["".join(text.itertext()) for text in root.iter("text")]
    assert ("↑ up to 1052" in texts) == noted
    frame = next(one for one in root.iter("rect") if one.get("class") == "frame")
    curve = next(path for path in root.iter("path") if path.get("class") == "isotonic").get("d")
    assert (float(curve.split()[-1]) < float(frame.get("y"))) == noted


def test_points_at_the_ends_are_whole():
    root = ElementTree.fromstring(str(timeline(assess_over_time(STEADY, DAY, 0.05))))
    clipped = [one for group in root.iter("g") if group.get("clip-path") for one in group.iter("circle")]
    assert not clipped


def test_dates_do_not_collide():
    day = np.datetime64("2026-03-01") + np.repeat([0, 25, 30], 1000)
    texts = ElementTree.fromstring(str(timeline(assess_over_time(STEADY, day, 0.05)))).iter("text")
    dates = [
        text.text for text in texts if text.get("class") == "tick" and (text.text or "").startswith("2026")
    ]
    assert dates == ["2026-03-01", "2026-03-31"]


def test_evidence_beyond_the_scale_from_the_first_window_on():
    part = assess_over_time(CHANGED, DAY, 0.05)
    looks = tuple(replace(look, log_evalue=60.0 * math.log(10)) for look in part.history)
    svg = str(timeline(replace(part, history=looks)))
    alarm = float(re.search(r'<path class="alarm" d="M\S+ ([\d.]+)H', svg)[1])
    assert 18 < alarm < 18 + 120  # within its panel
    assert "nan" not in svg


def test_a_change_before_the_end_of_the_first_window_is_seen():
    """Nothing is drawn to the left of the first window, whose end is the first time."""
    (rows,) = read_rows(RNG.random(3000) < P + 0.15, P)
    part = assess_over_time(rows, np.datetime64("2026-03-01T00") + 3 * np.arange(3000), 0.05)
    assert part.change.low_time < part.history[0].time
    lines = re.findall(r'class="alarm solid" d="M([\d.-]+) .*?v', str(timeline(part)))
    boxes = re.findall(r'class="since" x="([\d.-]+)"', str(timeline(part)))
    left = float(re.search(r'<path class="isotonic" d="M([\d.]+) ', str(timeline(part)))[1])
    assert len(lines) == len(boxes) == 3
    assert all(float(x) >= left for x in (*lines, *boxes))


def test_one_time_that_is_a_large_number_stands_in_the_middle():
    (rows,) = read_rows(RNG.random(500) < P[:500], P[:500])
    part = assess_over_time(rows, np.full(500, 1.7672256e18), 0.05)
    assert "nan" not in str(timeline(part))
