"""Numbers in the prose are those of the data files beside it, or of the code."""

import csv
import math
import re
import statistics
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
            generated = target.endswith("api/index.rst") or target.startswith(
                ("gallery/", "reproduction/", "external/")
            )
            assert generated or (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


EXTERNAL = ROOT / "docs" / "external"


def kept(name: str) -> list[dict[str, str]]:
    """Return the rows of a table that ``truecal reproduce external`` has made."""
    with (EXTERNAL / name).open(newline="") as file:
        return list(csv.DictReader(file))


def claims(pattern: str, *pages: str) -> list[tuple[float, ...]]:
    """Return the numbers that a pattern finds in each page, without regard to line breaks."""
    found = []
    for page in pages:
        match = re.search(pattern, " ".join((ROOT / page).read_text().split()))
        assert match, f"{page} does not say: {pattern}"
        found.append(tuple(float(number.replace(",", "")) for number in match.groups()))
    return found


PAGES = ("README.md", "docs/index.md")


def test_claims_of_accuracy_are_those_of_the_table() -> None:
    summary = kept("external_lp_summary.csv")
    ours = [row for row in summary if row["source"] == "truecal" and row["estimator"] == "multiscale"]
    mine = max(ours, key=lambda row: int(row["draws"]))
    theirs = [row for row in summary if row["source"] != "truecal"]
    best = min(theirs, key=lambda row: float(row["rmse_clipped"]))
    assert len(theirs) == 16
    said = r"mean RMSE is ([\d.]+) points.*? has ([\d.]+), or ([\d.]+) with .*? takes (\d+) ms instead of ([\d.]+) s"
    numbers = [
        mine["rmse"],
        best["rmse"],
        best["rmse_clipped"],
        1000 * float(mine["seconds"]),
        best["seconds"],
    ]
    expected = [round(float(number), digits) for number, digits in zip(numbers, (2, 2, 2, 0, 1), strict=True)]
    assert [list(found) for found in claims(said, *PAGES)] == [expected] * 2
    (page,) = claims(
        r"mean RMSE of ([\d.]+) points.*?16 methods ([\d.]+), or ([\d.]+) if", "docs/external.md"
    )
    assert list(page) == expected[:3]


def test_claims_of_the_interval_are_those_of_the_table() -> None:
    small = [row for row in kept("external_interval.csv") if float(row["true_error"]) < 0.1]
    length, mean, lowest = {}, {}, {}
    for name in ("truecal", "Sun et al."):
        rows = [row for row in small if row["interval"] == name]
        length[name] = 100 * statistics.mean(float(row["length"]) for row in rows)
        mean[name] = 100 * statistics.mean(float(row["coverage"]) for row in rows)
        lowest[name] = 100 * min(float(row["coverage"]) for row in rows)
    shorter = round(100 * (1 - length["truecal"] / length["Sun et al."]))
    said = (
        r"interval is (\d+)% shorter than theirs and covers the truth in (\d+)% of samples "
        r"\(in (\d+)% or more for each of (\d+) curves\)"
    )
    for found in claims(said, *PAGES):
        assert found == (shorter, round(mean["truecal"]), math.floor(lowest["truecal"]), len(small) / 2)
    said = (
        r"is (\d+)% shorter: ([\d.]+) points on average, theirs ([\d.]+)\. It covers ([\d.]+)% of samples there, "
        r"theirs ([\d.]+)%; the lowest coverages are ([\d.]+)% and ([\d.]+)%"
    )
    (page,) = claims(said, "docs/external.md")
    expected = [shorter, *length.values(), *mean.values(), *lowest.values()]
    assert page == pytest.approx(expected, abs=0.051)


def test_claims_of_efficiency_are_those_of_the_table() -> None:
    ratios: dict[tuple[str, str, str], list[float]] = {}
    for row in kept("external_efficiency.csv"):
        ratios.setdefault((row["suite"], row["n"], row["estimator"]), []).append(float(row["ratio"]))
    medians = {key: statistics.median(values) for key, values in ratios.items()}
    paper = [ratio for (suite, _, key), ratio in medians.items() if suite == "A" and key == "multiscale"]
    for found in claims(r"the RMSE is ([\d.]+) to ([\d.]+) times the smallest", *PAGES):
        assert found == pytest.approx((min(paper), max(paper)), abs=0.0051)
    for suite in ("A", "C1", "C2", "D2"):
        shown = table_rows(ROOT / "docs" / "external.md", f"{suite}: ")
        assert len(shown) == 4
        for _, n, *cells in shown:
            keys = ("multiscale", "em_debias", "em_sweep", "em_bin", "ew_bin", "kde")
            expected = [medians[suite, n.replace(",", ""), key] for key in keys]
            assert [float(cell) for cell in cells] == pytest.approx(expected, abs=0.0051)


def test_tables_of_the_external_page_are_those_of_the_files() -> None:
    page = ROOT / "docs" / "external.md"
    summary = {(row["estimator"], row["draws"]): row for row in kept("external_lp_summary.csv")}
    for name, draws, bias, rmse, _ in table_rows(page, "truecal `") + table_rows(page, "**truecal `"):
        row = summary[name.strip("*").removeprefix("truecal ").strip("`"), draws.replace(",", "")]
        assert float(bias) == pytest.approx(float(row["mean_absolute_bias"]), abs=0.0051)
        assert float(rmse.split(" ± ")[0]) == pytest.approx(float(row["rmse"]), abs=0.0051)
    power = kept("external_test.csv")
    for n in {row["n"] for row in power}:
        (cells,) = (row for row in table_rows(page, f"{int(n):,} |") if len(row) == 5)
        for cell, test in zip(cells[1:], ("truecal", "tcal", "adaptive", "fixed"), strict=True):
            values = [
                float(row["power"])
                for row in power
                if (row["n"], row["test"]) == (n, test) and row["bumps"] != "0"
            ]
            assert float(cell) == pytest.approx(statistics.mean(values), abs=0.0051)
