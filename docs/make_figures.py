"""Draw the figures of the guide and of the start pages: ``python docs/make_figures.py [NAME ...]``, a minute.

Each function draws one SVG file in docs/_static. Figures are transparent, with colours that are legible on light and
dark pages, and text that stays text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import truecal
from truecal.simulation import BetaScores, IdentityCurve, PowerCurve, UniformScores

HERE = Path(__file__).parent / "_static"
GREY, BLUE, RED, GREEN, GOLD = "#747474", "#0072B2", "#C8402C", "#009E73", "#C98200"
FIGURES: dict[str, Callable[[], Figure]] = {}

COLOURED = (
    "text.color",
    "axes.labelcolor",
    "axes.edgecolor",
    "axes.titlecolor",
    "xtick.color",
    "ytick.color",
)
STYLE = {
    **dict.fromkeys((*COLOURED, "legend.labelcolor", "grid.color"), GREY),
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.2,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "truecal",
}


def figure(draw: Callable[[], Figure]) -> Callable[[], Figure]:
    """Register a figure by the name of its function."""
    FIGURES[draw.__name__] = draw
    return draw


def panels(columns: int = 1, width: float = 7.0, height: float = 2.6) -> tuple[Figure, np.ndarray]:
    """Return a figure with one row of axes."""
    drawn, axes = plt.subplots(1, columns, figsize=(width, height), layout="constrained", squeeze=False)
    return drawn, axes[0]


def flow(steps: Sequence[tuple[str, str]]) -> Figure:
    """Draw boxes, each with a title and a line of text, joined by arrows."""
    drawn, (ax,) = panels(height=1.0)
    ax.axis("off")
    ax.set(xlim=(0, len(steps)), ylim=(0, 1))
    for place, (title, text) in enumerate(steps):
        box = plt.Rectangle((place + 0.02, 0.08), 0.84, 0.84, fill=False, edgecolor=BLUE, linewidth=1.2)
        ax.add_patch(box)
        ax.text(place + 0.44, 0.66, title, ha="center", va="center", weight="bold", fontsize=9.5)
        ax.text(place + 0.44, 0.32, text, ha="center", va="center", fontsize=8.5)
        if place:
            ax.annotate(
                "", (place + 0.02, 0.5), (place - 0.14, 0.5), arrowprops={"arrowstyle": "->", "color": GREY}
            )
    return drawn


def flights(model: str = "boosting") -> tuple[np.ndarray, np.ndarray]:
    """Return labels and scores of the bundled data."""
    data = truecal.datasets.load("flights")
    return data.y_true, data.predictions[model]


def curve(ax: plt.Axes, y: np.ndarray, p: np.ndarray, color: str = BLUE, label: str | None = None) -> None:
    """Draw an isotonic curve with its consistency band."""
    drawn = truecal.reliability_curve(y, p, rng=0)
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1)
    ax.fill_between(drawn.score, drawn.lower, drawn.upper, color=GREY, alpha=0.25, linewidth=0)
    ax.plot(drawn.score, drawn.label, color=color, label=label)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="score", ylabel="observed frequency")


def intervals(ax: plt.Axes, names: Sequence[str], results: Sequence[truecal.results.Estimate]) -> None:
    """Draw estimates with intervals, one below the other."""
    for place, result in enumerate(results):
        ax.plot(
            [100 * result.interval.low, 100 * result.interval.high], [place] * 2, color=BLUE, linewidth=2.5
        )
        ax.plot(100 * result.value, place, "o", color=RED, markersize=4, clip_on=False, zorder=3)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel("calibration error, percentage points (95% interval)")
    ax.set_xlim(left=0)


def measured(y: object, p: object, **options: object) -> truecal.results.Estimate:
    """Return the estimate with its interval."""
    return truecal.estimate(y, p, confidence_level=0.95, **options)


@figure
def which_number() -> Figure:
    """Draw histograms of two estimators on samples of a calibrated model."""
    drawn, (ax,) = panels()
    population = truecal.Population(BetaScores(2.8, 0.05), IdentityCurve())
    samples = [population.sample(200, rng=seed) for seed in range(400)]
    for name, color in (("ew_bin", RED), ("multiscale", BLUE)):
        values = [100 * truecal.calibration_error(*sample, estimator=name) for sample in samples]
        ax.hist(values, bins=np.arange(0, 16, 0.5), color=color, alpha=0.6, label=name)
    ax.axvline(0, color=GREY, linestyle=":")
    ax.set(
        xlabel="estimate, percentage points; the true error is 0",
        ylabel="samples",
        title="400 samples of 200 rows",
    )
    ax.legend()
    return drawn


@figure
def is_it_calibrated() -> Figure:
    """Draw the statistic of the test beside its null distribution."""
    drawn, (ax,) = panels()
    y, p = flights()
    rng = np.random.default_rng(0)
    rows = rng.choice(len(p), 1000, replace=False)
    null = [
        100 * truecal.calibration_error(rng.random(1000) < p[rows], p[rows], estimator="em_bin")
        for _ in range(400)
    ]
    seen = 100 * truecal.calibration_error(y[rows], p[rows], estimator="em_bin")
    ax.hist(null, bins=30, color=GREY, alpha=0.5, label="labels drawn from the scores")
    ax.axvline(seen, color=RED, label="observed")
    ax.set(xlabel="statistic (em_bin), percentage points, 1,000 flights", ylabel="draws")
    ax.legend()
    return drawn


@figure
def how_many_samples() -> Figure:
    """Draw the detectable error against the number of rows."""
    drawn, (ax,) = panels()
    page = Path(__file__).with_name("guide") / "how_many_samples.md"
    lines = [line.strip("|").split("|") for line in page.read_text().splitlines() if line.startswith("| ")]
    rows = [int(cell.replace(",", "")) for line in lines if line[0].strip() == "rows" for cell in line[1:]]
    error = [float(cell.strip(" %")) for line in lines if line[0].strip() == "error" for cell in line[1:]]
    ax.loglog(rows, error, "o-", color=BLUE)
    ax.set_xticks(rows, [f"{n:,}" for n in rows])
    ax.set_yticks([2, 5, 10], ["2%", "5%", "10%"])
    ax.minorticks_off()
    ax.set(xlabel="rows", ylabel="error detected", title="uniform scores too high, level 5%, power 95%")
    return drawn


@figure
def comparing() -> Figure:
    """Draw the errors of the three models of the flights."""
    drawn, (ax,) = panels(height=1.8)
    names = ["boosting", "naive_bayes", "balanced"]
    intervals(ax, names, [measured(*flights(name)) for name in names])
    return drawn


@figure
def groups() -> Figure:
    """Draw the errors by airport."""
    drawn, (ax,) = panels(height=1.9)
    data = truecal.datasets.load("flights")
    airports = ["EWR", "JFK", "LGA"]
    results = [measured(*flights())]
    for airport in airports:
        rows = data.groups["origin"] == airport
        results.append(measured(data.y_true[rows], data.y_proba[rows]))
    intervals(ax, ["all", *airports], results)
    return drawn


@figure
def clusters() -> Figure:
    """Draw the interval of a calibrated model with and without clusters."""
    drawn, (ax,) = panels(height=1.4)
    rng = np.random.default_rng(1)
    confidence = rng.beta(3, 2, 200)
    chance = rng.beta(confidence * 7 / 3, (1 - confidence) * 7 / 3)
    question = np.repeat(np.arange(200), 5)
    correct = (rng.random(1000) < chance[question]).astype(int)
    score = confidence[question]
    results = [measured(correct, score), measured(correct, score, clusters=question)]
    intervals(ax, ["rows taken as independent", "clusters=question"], results)
    ax.set_title("200 questions answered five times; the true error is 0")
    return drawn


@figure
def recalibrating() -> Figure:
    """Draw the diagram before and after recalibration."""
    drawn, axes = panels(2, height=3)
    y, p = flights("balanced")
    order = np.random.default_rng(0).permutation(len(p))
    fit, test = order[:5000], order[5000:]
    selection = truecal.select_recalibrator(y[fit], p[fit], rng=0)
    for ax, name, scores in zip(
        axes, ("before", "after"), (p[test], selection.transform(p[test])), strict=True
    ):
        curve(ax, y[test], scores)
        ax.set_title(f"{name}: {100 * truecal.calibration_error(y[test], scores):.1f} points")
    return drawn


@figure
def tutorial() -> Figure:
    """Draw the model of the tutorial before and after recalibration."""
    from sklearn.datasets import make_classification
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB

    X, y = make_classification(9000, n_features=20, n_informative=5, n_redundant=10, random_state=0)
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=3000, random_state=0)
    X_fit, X_test, y_fit, y_test = train_test_split(X_rest, y_rest, train_size=3000, random_state=0)
    model = GaussianNB().fit(X_train, y_train)
    p = model.predict_proba(X_test)[:, 1]
    selection = truecal.select_recalibrator(y_fit, model.predict_proba(X_fit)[:, 1], rng=0)
    drawn, axes = panels(2, height=3)
    for ax, name, scores in zip(axes, ("before", "after"), (p, selection.transform(p)), strict=True):
        curve(ax, y_test, scores)
        ax.set_title(f"{name}: {100 * truecal.calibration_error(y_test, scores):.1f} points")
    return drawn


@figure
def clinical_validation() -> Figure:
    """Draw the decision curve of the flights data."""
    drawn, (ax,) = panels()
    y, p = flights()
    thresholds = np.linspace(0.05, 0.6, 56)
    benefit = truecal.net_benefit(y, p, thresholds=thresholds)
    ax.plot(thresholds, benefit.net_benefit, color=BLUE, label="model")
    ax.plot(thresholds, benefit.treat_all, color=GREY, label="treat all")
    ax.axhline(0, color=GREY, linestyle=":", label="treat no one")
    ax.set(ylim=(-0.03, 0.17), xlabel="threshold", ylabel="net benefit")
    ax.legend()
    return drawn


@figure
def monitoring() -> Figure:
    """Draw the e-value of a monitor over a month with a change."""
    drawn, (ax,) = panels()
    rng = np.random.default_rng(0)
    monitor = truecal.CalibrationMonitor(alpha=0.05)
    values = []
    for day in range(1, 31):
        score = rng.random(500)
        monitor.update(rng.random(500) < score + (0.06 if day > 20 else 0.0), score)
        values.append(monitor.evalue)
    ax.semilogy(range(1, 31), values, "o-", color=BLUE, markersize=3)
    ax.axhline(20, color=RED, linestyle="--", label="alarm at 1 / alpha = 20")
    ax.axvline(20.5, color=GREY, linestyle=":", label="the model changes")
    ax.set(xlabel="day", ylabel="e-value")
    ax.legend()
    return drawn


@figure
def multiclass() -> Figure:
    """Draw errors of the digits by question."""
    drawn, (ax,) = panels(height=1.6)
    data = truecal.datasets.load("digits")
    kinds = ["top", "classwise", "top_by_class"]
    results = [measured(data.y_true, data.y_proba, labels=data.labels, multiclass=kind) for kind in kinds]
    intervals(ax, ["top label", "classwise", "top label, class by class"], results)
    return drawn


@figure
def weights_and_ties() -> Figure:
    """Draw how a tie is kept in one bin."""
    drawn, (ax,) = panels(height=1.7)
    score = np.sort(np.r_[np.linspace(0.05, 0.9, 14), np.full(8, 0.55)])
    rank = np.arange(len(score))
    tied = score == 0.55
    ax.scatter(rank[~tied], score[~tied], color=BLUE, s=18)
    ax.scatter(rank[tied], score[tied], color=RED, s=18)
    ax.text(rank[tied].mean(), 0.7, "equal scores: one group", ha="center")
    for edge in (rank[tied].min() - 0.5, rank[tied].max() + 0.5):
        ax.axvline(edge, color=GREY, linestyle="--")
    ax.set(xlabel="rank of the row", ylabel="score", title="a bin edge never splits a group")
    return drawn


@figure
def llm_confidences() -> Figure:
    """Draw stated confidences of a simulated language model with observed frequencies."""
    drawn, (ax,) = panels(height=2.8)
    rng = np.random.default_rng(0)
    stated = rng.choice(
        [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0], 2000, p=[4, 3, 6, 18, 27, 22, 10, 10] / np.float64(100)
    )
    right = rng.random(2000) < 0.35 + 0.5 * stated
    values = np.unique(stated)
    ax.plot([0.4, 1], [0.4, 1], color=GREY, linestyle=":")
    ax.scatter(
        values,
        [right[stated == v].mean() for v in values],
        [(stated == v).sum() / 5 for v in values],
        color=BLUE,
    )
    ax.set(xlabel="stated confidence (area: answers)", ylabel="share of right answers", title="simulated")
    return drawn


@figure
def llm_judge() -> Figure:
    """Draw mean intervals of a calibrated model with labels of a judge, gold labels, and both."""
    drawn, (ax,) = panels(height=1.9)
    names = ("judge alone", "300 gold labels alone", "judge and 300 gold", "all 3,000 true labels")
    ends: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        p = rng.beta(3, 1.5, 3000)
        y = rng.random(3000) < p
        judge = np.where(y, rng.random(3000) < 0.95, rng.random(3000) < 0.1)
        chosen = rng.choice(3000, 300, replace=False)
        gold = np.full(3000, np.nan)
        gold[chosen] = y[chosen]
        both = truecal.labels.judged(judge, gold)
        for name, found in zip(
            names,
            (measured(judge, p), measured(y[chosen], p[chosen]), measured(both, p), measured(y, p)),
            strict=True,
        ):
            ends[name].append((100 * found.interval.low, 100 * found.interval.high))
    for place, name in enumerate(names):
        ax.plot(np.mean(ends[name], axis=0), [place] * 2, color=RED if place == 0 else BLUE, linewidth=2.5)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.axvline(0, color=GREEN, linewidth=3)
    ax.set(
        xlim=(-0.2, None),
        xlabel="calibration error, percentage points",
        title="95% intervals, mean of 30 simulated data sets; the true error is 0",
    )
    return drawn


@figure
def survival() -> Figure:
    """Draw observed risks at a horizon, with censoring allowed for and counted as no event."""
    drawn, (ax,) = panels(width=4.2, height=3.2)
    rng = np.random.default_rng(3)
    p = 1 / (1 + np.exp(-rng.normal(-0.5, 1.2, 4000)))
    time = rng.exponential(1 / -np.log(1 - p))
    left = rng.exponential(2.8 - 1.6 * p)
    seen, event = np.minimum(time, left), time <= left
    outcomes = {
        "censoring allowed for": (truecal.labels.censored(seen, event, horizon=1.0), BLUE),
        "counted as event-free": ((event & (seen <= 1)).astype(int), RED),
    }
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=":")
    for name, (labels, color) in outcomes.items():
        bins = truecal.reliability_curve(labels, p, rng=0).bins
        ax.plot(bins.mean_score, bins.mean_label, "o-", color=color, markersize=3, label=name)
    ax.set(
        xlim=(0, 1),
        ylim=(0, 1),
        xlabel="predicted risk at the horizon",
        ylabel="observed risk",
        title="simulated; the model is calibrated",
    )
    ax.legend()
    return drawn


@figure
def annotators() -> Figure:
    """Draw observed frequencies of a calibrated model, by fractions of five annotators and by their majority."""
    drawn, (ax,) = panels(width=4.2, height=3.2)
    rng = np.random.default_rng(2)
    p = rng.beta(1.5, 1.5, 20_000)
    votes = rng.binomial(5, rng.beta(4 * p, 4 * (1 - p)))
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=":")
    for name, label, color in (("fraction", votes / 5, BLUE), ("majority", votes > 2.5, RED)):
        place = np.minimum((15 * p).astype(int), 14)
        count = np.bincount(place)
        ax.plot(
            np.bincount(place, p) / count,
            np.bincount(place, label) / count,
            "o-",
            color=color,
            markersize=3,
            label=name,
        )
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="score", ylabel="mean label", title="simulated; calibrated")
    ax.legend()
    return drawn


@figure
def large_data() -> Figure:
    """Draw the way of large data."""
    return flow(
        [
            ("10⁸ rows", "Parquet, Spark, SQL"),
            ("summarize", "one pass"),
            ("cells", "at most 65,536 sums"),
            ("estimate", "test, interval, plot"),
        ]
    )


@figure
def sql() -> Figure:
    """Draw the way of a database."""
    return flow(
        [
            ("table", "in the database"),
            ("truecal sql", "prints a query"),
            ("cells.csv", "its result"),
            ("truecal measure", "--cells"),
        ]
    )


@figure
def mlflow() -> Figure:
    """Draw the way of MLflow."""
    return flow(
        [
            ("predictions", "labels and scores"),
            ("assess", "one call"),
            ("MLflow run", "metrics, report"),
            ("comparison", "of runs"),
        ]
    )


@figure
def calibration_in_ci() -> Figure:
    """Draw the way of the gate."""
    return flow(
        [
            ("predictions", "of held-out rows"),
            ("truecal test", "--at-most 0.05"),
            ("exit code", "0 shown, 1 not"),
            ("build", "passes or fails"),
        ]
    )


@figure
def scikit_learn() -> Figure:
    """Draw the way of a pipeline."""
    return flow(
        [
            ("pipeline", "any classifier"),
            ("CalibratedModel", "held-out folds"),
            ("recalibrator", "or left alone"),
            ("predict_proba", "calibrated"),
        ]
    )


@figure
def command_line() -> Figure:
    """Draw the commands."""
    return flow(
        [
            ("measure", "how large?"),
            ("test", "more than noise?"),
            ("audit", "where?"),
            ("recalibrate", "fix it"),
            ("monitor", "still good?"),
        ]
    )


@figure
def json() -> Figure:
    """Draw the way of the output."""
    return flow(
        [
            ("truecal measure", "--format json"),
            ("one object", "schema_version 1"),
            ("jq, Python, CI", "reads keys"),
        ]
    )


@figure
def troubleshooting() -> Figure:
    """Draw how a file is read."""
    return flow(
        [
            ("file", "CSV, Parquet, JSON"),
            ("columns", "named or detected"),
            ("values", "0 to 1, --percent"),
            ("checks", "row and remedy"),
        ]
    )


@figure
def what_truecal_cannot_tell_you() -> Figure:
    """Draw two curves that no sample of distinct scores can tell apart."""
    drawn, axes = panels(2, height=2.6)
    rng = np.random.default_rng(0)
    score = np.sort(rng.random(60))
    label = rng.random(60) < score
    for ax, title in zip(
        axes, ("reading 1: the event has probability 'score'", "reading 2: each score decides"), strict=True
    ):
        ax.scatter(score, label, s=10, color=BLUE)
        ax.set(title=title, xlabel="score", ylabel="label and curve")
    axes[0].plot([0, 1], [0, 1], color=RED)
    axes[1].step(score, label, where="mid", color=RED, linewidth=0.7)
    return drawn


@figure
def bias() -> Figure:
    """Draw the bias of the usual ECE and of the default, l1, by rows."""
    drawn, axes = panels(2, height=2.7)
    uniform = truecal.Population(UniformScores(), PowerCurve(1.4))
    study = truecal.bias_study(
        {"overconfident": uniform, "calibrated": uniform.calibrated()},
        estimators=["ew_bin", "em_sweep", "em_debias", "multiscale"],
        sizes=[200, 800, 3200, 12800],
        repeats=150,
        rng=0,
        n_jobs=1,
    )
    colors = {"ew_bin": RED, "em_sweep": BLUE, "em_debias": GREEN, "multiscale": GOLD}
    for ax, name in zip(axes, ("calibrated", "overconfident"), strict=True):
        for estimator, color in colors.items():
            rows = [row for row in study.rows if (row["population"], row["estimator"]) == (name, estimator)]
            ax.semilogx(
                [row["n"] for row in rows],
                [100 * row["bias"] for row in rows],
                "o-",
                color=color,
                label=estimator,
            )
        ax.axhline(0, color=GREY, linestyle=":")
        ax.set_xticks([200, 800, 3200, 12800], ["200", "800", "3,200", "12,800"])
        ax.minorticks_off()
        ax.set(title=name, xlabel="rows")
    axes[0].set_ylabel("bias, percentage points (l2)")
    axes[0].legend()
    return drawn


@figure
def is_it_much() -> Figure:
    """Draw what miscalibration costs at each threshold."""
    drawn, (ax,) = panels()
    thresholds = np.linspace(0.1, 0.7, 61)
    for name, color in (("boosting", BLUE), ("balanced", RED)):
        y, p = flights(name)
        cost = 1000 * truecal.net_benefit(y, p, thresholds=thresholds).cost
        ax.plot(
            thresholds,
            cost,
            color=color,
            label=f"{name}: error {100 * truecal.calibration_error(y, p):.1f} points",
        )
    ax.set(xlabel="threshold at which you act", ylabel="cost per 1,000 cases")
    ax.legend()
    return drawn


@figure
def zero() -> Figure:
    """Draw estimates and intervals of small samples with a true error of 6 points."""
    drawn, (ax,) = panels()
    population = truecal.simulation.population_with_error(0.06, UniformScores())
    for seed in range(30):
        result = measured(*population.sample(300, rng=seed))
        ax.plot(
            [seed] * 2, [100 * result.interval.low, 100 * result.interval.high], color=BLUE, linewidth=1.5
        )
        ax.plot(seed, 100 * result.value, "o", color=RED, markersize=4)
    ax.axhline(6, color=GREY, linestyle="--")
    ax.set(xlabel="30 samples of 300 rows", ylabel="points; the truth is 6")
    ax.set_xticks([])
    return drawn


@figure
def glossary() -> Figure:
    """Draw a diagram with its parts named."""
    drawn, (ax,) = panels(height=3.2)
    curve(ax, *flights())
    arrow = {"arrowstyle": "->", "color": GREY}
    ax.annotate("diagonal: calibrated", (0.85, 0.85), (0.45, 0.93), arrowprops=arrow)
    ax.annotate("consistency band", (0.52, 0.57), (0.15, 0.75), arrowprops=arrow)
    ax.annotate("calibration curve (estimated)", (0.66, 0.51), (0.72, 0.3), arrowprops=arrow)
    ax.annotate("gap: score − frequency", (0.37, 0.32), (0.42, 0.12), arrowprops=arrow)
    return drawn


def main() -> None:
    """Draw the figures that are named, or all."""
    for name in sys.argv[1:] or FIGURES:
        with mpl.rc_context(STYLE):
            FIGURES[name]().savefig(HERE / f"{name}.svg", transparent=True, metadata={"Date": None})
            plt.close("all")
        print(f"{name}.svg", (HERE / f"{name}.svg").stat().st_size)


if __name__ == "__main__":
    main()
