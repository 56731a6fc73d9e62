"""What each display draws is what it was given."""

import itertools
import math

import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure

import truecal
from truecal import datasets
from truecal.data import as_sample
from truecal.display import (
    BiasDisplay,
    BinCountDisplay,
    ComparisonDisplay,
    CurveDisplay,
    MissRateDisplay,
    ReliabilityDisplay,
    ScoreDisplay,
)
from truecal.display._style import BLUE
from truecal.display.curve import formula
from truecal.plotdata.reliability import reliability_curve
from truecal.simulation.study import Study


@pytest.fixture(scope="module")
def predictions():
    return truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2)).sample(
        500, rng=0
    )


def labelled(ax, start):
    """The line whose label begins like this."""
    (found,) = [line for line in ax.lines if str(line.get_label()).startswith(start)]
    return found


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# --- ReliabilityDisplay ----------------------------------------------------------------------------


def test_reliability_draws_the_isotonic_curve_and_its_band(predictions, ax):
    display = ReliabilityDisplay.from_predictions(*predictions, n_resamples=50, rng=0).plot(ax)
    sample = as_sample(*predictions)
    curve = reliability_curve(sample, n_resamples=50, rng=0)
    line = labelled(ax, "isotonic")
    np.testing.assert_array_equal(line.get_xdata(), curve.score)
    np.testing.assert_array_equal(line.get_ydata(), curve.label)
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == curve.lower.min()
    assert band[:, 1].max() == curve.upper.max()
    assert "95% consistency band, if calibrated" in legend_texts(ax)
    assert display.histogram_ax_.get_xlabel() == "score"


@pytest.mark.parametrize("kind", ["bins", "sweep"])
def test_reliability_draws_bins(predictions, ax, kind):
    display = ReliabilityDisplay.from_predictions(*predictions, kind=kind, n_bins=4, n_resamples=20, rng=0)
    display.plot(ax, color="black")
    estimate = truecal.estimate(*predictions, estimator="em_sweep" if kind == "sweep" else "em_bin", **(
        {} if kind == "sweep" else {"n_bins": 4}
    ))  # fmt: skip
    line = labelled(ax, f"{estimate.n_bins} bins")
    np.testing.assert_allclose(line.get_xdata(), estimate.bins.mean_score)
    np.testing.assert_allclose(line.get_ydata(), estimate.bins.mean_label)
    assert same_color(line.get_color(), "black")


def test_reliability_bars_hold_all_rows(ax):
    y, p = truecal.paper.population("resnet110_c10").sample(2000, rng=0)
    for scale in ("linear", "complement", "logit"):
        display = ReliabilityDisplay.from_predictions(y, p, scale=scale, n_resamples=5, rng=0)
        display.plot(Figure().subplots())
        (bars,) = display.histogram_ax_.patches
        assert bars.get_data().values.sum() == pytest.approx(2000)


def test_reliability_writes_the_estimate(predictions, ax):
    value = truecal.calibration_error(*predictions, estimator="em_debias")
    ReliabilityDisplay.from_predictions(*predictions, estimator="em_debias", n_resamples=5).plot(ax)
    assert f"em_debias {value:.4f}" in legend_texts(ax)


def test_reliability_without_histogram_legend_and_band(predictions, ax):
    display = ReliabilityDisplay.from_predictions(*predictions, band=False)
    display.plot(ax, histogram=False, legend=False, name="mine", linewidth=7)
    assert display.histogram_ax_ is None
    assert ax.get_legend() is None
    assert ax.get_xlabel() == "score"
    assert not ax.collections
    assert ax.get_title(loc="left") == "mine, n = 500"
    assert labelled(ax, "mine").get_linewidth() == 7


def test_reliability_from_a_sample_and_from_predictions_agree(predictions):
    sample = as_sample(*predictions)
    one = ReliabilityDisplay.from_predictions(sample, n_resamples=10, rng=3)
    other = ReliabilityDisplay.from_predictions(*predictions, n_resamples=10, rng=3)
    np.testing.assert_array_equal(one.curve.lower, other.curve.lower)


def test_reliability_from_a_classifier(ax):
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = np.where(x[:, 0] + rng.normal(size=300) > 0, "yes", "no")
    model = linear_model.LogisticRegression().fit(x[:100], y[:100])
    display = ReliabilityDisplay.from_estimator(model, x[100:], y[100:], n_resamples=10, rng=0).plot(ax)
    assert display.curve.target == "P(y = 'yes')"
    assert display.curve.n == 200
    with pytest.raises(ValueError, match="classifier with predict_proba"):
        ReliabilityDisplay.from_estimator(linear_model.LinearRegression(), x, y)


def test_reliability_of_several_classes_from_a_classifier(ax):
    naive_bayes = pytest.importorskip("sklearn.naive_bayes")
    from sklearn.datasets import load_iris

    x, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = naive_bayes.GaussianNB().fit(x[::2], names[::2])
    display = ReliabilityDisplay.from_estimator(model, x[1::2], names[1::2], n_resamples=10, rng=0).plot(ax)
    assert display.curve.target == "top label of 3 classes"
    one = ReliabilityDisplay.from_estimator(
        model, x[1::2], names[1::2], pos_label="virginica", n_resamples=10, rng=0
    )
    assert one.curve.target == "P(y = 'virginica') against the rest"


@pytest.mark.parametrize(
    ("y", "p"),
    [([1], [0.7]), ([1, 0], [0.5, 0.5]), ([1, 1, 0], [1.0, 1.0, 0.0]), ([0] * 9, [0.2] * 9)],
    ids=["one row", "one score", "only 0 and 1", "one label"],
)
@pytest.mark.parametrize("kind", ["isotonic", "bins", "sweep"])
@pytest.mark.parametrize("scale", ["linear", "logit", "complement"])
def test_reliability_of_very_little(y, p, kind, scale):
    ax = Figure(layout="constrained").subplots()
    ReliabilityDisplay.from_predictions(y, p, kind=kind, scale=scale, n_resamples=5, rng=0).plot(ax)
    ax.figure.draw_without_rendering()


def test_reliability_refuses_what_it_does_not_know(predictions):
    with pytest.raises(ValueError, match=r"kind must be one of .* Did you mean 'bins'"):
        ReliabilityDisplay.from_predictions(*predictions, kind="bin")
    with pytest.raises(ValueError, match="scale must be one of"):
        ReliabilityDisplay.from_predictions(*predictions, scale="log")
    with pytest.raises(ValueError, match="Got 'bars' instead"):
        ReliabilityDisplay(reliability_curve(as_sample(*predictions), band=False), kind="bars")


def test_several_models_on_one_axes_differ_in_colour_and_name(predictions):
    ax = Figure(layout="constrained").subplots()
    y, p = predictions
    for k, name in enumerate(("one", "two", "three")):
        display = ReliabilityDisplay.from_predictions(y, p ** (1 + k), n_resamples=9, rng=0, name=name, ax=ax)
    curves = [labelled(ax, name) for name in ("one", "two", "three")]
    assert len({line.get_color() for line in curves}) == 3
    assert legend_texts(display.histogram_ax_) == ["one", "two", "three"]
    assert ax.get_legend() is None
    assert len(ax.figure.axes) == 2  # one histogram for all
    assert ax.get_title(loc="left") == ""
    assert not ax.collections  # a band would be that of one model


def test_long_names_of_several_models_fit_the_figure(predictions):
    y, p = predictions
    figure = Figure(figsize=(3.3, 4.5), layout="constrained")
    ax = figure.subplots()
    names = ("a name of many words " * 4, "one_word_" * 12, "short")
    for k, name in enumerate(names):
        display = ReliabilityDisplay.from_predictions(y, p ** (1 + k), n_resamples=9, rng=0, name=name, ax=ax)
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert -0.02 <= box.x0 < box.x1 <= 3.32
    assert box.y0 >= -0.02
    entries = [text.get_window_extent() for text in display.histogram_ax_.get_legend().get_texts()]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(entries, 2))
    assert ax.get_position().width > 0.55


@pytest.mark.parametrize("which", ["pointwise", "simultaneous"])
@pytest.mark.parametrize("kind", ["isotonic", "bins"])
def test_a_confidence_band_is_told_from_the_consistency_band(predictions, ax, kind, which):
    display = ReliabilityDisplay.from_predictions(
        *predictions, kind=kind, confidence=which, n_resamples=9, rng=0, ax=ax
    )
    what = "band" if kind == "isotonic" else "intervals"
    label = f"95% confidence {what}, {which}"
    (drawn,) = [part for part in ax.collections if part.get_label() == label]
    edges = np.concatenate([path.vertices for path in drawn.get_paths()])
    for limit in (display.confidence.lower, display.confidence.upper):
        assert all(np.isclose(edges[:, 1], value).any() for value in limit)
    assert {label, "95% consistency band, if calibrated"} < set(legend_texts(ax))


def test_reliability_from_cross_validation(ax):
    model_selection = pytest.importorskip("sklearn.model_selection")
    naive_bayes = pytest.importorskip("sklearn.naive_bayes")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = np.where(x[:, 0] + rng.normal(size=300) > 0, "yes", "no")
    folds = model_selection.StratifiedKFold(3)
    options = {"return_estimator": True, "return_indices": True}
    results = model_selection.cross_validate(naive_bayes.GaussianNB(), x, y, cv=folds, **options)
    display = ReliabilityDisplay.from_cv_results(results, x, y, n_resamples=9, rng=0, name="NB", ax=ax)
    proba = model_selection.cross_val_predict(
        naive_bayes.GaussianNB(), x, y, cv=folds, method="predict_proba"
    )
    expected = ReliabilityDisplay.from_predictions(y == "yes", proba[:, 1], n_resamples=9, rng=0)
    np.testing.assert_array_equal(display.curve.label, expected.curve.label)
    assert display.curve.target == "P(y = 'yes')"
    assert ax.get_title(loc="left") == "NB, n = 300"
    with pytest.raises(ValueError, match=r"cv_results lacks indices\. Pass return_estimator=True and"):
        ReliabilityDisplay.from_cv_results({"estimator": results["estimator"]}, x, y)
    repeated = model_selection.RepeatedStratifiedKFold(n_splits=2, n_repeats=2)
    results = model_selection.cross_validate(naive_bayes.GaussianNB(), x, y, cv=repeated, **options)
    with pytest.raises(ValueError, match="holds out rows several times"):
        ReliabilityDisplay.from_cv_results(results, x, y)


# --- BiasDisplay -----------------------------------------------------------------------------------


def rows_of(*names, sizes=(100, 400), **more):
    return [
        {"population": "p", "n": n, "estimator": name, "norm": 2, "bias": 1 / n + k, "bias_se": 0.1 / n,
         "sd": 3 / n, "rmse": 4 / n, "median_bias": 2 / n, **more}
        for k, name in enumerate(names)
        for n in sizes
    ]  # fmt: skip


def test_bias_lines_and_bars_are_those_of_the_rows(ax):
    BiasDisplay(rows_of("ew_bin", "em_bin")).plot(ax)
    first, second = ax.containers
    np.testing.assert_allclose(first.lines[0].get_ydata(), [0.01, 0.0025])
    np.testing.assert_allclose(second.lines[0].get_ydata(), [1.01, 1.0025])
    (bar, _) = first.lines[2][0].get_segments()
    np.testing.assert_allclose(bar[:, 1], [0.01 - 0.002, 0.01 + 0.002])
    assert first.lines[0].get_linestyle() == "--"
    assert second.lines[0].get_linestyle() == "-"
    assert legend_texts(ax) == ["ew_bin", "em_bin"]
    assert ax.get_legend().get_title().get_text() == "bars: ±2 Monte Carlo s.e."


@pytest.mark.parametrize(("quantity", "value"), [("sd", 0.03), ("rmse", 0.04), ("median_bias", 0.02)])
def test_bias_display_of_something_else(ax, quantity, value):
    BiasDisplay(rows_of("em_bin")).plot(ax, quantity=quantity)
    assert ax.containers[0].lines[0].get_ydata()[0] == pytest.approx(value)
    assert ax.get_ylabel().startswith(quantity.replace("_", " "))


def test_bias_panels_show_all_of_their_lines():
    rows = [*rows_of("em_bin", sd=0.1), *rows_of("em_bin", population="q", sd=0.9)]
    display = BiasDisplay(rows).plot(Figure(figsize=(6, 3)).subplots(), quantity="sd")
    assert [one.get_title(loc="left") for one in display.axes_] == ["p", "q"]
    low, high = display.axes_[0].get_ylim()
    assert low == 0
    assert high > 0.9


def test_bias_of_some_estimators_in_their_order(ax):
    study = Study(rows_of("ew_bin", "em_bin", "kde"))
    display = BiasDisplay.from_study(study, estimators=["kde", "ew_bin"], populations=["p"])
    assert [row["estimator"] for row in display.rows] == ["kde", "kde", "ew_bin", "ew_bin"]
    with pytest.raises(ValueError, match="estimator must be one of"):
        BiasDisplay.from_study(study, estimators=["skce"])


def test_bias_leaves_out_estimators_without_a_truth(ax):
    BiasDisplay([*rows_of("em_bin"), *rows_of("skce", bias=None)]).plot(ax)
    assert legend_texts(ax) == ["em_bin"]
    with pytest.raises(ValueError, match="No row has a bias"):
        BiasDisplay(rows_of("skce", bias=None)).plot(ax)
    with pytest.raises(ValueError, match="quantity must be one of"):
        BiasDisplay(rows_of("em_bin")).plot(ax, quantity="mean")


# --- BinCountDisplay -------------------------------------------------------------------------------


def test_bin_count_marks_the_sweep_and_the_truth(predictions, ax):
    BinCountDisplay.from_predictions(*predictions, n_bins=[1, 2, 4, 8], true_error=0.18).plot(ax, name="x")
    sweep = truecal.estimate(*predictions, estimator="em_sweep")
    np.testing.assert_array_equal(labelled(ax, "em_bin").get_xdata(), [1, 2, 4, 8])
    for b, value in zip(*labelled(ax, "em_bin").get_data(), strict=True):
        assert value == truecal.calibration_error(*predictions, estimator="em_bin", n_bins=int(b))
    dot = labelled(ax, "em_sweep")
    assert (dot.get_xdata()[0], dot.get_ydata()[0]) == (sweep.n_bins, sweep.value)
    assert labelled(ax, "true error").get_ydata()[0] == 0.18
    assert ax.get_title(loc="left") == "x, n = 500"
    assert ax.get_ylim()[0] == 0


def test_bin_count_of_a_study_without_a_sweep(ax):
    choices = [{"estimator": "ew_bin", "n_bins": b} for b in (2, 8)]
    square = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    study = truecal.bias_study({"square": square}, estimators=choices, sizes=[100], repeats=9, rng=0)
    BinCountDisplay.from_study(study, binning="ew").plot(ax)
    assert legend_texts(ax) == ["ew_bin", "true error"]
    assert ax.get_ylabel() == "mean error, l2 (%)"
    assert len(ax.collections) == 1


# --- ScoreDisplay ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["linear", "complement", "logit"])
def test_score_bars_and_fit_have_area_one(ax, scale):
    y, p = truecal.paper.population("resnet110_c10").sample(3000, rng=0)
    display = ScoreDisplay.from_predictions(y, p, scale=scale).plot(ax)
    for stairs in ax.patches:
        heights, _, _ = stairs.get_data()
        width = display.histogram.width
        if scale == "complement":
            width = np.append(width, 1)
        elif scale == "logit":
            width = np.concatenate([[1], width, [1]])
        assert np.sum(heights * width) == pytest.approx(1)
    assert any(text.startswith("exactly 1: ") for text in legend_texts(ax))
    assert legend_texts(ax)[1].startswith("Beta(2.")


def test_score_display_of_a_fit_of_a_distribution_and_of_none(predictions, ax):
    fit = truecal.fit_population(*predictions)
    assert (
        ScoreDisplay.from_predictions(*predictions, fit=fit).name
        == f"Beta({fit.beta.a:.3g}, {fit.beta.b:.3g})"
    )
    assert (
        ScoreDisplay.from_predictions(*predictions, fit=truecal.simulation.UniformScores()).name == "uniform"
    )
    ScoreDisplay.from_predictions(*predictions, fit=None).plot(ax, color="red")
    assert legend_texts(ax) == ["scores"]
    with pytest.raises(ValueError, match="fit must be 'beta'"):
        ScoreDisplay.from_predictions(*predictions, fit="gamma")


# --- CurveDisplay ----------------------------------------------------------------------------------


def test_curve_is_bold_where_the_scores_are(ax):
    population = truecal.Population(
        truecal.simulation.UniformScores(0.2, 0.6), truecal.simulation.PowerCurve(2)
    )
    CurveDisplay.from_population(population).plot(ax)
    bold = labelled(ax, "p = c^2")
    drawn = bold.get_xdata()[~np.isnan(bold.get_xdata())]
    assert 0.2 <= drawn.min() < 0.22
    assert 0.58 < drawn.max() <= 0.6
    np.testing.assert_allclose(bold.get_ydata(), np.nan_to_num(bold.get_ydata()))
    assert legend_texts(ax)[-1] == f"true error {100 * population.true_error():.2f}%"


@pytest.mark.parametrize("scale", ["linear", "complement", "logit"])
def test_curve_with_the_bins_of_the_data(scale):
    data = datasets.load("digits")
    ax = Figure(layout="constrained").subplots()
    display = CurveDisplay.from_predictions(data.y_true, data.y_proba, labels=data.labels, n_bins=8)
    display.plot(ax, scale=scale)
    dots = ax.containers[0].lines[0]
    np.testing.assert_array_equal(dots.get_xdata(), display.bins.mean_score)
    assert f"data, {len(display.bins)} bins" in legend_texts(ax)
    assert any(text.startswith("error of the fit") for text in legend_texts(ax))
    ax.figure.draw_without_rendering()


@pytest.mark.parametrize(
    ("curve", "text"),
    [
        (
            truecal.simulation.GLMCurve("logflip", "logflip", b0=-0.24, b1=0.3),
            "log(1 − p) = −0.24 + 0.3 log(1 − c)",
        ),
        (truecal.simulation.GLMCurve("log", "log", b1=1.27), "log p = 1.27 log c"),
        (truecal.simulation.GLMCurve("logit", "logit", b0=2), "logit p = 2"),
        (truecal.simulation.GLMCurve("logit", "logflip", b0=1, b1=-0.5), "logit p = 1 − 0.5 log(1 − c)"),
        (truecal.simulation.LogisticCurve(10, -5), "logit p = 10 c − 5"),
        (truecal.simulation.IdentityCurve(), "p = c"),
        (truecal.simulation.FunctionCurve(np.sqrt), ""),
    ],
)
def test_formulas(curve, text):
    assert formula(curve) == text.replace("−", "\N{MINUS SIGN}")


# --- MissRateDisplay -------------------------------------------------------------------------------


def test_miss_rates_by_size_and_by_error():
    rows = [
        {
            "n": n,
            "estimator": "em_sweep",
            "true_error": error,
            "miss_rate": 0.01 if n > 100 else 0.9,
            "se": 0.02,
        }
        for n in (400, 100)
        for error in (0.05, 0.1, 0.05000000001)
    ]
    display = MissRateDisplay(rows)
    display.plot(Figure(figsize=(6, 3)).subplots())
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["true error 5%", "true error 10%"]
    line, _, (bars,) = display.axes_[1].containers[0].lines
    np.testing.assert_array_equal(line.get_xdata(), [100, 400])
    assert bars.get_segments()[1][:, 1] == pytest.approx([0, 0.05])  # never below 0
    display.plot(Figure(figsize=(6, 3)).subplots(), x="true_error")
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["n = 100", "n = 400"]
    with pytest.raises(ValueError, match="x must be one of"):
        display.plot(x="estimator")


def test_miss_rates_of_the_detection_module(ax):
    from truecal.simulation.power import miss_rates

    result = miss_rates([0.1], [50, 100], methods=["em_sweep"], repeats=20, rng=0)
    display = MissRateDisplay.from_miss_rates(result).plot(ax)
    np.testing.assert_allclose(
        ax.containers[0].lines[0].get_ydata(), [row.miss_rate for row in result.rows], rtol=0, atol=1e-12
    )
    assert display.ax_.get_ylabel() == "miss rate (%)"


# --- ComparisonDisplay -----------------------------------------------------------------------------


def test_comparison_of_given_rows(ax):
    rows = [
        {"name": "a", "estimator": "em_bin", "value": 0.1, "low": 0.05, "high": 0.2},
        {"name": "b", "estimator": "em_bin", "value": 0.3},
    ]
    display = ComparisonDisplay(rows).plot(ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b"]
    whisker, first, second = ax.lines
    assert list(whisker.get_xdata()) == [0.05, 0.2]
    assert (first.get_xdata()[0], second.get_xdata()[0]) == (0.1, 0.3)
    assert same_color(whisker.get_color(), "#747474")
    with pytest.raises(ValueError, match="no reliability curves"):
        display.plot(kind="curves")
    with pytest.raises(ValueError, match="kind must be one of"):
        display.plot(kind="both")


def test_comparison_of_groups_says_how_many_rows_each_has(ax):
    data = datasets.load("flights")
    origin = data.groups["origin"]
    display = ComparisonDisplay.from_groups(
        data.y_true,
        data.y_proba,
        origin,
        confidence_level=None,
        estimators=["em_sweep"],
        n_resamples=5,
        rng=0,
    )
    for row in display.rows:
        chosen = origin == row["name"]
        expected = truecal.calibration_error(data.y_true[chosen], data.y_proba[chosen], estimator="em_sweep")
        assert row["value"] == expected
        assert row["n"] == chosen.sum()
    display.plot(ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["EWR (3,532)", "JFK (3,251)", "LGA (3,217)"]
    assert ax.get_legend().get_title().get_text() == ""


def test_comparison_refuses_groups_of_another_length(predictions):
    with pytest.raises(ValueError, match=r"by has 2 values .* for 500 rows"):
        ComparisonDisplay.from_groups(*predictions, ["a", "b"])


def test_comparison_curves(displays):
    display = displays["comparison"]
    display.plot(Figure(figsize=(6, 3), layout="constrained").subplots(), kind="curves", color=BLUE)
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["boosting", "balanced", "naive_bayes"]
    for ax, curve in zip(display.axes_, display.curves.values(), strict=True):
        np.testing.assert_array_equal(labelled(ax, "isotonic").get_ydata(), curve.label)
    assert not math.isnan(display.rows[0]["low"])


def test_comparison_overlays_all_curves():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    samples = {str(k): as_sample(rng.random(200) < p, p) for k in range(3)}
    display = ComparisonDisplay.from_predictions(None, samples, n_resamples=9, rng=0)
    display.plot(Figure(layout="constrained").subplots(), kind="overlay")
    assert len(display.axes_) == 1
    assert legend_texts(display.ax_) == ["0", "1", "2"]


def test_group_names_never_collide():
    display = ComparisonDisplay.from_groups([0, 1, 1], [0.2, 0.6, 0.7], [1, "1", None], n_resamples=9, rng=0)
    assert list(display.curves) == ["1", "'1'", "(missing)"]
