"""Everything that takes clusters gives an answer that prints, however few clusters, rows or events there are."""

import json
import warnings

import numpy as np
import pytest

import truecal

CALLS = {
    "calibration_test": lambda y, p, c: truecal.calibration_test(y, p, clusters=c, n_resamples=49, rng=0),
    "ks": lambda y, p, c: truecal.calibration_test(y, p, clusters=c, n_resamples=19, method="ks", rng=0),
    "at_most": lambda y, p, c: truecal.calibration_test(y, p, clusters=c, at_most=0.05),
    "spiegelhalter_test": lambda y, p, c: truecal.spiegelhalter_test(y, p, clusters=c),
    "confidence_interval": lambda y, p, c: truecal.confidence_interval(y, p, clusters=c),
    "describe_clusters": lambda y, p, c: truecal.describe_clusters(y, p, clusters=c),
    "weak_calibration": lambda y, p, c: truecal.weak_calibration(y, p, clusters=c),
    "net_benefit": lambda y, p, c: truecal.net_benefit(y, p, clusters=c, thresholds=[0.01, 0.5]),
    "audit": lambda y, p, c: truecal.audit(
        y, p, {"x": np.arange(len(p)) % 2}, clusters=c, min_rows=2, n_resamples=49, rng=0
    ),
    "assess": lambda y, p, c: truecal.assess(
        y, p, clusters=c, by=np.arange(len(p)) % 2, clinical=True, n_resamples=49, rng=0
    ),
}
SCORES = {
    "ordinary": lambda rng: rng.random(30),
    "constant": lambda rng: np.full(30, 0.3),
    "rare": lambda rng: rng.beta(0.5, 200, 30),
    "denormal": lambda rng: rng.choice([5e-324, 1e-310, 0.5], 30),
    "certain": lambda rng: rng.choice([0.0, 1.0, 0.5], 30),
}


@pytest.mark.parametrize("labels", ["mixed", "none"])
@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("count", [1, 2, 30])
@pytest.mark.parametrize("name", CALLS)
def test_few_clusters(name, count, scores, labels):
    rng = np.random.default_rng(count)
    p = SCORES[scores](rng)
    y = rng.integers(0, 2, 30) if labels == "mixed" else np.zeros(30, dtype=int)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", truecal.CalibrationWarning)
        result = CALLS[name](y, p, np.arange(30) % count)
        assert str(result)
        assert json.dumps(result.to_dict(), allow_nan=False)
