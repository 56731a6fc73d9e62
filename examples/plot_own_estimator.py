# ruff: noqa: D103, D205, D400
"""
Write and judge an estimator
============================

An estimator is one decorated function. Studies, the command line and the report can use it at once.
"""

import matplotlib.pyplot as plt
import numpy as np

import truecal

# %%
# The absolute difference between mean score and mean label ("calibration in the large"). It ignores all errors that
# cancel.


@truecal.register_estimator(
    "mean_gap", summary="Gap between mean score and mean label.", reference="Cox (1958)"
)
def mean_gap(sample, *, norm):
    return truecal.results.Estimate(abs(np.average(sample.score - sample.label, weights=sample.count)))


# %%
# Its bias on populations with known truth, beside two others:

study = truecal.bias_study(
    {
        "shifted": truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(1.3)),
        "too extreme": truecal.Population(
            truecal.simulation.UniformScores(), truecal.simulation.LogisticCurve(2.5, -1.25)
        ),
    },
    estimators=["mean_gap", "em_debias", "ew_bin"],
    sizes=[200, 800, 3200],
    repeats=100,
    rng=0,
)
truecal.display.BiasDisplay.from_study(study)
plt.show()
