"""The runner: which parts it runs, and which it skips."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from truecal.reproduce import run

QUICKEST = "appendix_d"


@pytest.mark.slow
def test_a_finished_part_is_skipped_unless_forced_or_the_settings_differ(settings):
    lines: list[str] = []
    run(settings, [QUICKEST], report=lines.append)
    written = (settings.out / f"{QUICKEST}.csv").stat().st_mtime_ns
    run(settings, [QUICKEST], report=lines.append)
    assert "already finished" in lines[-1]
    assert (settings.out / f"{QUICKEST}.csv").stat().st_mtime_ns == written
    run(settings, [QUICKEST], report=lines.append, force=True)
    assert (settings.out / f"{QUICKEST}.csv").stat().st_mtime_ns > written
    run(replace(settings, seed=2), [QUICKEST], report=lines.append)
    assert "already finished" not in lines[-2]
    assert json.loads((settings.out / f"{QUICKEST}.json").read_text())["seed"] == 2


@pytest.mark.slow
def test_a_part_with_a_missing_file_is_run_again(settings):
    run(settings, [QUICKEST])
    (settings.out / f"{QUICKEST}.png").unlink()
    run(settings, [QUICKEST])
    assert (settings.out / f"{QUICKEST}.png").exists()
