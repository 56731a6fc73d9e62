import re
from html.parser import HTMLParser

import numpy as np
import pytest

import truecal
from truecal.report import render, render_notebook

GROUPS = np.where(np.arange(500) % 2, "odd", "even")


@pytest.fixture(scope="module")
def uniform():
    population = truecal.Population(truecal.simulation.BetaScores(1, 1), truecal.simulation.PowerCurve(2))
    return truecal.assess(*population.sample(500, rng=0), by=GROUPS, n_resamples=99, rng=0)


@pytest.fixture(scope="module")
def skewed():
    population = truecal.paper.population("resnet110_c10")
    return truecal.assess(*population.sample(3000, rng=0), n_resamples=99, rng=0)


class Outline(HTMLParser):
    """Headings in order, identifiers, and whether tags close."""

    def __init__(self, page):
        super().__init__()
        self.headings, self.ids, self.open, self.text = [], [], [], []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in ("meta", "br", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_is_sound(uniform, skewed):
    for assessment in (uniform, skewed):
        outline = Outline(render(assessment, source="a.csv"))
        assert outline.headings[0] == 1
        assert outline.headings.count(1) == 1
        assert set(outline.headings[1:]) == {2}
        assert len(outline.ids) == len(set(outline.ids))


def test_only_skewed_scores_get_the_second_diagram(uniform, skewed):
    assert render(uniform).count('<svg class="diagram"') == 2  # one of them after recalibration
    assert render(skewed).count('<svg class="diagram"') == 3


def test_it_needs_nothing_from_outside(skewed):
    page = render(skewed)
    assert not re.search(r'https?://|src=|href="[^#]|@import|<script', page)
    assert len(page) < 120_000


@pytest.mark.parametrize(
    "nasty", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", "a & b"]
)
def test_text_from_the_data_is_escaped(nasty):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 60)
    names = [nasty, "b", "c"]
    label = np.array(names)[rng.integers(0, 3, 60)]
    assessment = truecal.assess(
        label,
        proba,
        labels=names,
        multiclass="classwise",
        by={nasty: np.where(rng.random(60) < 0.5, nasty, "other")},
        n_resamples=19,
        rng=0,
    )
    page = render(assessment, title=nasty, source=nasty)
    outline = Outline(page)
    assert "script" not in outline.open
    assert "<img" not in page
    assert "<script" not in page
    assert "".join(outline.text).count(nasty) >= 6


def test_the_state_is_bad_good_or_open():
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    level = rng.random(3000)
    few = ([1, 0, 1], [0.7, 0.2, 0.9])
    for data, state in (((level < p**3, p), "bad"), ((level < p, p), "good"), (few, "open")):
        page = truecal.assess(*data, recalibration=False, n_resamples=99, rng=0).to_html()
        assert f'<h1 class="{state}">' in page


def test_a_page_is_written_whole(uniform, tmp_path):
    page = render(uniform, tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page
    assert len(list(tmp_path.iterdir())) == 1


def test_the_notebook_has_a_frame(uniform):
    assert re.fullmatch(
        r'<iframe srcdoc="[^"]*" style="[^"]*" onload="[^"]*" title="[^"]*"></iframe>',
        render_notebook(uniform),
    )


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, two):
    low, high = sorted([luminance(one), luminance(two)])
    return (high + 0.05) / (low + 0.05)


def test_colours_can_be_read_in_light_dark_and_print():
    from importlib.resources import files

    style = files("truecal.report").joinpath("style.css").read_text()
    palettes = [
        dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", style, re.S)
    ]
    assert len(palettes) == 3
    for colour in palettes:
        for name in ("ink", "soft", "good", "bad", "open", "caution"):
            assert contrast(colour[name], colour["paper"]) >= 4.5, name
            assert contrast(colour[name], colour["panel"]) >= 4.5, name
        assert contrast(colour["accent"], colour["paper"]) >= 4.5
        for name in ("accent", "soft"):  # lines upon the band
            assert contrast(colour[name], colour["band"]) >= 3, name


def test_contents_and_cost(uniform):
    page = render(uniform)
    for target in re.findall(r'<a href="#([^"]+)"', page):
        assert f'id="{target}"' in page
    assert f"<strong>Is it much?</strong> {uniform.is_it_much}" in page


def test_only_plain_labels_have_an_exact_test():
    y, p = truecal.paper.population("resnet110_c10").sample(300, rng=0)
    shared = {"recalibration": False, "n_resamples": 19, "rng": 0}
    assert "exact for independent rows" in render(truecal.assess(y, p, **shared))
    gold = np.where(np.arange(300) % 3 == 0, y, np.nan)
    judged = render(truecal.assess(truecal.labels.judged(1 - y, gold), p, **shared))
    assert "labels which are not the truth, and is approximate" in judged
    assert "exact for independent rows" not in judged
