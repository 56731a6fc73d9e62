"""The paper's figures and tables, made again with truecal: one file for each, on the public API.

``truecal reproduce`` runs them, and `run` is the same from Python. A part is a function of `Settings` that
returns an `Outcome`: tables, figures, and comparisons with what the paper says.

Reference: Roelofs, Cain, Shlens, Mozer (2022), Mitigating bias in calibration error estimation, AISTATS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from truecal.reproduce.contract import NAMES, Comparison, Outcome, Part, Rows, Settings, load_part
from truecal.reproduce.files import is_finished, write_outcome, write_summary

__all__ = ["NAMES", "Comparison", "Outcome", "Part", "Settings", "load_part", "run"]


def run(
    settings: Settings,
    names: Iterable[str] = (),
    *,
    force: bool = False,
    command: str = "truecal.reproduce.run",
    tell: Callable[[str], None] = lambda _: None,
) -> Rows:
    """Make parts again, and write their files and the summary.

    Parameters
    ----------
    settings : Settings
        How, and where to.
    names : iterable of str
        Which of `NAMES`; all by default.
    force : bool
        Whether to run parts that are finished already. What they simulated is used again in any case; delete
        the folder ``work`` to simulate anew.
    command : str
        What to note as the origin of the files.
    tell : callable
        Is told about each part, as it begins and as it ends.

    Returns
    -------
    list of dict
        The comparisons of all parts that are finished in the folder, also from earlier runs.
    """
    parts = [load_part(name) for name in dict.fromkeys(names)] or [load_part(name) for name in NAMES]
    settings.out.mkdir(parents=True, exist_ok=True)
    for place, part in enumerate(parts, start=1):
        head = f"[{place}/{len(parts)}] {part.name}: {part.title}"
        if not force and is_finished(part.name, settings):
            tell(f"{head} (finished before)")
            continue
        tell(head)
        began = time.monotonic()
        outcome = part.run(settings)
        seconds = time.monotonic() - began
        write_outcome(part, outcome, settings, command=command, seconds=seconds)
        write_summary(settings, command)
        tell(f"    {seconds:.0f} s")
    return write_summary(settings, command)
