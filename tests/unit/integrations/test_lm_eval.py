import numpy as np
import pytest

import truecal
from truecal.exceptions import InputError
from truecal.integrations.lm_eval import truecal_error, truecal_high, truecal_low, truecal_stderr


@pytest.mark.parametrize("clustered", [False, True])
def test_aggregations_are_the_estimate_and_its_interval(clustered):
    rng = np.random.default_rng(0)
    confidence = rng.choice([0.6, 0.8, 0.9], 400)
    correct = rng.random(400) < confidence - 0.2
    question = np.arange(400) // 4
    items = list(zip(confidence.tolist(), correct.tolist(), question.tolist(), strict=True))
    items = items if clustered else [item[:2] for item in items]
    expected = truecal.estimate(
        correct, confidence, confidence_level=0.95, clusters=question if clustered else None
    )
    assert truecal_error(items) == expected.value
    assert (truecal_low(items), truecal_high(items)) == (expected.interval.low, expected.interval.high)
    assert truecal_stderr(items) == pytest.approx((expected.interval.high - expected.interval.low) / 3.91993)


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([], "items must be pairs"),
        ([(0.5, 1), (0.5, 1, "a")], r"items must be pairs .* Got items of 2 and 3"),
        ([(0.9, 0.5)], "y_true must hold 0 and 1. Got 0.5"),
        ([(0.9, "False")], "y_true must hold 0 and 1. Got 'False'"),
        ([(90, 1)], "outside"),
    ],
)
def test_items_are_checked(items, says):
    with pytest.raises(InputError, match=says):
        truecal_error(items)
