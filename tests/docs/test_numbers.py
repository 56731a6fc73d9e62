"""Numbers in the prose are those of the data files beside it, or of the code."""

import re
from pathlib import Path

import pytest

import truecal
from support.snippets import ROOT


def table_rows(page: Path, first: str) -> list[list[str]]:
    """Return the cells of table rows that begin with `first`, without emphasis."""
    lines = [line for line in page.read_text().splitlines() if line.startswith(f"| {first}")]
    return [[cell.strip(" *") for cell in line.replace("**", "").strip("|").split("|")] for line in lines]


def test_the_start_page_shows_what_the_code_says() -> None:
    data = truecal.datasets.load("flights")
    estimate = truecal.estimate(data.y_true, data.y_proba, confidence_level=0.95)
    page = (ROOT / "docs" / "index.md").read_text()
    assert f"\n{100 * estimate.value:.1f}%\n" in page
    assert f"\n{100 * estimate.interval.low:.1f}% to {100 * estimate.interval.high:.1f}%\n" in page


def test_usual_ece_of_a_calibrated_model() -> None:
    (claim,) = re.findall(
        r"200 test rows it is ([\d.]+)% on average", " ".join((ROOT / "README.md").read_text().split())
    )
    uniform = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.IdentityCurve())
    study = truecal.bias_study(
        {"uniform": uniform}, estimators=["ew_bin"], sizes=[200], repeats=2000, rng=0, norm=1
    )
    (row,) = study.rows
    assert row["mean"] == pytest.approx(float(claim) / 100, abs=0.0005 + 3 * row["bias_se"])


def test_intervals_contain_a_true_error_of_zero() -> None:
    (row,) = table_rows(ROOT / "README.md", "95% intervals that contain a true error of 0")
    claim, repeats = float(row[1].strip("%")) / 100, 200
    uniform = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.IdentityCurve())
    samples = (uniform.sample(1000, rng=seed) for seed in range(repeats))
    share = sum(truecal.confidence_interval(*sample).low == 0 for sample in samples) / repeats
    assert share == pytest.approx(claim, abs=0.005 + 3 * (claim * (1 - claim) / repeats) ** 0.5)


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+\.(?:md|rst|png|csv))(?:#[^)]*)?\)", page.read_text()):
            # What commands make may not be there yet; building the site looks at those links, too.
            generated = target.endswith("api/index.rst") or target.startswith(("gallery/", "reproduction/"))
            assert generated or (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"
