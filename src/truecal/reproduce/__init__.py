"""Reproduction of the paper's figures and tables.

``truecal reproduce`` runs them, and so does `run` from Python. A part is a function of `Settings` that returns an
`Outcome`: tables, figures, and comparisons with the paper.

Reference: Roelofs, Cain, Shlens, Mozer (2022), Mitigating bias in calibration error estimation, AISTATS.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable

from truecal._lib.checks import check_choice
from truecal.reproduce._contract import (
    Outcome,
    PaperComparison,
    Part,
    Records,
    Settings,
    is_finished,
    write_outcome,
    write_summary,
)

__all__ = ["NAMES", "Outcome", "PaperComparison", "Part", "Settings", "load_part", "run"]

#: The module of each part, in the order of the paper; a part is a function of that name.
_MODULES = {
    "fig1": "fig1", "table1": "table1", "table1_classes": "table1", "monotone": "section2", "rankings": "section2",
    "fig2": "bins", "fig3": "fits", "table2": "fits", "table3": "fits", "table4": "fits", "fig4": "main_study",
    "statements": "main_study", "ttest": "main_study", "fig5": "fig5", "fig6": "main_study", "appendix_b": "bins",
    "appendix_c": "bins", "appendix_d": "bins",
}  # fmt: skip
NAMES = tuple(_MODULES)


def __dir__() -> list[str]:
    return __all__


def load_part(name: str) -> Part:
    """Return the part with this name.

    Examples
    --------
    >>> load_part("fig4").where
    'Figure 4'
    """
    check_choice("part", name, NAMES)
    loaded: Part = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    return loaded


def run(
    settings: Settings,
    names: Iterable[str] = (),
    *,
    force: bool = False,
    command: str = "truecal.reproduce.run",
    report: Callable[[str], None] = lambda _: None,
) -> Records:
    """Run parts, and write their files and the summary.

    Parameters
    ----------
    settings : Settings
        Settings of the run.
    names : iterable of str
        Names of the parts, from `NAMES`; all of them by default.
    force : bool
        Whether to run parts that are already finished. Their simulations are reused; delete the folder ``work``
        to repeat them.
    command : str
        Command to record as the origin of the files.
    report : callable
        Called with a line of text when a part begins and ends.

    Returns
    -------
    list of dict
        Comparisons of all parts that are finished in the folder, including those of earlier runs.
    """
    parts = [load_part(name) for name in dict.fromkeys(names)] or [load_part(name) for name in NAMES]
    settings.out.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(parts, start=1):
        head = f"[{number}/{len(parts)}] {part.name}: {part.title}"
        if not force and is_finished(part.name, settings):
            report(f"{head} (already finished)")
            continue
        report(head)
        began = time.monotonic()
        outcome = part.run(settings)
        seconds = time.monotonic() - began
        write_outcome(part, outcome, settings, command=command, seconds=seconds)
        write_summary(NAMES, settings, command)
        report(f"    {seconds:.0f} s")
    return write_summary(NAMES, settings, command)
