"""``truecal reproduce``."""

from __future__ import annotations

from click.testing import CliRunner

from truecal.cli.reproduce import command

QUICKEST = "appendix_d"


def test_the_command_prints_the_comparison_and_lists_the_parts(tmp_path):
    runner = CliRunner()
    done = runner.invoke(command, ["--only", QUICKEST, "--quick", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "bins of the sweep when calibrated" in done.stdout
    assert (tmp_path / "out" / f"{QUICKEST}.svg").exists()
    listed = runner.invoke(command, ["--list"])
    assert "Figure 4" in listed.stdout
    assert "appendix_c" in listed.stdout
    assert max(map(len, listed.stdout.splitlines())) <= 80
