"""What notebooks show of results: a heading, tables and notes, and reprs of few lines."""

import html.parser

import numpy as np
import pytest

import truecal


@pytest.fixture(scope="module")
def shown():
    data = truecal.datasets.load("flights")
    y, p = data.y_true[:3000], data.y_proba[:3000]
    groups = {name: values[:3000] for name, values in data.groups.items()}
    rng = np.random.default_rng(0)
    classes, proba = rng.integers(0, 15, 600), rng.dirichlet(np.ones(15), 600)
    estimate = truecal.estimate(y, p, confidence_level=0.95)
    return {
        "estimate": estimate,
        "classes": truecal.estimate(classes, proba, multiclass="classwise"),
        "interval": estimate.interval,
        "test": truecal.calibration_test(y, p, n_resamples=99, rng=0),
        "tests": truecal.calibration_test(classes, proba, multiclass="classwise", n_resamples=99, rng=0),
        "comparison": truecal.compare(y, p, p**1.2),
        "ranking": truecal.compare(y, {"one": p, "two": p**2, "three": p**3}),
        "audit": truecal.audit(y, p**2, groups, n_resamples=99, rng=0),
        "selection": truecal.select_recalibrator(y, p, rng=0),
        "weak calibration": truecal.weak_calibration(y, p),
        "net benefit": truecal.net_benefit(y, p, thresholds=[0.1, 0.2]),
        "reliability": truecal.reliability_curve(y, p, n_resamples=9, rng=0),
        "data": data,
    }


class Outline(html.parser.HTMLParser):
    """The text of each element, and whether all are closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.text = [], {}
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.text.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text[self.open[-1]][-1] += data


@pytest.mark.parametrize(
    "name",
    [
        "estimate", "classes", "interval", "test", "tests", "comparison", "ranking", "audit", "selection",
        "weak calibration", "net benefit", "reliability", "data",
    ],
)  # fmt: skip
def test_results_are_shown_compactly(shown, name):
    result = shown[name]
    page = result._repr_html_()
    outline = Outline(page)
    assert outline.text.get("b") or outline.text.get("th")
    assert len(outline.text.get("tr", [])) <= 14
    assert "background:#" not in page  # nothing that would be wrong on a dark page
    assert len(repr(result).splitlines()) <= 10
    assert len(repr(result)) <= 1300


def test_tables_have_the_printed_columns(shown):
    ranking = Outline(shown["ranking"]._repr_html_())
    assert ranking.text["th"] == ["model", "error", "95% interval", "C statistic"]
    assert ranking.text["td"][0] in ("one", "two", "three")
    weak = Outline(shown["weak calibration"]._repr_html_())
    assert weak.text["th"] == ["", "estimate (95% interval)"]
    assert weak.text["td"][::2] == ["observed / expected", "calibration intercept", "calibration slope"]
    tests = Outline(shown["tests"]._repr_html_())
    assert tests.text["th"] == ["class", "p", "adjusted p"]
    assert "and 3 more" in shown["tests"]._repr_html_()
    assert len(Outline(shown["audit"]._repr_html_()).text["th"]) == 7


def test_text_is_escaped():
    y, p = [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4]
    page = truecal.compare(y, {"<b>": p, "a&b": p[::-1]})._repr_html_()
    assert "&lt;b&gt;" in page
    assert "a&amp;b" in page
