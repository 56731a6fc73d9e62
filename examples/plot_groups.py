# ruff: noqa: D205, D400
"""
Calibration of groups
=====================

A model can be calibrated overall and not within groups, because errors of opposite sign cancel.
"""

import matplotlib.pyplot as plt
import numpy as np

import truecal

# %%
# Late flights by airport, with 95% intervals.

data = truecal.datasets.load("flights")
truecal.display.ComparisonDisplay.from_groups(
    data.y_true, data.y_proba, data.groups["origin"], estimators=["multiscale"], rng=0
)
plt.show()

# %%
# The sign shows where errors cancel: mean score minus observed frequency, by airline.

carrier = np.asarray(data.groups["carrier"])
names = [name for name in np.unique(carrier) if (carrier == name).sum() >= 200]
gap = [100 * (data.y_proba - data.y_true)[carrier == name].mean() for name in names]
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.bar(names, gap, color=["#C8402C" if one > 0 else "#0072B2" for one in gap])
ax.axhline(0, color="#747474", linewidth=1)
ax.set(xlabel="airline", ylabel="mean score - observed (points)")
plt.show()
