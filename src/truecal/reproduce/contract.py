"""The interface of the parts: settings in; tables, figures and comparisons out."""

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

#: Rows of a table, by column name.
Records = list[dict[str, Any]]
Value = TypeVar("Value")

#: Numbers agree if they differ by at most this many joint standard errors.
STANDARD_ERRORS = 3.0

#: The parts in the order of the paper; each is a module of this package with a function of that name.
NAMES = (
    "fig1", "table1", "table1_classes", "fig2", "fig3", "table2", "table3", "table4", "fig4", "ttest", "fig5", "fig6",
    "appendix_b", "appendix_c", "appendix_d",
    "open_l1", "open_measures", "open_skew", "open_binary", "open_tradeoff",
    "open_batch", "open_families",
)  # fmt: skip
#: Experiments of other papers, and the efficiency limit.
EXTERNAL_NAMES = (
    "external_lp", "external_interval", "external_test", "external_debiasing", "external_efficiency",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Settings of a run.

    Attributes
    ----------
    out : Path
        Folder for results. Intermediate results are in its subfolder ``work``.
    effort : {"full", "quick", "tiny"}
        Number of repetitions: as in the paper, enough for a rough picture, or very few, for tests.
    seed : int
        Random seed.
    n_jobs : int
        Number of workers.
    logits, data : Path or None
        Folders of logit files (with a calibration and a test split), and of sets of predictions or results of
        other papers.
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

    def of(self, full: Value, quick: Value, tiny: Value) -> Value:
        """Return the value for the effort."""
        return {"full": full, "quick": quick, "tiny": tiny}[self.effort]

    @property
    def work(self) -> Path:
        """The folder for intermediate results."""
        folder = self.out / "work"
        folder.mkdir(parents=True, exist_ok=True)
        return folder


@dataclass(frozen=True)
class PaperComparison:
    """A number or claim of the paper beside the result of the reproduction.

    Attributes
    ----------
    quantity : str
        Quantity that is compared, with its unit.
    published, reproduced : str
        Value or statement of the source, and the result here.
    agrees : bool or None
        Whether they agree within error; None where the source has nothing to compare with.
    error : float or None
        Standard error of `reproduced`.
    note : str
        Explanation of a difference, or another remark.
    source : str
        ``"paper"``, or ``"independent"`` for an independent simulation that the project uses as a check.
    """

    quantity: str
    published: str
    reproduced: str
    agrees: bool | None
    error: float | None = None
    note: str = ""
    source: str = "paper"


def compare_with_paper(
    quantity: str,
    published: float,
    reproduced: float,
    error: float,
    *,
    published_error: float = 0.0,
    digits: int = 2,
    note: str = "",
    source: str = "paper",
) -> PaperComparison:
    """Compare two numbers; they agree within `STANDARD_ERRORS` joint standard errors.

    Examples
    --------
    >>> compare_with_paper("mean (%)", 6.69, 6.681, 0.002, published_error=0.013).agrees
    True
    """
    joint = math.hypot(error, published_error)
    return PaperComparison(
        quantity=quantity,
        published=f"{published:.{digits}f}",
        reproduced=f"{reproduced:.{digits}f}",
        agrees=bool(abs(published - reproduced) <= STANDARD_ERRORS * joint),
        error=float(error),
        note=note,
        source=source,
    )


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of a part.

    Attributes
    ----------
    tables : mapping of str to rows
        Tables of numbers; keys are appended to the name of the part, ``""`` for its main CSV.
    figures : mapping of str to Figure
        Figures, named in the same way.
    comparisons : sequence of PaperComparison
        Records of the table of comparisons.
    """

    tables: Mapping[str, Records]
    figures: Mapping[str, Figure]
    comparisons: Sequence[PaperComparison] = field(default_factory=tuple)


@dataclass(frozen=True)
class Part:
    """A figure or table of the paper, and the function that reproduces it."""

    name: str
    where: str
    title: str
    run: Callable[[Settings], Outcome]


def part(where: str, title: str) -> Callable[[Callable[[Settings], Outcome]], Part]:
    """Declare a function as a part, with its place in the paper and its title."""

    def make(function: Callable[[Settings], Outcome]) -> Part:
        return Part(function.__name__, where, title, function)

    return make


def load_part(name: str) -> Part:
    """Return the part with this name.

    Examples
    --------
    >>> load_part("fig4").where
    'Figure 4'
    """
    check_choice("part", name, (*NAMES, *EXTERNAL_NAMES))
    loaded: Part = getattr(importlib.import_module(f"truecal.reproduce.{name}"), name)
    return loaded
