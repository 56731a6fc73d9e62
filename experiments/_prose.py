"""Numbers in the README and the docs that come from a table, a file or a call, each with its source.

``python -m experiments._prose`` writes them into the pages again, after an experiment was run;
`tests/docs/test_numbers.py` fails if a page has another number. ``python -m experiments._prose --free`` lists the
numbers of the hand-written pages that have no source here.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import Any

import truecal
from truecal.simulation import IdentityCurve, UniformScores

ROOT = Path(__file__).parent.parent
NUMBER = r"([+-]?\d[\d,]*(?:\.\d+)?|[+-]?\.\d+)"


@dataclass(frozen=True)
class Claim:
    """A sentence with ``{}`` for each number and ``...`` for words that do not matter, and what the numbers are."""

    page: str
    sentence: str
    numbers: Callable[[], Sequence[float]]

    def match(self, text: str) -> re.Match[str]:
        """Return where the page says it, without regard to line breaks."""
        pattern = re.escape(" ".join(self.sentence.split()))
        pattern = pattern.replace(r"\{\}", NUMBER).replace(r"\.\.\.", ".*?").replace(r"\ ", r"\s+")
        found = re.search(pattern, text, flags=re.DOTALL)
        if found is None:
            raise LookupError(f"{self.page} does not say: {self.sentence}")
        return found

    def renewed(self, text: str) -> str:
        """Return the page with the numbers of today, each with as many decimals as it has there."""
        found = self.match(text)
        values = list(self.numbers())
        if len(values) != len(found.groups()):
            raise ValueError(f"{len(values)} numbers for {len(found.groups())} places of: {self.sentence}")
        for place in reversed(range(len(values))):
            start, end = found.span(place + 1)
            text = text[:start] + written(values[place], like=text[start:end]) + text[end:]
        return text


def written(value: float, *, like: str) -> str:
    """Return a number with the decimals, the sign and the separators of another.

    Examples
    --------
    >>> written(1234.567, like="1,000.0"), written(0.8449, like=".83"), written(0.116, like="+0.12")
    ('1,234.6', '.84', '+0.12')
    """
    decimals = len(like.partition(".")[2])
    separator = "" if re.match(r"[+-]?\d{4}", like) else ","
    text = f"{value:{'+' if like[0] == '+' else ''}{separator}.{decimals}f}"
    return text.replace("0.", ".", 1) if like.lstrip("+-")[0] == "." else text


# -- Sources ------------------------------------------------------------------------------------------------------


@cache
def table(path: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file of the docs."""
    with (ROOT / "docs" / f"{path}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(path: str, key: str, **where: str) -> list[float]:
    """Return a column of the rows that have these values."""
    rows = [row for row in table(path) if all(row[name] == value for name, value in where.items())]
    return [float(row[key]) for row in rows]


def cells(page: str, first: str) -> list[list[float]]:
    """Return the numbers in the rows of the tables of a generated page that begin with `first`."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith(f"| {first}")]
    return [[float(x) for x in re.findall(r"-?\d+\.\d+", row.removeprefix(f"| {first}"))] for row in rows]


def compared(quantity: str, *places: int) -> Callable[[], list[float]]:
    """Return numbers of a result of the reproduction, by their places in the text."""

    def numbers() -> list[float]:
        rows = table("reproduction/comparison")
        (row,) = [row for row in rows if quantity == row["quantity"]] or [
            row for row in rows if quantity in row["quantity"]
        ]
        found = [float(x.replace(",", "")) for x in re.findall(NUMBER, row["reproduced"])]
        return [found[place] for place in places]

    return numbers


def on_page(page: str, sentence: str) -> Callable[[], list[float]]:
    """Return the numbers in a sentence of a generated page."""

    def numbers() -> list[float]:
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        groups = Claim(page, sentence, list).match(text).groups()
        return [float(group.replace(",", "")) for group in groups]

    return numbers


# -- Numbers that need a calculation --------------------------------------------------------------------------------


@cache
def flights() -> list[float]:
    """Return the error of the demo data and the ends of its 95% interval, in percent."""
    data = truecal.datasets.load("flights")
    estimate = truecal.estimate(data.y_true, data.y_proba, confidence_level=0.95)
    assert estimate.interval is not None
    return [100 * estimate.value, 100 * estimate.interval.low, 100 * estimate.interval.high]


@cache
def usual_ece() -> list[float]:
    """Return ECE in percent of calibrated models: uniform scores, the smallest and the largest of the paper."""
    populations = {
        "uniform": truecal.Population(UniformScores(), IdentityCurve()),
        "smallest": truecal.paper.population("resnet110_c10", calibrated=True),
        "largest": truecal.paper.population("resnet152_imgnet", calibrated=True),
    }
    study = truecal.bias_study(
        populations, estimators=["ew_bin"], sizes=[200], repeats=2000, rng=0, norm=1, n_jobs=1
    )
    return [100 * row["mean"] for row in study.rows]


def recalibrators() -> list[float]:
    """Return the number of recalibrators, without the one that changes nothing."""
    return [len(truecal.recalibration.__all__) - 1]


def covered() -> list[float]:
    """Return the lowest coverage on smooth suites, the means on D1 and D2 with 1,000 rows, and the lowest of all."""
    rows = [row for row in table("benchmarks/honest") if row["suite"]]
    smooth = min(float(row["covered"]) for row in rows if row["suite"] in ("A", "B", "C1", "C2"))
    fine = [mean(column("benchmarks/honest", "covered", suite=name, n="1000")) for name in ("D1", "D2")]
    lowest = min(float(row["covered"]) for row in rows)
    return [math.floor(100 * smooth), *(100 * value for value in (*fine, lowest))]


def best_rival() -> dict[str, str]:
    """Return the row of the method of Berta et al. with the smallest RMSE."""
    rows = [row for row in table("external/external_lp_summary") if row["source"] != "truecal"]
    return min(rows, key=lambda row: float(row["rmse_clipped"]))


def lp() -> list[float]:
    """Return the RMSE of truecal and of the best of the others, and the settings in which the other is better."""
    rival = best_rival()
    mine = column("external/external_lp_summary", "rmse", estimator="multiscale", draws="1000")
    settings = int(rival["settings"])
    won = int(rival["multiscale_has_smaller_rmse"])
    return [*mine, float(rival["rmse"]), float(rival["rmse_clipped"]), settings - won, settings]


def lp_by_curve(curve: str, *estimators: str) -> list[float]:
    """Return the mean RMSE in points over the sizes, for one curve."""
    return [
        100 * mean(column("external/external_lp", "rmse", population=curve, estimator=name, repeats="1000"))
        for name in estimators
    ]


def sun(low: float, high: float) -> dict[str, list[float]]:
    """Return length, coverage and lowest coverage in percent, truecal's and theirs, for true errors in a range."""
    found: dict[str, list[float]] = {"length": [], "mean": [], "lowest": []}
    for name in ("truecal", "Sun et al."):
        rows = [
            row
            for row in table("external/external_interval")
            if row["interval"] == name and low <= float(row["true_error"]) < high
        ]
        coverages = [100 * float(row["coverage"]) for row in rows]
        found["length"].append(100 * mean(float(row["length"]) for row in rows))
        found["mean"].append(mean(coverages))
        found["lowest"].append(min(coverages))
        found["curves"] = [len(rows)]
    return found


def shorter() -> float:
    mine, theirs = sun(0, 0.1)["length"]
    return 100 * (1 - mine / theirs)


@cache
def efficiency(suite: str, n: int, estimator: str = "multiscale") -> float:
    """Return the median over populations of the RMSE divided by the limit."""
    return median(column("external/external_efficiency", "ratio", suite=suite, n=str(n), estimator=estimator))


def range_of_efficiency(*suites: str) -> list[float]:
    """Return the smallest and the largest median of each suite."""
    medians = [[efficiency(name, n) for n in (200, 800, 3200, 12800)] for name in suites]
    return [end for values in medians for end in (min(values), max(values))]


def accuracy_by_suite() -> list[float]:
    """Return the mean absolute bias and the RMSE of each suite, in points."""
    found = []
    for name in ("A", "B", "C1", "C2"):
        rows = [row for row in table("benchmarks/accuracy") if row["suite"] == name]
        found += [100 * mean(abs(float(row["bias"])) for row in rows)]
        found += [100 * mean(float(row["rmse"]) for row in rows)]
    return found


def largest_bias() -> list[float]:
    """Return the largest bias with 20,000 rows, its error and the truth, for D1 and D2, in points."""
    found = []
    for name in ("D1", "D2"):
        rows = [row for row in table("benchmarks/accuracy") if (row["suite"], row["n"]) == (name, "20000")]
        row = max(rows, key=lambda row: abs(float(row["bias"])))
        found += [100 * abs(float(row["bias"])), 100 * float(row["bias_se"]), 100 * float(row["truth"])]
    return found


def tcal(n: int) -> list[float]:
    """Return the mean power against bumps of four tests."""
    rows = [row for row in table("external/external_test") if row["n"] == str(n) and row["bumps"] != "0"]
    tests = ("truecal", "tcal", "adaptive", "fixed")
    return [mean(float(row["power"]) for row in rows if row["test"] == name) for name in tests]


def tcal_scores(name: str) -> list[float]:
    (row,) = (row for row in table("external/external_test_scores") if row["scores"] == name)
    return [100 * float(row[key]) for key in ("ece_15_bins_l1", "multiscale_l2", "low", "high")]


def choices(estimator: str) -> list[float]:
    """Return how often an estimator chooses as the fitted error and as the truth do, and the true error then."""
    found = []
    for part in ("table1_simulated", "table1_classes"):
        rows = table(f"reproduction/{part}")
        shares = [mean(row[estimator] == row[against] for row in rows) for against in ("fitted", "best")]
        errors = [float(row[f"true_error_{row[estimator]}"]) for row in rows]
        found += [100 * value for value in (*shares, mean(errors))]
    return found


def beta_fits(name: str) -> list[float]:
    """Return the parameters by the paper's recipe, on rounded scores, and as printed."""
    rows = {
        row["way"]: row
        for row in table("reproduction/table2")
        if (row["set"], row["scores"]) == (name, "real")
    }
    return [float(rows[way][key]) for way in ("recipe", "recipe_coarse", "printed") for key in ("a", "b")]


def misses_at_six_percent() -> list[float]:
    """Return the share of estimates below 1%, in percent, for a true error of 6% and 300 rows."""
    population = truecal.simulation.population_with_error(0.06)
    values = [truecal.calibration_error(*population.sample(300, rng=seed)) for seed in range(400)]
    return [100 * mean(value < 0.01 for value in values)]


def rows_needed(error: float) -> list[float]:
    """Return a row of the table of sample sizes, to two digits; families that cannot have the error are left out."""
    largest = {"power": 1.0, "level": 1.0, "slope": 1.0, "steps": 0.07, "waves": 0.12}
    plans: list[tuple[str, str]] = [(name, "multiscale") for name in largest] + [("power", "em_sweep")]
    return [
        float(f"{truecal.required_sample_size(error, alternative=name, method=method, rng=0):.1e}")
        for name, method in plans
        if error <= largest[name]
    ]


@cache
def detectable() -> list[float]:
    """Return errors in percent that 200 to 10,000 rows detect."""
    return [100 * truecal.simulation.detectable_error(n, rng=0) for n in (200, 500, 1000, 5000, 10000)]


def rejected_if_calibrated() -> list[float]:
    """Return how often the test rejects calibrated models with rare events, by design."""
    rows = [row for row in table("benchmarks/rare_events") if float(row["scale"]) == 1]
    return [float(row["test"]) / float(row["draws"]) for row in rows]


def pvalues_of_subsets() -> list[float]:
    """Return the smallest and the largest p-value of every 25th row of the demo data."""
    data = truecal.datasets.load("flights")
    label, score = data.y_true, data.y_proba
    found = [truecal.calibration_test(label[k::25], score[k::25], rng=0).pvalue for k in range(25)]
    return [min(found), max(found)]


# -- Claims ----------------------------------------------------------------------------------------------------------

_ECE = "it is {}% on average ... and {}% to {}% for models with the scores of the paper"
_EXTERNAL, _REPRODUCTION = "docs/external.md", "docs/reproduction.md"
_LP, _DEBIASING, _TCAL = (f"external/external_{name}" for name in ("lp", "debiasing", "test"))
_LIMITS = ("multiscale", "em_debias", "em_sweep", "em_bin", "ew_bin", "kde")

#: Sentences of the page on the paper, and the result that has their numbers, by places in its text.
_COMPARED: dict[str, tuple[Any, ...]] = {
    "{} times the smallest in the median, {} times at most": (
        "largest over smallest standard deviation",
        0,
        1,
    ),
    "{}% of the variance lies between image sets": ("variance of the bias that lies between", 0),
    "{}%, {}% and {}% of scores": ("share of scores above 0.99", 4, 3, 1),
    "rank correlation {}": ("rank correlation of skew", 0),
    "{} points, against {} and {}": ("reduction of the absolute bias by equal mass", 4, 1, 3),
    "{} points of bias off `em_bin` at 200, {} at 400": ("reduction of the absolute bias by EM sweep", 0, 2),
    "{}% give the same order with equal width and {}% ... in {}% and {}%": (
        "rank three recalibrators",
        0,
        1,
        4,
        5,
    ),
    "in {} of {} settings, and more in none": ("EM sweep misses less", 0, 1),
    "missed in {}% of samples (EW bin {}%)": ("n to detect 2%", 0, 2),
    "of 10% in {}% ({}%)": ("error detected reliably", 0, 3),
    "true error of {}% for uniform scores and of {}% ... be {}%": ("EW estimate of 12%", 0, 3, 6),
    "in {} of 42 curves": ("seven metrics", 0),
    "at n = 5,000 it is {}%": ("ECE_sweep of the same model", 0),
    "`ew_bin` is {}%": ("ECE_bin of a calibrated model", 0),
    "in {} of 63 settings": ("settings in which EM has the smaller bias", 0),
    "off by {}% in b, ... by {}%": ("relative error of b", 0, 1),
    "{} times the smallest in the median, and {} times": ("sd of EM bin", 0, 1),
    "ECE_bin is {}% on average": ("mean ECE_bin", 0),
    "above {}% in 95 of 100": ("systematically predicts", 1),
    "its program draws {} distinct": ("number of distinct samples", 0),
    "neither: {} and": ("KDE has by far", 0),
    "neither: ... and {} on average": ("estimator with the smallest bias", 1),
    "t = {} ± 0.32,": ("paired t", 0),
    "± 0.32, {} and": ("mean absolute bias of EM debias (%)", 0),
    "± 0.32, ... and {} | the paper's 70": ("mean absolute bias of EM sweep (%)", 0),
    "yes: {}% | | ImageNet": ("variance of the curves that lies between", 0),
    "one value per population t is {}.": ("t over the populations", 0),
    "distribution functions is {},": ("a Beta describes the scores of resnet110_c10", 0),
    "sweep minus bin | {} ± {} |": ("agreement with the fitted error (%), one-dimensional", -2, -1),
    "sweep minus bin ... | {} ± {} | +0": ("truly best recalibrator chosen (%), one-dimensional", -2, -1),
}

CLAIMS: tuple[Claim, ...] = (
    *(Claim(page, _ECE, usual_ece) for page in ("README.md", "docs/index.md")),
    Claim("docs/claims.md", "{}% for uniform scores, {}% to {}% on the paper's populations", usual_ece),
    Claim(
        "docs/start/paper.md",
        "an ECE (l1) of {}% to {}% is what a *calibrated* model has",
        lambda: sorted(usual_ece())[::2],
    ),
    Claim(
        "README.md", "error is {} percentage points, with a 95% confidence interval from {} to {}.", flights
    ),
    Claim("docs/index.md", "tc-number\n{}%\n ... tc-number\n{}% to {}%", flights),
    Claim("docs/index.md", "[Is {}% much?]", lambda: flights()[:1]),
    Claim("docs/start/index.md", "[Is {}% much?]", lambda: flights()[:1]),
    Claim("docs/start/tutorial.md", "[Is {}% much?]", lambda: flights()[:1]),
    Claim("docs/start/is_it_much.md", "# Is {}% much? ... with {}%, a stated 30%", lambda: flights()[:1] * 2),
    Claim(
        "docs/start/is_it_much.md",
        "{}% costs {}, which",
        lambda: [flights()[0], (flights()[0] / 100) ** 2],
    ),
    Claim("docs/start/is_it_much.md", '"{}% to {}%" is settled', lambda: flights()[1:]),
    Claim("docs/start/paper.md", "of P(late) is {}% (95% confidence interval {}% to {}%", flights),
    Claim("docs/guide/which_number.md", "of P(late) is {}% (95% confidence interval {}% to {}%", flights),
    Claim("docs/start/faq.md", "and 300 rows {}% of estimates were below 1%", misses_at_six_percent),
    Claim("docs/guide/is_it_calibrated.md", "give p-values between {} and {}.)", pvalues_of_subsets),
    Claim("README.md", "slope and intercept, {} recalibrators", recalibrators),
    Claim("README.md", "| recalibrators | {} |", recalibrators),
    # Coverage and length of the interval
    Claim(
        "README.md",
        "cover {}% or more on ... they state, {}% and {}% on average with 1,000 rows, and {}% on the worst",
        covered,
    ),
    Claim(
        "docs/theory/interval.md",
        "truth in {}% and {}% of samples of 1,000 rows on average, and in {}% on the worst curve",
        lambda: covered()[1:],
    ),
    *(
        Claim(
            "docs/guide/how_many_samples.md",
            f"| {suite}: ... | {{}} | {{}} | {{}} |",
            lambda suite=suite: [
                mean(column("benchmarks/honest", "length", suite=suite, n=n)) for n in ("200", "1000", "5000")
            ],
        )
        for suite in ("A", "B", "C2")
    ),
    # The default estimator
    Claim(
        "docs/theory/constants.md",
        "are {} and {} points on A, {} and {} on B, {} and {} on C1, and {} and {} on C2",
        accuracy_by_suite,
    ),
    Claim(
        "docs/theory/constants.md",
        "largest bias is {} ± {} too low on D1 (... a true error of {}) and {} ± {} on D2 (12 stairs, {})",
        largest_bias,
    ),
    Claim(
        "docs/theory/efficiency.md",
        "15 bins has {} of the limit on the paper's populations with 200 rows, and {} times",
        lambda: [efficiency("A", n, "ew_bin") for n in (200, 12800)],
    ),
    # Other papers
    Claim(
        "README.md",
        "mean RMSE is {} points... methods has {} in ...or {} with ... RMSE in {} of the {} settings",
        lp,
    ),
    Claim(_EXTERNAL, "in {} of {} settings a method of Berta et al.", lambda: lp()[3:]),
    Claim(
        _EXTERNAL,
        "mean RMSE of {} points over the {} settings, the best of their 16 methods {}, or {} if",
        lambda: [lp()[0], lp()[4], *lp()[1:3]],
    ),
    Claim(
        _EXTERNAL,
        "It has the smaller RMSE in {} of {} settings, and takes {} ms of processor time instead of {} s. "
        "Its RMSE is {} times",
        lambda: [
            lp()[4] - lp()[3],
            lp()[4],
            1000 * column(f"{_LP}_summary", "seconds", estimator="multiscale", draws="1000")[0],
            float(best_rival()["seconds"]),
            *on_page(_LP, "not reported | {} |")(),
        ],
    ),
    Claim(
        _EXTERNAL,
        "On the wavy curve it has {}, against {} of `em_sweep` and {} of `em_debias`",
        lambda: lp_by_curve("wavy_increasing_function_bin", "multiscale", "em_sweep", "em_debias"),
    ),
    Claim(
        _EXTERNAL,
        "on the overconfident curve it has {}, and `em_sweep` {}",
        lambda: lp_by_curve("overconfident_binary", "multiscale", "em_sweep"),
    ),
    *(
        Claim(
            _EXTERNAL,
            f"truecal `{name}`... | {draws} | {{}} | {{}} ± {{}} | {{}} |",
            lambda name=name, draws=draws: [
                column(f"{_LP}_summary", key, estimator=name, draws=draws)[0]
                for key in ("mean_absolute_bias", "rmse", "rmse_se", "seconds")
            ],
        )
        for name, draws in (
            ("multiscale", "1000"),
            ("multiscale", "10"),
            *((name, "1000") for name in ("em_debias", "em_sweep", "em_bin", "ew_bin")),
        )
    ),
    *(
        Claim(
            _EXTERNAL,
            f"| {row['estimator']} (theirs) | 10 | {{}} | {{}}, clipped {{}} | {{}} |",
            lambda row=row: [
                float(row[key]) for key in ("mean_absolute_bias", "rmse", "rmse_clipped", "seconds")
            ],
        )
        for row in table(f"{_LP}_summary")
        if row["seconds"] != "nan"
        and f"| {row['estimator']} (theirs) |" in (ROOT / _EXTERNAL).read_text(encoding="utf-8")
    ),
    Claim(
        "README.md",
        "interval is {}% shorter than theirs and covers the truth in {}% of samples (in {}% or more for each "
        "of {} curves)",
        lambda: [
            shorter(),
            sun(0, 0.1)["mean"][0],
            math.floor(sun(0, 0.1)["lowest"][0]),
            *sun(0, 0.1)["curves"],
        ],
    ),
    Claim(
        _EXTERNAL,
        "is {}% shorter: {} points on average, theirs {}. It covers {}% of samples there, theirs {}%; the lowest "
        "coverages are {}% and {}%",
        lambda: [shorter(), *(x for key in ("length", "mean", "lowest") for x in sun(0, 0.1)[key])],
    ),
    Claim(
        _EXTERNAL,
        "Above 10% the lengths are {} and {}, and the lowest coverages {}% and {}%",
        lambda: [*sun(0.1, 1)["length"], *sun(0.1, 1)["lowest"]],
    ),
    *(
        Claim(_EXTERNAL, f"| {n:,} | {{}} | {{}} | {{}} | {{}} |", lambda n=n: tcal(n))
        for n in (2000, 5000, 10000)
    ),
    Claim(
        _EXTERNAL,
        "the multiscale test rejected {}, {}, {} of samples",
        lambda: column(_TCAL, "power", bumps="0", test="truecal"),
    ),
    Claim(
        _EXTERNAL,
        "to the power {} ± {} for smoothness 0.3 and {} ± {} for 0.5",
        on_page(_TCAL, "smoothness 0.3 | -0.273 | {} ± {} | ... smoothness 0.5 | -0.333 | {} ± {} |"),
    ),
    *(
        Claim(
            _EXTERNAL,
            f"| {name.replace('_', ' ')} | ... | {{}}% | {{}}% ({{}}% to {{}}%) |",
            lambda name=name: tcal_scores(f"tcal_{name}"),
        )
        for name in ("cifar100_resnet56", "cifar10_vgg19_bn", "imagenet_resnet152")
    ),
    Claim(
        _EXTERNAL,
        "is {} times that of the plug-in with 15 values and {} times with 100... `multiscale` has {} and {}.",
        lambda: (
            [
                number
                for place in (0, 1)
                for number in on_page(_DEBIASING, "debiased {}, ... debiased {},")()[place : place + 1]
            ]
            + on_page(_DEBIASING, "multiscale {} (se ... multiscale {} (se")()
        ),
    ),
    Claim(
        _EXTERNAL,
        "model: {} with 100 samples, where the truth is 0. `em_debias` has {} and `multiscale` {}. For the model "
        "with logits times 1.5 (true error {}) they are {}, {} and {}:",
        on_page(
            _DEBIASING,
            "perfect model ... ew_bin {}, em_debias {}, ... multiscale {} ... mediocre model ... true error {} | "
            "... ew_bin {}, em_debias {}, ... multiscale {} (se",
        ),
    ),
    *(
        Claim(
            _EXTERNAL,
            f"| {suite}: ... | {n:,} | {' | '.join(['{}'] * 6)} |",
            lambda suite=suite, n=n: [efficiency(suite, n, name) for name in _LIMITS],
        )
        for suite in ("A", "C1", "C2", "D2")
        for n in (200, 800, 3200, 12800)
    ),
    Claim(
        "README.md",
        "the median RMSE is {} to {} times ... the medians are {} to {}, and {} to {} on fine structure",
        lambda: range_of_efficiency("A", "C2", "D2"),
    ),
    Claim(
        _EXTERNAL,
        "is at the limit at every size ({} to {}), and from 3,200 rows on within {}% of it on other smooth curves, "
        "too: ... on other curves it is up to {}% above",
        lambda: [
            *range_of_efficiency("A"),
            *(
                100 * (max(efficiency(suite, n) for suite in ("C1", "C2") for n in sizes) - 1)
                for sizes in ((3200, 12800), (200, 800))
            ),
        ],
    ),
    Claim(
        _EXTERNAL,
        "with 12,800 `multiscale` has {} times the limit and the others {} times or more",
        lambda: [
            efficiency("D2", 12800),
            math.floor(10 * min(efficiency("D2", 12800, name) for name in _LIMITS[1:])) / 10,
        ],
    ),
    Claim(
        "docs/guide/clinical_validation.md",
        "slope of 0.7 they were off by {}, {} and {} (root mean square)",
        lambda: [
            math.sqrt(column("benchmarks/clinical", f"{name} square", case="slope 0.7", n="1000")[0])
            for name in ("E50", "E90", "Emax")
        ],
    ),
    Claim(
        "docs/guide/clusters.md",
        "rejected calibrated models in {}% to {}% of samples in [{} designs]",
        lambda: [
            100 * min(rejected_if_calibrated()),
            100 * max(rejected_if_calibrated()),
            len(rejected_if_calibrated()),
        ],
    ),
    # The test
    *(
        Claim(
            "docs/theory/test.md",
            sentence,
            lambda kind=kind, place=place: [cells("benchmarks/power", f"**{kind}, mean**")[place][-1]],
        )
        for sentence, kind, place in (
            ("T has {} of the power against three waves", "three waves", 1),
            ("three waves ({} on the tuned cases)", "three waves", 0),
            ("{} against errors in the top 3%", "top 3%", 1),
            ("{} against slopes", "slopes", 1),
            ("and {} against level shifts", "level shifts", 1),
        )
    ),
    # The paper
    *(
        Claim(
            _REPRODUCTION,
            f"| {label} | {{}}% | {{}}% | {{}} | {{}}% | {{}}% | {{}} |",
            lambda key=key: choices(key),
        )
        for label, key in (
            ("`em_sweep` (ECE_sweep)", "em_sweep"),
            ("`ew_bin` (ECE_bin)", "ew_bin"),
            ("`em_bin`", "em_bin"),
            ("log loss", "log_loss"),
            ("always temperature", "always_temperature"),
        )
    ),
    *(
        Claim(
            "docs/theory/fits.md",
            f"| {label} | ({{}}, {{}}) | ({{}}, {{}}) | ({{}}, {{}}) |",
            lambda name=name: beta_fits(name),
        )
        for label, name in (
            ("ResNet-110 C10", "resnet110_c10"),
            ("DenseNet-40 C10", "densenet40_c10"),
            ("ResNet-110 C100", "resnet110_c100"),
            ("DenseNet-40 C100", "densenet40_c100"),
        )
    ),
    *(
        Claim(_REPRODUCTION, sentence, compared(quantity, *places))
        for sentence, (quantity, *places) in _COMPARED.items()
    ),
)

#: Claims that take longer than a test should.
SLOW_CLAIMS: tuple[Claim, ...] = (
    *(
        Claim(
            "docs/guide/how_many_samples.md",
            f"| {100 * error:.0f}% | {row} |",
            lambda error=error: rows_needed(error),
        )
        for error, row in (
            (0.2, "{} | {} | {} | - | - | {}"),
            (0.1, "{} | {} | {} | - | {} | {}"),
            *((error, "{} | {} | {} | {} | {} | {}") for error in (0.05, 0.02, 0.01)),
        )
    ),
    Claim("docs/guide/how_many_samples.md", "| error | {}% | {}% | {}% | {}% | {}% |", detectable),
    Claim(
        "docs/guide/how_many_samples.md",
        "from {}% with 200 rows to {}% with 10,000",
        lambda: detectable()[::4],
    ),
)


def pages() -> list[str]:
    """Return the hand-written pages."""
    docs = ROOT / "docs"
    paths = [
        *docs.glob("*.md"),
        *(path for name in ("start", "guide", "theory") for path in (docs / name).glob("*.md")),
    ]
    return ["README.md", *sorted(str(path.relative_to(ROOT)) for path in paths)]


def free(page: str) -> Iterator[str]:
    """Yield the lines of a page, without code and formulas, that have decimals or percentages without a source."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = [claim.match(text) for claim in (*CLAIMS, *SLOW_CLAIMS) if claim.page == page]
    spans = {match.span(place) for match in found for place in range(1, match.re.groups + 1)}
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]}x{text[end:]}"
    code = r"^```.*?^```$|\$\$.*?\$\$|\$[^$\n]+\$|`[^`]*`|\]\([^)]*\)"
    text = re.sub(code, "", text, flags=re.MULTILINE | re.DOTALL)
    yield from (line for line in text.splitlines() if re.search(r"\d\.\d|\d%", line))


def main() -> None:
    """Write the numbers into the pages, or list those without a source."""
    parser = argparse.ArgumentParser(prog="python -m experiments._prose", description=__doc__)
    parser.add_argument("--slow", action="store_true", help="also numbers that take a minute or two")
    parser.add_argument("--free", action="store_true", help="list numbers without a source instead")
    options = parser.parse_args()
    if options.free:
        for page in pages():
            for line in free(page):
                print(f"{page}: {line}")
        return
    for claim in (*CLAIMS, *(SLOW_CLAIMS if options.slow else ())):
        path = ROOT / claim.page
        text = path.read_text(encoding="utf-8")
        renewed = claim.renewed(text)
        if renewed != text:
            old, new = claim.match(text).group(), claim.match(renewed).group()
            print(f"{claim.page}: {' '.join(old.split())} -> {' '.join(new.split())}")
            path.write_text(renewed, encoding="utf-8")


if __name__ == "__main__":
    main()
