import numpy as np
import pytest

import truecal
from truecal.assessment.recalibration import advise_recalibration, recalibration_rows
from truecal.data import as_sample
from truecal.recalibration.selection import select_recalibrator


def advise(y, p, **reading):
    sample = as_sample(y, p, **reading)
    rows = recalibration_rows(sample, y, p, **reading)
    return advise_recalibration(sample, rows, confidence_level=0.95, rng=np.random.default_rng(0))


def test_the_advice_helps_on_new_rows():
    population = truecal.paper.population("resnet110_c100")
    advice = advise(*population.sample(3000, rng=0))
    assert not advice.leave_alone
    chosen = advice.selection[advice.chosen]
    assert f"by {-chosen.difference:.4f}" in advice.advice
    y, p = population.sample(5000, rng=1)
    before, after = (
        truecal.calibration_error(y, p),
        truecal.calibration_error(y, advice.selection.transform(p)),
    )
    assert after < before / 2
    namespace = {"p_validation": p, "y_validation": y, "p_new": p}
    exec(advice.code, namespace)
    assert namespace["p_recalibrated"].shape == p.shape


def test_without_evidence_the_model_is_left_alone():
    rng = np.random.default_rng(1)
    p = rng.random(60)
    advice = advise((rng.random(60) < p**1.1).astype(int), p)
    assert advice.leave_alone
    assert advice.selection.chosen == "identity"
    np.testing.assert_array_equal(advice.selection.transform([0.3, 0.4]), [0.3, 0.4])


def test_too_few_rows_for_folds_are_no_error():
    assert "could not be compared" in advise([0, 1, 1], [0.1, 0.9, 0.2]).advice


def bad_classes(n, k, rng):
    logit = rng.normal(size=(n, k))
    label = (logit + rng.gumbel(size=(n, k))).argmax(axis=1)
    proba = np.exp(3 * logit)
    return label, proba / proba.sum(axis=1, keepdims=True)


def bad_rows(n, rng):
    p = rng.random(n)
    return (rng.random(n) < p**2).astype(int), p


ROUTES = {
    "rows": lambda rng: (*bad_rows(800, rng), {}),
    "rounded": lambda rng: (*(np.round(part, 2) for part in bad_rows(800, rng)), {}),
    "float32": lambda rng: (*(part.astype(np.float32) for part in bad_rows(800, rng)), {}),
    "many rows": lambda rng: (*bad_rows(12_000, rng), {}),
    "clusters": lambda rng: (*bad_rows(800, rng), {"clusters": rng.integers(0, 60, 800)}),
    "many clusters": lambda rng: (*bad_rows(12_000, rng), {"clusters": rng.integers(0, 600, 12_000)}),
    "text": lambda rng: (
        np.array(["no", "yes"])[(rows := bad_rows(800, rng))[0]],
        rows[1],
        {"pos_label": "yes"},
    ),
    "counts": lambda rng: (
        *bad_rows(400, rng),
        {"sample_weight": rng.integers(0, 4, 400), "weights": "counts"},
    ),
    "classes": lambda rng: (*bad_classes(600, 3, rng), {}),
    "many rows with classes": lambda rng: (*bad_classes(10_500, 3, rng), {}),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("route", ROUTES)
def test_every_route_makes_the_same_choice_from_the_same_folds(route, seed):
    y, p, reading = ROUTES[route](np.random.default_rng(seed))
    small = {"n_resamples": 99, "rng": seed}
    assessed = truecal.assess(y, p, **reading, **small).recalibration
    selected = select_recalibrator(y, p, **reading, rng=seed)
    assert assessed.chosen == selected.chosen != "identity"
    assert assessed.selection.to_dict() == selected.to_dict()
    assert assessed.candidates == selected.candidates
    if not route.endswith("classes"):
        sample = truecal.Sample.from_predictions(y, p, **reading)
        assert truecal.assess(sample, **small).recalibration.candidates == selected.candidates
        assert select_recalibrator(sample, rng=seed).candidates == selected.candidates
        np.testing.assert_allclose(
            select_recalibrator(sample, rng=seed).transform(p), selected.transform(p), rtol=1e-6
        )


def test_a_generator_is_a_seed_too():
    y, p = bad_rows(500, np.random.default_rng(2))
    assessed = truecal.assess(y, p, n_resamples=99, rng=np.random.default_rng(3)).recalibration
    assert assessed.candidates == select_recalibrator(y, p, rng=np.random.default_rng(3)).candidates
