import re

import numpy as np
import pytest

from support.command_line import COLUMNS, refuse, run, spread, write_csv


def test_one_page_that_needs_nothing_else(plain, tmp_path):
    out = tmp_path / "page.html"
    result = run("report", plain, "-o", out, "--quick")
    page = out.read_text()
    assert result.stdout.startswith("The data contradict perfect calibration")
    assert not re.search(r"(src|href)=(?!\"#)|https?://|@import|url\((?!#)", page)
    assert len(page) < 300_000
    assert "<svg" in page


def test_the_seed_fixes_the_page(plain, tmp_path):
    pages = []
    for _ in range(2):
        run("report", plain, "-o", tmp_path / "a.html", "--quick", "--seed", "3")
        pages.append((tmp_path / "a.html").read_text())
    assert pages[0] == pages[1]


def test_recalibrators_are_compared_unless_it_must_be_quick(tmp_path):
    y, p = spread(300)
    path = write_csv(tmp_path / "small.csv", {"label": y, "score": p})
    run("report", path, "-o", tmp_path / "a.html")
    assert "What to do" in (tmp_path / "a.html").read_text()
    run("report", path, "-o", tmp_path / "a.html", "--quick")
    assert "What to do" not in (tmp_path / "a.html").read_text()


def test_groups_are_escaped_and_corrected(tmp_path):
    region = np.where(COLUMNS["region"] == "north", "<script>alert(1)</script>", COLUMNS["region"])
    path = write_csv(tmp_path / '"><img src=x onerror=alert(2)>.csv', {**COLUMNS, "region": region})
    run("report", path, "-o", tmp_path / "a.html", "--quick", "--group", "region", "--title", "<b>Mine</b>")
    page = (tmp_path / "a.html").read_text()
    assert "<script" not in page
    assert "<img" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "3 hypotheses tested" in page


def test_classes_have_a_table(tmp_path):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], size=300)
    label = np.array(["a", "b", "<i>"])[(proba.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1).clip(max=2)]
    path = write_csv(
        tmp_path / "m.csv", {"label": label, "a": proba[:, 0], "b": proba[:, 1], "<i>": proba[:, 2]}
    )
    run("report", path, "-o", tmp_path / "a.html", "--quick", "--multiclass", "classwise")
    page = (tmp_path / "a.html").read_text()
    assert "Each class against the rest" in page
    assert "&lt;i&gt;" in page
    assert "<i>" not in page


def test_sampling_weights_leave_out_the_band(tmp_path):
    path = write_csv(tmp_path / "w.csv", {**COLUMNS, "weight": COLUMNS["weight"] / 3})
    run("report", path, "-o", tmp_path / "a.html", "--quick", "--weight", "weight")
    page = (tmp_path / "a.html").read_text()
    assert "The weights are sampling weights" in page
    assert 'class="band"' not in page


def test_nothing_is_left_behind_when_it_fails(plain, tmp_path, monkeypatch):
    (tmp_path / "bad.csv").write_text("label,score\n1,.5\n0,1.7\n")
    assert "1.7" in refuse("report", tmp_path / "bad.csv", "-o", tmp_path / "a.html")
    assert "there is no folder" in refuse("report", plain, "-o", tmp_path / "no" / "a.html")
    assert "HTML page" in refuse("report", plain, "-o", tmp_path / "a.pdf")
    html = tmp_path / "data.html"
    write_csv(html)
    assert "would be overwritten" in refuse("report", html, "--input-format", "csv", "-o", html)
    assert {path.name for path in tmp_path.iterdir()} == {"bad.csv", "data.html"}


@pytest.mark.parametrize(("name", "made"), [("run.v2.csv", "run.html"), (".csv", "report.html")])
def test_the_page_is_named_after_the_file(name, made, tmp_path, monkeypatch):
    write_csv(tmp_path / name, COLUMNS)
    monkeypatch.chdir(tmp_path)
    run("report", name, "--quick", "--input-format", "csv")
    assert (tmp_path / made).is_file()


def test_control_characters_do_not_reach_the_page(tmp_path, monkeypatch):
    region = np.where(COLUMNS["region"] == "north", "\x1b[2J\u202e", COLUMNS["region"])
    path = write_csv(tmp_path / "a.csv", {**COLUMNS, "region": region})
    for many in (10**9, 1):
        monkeypatch.setattr("truecal.cli._input.table.MANY_BYTES", many)
        run("report", path, "-o", tmp_path / "a.html", "--quick", "--group", "region")
        page = (tmp_path / "a.html").read_text()
        assert "\x1b" not in page
        assert "\u202e" not in page
        assert "\\u001b[2J" in page


def test_clinical_validation(tmp_path):
    out = tmp_path / "a.html"
    result = run("report", "flights", "--quick", "--clinical", "--threshold", "0.15", "-o", out)
    assert "too extreme (calibration slope 0.83" in " ".join(result.stdout.split())
    page = out.read_text(encoding="utf-8")
    assert "Clinical validation" in page
    assert "15.0%" in page
    assert "TRIPOD+AI" in page
    assert "--threshold needs --clinical" in refuse("report", "flights", "--threshold", "0.1")
    said = refuse("report", "flights", "--clinical", "--threshold", "0.1", "--threshold", "2")
    assert (
        said
        == "truecal: --threshold must be a number strictly between 0 and 1. Got 2.0 instead. For 2% write 0.02.\n"
    )


def test_time(tmp_path):
    y, p = spread(400)
    path = write_csv(tmp_path / "t.csv", {"label": y, "score": p, "day": np.arange(400) // 10})
    result = run("report", path, "-o", tmp_path / "a.html", "--quick", "--time", "day")
    assert "in 4 windows" in result.stdout or "Alarm at" in result.stdout
    assert "Was it calibrated all the time?" in (tmp_path / "a.html").read_text()
    bad = write_csv(tmp_path / "b.csv", {"label": y, "score": p, "day": np.full(400, "soon")})
    assert "time has missing times" in refuse(
        "report", bad, "-o", tmp_path / "b.html", "--quick", "--time", "day"
    )
