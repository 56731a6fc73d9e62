"""Measure the peak memory of one call. A program of its own, so that nothing else has used memory before.

    python experiments/_memory.py em_bin labels.npy scores.npy

Prints JSON: bytes beyond the inputs, as the process held them (``resident``, Linux only) and as NumPy
asked for them (``allocated``).
"""

from __future__ import annotations

import json
import re
import sys
import tracemalloc
from pathlib import Path

import numpy as np

import truecal


def peak_resident() -> int | None:
    """Return the largest resident size so far; ru_maxrss will not do, it keeps that of the parent process."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
    return int(found[1]) * 1024 if found else None


def main(estimator: str, labels: str, scores: str) -> None:
    y, p = np.load(labels), np.load(scores)
    truecal.calibration_error(y[:100], p[:100], estimator=estimator)  # imports and first-call costs

    before = peak_resident()
    truecal.calibration_error(y, p, estimator=estimator)
    after = peak_resident()

    tracemalloc.start()
    truecal.calibration_error(y, p, estimator=estimator)
    _, allocated = tracemalloc.get_traced_memory()

    resident = None if before is None or after is None else after - before
    print(json.dumps({"resident": resident, "allocated": allocated}))


if __name__ == "__main__":
    main(*sys.argv[1:])
