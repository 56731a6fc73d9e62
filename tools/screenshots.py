"""Pictures of the report in a real browser: wide and narrow, light and dark, and printed.

    python tools/screenshots.py FOLDER [REPORT.html ...]

Without reports, those of the bundled demo data are made first.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.chromium import open_browser  # noqa: E402

#: Name, width in CSS pixels, colour scheme.
VIEWS = (
    ("wide-light", 1200, "light"),
    ("wide-dark", 1200, "dark"),
    ("middle-light", 700, "light"),
    ("phone-light", 390, "light"),
    ("phone-dark", 390, "dark"),
)


def shoot(browser: Any, report: Path, folder: Path) -> list[Path]:
    """Write one PNG for each view, one with a tip open, and a PDF; return their paths."""
    written = []
    for name, width, scheme in VIEWS:
        browser.view(width, scheme)
        browser.open(report)
        written.append(_write(folder / f"{report.stem}-{name}.png", browser.screenshot()))
    browser.view(1200, "light")
    browser.open(report)
    browser.hover(".reach", -2)
    written.append(_write(folder / f"{report.stem}-tip.png", browser.screenshot(full=False)))
    written.append(_write(folder / f"{report.stem}.pdf", browser.pdf()))
    return written


def _write(path: Path, content: str) -> Path:
    path.write_bytes(base64.b64decode(content))
    return path


def demo_reports(folder: Path) -> list[Path]:
    """Make reports on two simulated models: one with scores all over, one with skewed ones."""
    import truecal

    uniform = truecal.Population(truecal.simulation.BetaScores(1, 1), truecal.simulation.PowerCurve(1.3))
    reports = []
    for name, population in {"uniform": uniform, "skewed": truecal.paper.population("resnet110_c10")}.items():
        path = folder / f"{name}.html"
        truecal.assess(*population.sample(5000, rng=0), rng=0).to_html(path, source=f"{name} scores")
        reports.append(path)
    return reports


def main() -> None:
    """Take the pictures."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, open_browser() as browser:
        for report in [Path(name) for name in sys.argv[2:]] or demo_reports(Path(scratch)):
            for path in shoot(browser, report, folder):
                print(path)


if __name__ == "__main__":
    main()
