import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import truecal
from truecal.assessment._plotdata import score_histogram
from truecal.data import as_sample
from truecal.report._diagram import by_rank, by_score, thumbnail


@pytest.fixture(scope="module", params=["uniform", "skewed", "one row", "one score", "no band"])
def curve(request):
    uniform = truecal.Population(truecal.simulation.BetaScores(1, 1), truecal.simulation.PowerCurve(2))
    data = {
        "uniform": uniform.sample(500, rng=0),
        "skewed": truecal.paper.population("resnet110_c10").sample(3000, rng=0),
        "one row": ([1], [0.7]),
        "one score": ([1, 0], [0.25, 0.25]),
        "no band": uniform.sample(500, rng=0),
    }[request.param]
    sample = as_sample(*data)
    band = request.param != "no band"
    return truecal.reliability_curve(sample, band=band, n_resamples=50, rng=0), sample


def drawings(curve):
    with_histogram = by_score(curve[0], score_histogram(curve[1], n_bins=50))
    return [with_histogram, by_score(curve[0], name="recalibrated"), by_rank(*curve)]


def test_all_diagrams_are_well_formed(curve):
    for drawing in drawings(curve):
        root = ET.fromstring(str(drawing))
        assert root.tag == "svg"
        assert "nan" not in str(drawing)
        assert "inf" not in re.sub("aria-label=.*?>", "", str(drawing))


def test_each_bin_tells_of_itself(curve):
    for drawing in drawings(curve):
        root = ET.fromstring(str(drawing))
        bins = [node for node in root.iter("g") if node.get("class") == "bin"]
        assert len(bins) == len(curve[0].bins)
        for node, row in zip(bins, curve[0].bins.to_rows(), strict=True):
            assert node.get("tabindex") == "0"
            assert f"{row['count']:,.10g} row" in node.get("aria-label")
            assert f"observed {row['mean_label']:.3f}" in node.get("aria-label")


def test_marks_strips_and_tips_stay_within_the_drawing(curve):
    for drawing in drawings(curve):
        root = ET.fromstring(str(drawing))
        width, height = map(float, root.get("viewBox").split()[2:])
        for node in root.iter("rect"):
            assert float(node.get("x")) >= -0.1
            assert float(node.get("x")) + float(node.get("width")) <= width + 0.1
            assert float(node.get("y")) >= -0.1
            assert float(node.get("y")) + float(node.get("height")) <= height + 0.1
        for node in root.iter("circle"):
            assert 0 <= float(node.get("cx")) <= width
            assert 0 <= float(node.get("cy")) <= height


def test_by_rank_gives_every_row_the_same_room(curve):
    root = ET.fromstring(str(by_rank(*curve)))
    places = [float(node.get("cx")) for node in root.iter("circle") if node.get("class") == "dot"]
    count = curve[0].bins.count
    expected = (np.cumsum(count) - count / 2) / count.sum()
    np.testing.assert_allclose((np.array(places) - 46) / 340, expected, atol=2e-4)


def test_a_thumbnail_has_one_dot_for_each_bin(curve):
    root = ET.fromstring(str(thumbnail(curve[0], '<b> & "c"')))
    assert root.get("aria-label") == 'Reliability of <b> & "c"'
    assert len(list(root.iter("circle"))) == len(curve[0].bins)
