"""``truecal reproduce``: the paper's figures and tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any

import click

from truecal._lib.text import text_width
from truecal.cli._options import Command, option, shared
from truecal.cli._output import say, show

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command("reproduce", cls=Command)
@click.option("--only", multiple=True, metavar="PART", help="Only this part; repeatable.")
@click.option("--list", "list_parts", is_flag=True, help="List the parts and exit.")
@click.option("--quick", is_flag=True, help="Fewer repetitions, for a rough picture.")
@option("--out", "reproduction", _FOLDER, "Folder for the results.")
@shared("n-jobs")
@option("--seed", 2022, int, "Random seed.")
@click.option("--logits", type=_FOLDER, help="Folder of logit files with a calibration and a test split.")
@click.option("--data", type=_FOLDER, help="Folder of NPZ files with predictions of real models.")
@click.option("--force", is_flag=True, help="Rerun finished parts.")
def command(
    only: tuple[str, ...],
    list_parts: bool,
    quick: bool,
    out: Path,
    n_jobs: int,
    seed: int,
    logits: Path | None,
    data: Path | None,
    force: bool,
) -> None:
    """Reproduce the figures and tables of the paper and compare the results with it.

    Roelofs, Cain, Shlens, Mozer, "Mitigating Bias in Calibration Error Estimation", AISTATS 2022. Each part
    writes a CSV, an SVG and a PNG to the folder, and rows to comparison.csv. An interrupted run resumes where it
    stopped. Parts that need real predictions use those in --logits and --data, or else models with known truth.
    """
    import shlex
    import sys

    from truecal import reproduce

    if list_parts:
        parts = [reproduce.load_part(name) for name in reproduce.NAMES]
        lines = [f"{part.name:<16}{part.where}: {part.title}" for part in parts]
        show("\n".join(fill(line, text_width(), subsequent_indent=" " * 16) for line in lines))
        return
    settings = reproduce.Settings(
        out=out, effort="quick" if quick else "full", seed=seed, n_jobs=n_jobs, logits=logits, data=data
    )
    try:
        rows = reproduce.run(
            settings,
            only,
            force=force,
            command=f"truecal {shlex.join(sys.argv[1:])}",
            report=lambda text: click.echo(text, err=True),
        )
    except KeyboardInterrupt:
        say(f"interrupted. Finished parts are in {out}; run the same command to continue")
        raise SystemExit(130) from None
    show("\n".join(_lines(rows)), fit=False)
    show(f"\nFigures, tables and this comparison (comparison.md) are in {out}.")


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Return the comparison as text: the published value, ours, whether they agree, and why not."""
    from truecal.reproduce._contract import with_error

    agreement = {True: "yes", False: "NO", None: "-"}
    part = None
    for row in rows:
        if row["part"] != part:
            part = row["part"]
            yield f"\n{part} ({row['where']}); does it agree?"
        sentence = f"{row['quantity']}: paper {row['published']}, here {with_error(row)}"
        width = text_width(100)
        yield fill(
            sentence, width, initial_indent=f"  {agreement[row['agrees']]:4}", subsequent_indent=" " * 8
        )
        if row["note"]:
            yield fill(row["note"], width, initial_indent=" " * 8, subsequent_indent=" " * 8)
