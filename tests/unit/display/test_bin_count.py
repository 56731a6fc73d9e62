import numpy as np

import truecal
from support.artists import labelled, legend_texts
from truecal.display import BinCountDisplay


def test_bin_count_marks_the_sweep_and_the_truth(predictions, ax):
    BinCountDisplay.from_predictions(*predictions, n_bins=[1, 2, 4, 8], true_error=0.18).plot(ax, name="x")
    sweep = truecal.estimate(*predictions, estimator="em_sweep")
    np.testing.assert_array_equal(labelled(ax, "em_bin").get_xdata(), [1, 2, 4, 8])
    for b, value in zip(*labelled(ax, "em_bin").get_data(), strict=True):
        assert value == truecal.calibration_error(*predictions, estimator="em_bin", n_bins=int(b))
    dot = labelled(ax, "em_sweep")
    assert (dot.get_xdata()[0], dot.get_ydata()[0]) == (sweep.n_bins, sweep.value)
    assert labelled(ax, "true error").get_ydata()[0] == 0.18
    assert ax.get_title(loc="left") == "x, n = 500"
    assert ax.get_ylim()[0] == 0


def test_bin_count_of_a_study_without_a_sweep(ax):
    choices = [{"estimator": "ew_bin", "n_bins": b} for b in (2, 8)]
    square = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    study = truecal.bias_study({"square": square}, estimators=choices, sizes=[100], repeats=9, rng=0)
    BinCountDisplay.from_study(study, binning="ew").plot(ax)
    assert legend_texts(ax) == ["ew_bin", "true error"]
    assert ax.get_ylabel() == "mean error, l2 (%)"
    assert len(ax.collections) == 1
