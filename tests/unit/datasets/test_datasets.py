import gzip
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import truecal
from truecal import datasets

FOLDER = Path(str(files("truecal.datasets")))


@pytest.mark.parametrize("name", datasets.NAMES)
def test_every_set_can_be_measured(name):
    data = datasets.load(name)
    assert len(data.y_true) >= 1000
    for proba in data.predictions.values():
        estimate = truecal.estimate(data.y_true, proba, labels=data.labels)
        assert estimate.n == len(data.y_true)
        assert 0.01 < estimate.value < 0.3  # visibly miscalibrated
    assert data.y_proba is next(iter(data.predictions.values()))
    assert data.description
    assert data.licence
    assert repr(data).startswith(f"<Dataset {name}: ")


def test_flights():
    data = datasets.load("flights")
    assert set(np.unique(data.y_true)) == {0, 1}
    assert len(data.y_true) == 10_000
    assert set(data.groups) == {"origin", "carrier"}
    assert set(data.groups["origin"]) == {"EWR", "JFK", "LGA"}
    assert list(data.predictions) == ["boosting", "balanced", "naive_bayes"]
    assert data.labels is None
    errors = {
        name: truecal.calibration_error(data.y_true, p, estimator="em_sweep")
        for name, p in data.predictions.items()
    }
    assert errors == pytest.approx({"boosting": 0.0282, "balanced": 0.1905, "naive_bayes": 0.0819}, abs=5e-5)


def test_digits():
    data = datasets.load("digits")
    assert data.labels[:2] == ("zero", "one")
    for proba in data.predictions.values():
        assert proba.shape == (1797, 10)
        assert np.abs(proba.sum(axis=1) - 1).max() < 1e-4
    accuracy = {
        name: np.mean(np.array(data.labels)[p.argmax(axis=1)] == data.y_true)
        for name, p in data.predictions.items()
    }
    assert accuracy == pytest.approx({"logistic": 0.9649, "forest": 0.9733}, abs=0.005)
    # One is over-confident and the other under-confident.
    assert data.predictions["logistic"].max(axis=1).mean() > accuracy["logistic"]
    assert data.predictions["forest"].max(axis=1).mean() < accuracy["forest"]


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"name must be one of 'flights', 'digits'.*Did you mean 'flights'"):
        datasets.load("flight")


def test_the_files_are_small_plain_and_documented():
    packed = sorted(FOLDER.glob("*.csv.gz"))
    assert sum(path.stat().st_size for path in packed) < 300_000
    readme = (FOLDER / "README.md").read_text()
    for path in packed:
        assert path.name in readme
        head = gzip.decompress(path.read_bytes()).decode().splitlines()[0]
        assert head.split(",")[0] in ("late", "digit")
        assert path.read_bytes()[4:8] == bytes(
            4
        )  # no time of day, so that the same content has the same bytes


def test_loading_needs_numpy_alone():
    code = (
        "import sys; from truecal import datasets; datasets.load('flights'); "
        "assert not {'pandas', 'polars', 'sklearn', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
