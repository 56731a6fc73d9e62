"""Predictions of real models from folders, the populations fitted to them, and the tables printed in the paper.

Tables 3 and 4 are CSV files in ``printed``; `truecal.paper` has Table 2. Source: Roelofs, Cain, Shlens, Mozer (2022),
Mitigating bias in calibration error estimation, AISTATS, Appendix A.
"""

from __future__ import annotations

import csv
import pickle
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal import paper
from truecal.data import as_sample
from truecal.data.sample import Sample
from truecal.exceptions import InputError
from truecal.reproduce._contract import Settings
from truecal.reproduce._studies import beta_of
from truecal.simulation import BetaScores, PopulationFit, fit_population
from truecal.simulation._likelihood import fit_beta_as_paper, model_name

_SPLITS = ("val_logits", "val_labels", "test_logits", "test_labels")


def split_sets(settings: Settings) -> dict[str, LogitSplits]:
    """Return every set of logits with a calibration and a test split, by name, from both folders."""
    pickles = _files(settings.logits, "*.p", "*.pkl", "*.pickle")
    sets = {_name_of(path): load_logits(path) for path in pickles}
    for folder in (settings.logits, settings.data):
        sets |= {_name_of(path): LogitSplits(*arrays) for path, arrays in npz_arrays(folder, *_SPLITS)}
    return sets


def top_label_sets(settings: Settings) -> dict[str, Sample]:
    """Return the top-label predictions of every test split and every top-label set, by name."""
    sets = {
        name: as_sample(splits.test_labels, splits.test_logits, logits=True)
        for name, splits in split_sets(settings).items()
    }
    for path, (score, predicted, label) in npz_arrays(settings.data, "confidence", "pred", "labels"):
        sets[_name_of(path)] = as_sample(predicted == label, score)
    return sets


def npz_arrays(folder: Path | None, *keys: str) -> Iterator[tuple[Path, list[NDArray[Any]]]]:
    """Yield the arrays with these keys of every NPZ file in the folder that has all of them."""
    for path in _files(folder, "*.npz"):
        with np.load(path, allow_pickle=False) as file:
            if set(keys) <= set(file.files):
                yield path, [file[key] for key in keys]


def _files(folder: Path | None, *patterns: str) -> list[Path]:
    if folder is None:
        return []
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}.")
    return sorted(path for pattern in patterns for path in folder.glob(pattern))


def _name_of(path: Path) -> str:
    """Return the data set's name as in the paper's tables, extracted from a file name."""
    name = path.stem.removeprefix("probs_").removesuffix("_logits")
    return name.removeprefix("hollance_markus93_")


#: Scores within this of 1 are 1 in a softmax exp(x - log sum exp x) of float32 logits between 8 and 32.
COARSE = 2.0**-20


def paper_sets(settings: Settings) -> dict[str, Sample]:
    """Return the available real data sets that are among the paper's ten, in its order."""
    available = top_label_sets(settings)
    return {name: available[name] for name in paper.NAMES if name in available}


def drawn_sets(settings: Settings) -> dict[str, Sample]:
    """Return one sample of 10,000 from each of the paper's populations, whose truth is known."""
    n = settings.of(10_000, 10_000, 500)
    names = settings.of(paper.NAMES, paper.NAMES, paper.NAMES[::4])
    return {
        name: as_sample(
            *paper.population(name).sample(n, rng=np.random.SeedSequence((settings.seed, number)))
        )
        for number, name in enumerate(names)
    }


def fit_sample(sample: Sample) -> PopulationFit:
    """Fit the paper's model by maximum likelihood; its warnings are in its messages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_population(sample)


@cache
def real_fits(settings: Settings) -> dict[str, PopulationFit]:
    """Return the fits to the available real data sets."""
    return {name: fit_sample(sample) for name, sample in paper_sets(settings).items()}


def beta_by_recipe(sample: Sample, *, coarse: bool) -> tuple[float, float]:
    """Return the Beta parameters by the paper's recipe, on the original scores or on scores rounded near 1."""
    score = np.where(1 - sample.score <= COARSE, 1.0, sample.score) if coarse else sample.score
    beta = fit_beta_as_paper(score, sample.count)
    return beta.a, beta.b


def _read(name: str) -> list[dict[str, str]]:
    text = files("truecal.reproduce").joinpath("printed", f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def printed_betas() -> dict[str, BetaScores]:
    """Return the distribution of scores of each data set, from Table 2.

    Examples
    --------
    >>> printed_betas()["resnet110_c10"]
    BetaScores(a=2.7752, b=0.0478)
    """
    return {name: beta_of(paper.population(name)) for name in paper.NAMES}


def printed_models() -> dict[str, dict[str, dict[str, Any]]]:
    """Return b0, b1, AIC and whether it is selected of the twelve models of each data set, from Table 3.

    Examples
    --------
    >>> printed_models()["resnet110_c10"]["logflip_logflip_b0_b1"]
    {'b0': -0.24, 'b1': 0.3, 'aic': 2779.22, 'selected': True}
    """
    models: dict[str, dict[str, dict[str, Any]]] = {}
    for row in _read("table3"):
        b0, b1 = (float(row[key]) if row[key] else None for key in ("b0", "b1"))
        name = model_name(row["link"], row["transform"], b0 is not None, b1 is not None)
        model = {"b0": b0, "b1": b1, "aic": float(row["aic"]), "selected": row["selected"] == "1"}
        models.setdefault(row["dataset"], {})[name] = model
    return models


def printed_ece() -> dict[str, tuple[float, float]]:
    """Return ECE_bin in percent of each data set, real and simulated, from Table 4.

    Examples
    --------
    >>> printed_ece()["resnet110_c10"]
    (6.67, 8.42)
    """
    return {
        row["dataset"]: (float(row["ece_bin_real_percent"]), float(row["ece_bin_simulated_percent"]))
        for row in _read("table4")
    }


# --- Pickled logit files, loaded without running anything in them -------------------------------------------

_LAYOUT = "must hold ((val_logits, val_labels), (test_logits, test_labels))"


@dataclass(frozen=True, eq=False)
class LogitSplits:
    """Logits and labels of a validation (calibration) split and of a test split.

    Attributes
    ----------
    val_logits : ndarray of shape (n_val, K)
        Logits of the validation split.
    val_labels : ndarray of shape (n_val,)
        Its labels.
    test_logits : ndarray of shape (n_test, K)
        Logits of the test split.
    test_labels : ndarray of shape (n_test,)
        Its labels.
    """

    val_logits: NDArray[Any]
    val_labels: NDArray[Any]
    test_logits: NDArray[Any]
    test_labels: NDArray[Any]


def load_logits(path: str | Path) -> LogitSplits:
    """Load a pickle of ``((val_logits, val_labels), (test_logits, test_labels))``, arrays only.

    A pickle can run any program. This reader takes shapes, types and bytes of number arrays from the file
    and builds the arrays itself. It calls nothing that the file names, and refuses a file that holds any
    other object. Files of every pickle protocol, of NumPy 1 and of Python 2 are read.

    Parameters
    ----------
    path : str or Path
        The pickle.

    Returns
    -------
    LogitSplits
        Logits of shape (n, K) and labels of shape (n,), in the types of the file.

    Raises
    ------
    InputError
        If the file holds anything but that layout.
    """
    path = Path(path)
    with path.open("rb") as file:
        try:
            content = _ArraysOnly(file, encoding="latin1").load()
        except Exception as error:  # a broken pickle can raise anything
            raise InputError(f"{path} is not a pickle of number arrays: {error}") from error
    match content:
        case (
            (_PickledArray() as val_x, _PickledArray() as val_y),
            (_PickledArray() as x, _PickledArray() as y),
        ):
            return LogitSplits(
                *_checked(path, val_x.values, val_y.values), *_checked(path, x.values, y.values)
            )
    raise InputError(f"{path} {_LAYOUT}, four arrays of numbers. It holds something else")


def _checked(path: Path, logits: NDArray[Any], labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    if logits.ndim != 2 or labels.shape not in ((len(logits),), (len(logits), 1)):
        raise InputError(
            f"{path} {_LAYOUT}. It holds logits of shape {logits.shape} with labels of shape {labels.shape}"
        )
    return logits, labels.reshape(-1)


class _PickledType:
    """Stands in for `numpy.dtype`: a type of numbers, and the order of its bytes."""

    def __init__(self, code: str, *_: object) -> None:
        self.dtype = np.dtype(code)
        if self.dtype.kind not in "fiub":
            raise ValueError(f"it holds an array of {self.dtype} values, and only numbers are loaded")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(state[1])


class _PickledArray:
    """Stands in for `numpy.ndarray`: values from plain bytes."""

    values: NDArray[Any]

    def __init__(self, *_: object) -> None:
        self.values = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, is_fortran, data = state
        if isinstance(data, str):  # the bytes of Python 2 come as latin1 text
            data = data.encode("latin1")
        if not isinstance(data, bytes | bytearray):  # without data NumPy would return uninitialised memory
            raise ValueError(f"it holds an array without its values ({type(data).__name__})")
        self.values = np.ndarray(shape, kind.dtype, data, order="F" if is_fortran else "C")

    @classmethod
    def from_buffer(
        cls, data: bytes, kind: _PickledType, shape: tuple[int, ...], order: str
    ) -> _PickledArray:
        array = cls()
        array.__setstate__((1, shape, kind, order == "F", data))
        return array


class _ArraysOnly(pickle.Unpickler):
    """Reads pickled arrays through the stand-ins, and refuses any other name."""

    _STAND_INS: dict[tuple[str, str], Any] = {  # noqa: RUF012
        ("numpy", "ndarray"): _PickledArray,
        ("numpy", "dtype"): _PickledType,
        ("numpy.core.multiarray", "_reconstruct"): _PickledArray,
        ("numpy.core.numeric", "_frombuffer"): _PickledArray.from_buffer,  # protocol 5
        ("_codecs", "encode"): str.encode,  # how protocols 0 to 2 write bytes
    }

    def find_class(self, module: str, name: str) -> Any:
        key = (module.replace("numpy._core", "numpy.core", 1), name)
        if key not in self._STAND_INS:
            raise ValueError(f"it holds {module}.{name}, and only arrays of numbers are loaded")
        return self._STAND_INS[key]
