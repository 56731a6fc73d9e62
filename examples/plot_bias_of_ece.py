# ruff: noqa: D205, D400
"""
Why the usual ECE misleads
==========================

The expected calibration error with 15 bins is never near 0, even for a perfectly calibrated model: the noise of the
bins cannot be negative, so it adds up.
"""

import matplotlib.pyplot as plt
import numpy as np

import truecal

# %%
# 500 samples of 200 rows from a calibrated model, and the l1 error of each by two estimators.

model = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.IdentityCurve())
samples = [model.sample(200, rng=seed) for seed in range(500)]
usual = [100 * truecal.calibration_error(y, p, estimator="ew_bin", norm=1) for y, p in samples]
default = [100 * truecal.calibration_error(y, p, norm=1) for y, p in samples]

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
bins = np.linspace(0, 16, 33)
ax.hist(usual, bins, color="#C8402C", alpha=0.75, label="ECE, 15 equal-width bins")
ax.hist(default, bins, color="#0072B2", alpha=0.75, label="truecal's default estimator")
ax.axvline(0, color="#747474", linestyle="--")
ax.set(xlabel="estimated calibration error (%); the truth is 0", ylabel="samples")
ax.legend(frameon=False)
plt.show()

# %%
# The mean of each:

print(f"usual ECE {np.mean(usual):.1f}%, default {np.mean(default):.1f}%")
