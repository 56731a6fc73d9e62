"""What a fit contains, how it prints, and how it is written as plain data."""

import json

import pytest

import truecal
from truecal.simulation import fit_population


@pytest.fixture(scope="module")
def predictions():
    return truecal.paper.population("resnet152_imgnet").sample(2000, rng=0)


@pytest.fixture(scope="module")
def fit(predictions):
    return fit_population(*predictions)


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
