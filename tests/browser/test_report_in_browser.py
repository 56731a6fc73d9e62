"""The report in a real browser: its layout, its interaction, and that it loads nothing."""

import base64
import os

import numpy as np
import pytest

import truecal
from support.chromium import missing, open_browser

REASON = missing()
if REASON and os.environ.get("CI") != "true":
    pytest.skip(f"no browser to test the report in: {REASON}", allow_module_level=True)


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A report on uniform and one on skewed scores, with malicious names."""
    folder = tmp_path_factory.mktemp("pages")
    uniform = truecal.Population(truecal.simulation.BetaScores(1, 1), truecal.simulation.PowerCurve(1.5))
    nasty = "<script>document.title = 'owned'</script>"
    by = {nasty: np.where(np.arange(2000) % 3, nasty, "b")}
    for name, population in {"uniform": uniform, "skewed": truecal.paper.population("resnet110_c10")}.items():
        assessment = truecal.assess(*population.sample(2000, rng=0), by=by, n_resamples=99, rng=0)
        assessment.to_html(folder / f"{name}.html", source='"><img src=x onerror=alert(1)>')
    return folder


@pytest.fixture(params=["uniform", "skewed"])
def page(request, pages):
    return pages / f"{request.param}.html"


def visible(browser, element):
    return browser.run("return getComputedStyle(arguments[0]).visibility", element) == "visible"


def shown_tips(browser):
    return [tip for tip in browser.find(".tip") if visible(browser, tip)]


@pytest.mark.parametrize("width", [1200, 700, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_asks_nothing_and_complains_of_nothing(browser, page, width, scheme):
    browser.view(width, scheme)
    browser.open(page)
    assert browser.messages() == []
    assert browser.requests() == []
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run("return document.title") != "owned"
    assert not browser.find("img, script")
    outside = """
        return [...document.querySelectorAll('svg text:not(.tip text), h1, h2, p, dd')].filter(node => {
            const box = node.getBoundingClientRect();
            return box.width && (box.left < 0 || box.right > innerWidth + 0.5);
        }).length"""
    assert browser.run(outside) == 0


def test_light_and_dark_differ(browser, page):
    colours = []
    for scheme in ("light", "dark"):
        browser.view(1200, scheme)
        browser.open(page)
        colours.append(browser.run("return getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(255, 255, 255)", "rgb(20, 24, 29)"]


@pytest.mark.parametrize("width", [1200, 390])
def test_pointing_at_a_bin_shows_its_numbers(browser, pages, width):
    browser.view(width)
    browser.open(pages / "uniform.html")
    assert shown_tips(browser) == []
    for place in (0, 7, -1):
        browser.hover(".reach", place)
        (tip,) = shown_tips(browser)
        assert "mean score" in browser.run("return arguments[0].textContent", tip)
        box = browser.run("return arguments[0].getBoundingClientRect().toJSON()", tip)
        assert box["left"] >= 0
        assert box["right"] <= width
        inner = browser.run(
            "return Math.max(...[...arguments[0].querySelectorAll('text')].map(t => t.getBoundingClientRect().right))",
            tip,
        )
        assert inner <= box["right"] + 0.5


def test_bins_of_skewed_scores_can_be_reached_by_rank(browser, pages):
    browser.view(1200)
    browser.open(pages / "skewed.html")
    strips = browser.find("svg:nth-of-type(1) .reach")
    by_rank = strips[len(strips) // 3 : 2 * len(strips) // 3]  # the second of three diagrams
    widths = [browser.run("return arguments[0].getBoundingClientRect().width", strip) for strip in by_rank]
    assert min(widths) > 5


def test_the_keyboard_goes_through_the_bins(browser, pages):
    browser.view(1200)
    browser.open(pages / "uniform.html")
    for _ in browser.find("nav a"):
        browser.press("tab")
    seen = []
    for _ in range(3):
        browser.press("tab")
        (tip,) = shown_tips(browser)
        seen.append(browser.run("return arguments[0].textContent", tip))
        ring = "return getComputedStyle(document.activeElement.querySelector('.reach')).stroke"
        assert browser.run(ring) != "none"
    assert len(set(seen)) == 3


def test_the_table_of_bins_opens(browser, page):
    browser.view(390)
    browser.open(page)
    browser.find("summary")[0].click()
    assert browser.run("return document.querySelector('details table').getBoundingClientRect().height") > 100
    assert browser.run("return document.documentElement.scrollWidth") <= 390


def test_it_prints(browser, page):
    browser.view(1200, "dark")
    browser.open(page)
    assert base64.b64decode(browser.pdf()).startswith(b"%PDF")


def test_pictures_are_not_blank(browser, page):
    from matplotlib.image import imread

    browser.view(700)
    browser.open(page)
    import io

    picture = imread(io.BytesIO(base64.b64decode(browser.screenshot())))
    assert picture.shape[1] == 700
    assert picture.shape[0] > 1500
    assert np.ptp(picture[..., :3]) > 0.8


def test_tables_and_labels_of_a_full_report_fit_on_a_desktop(browser, tmp_path):
    rng = np.random.default_rng(0)
    p, day = rng.beta(2, 2, 3000), np.arange(3000) // 100
    y = rng.random(3000) < p + (1 - p) * 0.3 * (day > 20)
    report = tmp_path / "full.html"
    truecal.assess(y, p, clinical=True, time=day, n_resamples=99, rng=0).to_html(report)
    browser.view(1280)
    browser.open(report)
    cut = "return [...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth).length"
    assert browser.run(cut) == 0
    longest = """
        return Math.max(...[...document.querySelectorAll('#time ~ figure .axis')].map(
            one => one.getBoundingClientRect().height))"""
    panel = "return document.querySelector('#time ~ figure .frame').getBoundingClientRect().height"
    assert 50 < browser.run(longest) < browser.run(panel)
