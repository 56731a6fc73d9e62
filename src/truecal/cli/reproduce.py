"""``truecal reproduce``: the paper's figures and tables, made again."""

from __future__ import annotations

from pathlib import Path

import click

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command("reproduce")
@click.option("--only", multiple=True, metavar="PART", help="Only this part; may be given several times.")
@click.option("--list", "list_parts", is_flag=True, help="List the parts, and do nothing.")
@click.option("--quick", is_flag=True, help="Fewer repetitions: two minutes instead of fifteen.")
@click.option(
    "--out", type=_FOLDER, default="reproduction", show_default=True, help="Folder for the results."
)
@click.option("--n-jobs", type=int, default=1, show_default=True, help="Number of workers; -1 for all cores.")
@click.option("--seed", type=int, default=2022, show_default=True, help="Of all that is drawn.")
@click.option("--logits", type=_FOLDER, help="Folder of logit files with a calibration and a test split.")
@click.option("--data", type=_FOLDER, help="Folder of NPZ files with predictions of real models.")
@click.option("--force", is_flag=True, help="Also run parts that are finished in the folder.")
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
    """Make the figures and tables of the paper again, and compare.

    Roelofs, Cain, Shlens, Mozer, "Mitigating Bias in Calibration Error Estimation", AISTATS 2022. Each part
    leaves a CSV, an SVG and a PNG in the folder, and rows in comparison.csv. A run that was stopped goes on
    where it was. What needs real predictions uses those in --logits and --data, and else models with known
    truth.
    """
    import shlex
    import sys

    from truecal import reproduce
    from truecal.cli._output import as_table
    from truecal.reproduce.files import with_error

    if list_parts:
        parts = [reproduce.load_part(name) for name in reproduce.NAMES]
        click.echo(
            as_table(["part", "where", "what"], [[p.name, p.where, p.title] for p in parts], text_columns=3)
        )
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
            tell=lambda text: click.echo(text, err=True),
        )
    except KeyboardInterrupt:
        click.echo(
            f"truecal: interrupted. What was finished is in {out}; run the same command to go on.", err=True
        )
        raise SystemExit(130) from None
    agreement = {True: "yes", False: "NO", None: "-"}
    body = [
        [
            row["part"],
            row["quantity"],
            row["source"],
            row["theirs"],
            with_error(row),
            agreement[row["within"]],
        ]
        for row in rows
    ]
    click.echo(
        as_table(["part", "quantity", "source", "theirs", "ours", "within error"], body, text_columns=5)
    )
    reasons = [f"{row['part']}, {row['quantity']}: {row['why']}" for row in rows if row["why"]]
    click.echo("\n".join(["", *reasons]))
