import math

import numpy as np
import pytest

import truecal
from truecal._lib.isotonic import isotonic_rate


@pytest.mark.parametrize("name", ["brier", "log_loss"])
def test_parts_add_up_and_are_not_negative(golden, name):
    y, p = golden(400)
    parts = truecal.decompose(y, p, name=name)
    assert parts.score == pytest.approx(parts.miscalibration - parts.discrimination + parts.uncertainty)
    assert min(parts.miscalibration, parts.discrimination, parts.uncertainty) >= 0


def test_the_brier_score_by_its_definition(golden):
    y, p = golden(400)
    parts = truecal.decompose(y, p)
    order = np.argsort(p)
    best = isotonic_rate(np.ones(400), y[order].astype(float))
    assert parts.score == pytest.approx(np.mean((p - y) ** 2))
    assert parts.miscalibration == pytest.approx(np.mean((p - y) ** 2) - np.mean((best - y[order]) ** 2))
    assert parts.uncertainty == pytest.approx(y.mean() * (1 - y.mean()))


def test_recalibrated_scores_have_no_miscalibration(golden):
    y, p = golden(400)
    order = np.argsort(p)
    best = isotonic_rate(np.ones(400), y[order].astype(float))
    assert truecal.decompose(y[order], best).miscalibration == pytest.approx(0, abs=1e-12)


def test_an_event_of_probability_zero_makes_the_log_loss_infinite():
    parts = truecal.decompose([1, 0], [0.0, 0.5], name="log_loss")
    assert parts.score == math.inf
    assert parts.to_dict()["score"] is None


def test_a_sample_and_its_rows_agree(golden):
    y, p = golden(100)
    assert truecal.decompose(truecal.Sample.from_predictions(y, p)) == truecal.decompose(y, p)


def test_an_unknown_score_is_refused(golden):
    with pytest.raises(truecal.InputError, match="name must be one of 'brier', 'log_loss'"):
        truecal.decompose(*golden(10), name="spherical")
