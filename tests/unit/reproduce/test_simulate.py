"""Simulations whose results are kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import truecal
from truecal.reproduce.simulate import draw_estimates, rows_in_parallel, run_study

QUICKEST = "appendix_d"


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_workers(settings, tmp_path):
    population = truecal.Population(truecal.simulation.BetaScores(2, 1), truecal.simulation.PowerCurve(2))
    options = {"n": 2**17, "estimators": ["ks"], "repeats": 5}  # three blocks
    one = draw_estimates(settings, "one", population, **options)["ks"]
    two = draw_estimates(replace(settings, out=tmp_path / "two", n_jobs=2), "one", population, **options)[
        "ks"
    ]
    np.testing.assert_array_equal(one, two)
    assert len(np.unique(one)) == 5


def test_estimates_and_studies_in_the_work_folder_are_not_drawn_again(settings, monkeypatch):
    population = truecal.Population(truecal.simulation.BetaScores(2, 1), truecal.simulation.PowerCurve(2))
    first = draw_estimates(settings, "kept", population, n=50, estimators=["ks", "em_bin"], repeats=3)
    rows = run_study(settings, "kept", {"a": population}, estimators=["em_bin"], sizes=[50], repeats=3)
    monkeypatch.setattr(truecal.Population, "sample_many", None)
    again = draw_estimates(settings, "kept", population, n=50, estimators=["ks"], repeats=3)
    np.testing.assert_array_equal(first["ks"], again["ks"])
    assert (
        run_study(settings, "kept", {"a": population}, estimators=["em_bin"], sizes=[50], repeats=3) == rows
    )


def double(value: int) -> list[dict[str, int]]:
    """Return one row."""
    return [{"value": 2 * value}]


def test_rows_of_finished_jobs_are_kept(settings):
    assert rows_in_parallel(settings, "doubles", double, [(1,), (2,)]) == [{"value": 2}, {"value": 4}]
    (path,) = settings.work.glob("doubles*.jsonl")
    path.write_text(path.read_text().replace('"value": 4', '"value": 5') + "[torn")
    jobs = [(2,), (3,), (1,)]
    assert rows_in_parallel(settings, "doubles", double, jobs) == [{"value": 5}, {"value": 6}, {"value": 2}]
    assert "torn" not in path.read_text()
