"""Reports on random data sets of all kinds: no claim on a page contradicts another."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import truecal
from truecal._lib.text import percent

QUICK, ALL = 60, 200


class Text(HTMLParser):
    """The visible text of a page: its paragraphs, headings and table rows."""

    def __init__(self, page):
        super().__init__()
        self.parts, self.skip = [], False
        self.feed(page)
        self.text = " ".join(" ".join(self.parts).split())

    def handle_starttag(self, tag, attrs):
        self.skip = tag in ("style", "title", "desc") or (self.skip and tag in ("svg",))

    def handle_endtag(self, tag):
        if tag in ("style", "title", "desc"):
            self.skip = False

    def handle_data(self, data):
        if not self.skip:
            self.parts.append(data)


def random_data(seed):
    """Return arguments of `assess`: scores and curves of many shapes, ties, weights, classes and groups."""
    rng = np.random.default_rng([seed, 20261116])
    n = int(rng.choice([1, 2, 3, 7, 20, 60, 200, 700, 2000]))
    scores = [
        lambda: rng.random(n),
        lambda: rng.beta(2.8, 0.05, n),
        lambda: rng.beta(0.3, 6, n),
        lambda: rng.random(n).round(1),
        lambda: np.full(n, rng.random()),
        lambda: rng.integers(0, 2, n).astype(float),
        lambda: rng.normal(0.5, 0.01, n).clip(0, 1),
        lambda: rng.random(n).astype(np.float32),
    ]
    curves = [
        lambda p: p,
        lambda p: p,
        lambda p: p**1.3,
        lambda p: p**3,
        lambda p: 1 - p,
        lambda p: 0.5 + 0.5 * (p - 0.5),
        lambda p: np.clip(p + 0.1 * np.sin(20 * p), 0, 1),
        lambda p: np.full_like(p, rng.integers(0, 2)),
    ]
    p = scores[rng.integers(len(scores))]()
    data = {"y_true": (rng.random(n) < curves[rng.integers(len(curves))](p)).astype(int), "y_proba": p}
    if rng.random() < 0.2:
        k = int(rng.integers(3, 6))
        proba = rng.dirichlet(np.full(k, 0.7), n)
        data = {
            "y_true": (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1),
            "y_proba": proba ** rng.choice([1, 2]) / (proba ** rng.choice([1, 1])).sum(axis=1, keepdims=True),
            "multiclass": str(rng.choice(["top", "classwise"])),
        }
        data["y_proba"] /= data["y_proba"].sum(axis=1, keepdims=True)
    if rng.random() < 0.5:
        names = np.array(["a", "b", "(missing)", None], dtype=object)
        data["by"] = names[rng.integers(0, rng.integers(1, 5), n)]
        if rng.random() < 0.3:
            data["by"] = {"name": data["by"], "number": rng.integers(0, 3, n)}
    if rng.random() < 0.2:
        data["sample_weight"] = rng.integers(1, 4, n)
    elif rng.random() < 0.1:
        data["sample_weight"] = rng.lognormal(0, 0.5, n)
    data["confidence_level"] = float(rng.choice([0.9, 0.95, 0.95, 0.99]))
    return data


@pytest.mark.parametrize(
    "seed", [*range(QUICK), *(pytest.param(k, marks=pytest.mark.slow) for k in range(QUICK, ALL))]
)
def test_no_claim_contradicts_another(seed):
    a = truecal.assess(**random_data(seed), n_resamples=99, rng=seed)
    page = Text(a.to_html()).text
    json.dumps(a.to_dict(), allow_nan=False)
    alpha = 1 - a.confidence_level + 1e-12
    assert not re.search(r"\bnan\b|\bNone\b(?! of)|\d %", page)

    # The value lies inside its interval, and the interval agrees with the test.
    assert 0 <= a.interval.low <= a.estimate.value <= a.interval.high <= 1
    assert a.estimate.interval == a.interval
    rejected = a.interval.low > 0 if a.test is None else a.test.pvalue <= alpha
    assert a.miscalibrated == rejected
    if a.interval.low > 0:
        assert rejected

    # The heading, the verdict and the tiles state the same numbers.
    assert a.verdict in page
    assert ("The data contradict perfect calibration" in page) == rejected
    assert ("Perfect calibration is rejected" in page) == (rejected and a.test is not None)
    interval = f"{percent(a.interval.low)} to {percent(a.interval.high)}"
    assert interval in page
    stated = re.findall(r"interval ([0-9.]+% to [0-9.]+%)", a.verdict)
    assert all(shown == interval for shown in stated)
    if rejected and a.interval.low > 0:
        assert f"about {percent(a.estimate.value)}" in a.verdict
    p_values = set(re.findall(r"p [=≤<] [0-9.]+[0-9]", a.verdict))
    assert len(p_values) <= 1
    assert all(page.count(shown) >= 2 for shown in p_values)

    # Advice follows from the same test, and a recommendation has a gain that the table shows.
    advice = a.recalibration
    assert ("Recalibrate with" in page) == (not advice.leave_alone)
    if not rejected:
        assert advice.leave_alone
        assert "Evidence of miscalibration" not in page or "in some" in page
    if not advice.leave_alone:
        chosen = advice.selection[advice.chosen]
        assert chosen.difference < 0
        assert advice.code.splitlines()[0] in page
        assert f"{chosen.criterion:.4f}" in page

    # Groups and classes: flags, intervals, adjusted p-values and the sentence agree.
    for parts in (a.groups, a.classes):
        if parts is None:
            continue
        assert len({row.name for row in parts.rows}) == len(parts.rows) == parts.n_hypotheses
        for row in parts.rows:
            assert row.interval.low <= row.estimate.value <= row.interval.high
            if row.adjusted_pvalue is not None:
                assert row.miscalibrated == (row.adjusted_pvalue <= alpha)
            assert row.miscalibrated or row.interval.low == 0
        bad = len(parts.miscalibrated)
        assert f"{bad} of {len(parts)} " in a.verdict if bad else f"None of the {len(parts)} " in a.verdict
    if a.groups is not None:
        assert sum(row.n for row in a.groups.rows) == pytest.approx(a.n)

    # More rows detect smaller errors.
    for name in ("level_shift", "slope"):
        rows = [getattr(row, name) for row in a.plan if getattr(row, name)]
        assert rows == sorted(rows, reverse=True)
