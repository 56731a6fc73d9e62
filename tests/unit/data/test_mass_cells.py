"""Rows ordered only next to the edges of equal-mass bins give what sorted rows give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import truecal
from truecal.data import read_rows
from truecal.data.mass_cells import MassCounting
from truecal.estimators._registry import list_estimators

COUNTED = [spec.name for spec in list_estimators() if spec.counting is MassCounting]


def scores(kind: str, n: int, rng: np.random.Generator) -> Any:
    """Return scores that are counted, with different kinds of ties."""
    score = rng.beta(1.5, 2, n)
    if kind == "some rounded":
        score[::2] = np.round(score[::2], 3)
    elif kind == "zeros and ones":
        score[: n // 20], score[n // 20 : n // 10] = 0.0, 1.0
    elif kind == "one large tie":
        score[: n // 30] = 0.4
    elif kind == "half in pairs":
        score[: n // 4] = score[n // 4 : n // 4 * 2]
    return rng.permutation(score)


@pytest.fixture(autouse=True)
def counted_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count also the few rows that would be sorted sooner."""
    monkeypatch.setattr("truecal.data.mass_cells._FEWEST_ROWS", 0)


def test_the_estimators_that_are_counted() -> None:
    assert COUNTED == ["em_bin", "em_debias", "em_label", "em_mce"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_bins", [1, 2, 7, 15, 40])
@pytest.mark.parametrize(
    "kind", ["distinct", "some rounded", "zeros and ones", "one large tie", "half in pairs"]
)
@pytest.mark.parametrize("name", COUNTED)
def test_same_bins_and_same_value_as_sorted_rows(name: str, kind: str, n_bins: int, dtype: Any) -> None:
    rng = np.random.default_rng(n_bins)
    score = scores(kind, 40_000, rng).astype(dtype)
    label = rng.random(len(score)) < score
    ordered = truecal.Sample.from_predictions(label, score)
    (rows,) = read_rows(label, score)
    assert len(rows.group(counting=MassCounting(n_bins))) < len(ordered) / 2
    one = truecal.estimate(label, score, estimator=name, n_bins=n_bins)
    other = truecal.estimate(ordered, estimator=name, n_bins=n_bins)
    assert one.value == pytest.approx(other.value, abs=1e-15 if name != "em_debias" else 1e-8)
    assert (one.n, one.target) == (other.n, other.target)
    assert one.bins is not None
    assert other.bins is not None
    for column in ("lower", "upper", "count", "mean_label"):
        np.testing.assert_array_equal(getattr(one.bins, column), getattr(other.bins, column))
    np.testing.assert_allclose(one.bins.mean_score, other.bins.mean_score, rtol=0, atol=1e-15)


@pytest.mark.parametrize("norm", [1, 1.5, 3, 30, 5000])
@pytest.mark.parametrize("kind", ["distinct", "one large tie"])
def test_distances_of_rows_are_those_of_sorted_rows_for_every_order_and_norm(kind: str, norm: float) -> None:
    rng = np.random.default_rng(3)
    score = scores(kind, 40_000, rng)
    label = rng.random(len(score)) < score**2
    order = rng.permutation(len(score))
    options: dict[str, Any] = {"estimator": "em_label", "norm": norm}
    counted = truecal.calibration_error(label, score, **options)
    ordered = truecal.calibration_error(truecal.Sample.from_predictions(label, score), **options)
    assert counted == pytest.approx(ordered, rel=1e-14)
    assert truecal.calibration_error(label[order], score[order], **options) == counted


def test_the_order_of_rows_changes_no_bit() -> None:
    rng = np.random.default_rng(0)
    score = scores("some rounded", 40_000, rng)
    label = rng.random(len(score)) < score
    order = rng.permutation(len(score))
    values = [
        truecal.calibration_error(y, p, estimator="em_bin")
        for y, p in ((label, score), (label[order], score[order]))
    ]
    assert values[0] == values[1]


@pytest.mark.parametrize(
    "score",
    [
        pytest.param(lambda rng: 1 - rng.random(20_000) * 1e-4, id="all in one cell"),
        pytest.param(
            lambda rng: rng.permutation(np.repeat(rng.random(10_000), 2)), id="no score occurs once"
        ),
        pytest.param(lambda rng: np.round(rng.random(20_000), 1), id="few scores"),
    ],
)
def test_rows_are_sorted_where_counting_gains_nothing_or_is_not_certain(score: Any) -> None:
    values = score(np.random.default_rng(1))
    (rows,) = read_rows(values > 0.5, values)
    counted, ordered = rows.group(counting=MassCounting(15)), rows.group()
    np.testing.assert_array_equal(counted.score, ordered.score)
    np.testing.assert_array_equal(counted.count, ordered.count)
