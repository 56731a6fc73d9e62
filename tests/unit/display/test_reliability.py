import itertools

import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure

import truecal
from support.artists import labelled, legend_texts
from truecal.data import as_sample
from truecal.display import ReliabilityDisplay
from truecal.inference.reliability import reliability_curve


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
    assert "95% consistency band, if calibrated" in legend_texts(display.histogram_ax_)
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
    display = ReliabilityDisplay.from_predictions(*predictions, estimator="em_debias", n_resamples=5, ax=ax)
    assert f"em_debias {value:.4f}" in legend_texts(display.histogram_ax_)


def test_reliability_without_histogram_legend_and_band(predictions, ax):
    display = ReliabilityDisplay.from_predictions(*predictions, band=False)
    display.plot(ax, histogram=False, legend=False, name="mine", linewidth=7)
    assert display.histogram_ax_ is None
    assert ax.get_legend() is None
    assert ax.get_xlabel() == "score"
    assert not ax.collections
    assert ax.get_title(loc="left") == "mine, n = 500"
    assert labelled(ax, "mine").get_linewidth() == 7


def test_reliability_takes_short_names_of_properties(predictions, ax):
    ReliabilityDisplay.from_predictions(*predictions, band=False, ax=ax, name="mine", lw=3, ls="--")
    line = labelled(ax, "mine")
    assert (line.get_linewidth(), line.get_linestyle()) == (3, "--")


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
    with pytest.raises(ValueError, match="confidence must be one of 'pointwise', 'simultaneous'"):
        ReliabilityDisplay.from_predictions(*predictions, confidence="honest")
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
def test_a_confidence_band_differs_from_the_consistency_band(predictions, ax, kind, which):
    display = ReliabilityDisplay.from_predictions(
        *predictions, kind=kind, confidence=which, n_resamples=9, rng=0, ax=ax
    )
    what = "band" if kind == "isotonic" else "intervals"
    label = f"95% confidence {what}, {which}"
    (drawn,) = [part for part in ax.collections if part.get_label() == label]
    edges = np.concatenate([path.vertices for path in drawn.get_paths()])
    for limit in (display.confidence.lower, display.confidence.upper):
        assert all(np.isclose(edges[:, 1], value).any() for value in limit)
    assert {label, "95% consistency band, if calibrated"} < set(legend_texts(display.histogram_ax_))


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


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_shared_histogram_is_logarithmic_if_one_model_needs_it(ax, order):
    rng = np.random.default_rng(0)
    scores = [np.concatenate([np.full(900, 0.005), rng.random(100)]), rng.random(1000)]
    for k in order:
        label = (rng.random(1000) < scores[k]).astype(int)
        display = ReliabilityDisplay.from_predictions(label, scores[k], band=False, name=str(k), ax=ax)
    assert display.histogram_ax_.get_yscale() == "log"
    low, high = display.histogram_ax_.get_ylim()
    assert 0 < low < 1 < 900 < high < 4000


@pytest.mark.parametrize(("multiclass", "n_panels"), [("classwise", 10), ("top_by_class", 10)])
def test_classes_are_panels(multiclass, n_panels):
    data = truecal.datasets.load("digits")
    display = ReliabilityDisplay.from_predictions(
        data.y_true, data.y_proba, labels=data.labels, multiclass=multiclass, n_resamples=9, rng=0
    )
    assert len(display.axes_) == len(display.classes) == n_panels
    assert "zero" in display.axes_[0].get_title(loc="left")
    assert len({axes.get_xlim() for axes in display.axes_}) == 1


def test_labels_are_panels_and_low_scores_end_the_axes():
    rng = np.random.default_rng(0)
    proba = 0.3 * rng.random((2000, 2))
    truth = (rng.random((2000, 2)) < proba).astype(int)
    display = ReliabilityDisplay.from_predictions(truth, proba, multiclass="multilabel", n_resamples=9, rng=0)
    assert [axes.get_xlim()[1] for axes in display.axes_] == [0.4, 0.4]
    display = ReliabilityDisplay.from_predictions(truth[:, 0], proba[:, 0], n_resamples=9, rng=0)
    assert display.ax_.get_ylim() == (0, 0.4)
    high = np.linspace(0, 1, 2000)
    display = ReliabilityDisplay.from_predictions(truth[:, 0], high, n_resamples=9, ax=display.ax_, rng=0)
    assert display.ax_.get_xlim() == (0, 1)


def test_weighted_data_have_their_band():
    rng = np.random.default_rng(0)
    proba, weight = rng.random(400), rng.lognormal(0, 1, 400)
    truth = (rng.random(400) < proba).astype(int)
    display = ReliabilityDisplay.from_predictions(
        truth, proba, sample_weight=weight, confidence="simultaneous", n_resamples=9, rng=0
    )
    assert "effective n" in display.ax_.get_title(loc="left")
    assert len(display.ax_.collections) == 2


def test_too_many_classes_are_refused():
    proba = np.random.default_rng(0).dirichlet(np.ones(40), 60)
    with pytest.raises(truecal.InputError, match="at most 30"):
        ReliabilityDisplay.from_predictions(np.arange(60) % 40, proba, multiclass="classwise")


def test_histograms_of_several_models_are_outlines_in_their_colours(predictions):
    y, p = predictions
    ax = Figure(figsize=(4, 5), layout="constrained").subplots()
    for number, score in enumerate((p, p**2, p**0.5), 1):
        display = ReliabilityDisplay.from_predictions(y, score, ax=ax, band=False, name=str(number))
        bars, lines = display.histogram_ax_.patches, [line for line in ax.lines if line.get_gid()]
        assert [patch.get_fill() for patch in bars] == ([True] if number == 1 else [False] * number)
    for patch, line in zip(bars, lines, strict=True):
        assert same_color(patch.get_edgecolor()[:3], line.get_color())
