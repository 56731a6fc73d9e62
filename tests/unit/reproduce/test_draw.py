"""Style of the figures."""

import matplotlib
import pytest

from truecal.reproduce._draw import label_of, new_figure, save, style_of


@pytest.mark.parametrize(
    ("estimator", "label"),
    [("ew_bin", "EW bin"), ("em_mce", "EM MCE"), ("kde_without_root", "KDE, without root"), ("ks", "KS")],
)
def test_labels_are_those_of_the_paper(estimator, label):
    assert label_of(estimator) == label


def test_equal_width_and_equal_mass_differ_in_line_and_marker():
    wide, mass = style_of("ew_sweep"), style_of("em_sweep")
    assert wide["color"] == mass["color"]
    assert wide["markerfacecolor"] == "white" != mass["markerfacecolor"]


def test_saving_is_reproducible_and_leaves_global_settings_alone(tmp_path):
    before = dict(matplotlib.rcParams)
    contents = []
    for name in ("one", "two"):
        figure, axes = new_figure(1, 2, size=(3, 2))
        assert axes.shape == (1, 2)
        axes[0, 0].plot([0, 1])
        (tmp_path / name).mkdir()
        paths = save(figure, tmp_path / name / "figure")
        contents.append([path.read_bytes() for path in paths])
    assert contents[0] == contents[1]
    assert dict(matplotlib.rcParams) == before
