import csv
import math
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import joblib
import numpy as np
import pytest

import truecal
from truecal._lib.files import exclusive
from truecal.data.sample import Block
from truecal.estimators import _registry
from truecal.estimators._registry import choose_estimators, get_estimator
from truecal.exceptions import InputError
from truecal.simulation import Study, bias_study
from truecal.simulation._study import COLUMNS, behaviour, fingerprint

UNIFORM = truecal.simulation.UniformScores()
SQUARE = truecal.Population(UNIFORM, truecal.simulation.PowerCurve(2))
CALIBRATED = truecal.Population(UNIFORM, truecal.simulation.IdentityCurve())


def test_rows_are_what_their_names_say():
    """Against a loop in the plainest Python, with generators of the documented seeds."""
    study = bias_study({"square": SQUARE}, estimators=["em_bin"], sizes=[50], repeats=7, norm=1, rng=3)
    (row,) = study.rows
    import zlib

    values = []
    for repetition in range(7):
        seeds = np.random.SeedSequence(3, spawn_key=(zlib.crc32(b"square"), 50, repetition))
        y, p = SQUARE.sample(50, rng=np.random.default_rng(seeds))
        values.append(truecal.calibration_error(y, p, estimator="em_bin", norm=1))
    assert row["true_error"] == pytest.approx(1 / 6, abs=1e-12)
    assert row["mean"] == pytest.approx(np.mean(values), abs=1e-15)
    assert row["bias"] == pytest.approx(np.mean(values) - 1 / 6, abs=1e-12)
    assert row["sd"] == pytest.approx(np.std(values, ddof=1), abs=1e-12)
    assert row["bias_se"] == pytest.approx(np.std(values, ddof=1) / math.sqrt(7), abs=1e-12)
    assert row["rmse"] == pytest.approx(np.sqrt(np.mean((np.array(values) - 1 / 6) ** 2)), abs=1e-12)
    assert row["median_bias"] == pytest.approx(np.median(values) - 1 / 6, abs=1e-12)
    assert row["mean_bins"] == 15
    assert (row["n"], row["repeats"], row["seed"], row["norm"]) == (50, 7, 3, 1)


def test_results_depend_on_nothing_but_seed_population_size_and_estimator():
    many = bias_study(
        {"a": CALIBRATED, "square": SQUARE},
        estimators=["ks", "em_sweep", "em_bin"],
        sizes=[30, 60],
        repeats=20,
        rng=5,
        n_jobs=2,
    )
    one = bias_study({"square": SQUARE}, estimators=["em_sweep"], sizes=[60], repeats=20, rng=5)
    (same,) = [
        row
        for row in many.rows
        if (row["population"], row["n"], row["estimator"]) == ("square", 60, "em_sweep")
    ]
    assert one.rows == [same]


def test_the_first_repetitions_do_not_depend_on_their_number(monkeypatch):
    seen = []
    monkeypatch.setattr(Block, "from_rows", _recording(seen, Block.from_rows))
    bias_study({"square": SQUARE}, estimators=["ks"], sizes=[20], repeats=3, rng=1)
    bias_study({"square": SQUARE}, estimators=["ks"], sizes=[20], repeats=5, rng=1)
    three, five = seen
    np.testing.assert_array_equal(three, five[:3])


def _recording(seen, function):
    def record(label, score, **options):
        seen.append(score.copy())
        return function(label, score, **options)

    return record


def test_rows_come_in_the_order_asked_for_with_options_in_the_name():
    study = bias_study(
        {"b": SQUARE, "a": CALIBRATED},
        estimators=[{"estimator": "em_bin", "n_bins": 4}, "mce"],
        sizes=[40, 20],
        repeats=2,
        rng=0,
    )
    found = [(row["population"], row["n"], row["estimator"]) for row in study.rows]
    assert found == [(p, n, e) for p in "ba" for n in (40, 20) for e in ("em_bin(n_bins=4)", "ew_mce")]
    assert {row["mean_bins"] for row in study.rows if row["estimator"].startswith("em_bin")} == {4}


def test_another_estimand_has_its_own_truth():
    (row,) = bias_study({"square": SQUARE}, estimators=["ks"], sizes=[1000], repeats=5, rng=0).rows
    assert row["true_error"] == pytest.approx(1 / 6, abs=1e-6)
    assert abs(row["bias"]) < 5 * row["bias_se"] + 0.01
    assert row["mean_bins"] is None


def test_an_estimand_without_a_known_truth(monkeypatch):
    spec = replace(get_estimator("ks"), truth=None)
    monkeypatch.setitem(_registry._SPECS, "ks", spec)
    (row,) = bias_study({"square": SQUARE}, estimators=["ks"], sizes=[100], repeats=5, rng=0).rows
    assert row["true_error"] is row["bias"] is row["rmse"] is row["median_bias"] is row["mean_bins"] is None
    assert row["mean"] > 0


def test_a_study_of_an_unmonotone_model_does_not_shower_warnings():
    falling = truecal.Population(UNIFORM, truecal.simulation.LogisticCurve(-8, 4))
    (row,) = bias_study({"falling": falling}, estimators=["em_sweep"], sizes=[100], repeats=5, rng=0).rows
    assert row["mean_bins"] == 1


# --- the results file ------------------------------------------------------------------------------


def test_a_file_is_resumed_without_computing_again(tmp_path, monkeypatch):
    path = tmp_path / "study.csv"
    settings = {"sizes": [20, 40], "repeats": 10, "rng": 7}
    first = bias_study({"square": SQUARE}, estimators=["em_bin"], path=path, **settings)
    drawn = []
    monkeypatch.setattr(Block, "from_rows", _recording(drawn, Block.from_rows))
    again = bias_study({"square": SQUARE}, estimators=["em_bin"], path=path, **settings)
    assert again.rows == first.rows
    assert not drawn
    more = bias_study({"square": SQUARE}, estimators=["ks", "em_bin"], path=path, **settings)
    assert [row for row in more.rows if row["estimator"] == "em_bin"] == first.rows
    assert len(drawn) == 2
    assert len(Study.from_csv(path).rows) == 4


def test_a_file_that_was_cut_off_anywhere_is_refused(tmp_path):
    path, part = tmp_path / "study.csv", tmp_path / "part.csv"
    study = bias_study(
        {"square": SQUARE}, estimators=["em_bin", "ks"], sizes=[20], repeats=3, path=path, rng=1
    )
    whole = path.read_bytes()
    for end in range(1, len(whole)):
        part.write_bytes(whole[:end])
        if whole[:end].endswith(b"\n"):
            assert Study.from_csv(part).rows == study.rows[: whole[:end].count(b"\n") - 1]
        else:
            with pytest.raises(InputError, match=r"cut off or damaged|does not contain study results"):
                Study.from_csv(part)


def test_a_file_survives_the_round_trip_and_rng_none_goes_on_with_its_seed(tmp_path):
    path = tmp_path / "study.csv"
    study = bias_study({"square": SQUARE}, estimators=["em_bin", "ks"], sizes=[20], repeats=3, path=path)
    assert Study.from_csv(path) == study
    again = bias_study({"square": SQUARE}, estimators=["em_bin", "ks"], sizes=[20], repeats=3, path=path)
    assert again == study


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"repeats": 4}, "repeats = 3"),
        ({"rng": 8}, "seed = 7"),
        ({"norm": 1}, "norm = 2"),
        ({"populations": {"square": CALIBRATED}}, "another population called 'square'"),
    ],
)
def test_results_of_another_study_are_not_mixed_in(tmp_path, change, says):
    path = tmp_path / "study.csv"
    settings = {
        "populations": {"square": SQUARE},
        "estimators": ["em_bin"],
        "sizes": [20],
        "repeats": 3,
        "rng": 7,
    }
    bias_study(**settings, path=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=says):
        bias_study(**{**settings, **change}, path=path)
    assert path.read_bytes() == before


def _wavy(score, *, height):
    return score + height * np.sin(2 * np.pi * score)


def test_a_population_with_the_same_true_error_is_not_mixed_in(tmp_path):
    """Mirrored waves have the same true error, and are different populations."""
    path = tmp_path / "study.csv"
    waves = [
        truecal.Population(UNIFORM, truecal.simulation.FunctionCurve(partial(_wavy, height=height)))
        for height in (0.1, -0.1)
    ]
    assert waves[0].true_error() == pytest.approx(waves[1].true_error(), abs=1e-12)
    settings = {"estimators": ["em_bin"], "sizes": [20], "repeats": 3, "rng": 7, "path": path}
    bias_study({"wave": waves[0]}, **settings)
    with pytest.raises(InputError, match="another population called 'wave'"):
        bias_study({"wave": waves[1]}, **settings)
    again = truecal.simulation.FunctionCurve(lambda score: _wavy(score, height=0.1))
    bias_study(
        {"wave": truecal.Population(UNIFORM, again)}, **settings
    )  # the same curve, written differently


def test_options_and_version_are_part_of_the_fingerprint(monkeypatch):
    prints = set()
    for item in ("em_bin", {"estimator": "em_bin", "n_bins": 14}, {"estimator": "em_bin", "n_bins": 15}):
        (choice,) = choose_estimators([item])
        prints.add(fingerprint(behaviour(SQUARE, SQUARE.true_error()), choice))
    assert len(prints) == 2  # 15 bins are the default
    monkeypatch.setattr(truecal, "__version__", "another")
    assert fingerprint(behaviour(SQUARE, SQUARE.true_error()), choice) not in prints


def test_two_studies_cannot_write_the_same_file(tmp_path):
    path = tmp_path / "study.csv"
    with exclusive(path), pytest.raises(InputError, match="another process is writing"):
        bias_study({"square": SQUARE}, estimators=["em_bin"], sizes=[20], repeats=3, rng=0, path=path)
    bias_study({"square": SQUARE}, estimators=["em_bin"], sizes=[20], repeats=3, rng=0, path=path)
    assert [file.name for file in tmp_path.iterdir()] == ["study.csv"]


def test_an_alias_with_another_norm_than_the_study_is_refused():
    settings = {"estimators": ["ece"], "sizes": [20], "repeats": 3, "rng": 0}
    with pytest.raises(InputError, match=r"norm must be 1 for 'ece'\. .* 'ew_bin'"):
        bias_study({"square": SQUARE}, **settings)
    (row,) = bias_study({"square": SQUARE}, norm=1, **settings).rows
    assert (row["estimator"], row["norm"]) == ("ew_bin", 1)


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="does not contain study results"):
        bias_study({"square": SQUARE}, estimators=["em_bin"], sizes=[20], repeats=3, path=path)


def test_a_killed_run_leaves_a_valid_file_that_is_resumed(tmp_path):
    path = tmp_path / "study.csv"
    program = (
        "import truecal\n"
        "population = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))\n"
        "truecal.bias_study({'square': population}, estimators=['em_sweep'], sizes=range(100, 4100),"
        f" repeats=20, rng=7, path={str(path)!r})"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        deadline = time.monotonic() + 60
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert all(None not in row.values() for row in rows)
    assert tuple(rows[0]) == COLUMNS
    done = len(rows)
    sizes = range(100, 100 + done + 1)
    study = bias_study({"square": SQUARE}, estimators=["em_sweep"], sizes=sizes, repeats=20, rng=7, path=path)
    whole = bias_study({"square": SQUARE}, estimators=["em_sweep"], sizes=sizes, repeats=20, rng=7)
    assert study == whole


# --- workers, frames, words ------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_any_joblib_backend_gives_the_same(backend):
    settings = {"estimators": ["em_sweep"], "sizes": [50], "repeats": 10, "rng": 1}
    with joblib.parallel_config(backend, n_jobs=2):
        parallel = bias_study({"square": SQUARE}, n_jobs=2, **settings)
    assert parallel == bias_study({"square": SQUARE}, **settings)


@pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow"])
def test_to_frame(backend):
    pytest.importorskip(backend)
    study = bias_study({"square": SQUARE}, estimators=["em_bin", "ks"], sizes=[20], repeats=3, rng=0)
    frame = study.to_frame(backend)
    assert type(frame).__module__.split(".")[0] == backend
    assert tuple(getattr(frame, "column_names", None) or list(frame.columns)) == COLUMNS


def test_progress_is_shown_when_asked_for_and_only_then(capfd):
    settings = {"estimators": ["em_bin"], "sizes": [20], "repeats": 3, "rng": 0}
    bias_study({"square": SQUARE}, **settings)
    assert capfd.readouterr().err == ""
    bias_study({"square": SQUARE}, progress=True, **settings)
    assert "study: 100.0%" in capfd.readouterr().err


def test_prints_as_a_table():
    study = bias_study({"square": SQUARE}, estimators=["em_bin", "ks"], sizes=[20], repeats=3, rng=0)
    head, first, second = str(study).splitlines()
    assert head.split() == ["population", "n", "estimator", "truth", "mean", "bias", "±", "se", "sd", "rmse"]
    assert first.startswith("square")
    assert "0.1826" in first
    assert second.split()[2:4] == ["ks", "0.1667"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"estimators": ["em_sweeep"]}, "em_sweep"),
        ({"estimators": "em_sweep"}, "list of names"),
        ({"estimators": [{"estimator": "em_sweep", "n_bins": 3}]}, "n_bins is not an option of em_sweep"),
        ({"estimators": []}, "at least one"),
        ({"sizes": [0]}, "sizes must be"),
        ({"repeats": 0}, "repeats must be"),
        ({"norm": 0.5}, "norm must be"),
        ({"rng": "seed"}, "rng must be"),
    ],
)
def test_bad_parameters(change, says):
    settings = {
        "populations": {"square": SQUARE},
        "estimators": ["em_bin"],
        "sizes": [20],
        "repeats": 3,
        "rng": 0,
    }
    with pytest.raises(ValueError, match=says):
        bias_study(**{**settings, **change})


@pytest.mark.parametrize(
    ("options", "problem"), [({"sizes": [10**20]}, "at most"), ({"rng": -1}, "at least 0")]
)
def test_sizes_and_seeds_beyond_all_limits_are_refused(options, problem):
    given = {"sizes": [20], "rng": 0, **options}
    with pytest.raises(InputError, match=problem):
        bias_study({"one": truecal.paper.population("resnet110_c10")}, estimators=["ew_bin"], **given)
