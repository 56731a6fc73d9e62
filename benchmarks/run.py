"""Run benchmarks by name: ``python benchmarks/run.py core peers study``; ``--quick`` is a small trial run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# Started as a file, Python sees only this folder; the benchmarks are a package.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import (
    accuracy,
    agreement,
    application,
    clinical,
    clusters,
    core,
    coverage,
    engines,
    honest,
    leaderboard,
    measures,
    monitor,
    peers,
    power,
    rare_events,
    study,
)

BENCHMARKS = {
    "accuracy": accuracy.main,
    "agreement": agreement.main,
    "application": application.main,
    "core": core.main,
    "peers": peers.main,
    "study": study.main,
    "leaderboard": leaderboard.main,
    "measures": measures.main,
    "coverage": coverage.main,
    "honest": honest.main,
    "clinical": clinical.main,
    "clusters": clusters.main,
    "power": power.main,
    "rare_events": rare_events.main,
    "engines": engines.main,
    "monitor": monitor.main,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=BENCHMARKS)
    parser.add_argument("--quick", action="store_true", help="little data; print, and write nothing")
    parser.add_argument(
        "--draws",
        type=int,
        help="draws per population, for accuracy, agreement, clinical, measures, coverage and honest",
    )
    parser.add_argument(
        "--finished", action="store_true", help="honest: the page of the cells that earlier runs finished"
    )
    arguments = parser.parse_args()
    options = {} if arguments.draws is None else {"draws": arguments.draws}
    if arguments.finished:
        options["finished"] = True
    for name in arguments.names:
        BENCHMARKS[name](quick=arguments.quick, **options)
