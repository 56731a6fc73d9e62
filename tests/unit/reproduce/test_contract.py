"""Settings, comparisons and parts."""

from __future__ import annotations

import pytest

from truecal.reproduce.contract import NAMES, Settings, compare_with_paper, load_part

QUICKEST = "appendix_d"


def test_comparisons_are_by_joint_standard_errors():
    assert compare_with_paper("q", 1.0, 1.29, 0.1).agrees
    assert not compare_with_paper("q", 1.0, 1.31, 0.1).agrees
    assert compare_with_paper("q", 1.0, 1.41, 0.1, published_error=0.1).agrees


def test_the_effort_selects_one_of_three_values(tmp_path):
    for effort, value in (("full", 1), ("quick", 2), ("tiny", 3)):
        assert Settings(out=tmp_path, effort=effort).of(1, 2, 3) == value


def test_the_work_folder_is_made_when_it_is_needed(tmp_path):
    settings = Settings(out=tmp_path / "out")
    assert not settings.out.exists()
    assert settings.work == tmp_path / "out" / "work"
    assert settings.work.is_dir()


def test_names_are_modules_with_a_function_of_that_name():
    assert len(set(NAMES)) == len(NAMES)
    assert {load_part(name).name for name in NAMES} == set(NAMES)
    with pytest.raises(ValueError, match="fig4"):
        load_part("fig44")
