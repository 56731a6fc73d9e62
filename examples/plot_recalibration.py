# ruff: noqa: D205, D400
"""
Recalibrate a model, and check the result
=========================================

Choose a recalibrator on held-out rows, apply it to other rows, and measure on those.
"""

import matplotlib.pyplot as plt
import numpy as np

import truecal

data = truecal.datasets.load("flights")
scores = data.predictions["balanced"]
order = np.random.default_rng(0).permutation(len(scores))
fit, test = order[:5000], order[5000:]

# %%
# The model was trained with balanced class weights, which made its scores too high everywhere.

selection = truecal.select_recalibrator(data.y_true[fit], scores[fit], rng=0)
recalibrated = selection.transform(scores[test])
figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.6), layout="constrained")
for ax, (name, proba) in zip(axes, {"before": scores[test], "after": recalibrated}.items(), strict=True):
    truecal.display.ReliabilityDisplay.from_predictions(data.y_true[test], proba, rng=0, ax=ax, name=name)
plt.show()

# %%
# The difference in calibration error, on rows that nothing was fitted to:

print(truecal.compare(data.y_true[test], scores[test], recalibrated, names=("before", "after")))
