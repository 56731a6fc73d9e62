# ruff: noqa: D205, D400
"""
Confidence intervals near zero
==============================

A percentile bootstrap of the usual ECE never contains a true error of 0. truecal's interval does, in at least 95% of
samples.
"""

import matplotlib.pyplot as plt
import numpy as np

import truecal

# %%
# Thirty samples of 500 rows from a calibrated model. For each, the bootstrap interval of the usual ECE and truecal's
# interval, both at level 95%.

model = truecal.Population(truecal.simulation.BetaScores(2, 2), truecal.simulation.IdentityCurve())
figure, axes = plt.subplots(1, 2, figsize=(8.4, 4.4), sharex=True, sharey=True, layout="constrained")
contain = [0, 0]
for k in range(30):
    y, p = model.sample(500, rng=k)
    rng = np.random.default_rng(k)
    rows = (rng.integers(0, 500, size=500) for _ in range(100))
    bootstrap = [truecal.calibration_error(y[row], p[row], estimator="ew_bin") for row in rows]
    interval = truecal.estimate(y, p, confidence_level=0.95).interval
    ends = (np.quantile(bootstrap, [0.025, 0.975]), (interval.low, interval.high))
    for m, (low, high) in enumerate(ends):
        contain[m] += low <= 0
        axes[m].plot([100 * low, 100 * high], [k, k], color="#0072B2" if low <= 0 else "#C8402C", linewidth=2)
for ax, name in zip(axes, ("bootstrap of the usual ECE", "truecal"), strict=True):
    ax.axvline(0, color="#747474", linestyle="--")
    ax.set(title=name, xlabel="calibration error (%); the truth is 0", yticks=[])
plt.show()

# %%
# Intervals that contain the truth, out of 30:

print(f"bootstrap {contain[0]}, truecal {contain[1]}")
