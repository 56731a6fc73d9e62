"""The pickled logit files of the paper's data, loaded without running anything in them."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class LogitSplits:
    """Logits and labels of a validation (calibration) split and of a test split."""

    val_logits: NDArray[Any]
    val_labels: NDArray[Any]
    test_logits: NDArray[Any]
    test_labels: NDArray[Any]


class _ArraysOnly(pickle.Unpickler):
    """Load pickled NumPy arrays of numbers, and refuse to build anything else."""

    _ALLOWED = frozenset(
        {
            *((module, name) for module in ("numpy", "numpy._core.multiarray", "numpy.core.multiarray")
              for name in ("ndarray", "dtype", "_reconstruct", "scalar")),
            *((module, "_frombuffer") for module in ("numpy._core.numeric", "numpy.core.numeric")),
            ("_codecs", "encode"),  # how protocol 2 writes the bytes of an array
        }
    )  # fmt: skip

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._ALLOWED:
            raise ValueError(f"it holds {module}.{name}, and only NumPy arrays of numbers are loaded")
        return super().find_class(module, name)


def load_logits(path: str | Path) -> LogitSplits:
    """Load a pickle of ``((val_logits, val_labels), (test_logits, test_labels))``, arrays only.

    A pickle can run any program. This reader builds NumPy arrays and nothing else, and refuses a file
    that holds any other object.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    LogitSplits

    Raises
    ------
    ValueError
        If the file holds anything but that layout.
    """
    path = Path(path)
    with path.open("rb") as file:
        try:
            content = _ArraysOnly(file, encoding="latin1").load()
        except FileNotFoundError:
            raise
        except Exception as error:
            raise ValueError(f"{path} is not a safe file of logits: {error}.") from error
    try:
        (val_logits, val_labels), (test_logits, test_labels) = content
        arrays = [np.asarray(part) for part in (val_logits, val_labels, test_logits, test_labels)]
        if any(array.dtype.kind not in "fiub" for array in arrays):
            raise TypeError("an array does not hold numbers")
        for logits, labels in (arrays[:2], arrays[2:]):
            if logits.ndim != 2 or labels.size != len(logits):
                raise TypeError(f"logits of shape {logits.shape} with labels of shape {labels.shape}")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must hold ((val_logits, val_labels), (test_logits, test_labels)): {error}."
        ) from error
    return LogitSplits(arrays[0], arrays[1].ravel(), arrays[2], arrays[3].ravel())
