"""Fits to the real predictions behind four of the paper's data sets, against its printed tables.

Printed numbers: Roelofs, Cain, Shlens, Mozer (AISTATS 2022), Appendix A, Tables 2 and 3. Scores: test-split
top-label outputs of the same networks, float32 (hollance/reliability-diagrams, from markus93/NN_calibration).

The paper's own scores were rounded more coarsely near 1 (exp(x - logsumexp(x)) in float32), its coefficients
are means over bootstrap resamples, and its AICs are of different resamples for each model. So coefficients
agree for models that give little weight to the scores next to 1, and AICs cannot.
"""

import numpy as np
import pytest

from truecal.data import as_sample
from truecal.simulation import fit_population
from truecal.simulation._likelihood import fit_beta_as_paper

BETA_PRINTED = {
    "resnet110_c10": (2.7752, 0.0478),
    "densenet40_c10": (1.9824, 0.0397),
    "resnet110_c100": (1.1823, 0.1081),
    "densenet40_c100": (1.0805, 0.0808),
}

GLM_PRINTED = {
    "resnet110_c10": {
        "logflip_logflip_b0_b1": (-0.24, 0.30),
        "logit_logflip_b0_b1": (-0.55, -0.38),
        "logit_logflip_b1": (None, -0.31),
        "logit_logit_b0_b1": (-0.38, 0.36),
        "logit_logit_b1": (None, 0.30),
        "logflip_logflip_b1": (None, 0.34),
    },
    "densenet40_c10": {
        "logit_logflip_b1": (None, -0.26),
        "logit_logit_b0_b1": (-0.40, 0.31),
        "logit_logflip_b0_b1": (-0.38, -0.31),
        "logflip_logflip_b0_b1": (-0.31, 0.24),
        "logit_logit_b1": (None, 0.25),
        "logflip_logflip_b1": (None, 0.31),
    },
    "resnet110_c100": {
        "logflip_logflip_b0_b1": (-0.11, 0.28),
        "logit_logit_b0_b1": (-0.88, 0.39),
        "logflip_logflip_b1": (None, 0.31),
        "logit_logflip_b0_b1": (-1.01, -0.40),
        "logit_logit_b1": (None, 0.25),
        "logit_logflip_b1": (None, -0.23),
    },
    "densenet40_c100": {
        "logit_logit_b0_b1": (-0.97, 0.34),
        "logflip_logflip_b0_b1": (-0.12, 0.22),
        "logit_logflip_b0_b1": (-1.08, -0.35),
        "logflip_logflip_b1": (None, 0.25),
        "logit_logit_b1": (None, 0.19),
        "logit_logflip_b1": (None, -0.18),
    },
}


@pytest.fixture(scope="module", params=list(BETA_PRINTED))
def real(request, shared):
    with np.load(shared / "data" / f"hollance_markus93_{request.param}.npz", allow_pickle=False) as data:
        return request.param, data["pred"] == data["labels"], data["confidence"]


def test_coefficients_are_the_printed_ones(real):
    name, y, p = real
    fit = fit_population(y, p)
    assert fit.converged
    assert fit.n_excluded == (p == 1).sum()
    rows = {row["name"]: row for row in fit.glm_table}
    for model, (b0, b1) in GLM_PRINTED[name].items():
        assert rows[model]["b1"] == pytest.approx(b1, abs=0.03), model
        assert (
            rows[model]["b0"] is None if b0 is None else rows[model]["b0"] == pytest.approx(b0, abs=0.07)
        ), model


def test_the_best_models_of_the_sharpest_two_tables_are_the_printed_ones(real):
    name, y, p = real
    if name.endswith("c100"):  # on CIFAR-10 less than the noise of the printed AICs separates the first ones
        best = next(iter(GLM_PRINTED[name]))
        assert fit_population(y, p).selected["name"] == best


def test_coarser_rounding_leads_the_recipe_to_the_printed_beta(real):
    """Scores within 2^-20 of 1 set to 1: what a softmax on float32 logits of 8 to 32 leaves."""
    name, y, p = real
    coarse = np.where(1 - p.astype(float) <= 2.0**-20, 1.0, p.astype(float))
    sample = as_sample(y, coarse)
    imitated = fit_beta_as_paper(sample.score, sample.count)
    assert (imitated.a, imitated.b) == pytest.approx(BETA_PRINTED[name], rel=0.045)
    recipe = fit_population(y, p, method="paper").beta
    assert abs(recipe.b / BETA_PRINTED[name][1] - 1) > 0.07


def test_a_softmax_in_float32_is_recognised(real):
    _, y, p = real
    fit = fit_population(y, p)
    assert fit.beta.resolution is not None
    assert fit.beta.resolution.at_one == 2.0**-23


@pytest.mark.parametrize(
    ("file", "parts", "limit"),
    [
        ("adult_random_forest", 100, 0.05),  # shares of 100 trees
        ("weather_niamey_ENS", 52, 0.08),  # shares of 52 ensemble members
        ("f538_mlb_playoffs", 100_000, 0.1),  # printed with five decimals
        ("f538_nba_elo_1946on", 0, 0.03),
    ],
)
def test_scores_on_a_grid_are_recognised_and_then_a_beta_fits(shared, file, parts, limit):
    with np.load(shared / "data" / f"{file}.npz", allow_pickle=False) as data:
        fit = fit_population(data["labels"], data["scores"])
    assert fit.beta.resolution is not None
    assert fit.beta.resolution.parts == parts
    assert fit.goodness.ks_distance < limit
