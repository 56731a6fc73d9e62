"""Numbers in the prose are those of the data files beside it, or of the code."""

import csv
import re
from pathlib import Path

import pytest
from experiments._prose import CLAIMS, SLOW_CLAIMS, Claim, free

import truecal
from support.snippets import ROOT


def table_rows(page: Path, first: str) -> list[list[str]]:
    """Return the cells of table rows that begin with `first`, without emphasis."""
    lines = [line for line in page.read_text().splitlines() if line.startswith(f"| {first}")]
    return [[cell.strip(" *") for cell in line.replace("**", "").strip("|").split("|")] for line in lines]


NAMES = {f"{claim.page}: {claim.sentence}": claim for claim in CLAIMS}
SLOW_NAMES = {f"{claim.page}: {claim.sentence}": claim for claim in SLOW_CLAIMS}


def check(claim: Claim) -> None:
    text = (ROOT / claim.page).read_text(encoding="utf-8")
    renewed = claim.match(claim.renewed(text)).group()
    assert claim.match(text).group() == renewed, "run python -m experiments._prose"


@pytest.mark.parametrize("name", NAMES)
def test_a_sentence_has_the_numbers_of_its_source(name: str) -> None:
    check(NAMES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW_NAMES)
def test_a_sentence_has_the_numbers_of_a_long_calculation(name: str) -> None:
    check(SLOW_NAMES[name])


def test_a_page_is_renewed() -> None:
    claim = Claim("a.md", "about {} of {} rows... took {} s", lambda: [12.345, 2000, 0.5])
    assert claim.renewed("About 3; about 7.0 of 1,000\nrows, which took .25 s.") == (
        "About 3; about 12.3 of 2,000\nrows, which took .50 s."
    )
    with pytest.raises(LookupError, match="does not say"):
        claim.renewed("about seven rows")


#: Numbers of the most-read pages that are no results: levels, limits in examples, versions.
CHOSEN = r"80%|9[05]%|5%|10%|\"at most 2%\"|p ≤ 0\.001|\b(?:3\.11|\d\.\d\.\d)\b"


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/claims.md"])
def test_every_result_has_a_source(page: str) -> None:
    lines = [line for line in free(page) if "intervals that contain a true error of 0" not in line]
    assert [line for line in lines if re.search(r"\d\.\d|\d%", re.sub(CHOSEN, "", line))] == []


def test_intervals_contain_a_true_error_of_zero() -> None:
    """The row of README is that of the file, and truecal's share is recomputed."""
    (row,) = table_rows(ROOT / "README.md", "95% intervals that contain a true error of 0")
    shares: dict[str, list[int]] = {}
    for kept_row in benchmark("intervals_at_zero"):
        share = round(100 * int(kept_row["contain_0"]) / int(kept_row["draws"]))
        shares.setdefault(kept_row["package"].partition("==")[0], []).append(share)
    for name, cell in (("truecal", row[1]), ("relplot", row[4]), ("probcal", row[5])):
        low, high = min(shares[name]), max(shares[name])
        assert cell == (f"{low}%" if low == high else f"{low}% to {high}%")
    repeats = 100
    uniform = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.IdentityCurve())
    samples = (uniform.sample(1000, rng=seed) for seed in range(repeats))
    assert sum(truecal.confidence_interval(*sample).low == 0 for sample in samples) >= 95


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+\.(?:md|rst|png|csv))(?:#[^)]*)?\)", page.read_text()):
            # What commands make may not be there yet; building the site looks at those links, too.
            generated = target.endswith("api/index.rst") or target.startswith(
                ("gallery/", "../gallery/", "reproduction/", "external/", "open/")
            )
            assert generated or (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def benchmark(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of the benchmark pages."""
    with (ROOT / "docs" / "benchmarks" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_default_has_the_smallest_bias_in_the_leaderboard() -> None:
    """README says so of the l2 error and of all four suites."""
    suites = ("A", "B", "C1", "C2")
    text = (ROOT / "docs" / "benchmarks" / "leaderboard.md").read_text()
    sections = re.split(r"^## Suite ", text, flags=re.MULTILINE)[1:]
    assert [section.partition(":")[0] for section in sections] == list(suites)
    for section in sections:
        bias = {
            name: float(value)
            for name, value in re.findall(r"^\| `(\w+)` \| ([\d.]+) ±", section, re.MULTILINE)
        }
        assert min(bias, key=lambda name: bias[name]) == "multiscale"


def test_versions_of_the_comparison_are_those_of_the_script() -> None:
    header = table_rows(ROOT / "README.md", "| truecal |")[0]
    script = (ROOT / "tools" / "intervals_at_zero.py").read_text()
    for name in ("relplot", "probcal"):
        (version,) = re.findall(rf"{name}==([\d.]+)", script)
        assert f"{name} {version}" in header


#: Pages whose length is that of proofs, of references, or of evidence.
LONG = {"theory/interval.md", "theory/test.md", "theory/monitoring.md", "external.md", "reproduction.md"}


def words(page: Path) -> int:
    """Count words outside of code and its output, and of formulas."""
    text = re.sub(r"^```(?!\{).*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return len(re.sub(r"\$\$?.*?\$\$?", "x", text, flags=re.DOTALL).split())


def test_pages_are_short() -> None:
    folder = ROOT / "docs"
    pages = [ROOT / "README.md", *folder.glob("*.md")]
    pages += [page for name in ("start", "guide", "theory") for page in (folder / name).glob("*.md")]
    count = {page: words(page) for page in pages}
    short = {
        str(page): n
        for page, n in count.items()
        if str(page.relative_to(ROOT)).removeprefix("docs/") not in LONG
    }
    assert {page: n for page, n in short.items() if n >= 1500} == {}
    assert sum(count.values()) <= 57_000
