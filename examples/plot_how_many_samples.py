# ruff: noqa: D205, D400
"""
How many samples do I need?
===========================

A test of calibration with few rows finds large errors only. Before data are gathered, it is worth knowing how many are
needed; after it, what could still be hidden in them.
"""

import matplotlib.pyplot as plt

import truecal

# %%
# How often is an error missed?
# -----------------------------
#
# Simulated tests at the level of 5 %. A test with the sweep misses less than one with the usual fifteen bins of equal
# width, above all where rows are few.

missed = truecal.simulation.miss_rates(
    [0.05, 0.1, 0.2], [50, 100, 200, 400, 800, 1600], estimators=["ew_bin", "em_sweep"], repeats=200, rng=0
)
truecal.display.MissRateDisplay.from_miss_rates(missed).plot()
plt.show()

# %%
# The number of rows that will do
# -------------------------------
#
# To find an error of ten percentage points in 95 % of cases:

print(truecal.simulation.plan_sample_size(0.1, repeats=300, rng=0))

# %%
# What could be hidden
# --------------------
#
# Turned round: with 500 rows, errors below this are missed in more than one case of twenty.

print(f"{truecal.simulation.detectable_error(500, repeats=300, rng=0):.3f}")

# %%
# On your data
# ------------
#
# Both depend on the distribution of the scores. For flights, take the one that was fitted to them.

data = truecal.datasets.load("flights")
fit = truecal.fit_population(data.y_true, data.y_proba)
print(truecal.simulation.plan_sample_size(0.03, scores=fit.scores, repeats=100, rng=0))
