import numpy as np
import pytest
from matplotlib.figure import Figure

from truecal.display import MissRateDisplay


def test_miss_rates_by_size_and_by_error():
    rows = [
        {
            "n": n,
            "estimator": "em_sweep",
            "true_error": error,
            "miss_rate": 0.01 if n > 100 else 0.9,
            "se": 0.02,
        }
        for n in (400, 100)
        for error in (0.05, 0.1, 0.05000000001)
    ]
    display = MissRateDisplay(rows)
    display.plot(Figure(figsize=(6, 3)).subplots())
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["true error 5%", "true error 10%"]
    line, _, (bars,) = display.axes_[1].containers[0].lines
    np.testing.assert_array_equal(line.get_xdata(), [100, 400])
    assert bars.get_segments()[1][:, 1] == pytest.approx([0, 0.05])  # never below 0
    display.plot(Figure(figsize=(6, 3)).subplots(), x="true_error")
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["n = 100", "n = 400"]
    with pytest.raises(ValueError, match="x must be one of"):
        display.plot(x="estimator")


def test_miss_rates_of_the_detection_module(ax):
    from truecal.simulation import miss_rates

    result = miss_rates([0.1], [50, 100], methods=["em_sweep"], repeats=20, rng=0)
    display = MissRateDisplay.from_miss_rates(result).plot(ax)
    np.testing.assert_allclose(
        ax.containers[0].lines[0].get_ydata(), [row.miss_rate for row in result.rows], rtol=0, atol=1e-12
    )
    assert display.ax_.get_ylabel() == "miss rate (%)"
