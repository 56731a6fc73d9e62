"""Several classes: the joint interval and its evidence."""

import numpy as np
import pytest

from truecal.data.sample import Sample
from truecal.multiscale._combine import joint_limits, mean_covariance
from truecal.multiscale._error import analyse


def classes(rng, k, n, power=1.0):
    proba = rng.dirichlet(np.ones(k), n)
    truth = proba**power / (proba**power).sum(1, keepdims=True)
    label = (truth.cumsum(1) < rng.random((n, 1))).sum(1).clip(0, k - 1)
    parts = [Sample.from_rows((label == c).astype(int), proba[:, c]) for c in range(k)]
    cores = [analyse(part) for part in parts]
    psi = np.mean([core.influence(label == c, proba[:, c]) for c, core in enumerate(cores)], axis=0)
    return cores, psi, float(np.sqrt(np.mean((proba - truth) ** 2)))


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 20])
def test_the_joint_interval_of_calibrated_classes_holds_zero(k):
    rng = np.random.default_rng(k)
    hits = sum(joint_limits(*classes(rng, k, 500)[:2]).interval(0.95)[0] == 0 for _ in range(50))
    assert hits >= 44


@pytest.mark.slow
def test_the_joint_interval_holds_the_error():
    rng = np.random.default_rng(9)
    hits = 0
    for _ in range(50):
        cores, psi, truth = classes(rng, 5, 1500, 1.5)
        low, high = joint_limits(cores, psi).interval(0.95)
        hits += low <= truth <= high
    assert hits >= 44


def test_one_class_is_that_class(draw):
    core = analyse(draw(800, lambda p: p**1.4))
    joint = joint_limits([core])
    assert joint.interval(0.95) == pytest.approx(core.limits.interval(0.95), rel=1e-6)
    assert joint_limits([core], norm=1).interval(0.95) == pytest.approx(
        core.absolute_limits.interval(0.95), rel=1e-6
    )


def test_covariance_of_means():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 500))
    plain = mean_covariance(values)
    assert plain == pytest.approx(np.cov(values, bias=True) / 500)
    assert mean_covariance(values, cluster=np.arange(500)) == pytest.approx(plain * 500 / 499)
    twice = mean_covariance(np.repeat(values, 2, axis=1), cluster=np.repeat(np.arange(500), 2))
    assert twice == pytest.approx(plain * 500 / 499)
