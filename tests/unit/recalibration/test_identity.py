import numpy as np
import pytest
from scipy.special import expit, softmax

from truecal.recalibration import IdentityCalibration


def test_probabilities_stay_as_they_are(golden):
    y, p = golden(50)
    assert IdentityCalibration().fit(p, y).transform(p).tolist() == p.tolist()


@pytest.mark.parametrize("n_classes", [1, 3])
def test_logits_become_probabilities(n_classes):
    logits = np.random.default_rng(0).normal(size=(30, n_classes))
    same = IdentityCalibration(input="logits").fit(logits, np.arange(30) % max(n_classes, 2))
    expected = expit(logits) if n_classes == 1 else softmax(logits, axis=1)
    assert np.reshape(same.transform(logits), expected.shape) == pytest.approx(expected)
