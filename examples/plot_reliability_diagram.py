# ruff: noqa: D205, D400
"""
Reading a reliability diagram
=============================

A reliability diagram plots observed frequencies against scores. It is easily misread: with few rows, the curve of a
perfectly calibrated model deviates from the diagonal as well. The band shows how far.
"""

import matplotlib.pyplot as plt

import truecal

# %%
# A calibrated model with 200 rows
# --------------------------------
#
# These scores are calibrated by construction. The usual plot, fifteen bins of equal width, suggests otherwise; the band
# shows that such gaps are to be expected.

calibrated = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.IdentityCurve())
y, p = calibrated.sample(200, rng=4)

figure, axes = plt.subplots(1, 3, figsize=(10, 4.2), layout="constrained")
for ax, kind, options in zip(axes, ("bins", "sweep", "isotonic"), ({"binning": "ew"}, {}, {}), strict=True):
    truecal.display.ReliabilityDisplay.from_predictions(y, p, kind=kind, rng=0, ax=ax, name=kind, **options)
plt.show()

# %%
# The three panels show the same rows.
#
# - **bins**: a fixed number of bins. The number changes the plot.
# - **sweep**: as many equal-mass bins as keep the frequencies nondecreasing, as ECE_sweep chooses them.
# - **isotonic**: the best nondecreasing curve. Nothing needs to be chosen; this is the default.
#
# A confident model
# -----------------
#
# The top-label scores of a network are close to 1. On linear axes everything of interest is squeezed into the corner,
# and the histogram has a single tall bar (which is why its axis is logarithmic). On axes that expand the region near 1,
# the plot shows that where the model claims an error rate of 1 in 10,000, the observed rate is 1 in 20.

network = truecal.paper.population("resnet110_c10")
y, p = network.sample(10_000, rng=0)

figure, axes = plt.subplots(1, 2, figsize=(8.5, 4.4), layout="constrained")
for ax, scale in zip(axes, ("linear", "complement"), strict=True):
    truecal.display.ReliabilityDisplay.from_predictions(y, p, scale=scale, rng=0, ax=ax, name=f"{scale} axes")
plt.show()

# %%
# Scores that tie
# ---------------
#
# A forest of 100 trees gives scores in hundredths. Equal scores are kept together, in the curve and in the bins, so the
# order of rows does not matter. This model is underconfident: it is correct more often than its scores say.

data = truecal.datasets.load("digits")
truecal.display.ReliabilityDisplay.from_predictions(
    data.y_true, data.predictions["forest"], labels=data.labels, rng=0, name="random forest, top digit"
)
plt.show()
