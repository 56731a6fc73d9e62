"""How far numbers computed from cells may be off."""

import numpy as np
import pytest

import truecal
from truecal.data import as_sample
from truecal.data.cell_error import _halved, cell_error, lay_out
from truecal.data.cells import Cells
from truecal.data.sample import Sample
from truecal.estimators._registry import get_estimator, list_estimators


@pytest.fixture(scope="module")
def skewed():
    return truecal.paper.population("resnet110_c10").sample(20_000, rng=0)


def cells_of(y, p):
    return Cells.from_sample(as_sample(y, p))


@pytest.mark.parametrize("spec", list_estimators(), ids=lambda spec: spec.name)
def test_cells_of_one_score_each_have_no_error(spec):
    y, p = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(1.5)).sample(
        500, rng=0
    )
    assert cell_error(cells_of(y, p.round(2)), lambda s: spec(s).value) == 0.0


@pytest.mark.slow
def test_the_stated_error_is_of_the_size_of_the_true_one():
    true, stated = [], []
    for name in truecal.paper.NAMES:
        sample = as_sample(*truecal.paper.population(name).sample(100_000, rng=2))
        cells = Cells.from_sample(sample)
        for name in (
            "multiscale",
            "em_bin",
            "em_debias",
            "em_label",
            "em_sweep",
            "ew_label",
            "kde",
            "neighbor",
            "skce",
        ):
            spec = get_estimator(name)
            true.append(abs(spec(cells).value - spec(sample).value))
            stated.append(cell_error(cells, lambda sample, spec=spec: spec(sample).value))
    true, stated = np.array(true), np.array(stated)
    assert np.mean(true <= stated + 1e-12) > 0.95
    assert np.median(stated) < 3e-5


@pytest.mark.parametrize("scale", [1, 1e-3, 0.7])
def test_rows_laid_out_keep_the_sums(skewed, scale):
    label, score = skewed
    cells = Cells.from_sample(Sample.from_rows(label, score, np.full(len(score), float(scale))))
    loose = lay_out(cells, np.random.default_rng(1))
    assert len(loose) > len(cells)
    assert loose.n == pytest.approx(cells.n)
    assert loose.positives.sum() == pytest.approx(cells.positives.sum())
    assert loose.score @ loose.count == pytest.approx(cells.score @ cells.count, rel=1e-13)
    assert (np.diff(loose.score) >= 0).all()
    assert ((loose.positives >= 0) & (loose.positives <= loose.count)).all()


def test_two_rows_of_a_cell_are_laid_out_as_they_were():
    cells = cells_of([0, 1], [0.300001, 0.300003])
    loose = [lay_out(cells, np.random.default_rng(seed)) for seed in range(20)]
    assert {tuple(np.round(one.score, 12)) for one in loose} == {(0.300001, 0.300003)}
    assert {tuple(one.positives) for one in loose} == {(0.0, 1.0), (1.0, 0.0)}


def test_an_estimate_tells_what_cells_may_have_cost(skewed):
    found = truecal.estimate(cells_of(*skewed), estimator="em_bin", n_bins=20)
    exact = truecal.estimate(*skewed, estimator="em_bin", n_bins=20)
    assert 0 < found.cell_error < 1e-3
    assert abs(found.value - exact.value) < found.cell_error
    assert str(found).endswith(f"20 bins, cells ± {found.cell_error:.0e}")
    assert found.to_dict()["cell_error"] == found.cell_error
    assert exact.cell_error is None
    lossless = truecal.estimate(cells_of([0, 1, 1], [0.2, 0.2, 0.9]), estimator="ew_bin")
    assert lossless.cell_error == 0
    assert str(lossless).endswith("15 bins")


def test_rows_laid_out_keep_the_effective_size():
    rng = np.random.default_rng(8)
    p = rng.random(40_000)
    sample = Sample.from_predictions(rng.random(40_000) < p, p, sample_weight=rng.gamma(1.0, size=40_000))
    cells = Cells.from_sample(sample)
    laid_out = lay_out(cells, rng)
    assert laid_out.effective_size == pytest.approx(sample.effective_size, rel=1e-9)
    assert (laid_out.positive_squares <= laid_out.squares * (1 + 1e-9)).mean() > 0.9


def test_labels_are_spread_over_the_halves_of_a_cell_as_without_replacement():
    n = 20_000
    start = np.arange(n) / n
    columns = [start + 0.4 / n, np.full(n, 6.0), np.full(n, 2.0), start, start + 0.8 / n]
    (_, _, positives, *_), _ = _halved(columns, np.random.default_rng(0).standard_normal(n))
    left = positives[0::2]
    variance = 2 / 6 * 4 / 6 * 3 * 3 / 5
    assert left.mean() == pytest.approx(1, abs=0.03)
    assert left.var() == pytest.approx(variance, rel=0.08)
