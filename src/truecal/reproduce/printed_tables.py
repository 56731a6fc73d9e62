"""The tables printed in the paper.

Source: Roelofs, Cain, Shlens, Mozer (2022), Mitigating bias in calibration error estimation,
AISTATS, Appendix A. The tables are CSV files in ``printed``.
"""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import NamedTuple


class PrintedGLM(NamedTuple):
    """One row of Table 3."""

    link: str
    transform: str
    b0: float | None
    b1: float | None
    aic: float
    selected: bool

    @property
    def name(self) -> str:
        """The model's name, as in `PopulationFit.glm_table`."""
        terms = ["b0"] * (self.b0 is not None) + ["b1"] * (self.b1 is not None)
        return "_".join([self.link, self.transform, *terms])


def _read(name: str) -> list[dict[str, str]]:
    text = files("truecal.reproduce").joinpath("printed", f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def table2() -> dict[str, tuple[float, float]]:
    """Return the Beta parameters of each data set.

    Examples
    --------
    >>> table2()["resnet110_c10"]
    (2.7752, 0.0478)
    """
    return {row["dataset"]: (float(row["alpha"]), float(row["beta"])) for row in _read("table2")}


def table3() -> dict[str, list[PrintedGLM]]:
    """Return the twelve models of each data set, smallest AIC first.

    Examples
    --------
    >>> table3()["resnet110_c10"][0].name
    'logflip_logflip_b0_b1'
    """
    models: dict[str, list[PrintedGLM]] = {}
    for row in _read("table3"):
        b0, b1 = (float(row[key]) if row[key] else None for key in ("b0", "b1"))
        model = PrintedGLM(row["link"], row["transform"], b0, b1, float(row["aic"]), row["selected"] == "1")
        models.setdefault(row["dataset"], []).append(model)
    return models


def table4() -> dict[str, tuple[float, float]]:
    """Return ECE_bin in percent of each data set, real and simulated.

    Examples
    --------
    >>> table4()["resnet110_c10"]
    (6.67, 8.42)
    """
    return {
        row["dataset"]: (float(row["ece_bin_real_percent"]), float(row["ece_bin_simulated_percent"]))
        for row in _read("table4")
    }
