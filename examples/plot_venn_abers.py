# ruff: noqa: D205, D400
"""
Venn-Abers: recalibration with bounds
=====================================

Venn-Abers calibration gives two probabilities for each score, from isotonic regressions that contain the new row with
the label 0 and with the label 1. The distance between them shows how sure the recalibration is.
"""

import matplotlib.pyplot as plt
import numpy as np

import truecal
from truecal.recalibration import IsotonicCalibration, VennAbersCalibration

# %%
# Few rows, wide bounds
# ---------------------
#
# The shaded band is between the two probabilities, the curve is their combination. With more rows the band closes.

population = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
grid = np.linspace(0.005, 0.995, 200)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
for ax, n in zip(axes, (100, 2000), strict=True):
    y, p = population.sample(n, rng=0)
    venn_abers = VennAbersCalibration().fit(p, y)
    ax.fill_between(grid, *venn_abers.maps_[0].bounds(grid), alpha=0.3, linewidth=0, step="mid")
    ax.plot(grid, venn_abers.transform(grid), label="Venn-Abers")
    ax.plot(grid, IsotonicCalibration().fit(p, y).transform(grid), linewidth=1, label="isotonic")
    ax.plot(grid, grid**2, color="grey", linestyle=":", label="true frequency")
    ax.set_title(f"{n:,} rows", loc="left")
    ax.set_xlabel("score")
axes[0].set_ylabel("recalibrated probability")
axes[0].legend(frameon=False)
plt.show()

# %%
# It is never certain
# -------------------
#
# Isotonic regression returns exactly 0 and 1 at the ends, where one new row that disagrees makes the log loss infinite.

y, p = population.sample(300, rng=1)
for recalibrator in (IsotonicCalibration(), VennAbersCalibration()):
    q = recalibrator.fit(p, y).transform(grid)
    print(f"{type(recalibrator).__name__:22} {q.min():.4f} to {q.max():.4f}")
