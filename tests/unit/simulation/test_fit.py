"""Populations fitted to predictions: what they contain, and how they print."""

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

import truecal
from truecal.data import as_sample
from truecal.exceptions import CalibrationWarning
from truecal.simulation import fit_population


@pytest.fixture(scope="module")
def predictions():
    return truecal.paper.population("resnet152_imgnet").sample(2000, rng=0)


@pytest.fixture(scope="module")
def fit(predictions):
    return fit_population(*predictions)


def test_the_result_is_a_population(fit):
    assert isinstance(fit.population, truecal.Population)
    assert fit.scores == truecal.simulation.BetaScores(fit.beta.a, fit.beta.b)
    assert isinstance(fit.curve, truecal.simulation.GLMCurve)
    assert 0 < fit.population.true_error() < 0.3
    assert fit.converged


def test_only_one_of_equally_good_models_is_selected():
    fit = fit_population(np.arange(60) % 5 > 0, 0.2 + np.linspace(0, 0.6, 60) ** 1.1)
    assert sum(row["selected"] for row in fit.glm_table) == 1
    assert fit.selected["name"].endswith("_b0")


def test_row_order_does_not_matter(predictions, fit):
    y, p = predictions
    order = np.random.default_rng(1).permutation(len(y))
    assert fit_population(y[order], p[order]).to_dict() == fit.to_dict()


def test_weights_are_frequencies(predictions):
    y, p = predictions[0][:300], predictions[1][:300]
    weight = np.random.default_rng(2).integers(1, 4, 300)
    weighted = fit_population(y, p, sample_weight=weight)
    repeated = fit_population(np.repeat(y, weight), np.repeat(p, weight))
    assert weighted.n == repeated.n == weight.sum()
    assert (weighted.beta.a, weighted.beta.b) == pytest.approx((repeated.beta.a, repeated.beta.b), rel=1e-8)
    assert [row["aic"] for row in weighted.glm_table] == pytest.approx(
        [row["aic"] for row in repeated.glm_table]
    )
    assert weighted.goodness.ks_distance == pytest.approx(repeated.goodness.ks_distance)


def test_a_sample_stands_for_labels_and_scores(predictions, fit):
    sample = as_sample(*predictions)
    assert fit_population(sample).to_dict() == fit.to_dict()


def test_top_label_of_many_columns():
    rng = np.random.default_rng(3)
    p = rng.dirichlet([0.3] * 4, 500)
    y = rng.integers(0, 4, 500)
    fit = fit_population(y, p)
    assert fit.target == "top label of 4 classes"
    one = fit_population((p.argmax(axis=1) == y).astype(int), p.max(axis=1))
    assert fit.beta == one.beta


def test_classwise_is_refused_with_a_way_out():
    p = np.random.default_rng(3).dirichlet([1.0] * 3, 50)
    with pytest.raises(ValueError, match=r"classwise.*3 samples.*pos_label"):
        fit_population(np.arange(50) % 3, p, multiclass="classwise")
    fit_population(np.arange(50) % 3, p, pos_label=1)


def test_bad_parameters(predictions):
    with pytest.raises(ValueError, match=r"method must be one of 'mle', 'paper'. Got 'ml'"):
        fit_population(*predictions, method="ml")
    with pytest.raises(ValueError, match="n_resamples must be a whole number >= 2"):
        fit_population(*predictions, n_resamples=1)
    with pytest.raises(ValueError, match="y_proba is missing"):
        fit_population(predictions[0])


def test_scores_of_zero_and_one_are_left_out_of_the_curve_and_counted(predictions, fit):
    y, p = predictions
    more = fit_population(np.append(y, [1, 1, 0]), np.append(p, [1.0, 1.0, 0.0]))
    assert more.n == 2003
    assert more.n_excluded == fit.n_excluded + 3
    assert any("are exactly 0 and" in message for message in more.messages)
    for row, other in zip(fit.glm_table, more.glm_table, strict=True):
        assert row["aic"] == pytest.approx(other["aic"])


def test_rounded_scores_are_reported(predictions):
    y, p = predictions
    assert any("multiples of 1/100;" in message for message in fit_population(y, p.round(2)).messages)


def test_a_curve_that_leaves_the_unit_interval_is_reported_without_a_warning():
    score = np.linspace(0.04, 0.8, 20)
    y = [int(row < 2 * k) for k in range(1, 21) for row in range(40)]  # frequency 1.25 times the score
    fit = fit_population(y, np.repeat(score, 40))
    assert fit.selected["name"] == "log_log_b0_b1"
    assert any("leaves [0, 1]" in message for message in fit.messages)


# -- printing --------------------------------------------------------------------------------------------


# -- standard errors -------------------------------------------------------------------------------------


def test_standard_errors_are_reproducible_and_leave_the_fit_alone(predictions, fit):
    one = fit_population(*predictions, standard_errors=True, n_resamples=20, rng=5)
    two = fit_population(*predictions, standard_errors=True, n_resamples=20, rng=np.random.default_rng(5))
    assert one.to_dict() == two.to_dict()
    assert (one.beta.a, one.selected["b1"]) == (fit.beta.a, fit.selected["b1"])
    assert sum(row["selected_share"] for row in one.glm_table) == pytest.approx(1)
    for row in one.glm_table:
        for name in ("b0", "b1"):
            assert (row[name] is None) == (row[f"{name}_se"] is None)
    assert "chosen" in str(one)


def test_standard_errors_need_whole_number_weights(predictions):
    y, p = predictions
    with pytest.raises(ValueError, match=r"sample_weight must be whole numbers.* for the bootstrap"):
        fit_population(y, p, sample_weight=np.full(len(y), 0.5), standard_errors=True)


def test_standard_errors_agree_with_the_information(predictions):
    fit = fit_population(*predictions, standard_errors=True, n_resamples=100, rng=1)
    # The standard deviation of 100 values has a relative error of 7%.
    assert fit.beta_se == pytest.approx(fit.beta.information_se, rel=0.3)
    constant = next(row for row in fit.glm_table if row["name"] == "logit_logit_b0")
    rate = 1 / (1 + np.exp(-constant["b0"]))
    assert constant["b0_se"] == pytest.approx(1 / np.sqrt(2000 * rate * (1 - rate)), rel=0.3)


# -- degenerate data -------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [[1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0.0]])
def test_scores_that_are_all_atoms(p):
    with pytest.raises(ValueError, match=f"All {len(p)} are exactly 0 or 1.*AtomScores"):
        fit_population(np.ones(len(p), dtype=int), p)


@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([1], [0.7]),
        ([0], [0.7]),
        ([1, 0, 1], [0.7, 0.7, 0.7]),
    ],
)
@pytest.mark.parametrize("standard_errors", [False, True])
def test_a_degenerate_fit_is_reported(y, p, standard_errors):
    with pytest.warns(CalibrationWarning, match="Beta: "):
        fit = fit_population(y, p, standard_errors=standard_errors, n_resamples=5, rng=0)
    assert not fit.converged
    assert "Beta: all scores equal 0.7" in str(fit)
    json.dumps(fit.to_dict(), allow_nan=False)


def test_one_inner_score_beside_atoms():
    fit = fit_population([1, 1, 0, 1, 0], [0.7, 0.7, 0.7, 1.0, 0.0])
    assert fit.n_excluded == 2
    assert fit.curve(0.7) == pytest.approx(2 / 3)


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_only(label):
    p = np.random.default_rng(0).random(50)
    fit = fit_population(np.full(50, label), p)
    assert fit.curve(0.3) == label
    assert fit.selected["boundary"]
    assert any("boundary" in message for message in fit.messages)
    assert np.isnan(fit.goodness.pvalue)


def test_separated_labels_warn():
    p = np.linspace(0.01, 0.99, 40)
    with pytest.warns(CalibrationWarning, match="separates the labels"):
        fit = fit_population((p > 0.6).astype(int), p)
    assert fit.beta.converged
    assert not fit.converged


# -- the paper's recipe ----------------------------------------------------------------------------------


def test_the_recipe_changes_the_scores_only(predictions, fit):
    paper = fit_population(*predictions, method="paper")
    assert paper.method == "paper"
    assert paper.glm_table == fit.glm_table
    assert paper.beta != fit.beta
    assert (paper.beta.a, paper.beta.b) == pytest.approx((fit.beta.a, fit.beta.b), rel=0.02)


def test_the_recipe_refuses_scores_of_zero(predictions):
    y, p = predictions
    with pytest.raises(ValueError, match="Use method='mle'"):
        fit_population(np.append(y, 0), np.append(p, 0.0), method="paper")


def test_nothing_warns_on_usual_data(predictions):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_population(predictions[0], predictions[1].astype(np.float32), standard_errors=True, n_resamples=3)


def test_the_table_has_twelve_rows_smallest_aic_first(fit):
    assert len(fit.glm_table) == 12
    aics = [row["aic"] for row in fit.glm_table]
    assert aics == sorted(aics)
    assert [row["selected"] for row in fit.glm_table] == [True] + [False] * 11
    row = fit.selected
    assert (fit.curve.link, fit.curve.transform) == (row["link"], row["transform"])
    assert (fit.curve.b0, fit.curve.b1) == (row["b0"], row["b1"])
    assert fit.beta_se is None
    assert "b0_se" not in row


def test_it_prints_the_papers_table(fit):
    lines = str(fit).splitlines()
    assert lines[0].startswith("Scores: Beta, a = 1.")
    assert lines[3].split() == ["glm_name", "AIC", "b0", "b1"]
    assert lines[4].split()[0] == fit.selected["name"]
    assert [line.split()[0] for line in lines[4:16]] == [row["name"] for row in fit.glm_table]
    assert sum("*" in line for line in lines) == 1


def test_it_is_plain_data(predictions):
    fit = fit_population(*predictions, standard_errors=True, n_resamples=3, rng=0)
    data = json.loads(json.dumps(fit.to_dict(), allow_nan=False))
    assert data["beta"]["a"] == fit.beta.a
    assert data["beta_se"][0] == fit.beta_se[0]
    assert data["converged"] is True
    assert data["goodness"]["ks_distance"] == fit.goodness.ks_distance
    assert len(data["glm_table"]) == 12


def test_small_p_values_print_as_everywhere(fit):
    poor = replace(fit, goodness=replace(fit.goodness, pvalue=1e-7))
    assert "df, p < 0.001\n" in str(poor)
    untested = replace(fit, goodness=replace(fit.goodness, degrees_of_freedom=0, pvalue=math.nan))
    assert "0 df, p = n/a\n" in str(untested)
