"""What the parts of the reproduction have in common: settings go in, rows, figures and comparisons come out."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from truecal._lib.checks import check_choice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
Choice = TypeVar("Choice")

#: Numbers that differ by more than so many joint standard errors differ.
STANDARD_ERRORS = 3.0

#: The parts in the order of the paper; each is a module of this package with a function of that name.
NAMES = (
    "fig1", "table1", "fig2", "fig3", "table2", "table3", "table4", "fig4", "ttest", "fig5", "fig6",
    "appendix_b", "appendix_c", "appendix_d",
    "open_l1", "open_measures", "open_skew", "open_binary", "open_tradeoff",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What a run is asked to do.

    Attributes
    ----------
    out : Path
        Folder for results. What unfinished parts need to go on is in its subfolder ``work``.
    effort : {"full", "quick", "tiny"}
        How many repetitions: the paper's, enough to see the picture, or hardly any, for tests.
    seed : int
        Of everything random.
    n_jobs : int
        Number of workers.
    logits, data : Path or None
        Folders of logit files (with a calibration and a test split) and of sets of predictions.
    progress : bool or None
        Whether to show progress; by default if standard error is a terminal.
    """

    out: Path
    effort: Literal["full", "quick", "tiny"] = "full"
    seed: int = 2022
    n_jobs: int = 1
    logits: Path | None = None
    data: Path | None = None
    progress: bool | None = None

    def of(self, full: Choice, quick: Choice, tiny: Choice) -> Choice:
        """Return the one of three values that belongs to the effort."""
        return {"full": full, "quick": quick, "tiny": tiny}[self.effort]

    @property
    def work(self) -> Path:
        """The folder for what is half done."""
        folder = self.out / "work"
        folder.mkdir(parents=True, exist_ok=True)
        return folder


@dataclass(frozen=True)
class Comparison:
    """One number or claim of the paper beside what came out here.

    Attributes
    ----------
    quantity : str
        What is compared, with its unit.
    theirs, ours : str
        What the source says, and what came out.
    within : bool or None
        Whether they agree, within error; None where the source says nothing that could be compared.
    error : float or None
        Standard error of `ours`.
    why : str
        Why they differ, or what else a reader should know.
    source : str
        ``"paper"``, or ``"independent"`` for the calculation that the project checks itself against.
    """

    quantity: str
    theirs: str
    ours: str
    within: bool | None
    error: float | None = None
    why: str = ""
    source: str = "paper"


def compare(
    quantity: str,
    theirs: float,
    ours: float,
    error: float,
    *,
    theirs_error: float = 0.0,
    digits: int = 2,
    why: str = "",
    source: str = "paper",
) -> Comparison:
    """Compare two numbers; they agree within `STANDARD_ERRORS` joint standard errors.

    Examples
    --------
    >>> compare("mean (%)", 6.69, 6.681, 0.002, theirs_error=0.013).within
    True
    """
    joint = math.hypot(error, theirs_error)
    return Comparison(
        quantity=quantity,
        theirs=f"{theirs:.{digits}f}",
        ours=f"{ours:.{digits}f}",
        within=bool(abs(theirs - ours) <= STANDARD_ERRORS * joint),
        error=float(error),
        why=why,
        source=source,
    )


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a part returns.

    Attributes
    ----------
    tables : mapping of str to rows
        The numbers; the key ``""`` is the part's own CSV, others are added to its name.
    figures : mapping of str to Figure
        The pictures, named likewise.
    comparisons : sequence of Comparison
        Rows of the table of comparisons.
    """

    tables: Mapping[str, Rows]
    figures: Mapping[str, Figure]
    comparisons: Sequence[Comparison] = field(default_factory=tuple)


@dataclass(frozen=True)
class Part:
    """A figure or table of the paper, and how to make it again."""

    name: str
    where: str
    title: str
    run: Callable[[Settings], Outcome]


def part(where: str, title: str) -> Callable[[Callable[[Settings], Outcome]], Part]:
    """Make a function a part: `where` it stands in the paper, and its `title`."""

    def make(function: Callable[[Settings], Outcome]) -> Part:
        return Part(function.__name__, where, title, function)

    return make


def load_part(name: str) -> Part:
    """Return the part of that name.

    Examples
    --------
    >>> load_part("fig4").where
    'Figure 4'
    """
    check_choice("part", name, NAMES)
    found: Part = getattr(importlib.import_module(f"truecal.reproduce.{name}"), name)
    return found
