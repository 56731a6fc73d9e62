# ruff: noqa: D205, D400
"""
Decision curves
===============

A decision curve shows whether acting on predicted probabilities is better than acting always or never, for every
threshold at which one might act. Here two models of late flights are compared.
"""

import matplotlib.pyplot as plt
import numpy as np

import truecal
from truecal.display import DecisionCurveDisplay

data = truecal.datasets.load("flights")
thresholds = np.arange(2, 61) / 100

# %%
# Two models
# ----------
#
# Naive Bayes is far too confident. At thresholds below 15% acting on it is worse than acting always, and above 50% it
# does harm: the net benefit is below that of never acting.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, name in zip(axes, ("boosting", "naive_bayes"), strict=True):
    curve = truecal.net_benefit(data.y_true, data.predictions[name], thresholds=thresholds)
    DecisionCurveDisplay(curve).plot(ax, name=name)
    ax.set_title(name, loc="left")
plt.show()

# %%
# What miscalibration costs
# -------------------------
#
# The net benefit that a logistic recalibration would add, with a pointwise interval. The ranking of the flights stays
# the same: what is lost here is lost by wrong probabilities alone. Between 25% and 40% the cost is negative, because a
# logistic curve does not fit there; see :doc:`plot_recalibration` for how to choose a better one.

curve = truecal.net_benefit(data.y_true, data.predictions["naive_bayes"], thresholds=thresholds)
DecisionCurveDisplay(curve).plot(quantity="cost", name="naive Bayes")
plt.show()

# %%
# At single thresholds
# --------------------

print(truecal.net_benefit(data.y_true, data.y_proba, thresholds=[0.1, 0.2, 0.3]))
