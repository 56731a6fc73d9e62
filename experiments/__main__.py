"""Run experiments by name, print their pages, and write them into the docs.

python -m experiments list
python -m experiments external_lp --n-jobs 2
python -m experiments core peers study
"""

from __future__ import annotations

import argparse
import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments._page import with_origin, write_page
from experiments._probes import write_probe


def experiments() -> dict[str, str]:
    """Return the first line of the docstring of each experiment, by name."""
    paths = sorted(Path(__file__).parent.glob("[!_]*.py"))
    return {path.stem: _purpose(path) for path in paths}


def _purpose(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def command_of(name: str, options: Mapping[str, Any]) -> str:
    """Return the command that repeats an experiment.

    Examples
    --------
    >>> command_of("honest", {"draws": 1000, "finished": True})
    'python -m experiments honest --draws 1000 --finished'
    """
    return " ".join(["python -m experiments", name, *_as_options(options)])


def _as_options(options: Mapping[str, Any]) -> Iterator[str]:
    for key, value in options.items():
        flag = f"--{key.replace('_', '-')}"
        yield flag if value is True else f"{flag} {value}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Run experiments, print their pages, and write them into the docs.",
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="an experiment, or: list")
    parser.add_argument("--out", type=Path, help="folder to write to, instead of that in docs")
    options = parser.add_argument_group("options that some experiments have")
    options.add_argument(
        "--quick", action="store_true", help="little data; only print the page, unless --out is given"
    )
    options.add_argument("--draws", type=int, help="draws of each population")
    options.add_argument("--rows", type=lambda text: int(float(text)), help="rows of the largest files")
    options.add_argument("--finished", action="store_true", help="only what earlier runs finished")
    options.add_argument("--n-jobs", type=int, help="number of workers")
    options.add_argument("--seed", type=int, help="random seed")
    options.add_argument("--logits", type=Path, help="folder of logit files with two splits")
    options.add_argument("--data", type=Path, help="folder of predictions, or of other papers' results")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiments that the arguments name."""
    parser = _parser()
    options = vars(parser.parse_args(arguments))
    names, folder = options.pop("names"), options.pop("out", None)
    known = experiments()
    if names == ["list"]:
        print("\n".join(f"{name:20} {purpose}" for name, purpose in known.items()))
        return
    if unknown := set(names) - set(known):
        parser.error(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    for name in names:
        run = import_module(f"experiments.{name}").main
        accepted = inspect.signature(run).parameters
        if refused := [*_as_options({key: True for key in options if key not in accepted})]:
            parser.error(f"{name} has no {', '.join(refused)}")
        page, command = run(**options), command_of(name, options)
        print(with_origin(page.text, command))
        if folder or not options.get("quick"):
            path = write_page(name, page, command, folder)
            write_probe(name, path.parent)
            print(f"Wrote {path}")


if __name__ == "__main__":
    main()
