# ruff: noqa: D103, D205, D400
"""
Errors that coarse bins cannot see
==================================

Errors that alternate between neighbouring scores cancel within a bin. Only a finer resolution shows them, and a finer
resolution needs more rows.
"""

import matplotlib.pyplot as plt
import numpy as np

import truecal

# %%
# Scores are multiples of 0.01. The event is 8 points more frequent than predicted at even hundredths and 8 points less
# frequent at odd ones, so the true error is 8%. The debiased error by number of bins:


def draw(n):
    k = np.random.default_rng(0).integers(10, 91, size=n)
    shift = np.where(k % 2 == 0, 0.08, -0.08)
    return np.random.default_rng(1).random(n) < k / 100 + shift, k / 100


counts = [4, 8, 16, 32, 64, 128, 256]
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for n, color in ((2_000, "#C98200"), (20_000, "#009E73"), (200_000, "#0072B2")):
    y, p = draw(n)
    values = [100 * truecal.calibration_error(y, p, estimator="em_debias", n_bins=b) for b in counts]
    ax.plot(counts, values, marker="o", linewidth=2, color=color, label=f"{n:,} rows")
ax.axhline(8, color="#747474", linestyle="--", label="true error")
ax.set_xscale("log", base=2)
ax.set_xticks(counts, [str(b) for b in counts])
ax.set(xlabel="equal-mass bins", ylabel="estimated error (%)")
ax.legend(frameon=False)
plt.show()
