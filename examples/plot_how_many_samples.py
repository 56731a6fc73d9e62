# ruff: noqa: D205, D400
"""
How many samples do I need?
===========================

With few rows, a test of calibration detects only large errors. Find out before data is collected how many rows are
needed, and afterwards which errors could have gone unnoticed.
"""

import matplotlib.pyplot as plt

import truecal

# %%
# How often is an error missed?
# -----------------------------
#
# Simulated tests at level 5%. The multiscale test, the default, misses fewer errors than one based on the usual fifteen
# equal-width bins, especially with few rows.

missed = truecal.simulation.miss_rates(
    [0.05, 0.1, 0.2], [50, 100, 200, 400, 800, 1600], methods=["ew_bin", "multiscale"], repeats=200, rng=0
)
truecal.display.MissRateDisplay.from_miss_rates(missed)
plt.show()

# %%
# The required number of rows
# ---------------------------
#
# To detect an error of ten percentage points with a power of 95%:

print(truecal.simulation.plan_sample_size(0.1, repeats=300, rng=0))

# %%
# The smallest detectable error
# -----------------------------
#
# Conversely, with 500 rows errors below this value are missed in more than 5% of cases:

print(f"{truecal.simulation.detectable_error(500, repeats=300, rng=0):.3f}")

# %%
# On your data
# ------------
#
# Both depend on the distribution of the scores. Here it is the one fitted to the flights.

data = truecal.datasets.load("flights")
fit = truecal.fit_population(data.y_true, data.y_proba)
print(truecal.simulation.plan_sample_size(0.03, scores=fit.scores, repeats=100, rng=0))
