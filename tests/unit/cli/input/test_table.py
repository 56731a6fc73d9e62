import numpy as np
import pytest

from support.command_line import refuse, run
from truecal.cli._input.files import open_table


def test_wrong_names_are_answered_with_the_nearest(plain):
    for option in ("--label", "--score", "--weight", "--group"):
        assert "Did you mean 'region'?" in refuse("measure", plain, option, "regio")


def test_columns_are_found_by_name_or_path(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"pred": {"p": 0.5, "a.b": 1}, "y": 1}\n' * 3)
    table = open_table(str(tmp_path / "a.jsonl"))
    assert table.scan(["pred.p"]).collect()["c0"].to_list() == [0.5] * 3
    for name in ("pred.q", "y.p", "pred.p.x", "z"):
        with pytest.raises(ValueError, match="has no column"):
            table.scan([name])


def test_arrays_of_other_lengths_are_refused_only_where_they_are_used(tmp_path):
    np.savez(tmp_path / "a.npz", label=[0, 1], score=[0.2, 0.9], w=[1, 2, 3])
    run("measure", tmp_path / "a.npz", "--estimator", "ew_bin")
    assert "columns differ in length" in refuse("measure", tmp_path / "a.npz", "--weight", "w")


def test_short_lines_are_many_rows(tmp_path, monkeypatch):
    # A text table with few bytes has many rows if its lines are short.
    path = tmp_path / "short.csv"
    path.write_text("y,p\n" + "1,.5\n0,.2\n" * 100)
    monkeypatch.setattr("truecal.cli._input.table.MANY_ROWS", 300)
    assert not open_table(str(path)).is_large
    monkeypatch.setattr("truecal.cli._input.table.MANY_ROWS", 150)
    assert open_table(str(path)).is_large
