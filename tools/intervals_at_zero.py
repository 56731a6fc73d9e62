"""Count how often nominal 95% intervals of calibration error contain 0 if the true error is 0.

``python tools/intervals_at_zero.py`` writes docs/benchmarks/intervals_at_zero.csv, the first row of the comparison in
README.md. The other packages are installed into temporary environments, each with the version that is named below;
netcal, torchmetrics and scikit-learn have no such interval. About ten minutes on one core.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
REQUIREMENTS = {"truecal": "", "relplot": "relplot==1.0.3", "probcal": "probcal==0.4.0"}
SCORES = {"uniform": (1.0, 1.0), "Beta(2.8, 0.05)": (2.8, 0.05)}
ROWS = 1000


def lower_end(package: str) -> Callable[[np.ndarray, np.ndarray], float]:
    """Return a function of labels and scores: the lower end of the package's 95% interval."""
    if package == "truecal":
        import truecal

        return lambda y, p: truecal.confidence_interval(y, p).low
    if package == "relplot":
        import relplot

        def of_relplot(y: np.ndarray, p: np.ndarray) -> float:
            diagram = relplot.prepare_rel_diagram(p, y, plot_confidence_band=False)
            return diagram["ce"] - diagram["ce_ci_width"]

        return of_relplot
    from probcal.metrics import evaluate

    def of_probcal(y: np.ndarray, p: np.ndarray) -> float:
        report = evaluate(y, p, n_boot=200, metrics=("ece", "smooth_ece"))
        return float(min(report.ci_low))

    return of_probcal


def covered(package: str, draws: int) -> dict[str, int]:
    """Count the samples of each distribution of scores whose interval contains 0."""
    low = lower_end(package)
    counts = {}
    for name, (a, b) in SCORES.items():
        rng = np.random.default_rng(0)
        counts[name] = 0
        for _ in range(draws):
            score = rng.beta(a, b, ROWS)
            label = (rng.random(ROWS) < score).astype(int)
            with contextlib.redirect_stdout(sys.stderr):
                counts[name] += int(low(label, score) <= 0)
    return counts


def main() -> None:
    """Run every package in an environment of its own, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument(
        "--package", choices=REQUIREMENTS, help="only this one, in this environment; prints JSON"
    )
    parser.add_argument("--only", choices=REQUIREMENTS, help="run one package, and write no file")
    options = parser.parse_args()
    if options.package:
        print(json.dumps(covered(options.package, options.draws)))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        chosen = [options.only] if options.only else REQUIREMENTS
        for package in chosen:
            requirement = REQUIREMENTS[package]
            python = sys.executable
            if requirement:
                venv.create(Path(folder, package), with_pip=True)
                python = str(Path(folder, package, "bin", "python"))
                subprocess.run([python, "-m", "pip", "-q", "install", requirement], check=True)
            command = [python, __file__, "--package", package, "--draws", str(options.draws)]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            for scores, count in json.loads(printed).items():
                row = {
                    "package": requirement or package,
                    "scores": scores,
                    "n": ROWS,
                    "draws": options.draws,
                    "contain_0": count,
                }
                rows.append(row)
                print(row, flush=True)
    if options.only:
        return
    with (ROOT / "docs" / "benchmarks" / "intervals_at_zero.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
