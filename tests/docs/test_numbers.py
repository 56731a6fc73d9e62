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
    said = (
        r"200 test rows it is ([\d.]+)% on average.*? and ([\d.]+)% to ([\d.]+)% for models "
        r"with the scores of the paper"
    )
    populations = {
        "uniform": truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.IdentityCurve()),
        "smallest": truecal.paper.population("resnet110_c10", calibrated=True),
        "largest": truecal.paper.population("resnet152_imgnet", calibrated=True),
    }
    study = truecal.bias_study(
        populations, estimators=["ew_bin"], sizes=[200], repeats=2000, rng=0, norm=1, n_jobs=1
    )
    for found in claims(said, "README.md", "docs/index.md"):
        for row, claim in zip(study.rows, found, strict=True):
            assert row["mean"] == pytest.approx(claim / 100, abs=0.0005 + 3 * row["bias_se"])


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


EXTERNAL = ROOT / "docs" / "external"


def benchmark(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of the benchmark pages."""
    with (ROOT / "docs" / "benchmarks" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def coverage_by_suite(key: str) -> dict[tuple[str, int], list[float]]:
    """Return a column of the suites of `honest.csv`, by suite and n."""
    found: dict[tuple[str, int], list[float]] = {}
    for row in benchmark("honest"):
        if row["suite"]:
            found.setdefault((row["suite"], int(row["n"])), []).append(float(row[key]))
    return found


def test_claims_of_coverage_are_those_of_the_table() -> None:
    """Means may move by a point when cells are run again."""
    covered = coverage_by_suite("covered")
    smooth = min(min(values) for (suite, _), values in covered.items() if suite[0] in "ABC")
    means = [100 * statistics.mean(covered[suite, 1000]) for suite in ("D1", "D2")]
    worst = 100 * min(min(values) for values in covered.values())
    said = (
        r"cover (\d+)% or more on.*?they state, (\d+)% and (\d+)% on average with 1,000 rows, "
        r"and (\d+)% on the worst"
    )
    (found,) = claims(said, "README.md")
    assert found[0] <= 100 * smooth + 1
    assert found[1:] == pytest.approx((*means, worst), abs=1.5)
    said = (
        r"the truth in (\d+)% and (\d+)% of samples of 1,000 rows on average, and in (\d+)% on "
        r"the worst curve"
    )
    (found,) = claims(said, "docs/theory/interval.md")
    assert found == pytest.approx((*means, worst), abs=1.5)


def test_widths_of_intervals_are_those_of_the_table() -> None:
    length = coverage_by_suite("length")
    for suite in ("A", "B", "C2"):
        (row,) = table_rows(ROOT / "docs" / "guide" / "how_many_samples.md", f"{suite}: ")
        expected = [statistics.mean(length[suite, n]) for n in (200, 1000, 5000)]
        assert [float(cell) for cell in row[1:]] == pytest.approx(expected, rel=0.03)


def test_accuracy_on_the_page_of_constants() -> None:
    rows = table_rows(ROOT / "docs" / "benchmarks" / "accuracy.md", "")
    by_suite = {row[0]: (float(row[2].split(" ± ")[0]), float(row[5])) for row in rows if row[1] == "all"}
    said = (
        r"are ([\d.]+) and ([\d.]+) points on A, ([\d.]+) and ([\d.]+) on B, ([\d.]+) and "
        r"([\d.]+) on C1, and ([\d.]+) and ([\d.]+) on C2"
    )
    (found,) = claims(said, "docs/theory/constants.md")
    expected = [number for suite in ("A", "B", "C1", "C2") for number in by_suite[suite]]
    assert found == pytest.approx(expected, abs=0.0051)
    hard = {(row[0], row[1]): row[3] for row in rows if row[0] in ("D1", "D2") and "±" in row[3]}
    said = r"largest bias is ([\d.]+) ± ([\d.]+) too low on D1.*? and ([\d.]+) ± ([\d.]+) on D2"
    (found,) = claims(said, "docs/theory/constants.md")
    largest = [
        max(
            (cell for (name, _), cell in hard.items() if name == suite),
            key=lambda cell: abs(float(cell.split(" ± ")[0])),
        )
        for suite in ("D1", "D2")
    ]
    numbers = [float(part) for cell in largest for part in cell.lstrip("-").split(" ± ")]
    assert list(found) == numbers


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


def kept(name: str) -> list[dict[str, str]]:
    """Return the rows of a table that ``python -m experiments external_...`` has made."""
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


PAGES = ("README.md",)


def test_claims_of_accuracy_are_those_of_the_table() -> None:
    summary = kept("external_lp_summary.csv")
    ours = [row for row in summary if row["source"] == "truecal" and row["estimator"] == "multiscale"]
    mine = max(ours, key=lambda row: int(row["draws"]))
    theirs = [row for row in summary if row["source"] != "truecal"]
    best = min(theirs, key=lambda row: float(row["rmse_clipped"]))
    assert len(theirs) == 16
    said = (
        r"mean RMSE is ([\d.]+) points.*? has ([\d.]+) in .*?, or ([\d.]+) with .*? RMSE in "
        r"(\d+) of the (\d+) settings"
    )
    numbers = [mine["rmse"], best["rmse"], best["rmse_clipped"]]
    settings = int(best["settings"])
    theirs_smaller = settings - int(best["multiscale_has_smaller_rmse"])
    expected = [*(round(float(number), 2) for number in numbers), theirs_smaller, settings]
    assert [list(found) for found in claims(said, *PAGES)] == [expected]
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
    others = [
        [ratio for (suite, _, key), ratio in medians.items() if suite == name and key == "multiscale"]
        for name in ("C2", "D2")
    ]
    said = (
        r"the median RMSE is ([\d.]+) to ([\d.]+) times .*? the medians are ([\d.]+) to ([\d.]+), "
        r"and ([\d.]+) to ([\d.]+) on fine structure"
    )
    expected = [end for ratios_ in (paper, *others) for end in (min(ratios_), max(ratios_))]
    for found in claims(said, *PAGES):
        assert found == pytest.approx(expected, abs=0.0051)
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


def reproduction(name: str) -> list[dict[str, str]]:
    with (ROOT / "docs" / "reproduction" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_table_1_on_the_page_of_the_reproduction() -> None:
    rows = [reproduction(name) for name in ("table1_simulated", "table1_classes")]
    names = {
        "`em_sweep` (ECE_sweep)": "em_sweep", "`ew_bin` (ECE_bin)": "ew_bin", "`em_bin`": "em_bin",
        "log loss": "log_loss", "always temperature": "always_temperature",
    }  # fmt: skip
    for label, key in names.items():
        (cells,) = table_rows(ROOT / "docs" / "reproduction.md", f"{label} |")
        expected = []
        for models in rows:
            expected += [
                *(
                    100 * statistics.mean(row[key] == row[against] for row in models)
                    for against in ("fitted", "best")
                ),
                100 * statistics.mean(float(row[f"true_error_{row[key]}"]) for row in models),
            ]
        shown = [float(cell.rstrip("%")) for cell in cells[1:]]
        assert shown[0::3] == pytest.approx(expected[0::3], abs=0.51)
        assert shown[1::3] == pytest.approx(expected[1::3], abs=0.51)
        assert shown[2::3] == pytest.approx(expected[2::3], abs=0.0051)


#: A sentence of the page, and the comparison whose result holds its numbers.
REPRODUCED = {
    r"(1\.36) times the smallest in the median, (2\.16) times at most": "largest over smallest standard deviation",
    r"(92)% of the variance lies between image sets": "variance of the bias that lies between",
    r"(39)%, (67)% and (87)% of scores": "share of scores above 0.99",
    r"rank correlation (0\.75)": "rank correlation of skew",
    r"(0\.39) points, against (2\.38) and (3\.19)": "reduction of the absolute bias by equal mass",
    r"(1\.39) points of bias off `em_bin` at 200, (0\.42) at 400": "reduction of the absolute bias by EM sweep",
    r"(70)% give the same order with equal width and (55)% .*? in (60)% and (58)%": "rank three recalibrators",
    r"in (29) of (56) settings, and more in none": "EM sweep misses less",
    r"missed in (13)% of samples \(EW bin (15)%\)": "n to detect 2%",
    r"of 10% in (23)% \((56)%\)": "error detected reliably",
    r"true error of (5\.5)% for uniform scores and of (8\.4)% .*? be (7\.4)%": "EW estimate of 12%",
    r"in (42) of 42 curves": "seven metrics",
    r"at n = 5,000 it is (2\.07)%": "ECE_sweep of the same model",
    r"`ew_bin` is (2\.20)%": "ECE_bin of a calibrated model",
    r"in (56) of 63 settings": "settings in which EM has the smaller bias",
    r"off by (14\.2)% in b, .*? by (0\.6)%": "relative error of b",
    r"(1\.08) times the smallest in the median, and (1\.37) times": "sd of EM bin",
    r"ECE_bin is (6\.70)% on average": "mean ECE_bin",
    r"above (3\.71)% in 95 of 100": "systematically predicts",
    r"its program draws (4,744) distinct": "number of distinct samples",
}


@pytest.mark.parametrize("sentence", REPRODUCED)
def test_results_on_the_page_of_the_reproduction(sentence: str) -> None:
    (row,) = (row for row in reproduction("comparison") if REPRODUCED[sentence] in row["quantity"])
    page = " ".join((ROOT / "docs" / "reproduction.md").read_text().split())
    match = re.search(sentence, page)
    assert match, sentence
    for number in match.groups():
        assert re.search(rf"(?<![\d.]){re.escape(number)}(?![\d]|\.\d)", row["reproduced"]), (
            number,
            row["reproduced"],
        )


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


#: A sentence of the page on other papers, and the page of the experiment that has its numbers.
EXTERNAL_SENTENCES = {
    r"is ([\d.]+) times that of the plug-in with 15 values and ([\d.]+) times with 100": "external_debiasing",
    r"`multiscale` has ([\d.]+) and ([\d.]+)\.": "external_debiasing",
    r"model: ([\d.]+) with 100 samples.*?`em_debias` has ([\d.]+) and `multiscale` (\d\.\d)": "external_debiasing",
    r"true error ([\d.]+)\) they are ([\d.]+), ([\d.]+) and ([\d.]+):": "external_debiasing",
    r"to the power (-[\d.]+) ± ([\d.]+) for smoothness 0.3 and (-[\d.]+) ± ([\d.]+) for 0.5": "external_test",
    r"cifar100 resnet56 \| 10,000 \| ([\d.]+)% \| ([\d.]+)% \(([\d.]+)% to ([\d.]+)%\)": "external_test",
    r"imagenet resnet152 \| 50,000 \| ([\d.]+)% \| ([\d.]+)% \(([\d.]+)% to ([\d.]+)%\)": "external_test",
}


@pytest.mark.parametrize("sentence", EXTERNAL_SENTENCES)
def test_sentences_on_other_papers_have_the_numbers_of_the_experiment(sentence: str) -> None:
    match = re.search(sentence, " ".join((ROOT / "docs" / "external.md").read_text().split()))
    assert match, sentence
    made = (EXTERNAL / f"{EXTERNAL_SENTENCES[sentence]}.md").read_text()
    assert [number for number in match.groups() if number not in made] == []
