"""Reproduction of the paper's figures and tables, and of other papers' experiments, one file for each.

``truecal reproduce`` runs them, and so does `run` from Python. A part is a function of `Settings` that returns an
`Outcome`: tables, figures, and comparisons with the paper. Parts named ``external_...`` are not of the paper.

Reference: Roelofs, Cain, Shlens, Mozer (2022), Mitigating bias in calibration error estimation, AISTATS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from truecal.reproduce.contract import (
    EXTERNAL_NAMES,
    NAMES,
    Outcome,
    PaperComparison,
    Part,
    Records,
    Settings,
    load_part,
)
from truecal.reproduce.files import is_finished, write_outcome, write_summary

__all__ = ["EXTERNAL_NAMES", "NAMES", "Outcome", "PaperComparison", "Part", "Settings", "load_part", "run"]


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
        Names of the parts, from `NAMES` and `EXTERNAL_NAMES`; those of the paper by default.
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
        write_summary(settings, command)
        report(f"    {seconds:.0f} s")
    return write_summary(settings, command)
