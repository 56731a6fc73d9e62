"""The pickled logit files of the paper's data, loaded without running anything in them."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.exceptions import InputError

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
