# ruff: noqa: D205, D400
"""
Reading a reliability diagram
=============================

A reliability diagram draws scores against how often they come true. It is easily misread: with few rows, the curve of a
perfect model wanders off the diagonal as well. The band shows how far.
"""

import matplotlib.pyplot as plt

import truecal

# %%
# A perfect model, and 200 rows
# -----------------------------
#
# These scores are calibrated by construction. The usual picture, fifteen bins of equal width, suggests otherwise; the
# band says that such gaps are to be expected.

calibrated = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.IdentityCurve())
y, p = calibrated.sample(200, rng=4)

figure, axes = plt.subplots(1, 3, figsize=(10, 4.2), layout="constrained")
for ax, kind, options in zip(axes, ("bins", "sweep", "isotonic"), ({"binning": "ew"}, {}, {}), strict=True):
    truecal.display.ReliabilityDisplay.from_predictions(y, p, kind=kind, rng=0, **options).plot(ax, name=kind)
plt.show()

# %%
# The three panels show the same rows.
#
# - **bins**: bins that are fixed beforehand. Their number changes the picture.
# - **sweep**: as many bins of equal mass as keep the frequencies rising, as ECE_sweep chooses them.
# - **isotonic**: the best rising curve. Nothing is chosen; it is the default.
#
# A confident model
# -----------------
#
# A network's top-label scores crowd near 1. On linear axes all of interest happens in the last hair's breadth, and the
# histogram has one bar (its axis is logarithmic for that reason). On axes that are stretched towards 1, one sees that
# where the model claims to err once in 10,000 cases it errs once in twenty.

network = truecal.paper.population("resnet110_c10")
y, p = network.sample(10_000, rng=0)

figure, axes = plt.subplots(1, 2, figsize=(8.5, 4.4), layout="constrained")
for ax, scale in zip(axes, ("linear", "complement"), strict=True):
    display = truecal.display.ReliabilityDisplay.from_predictions(y, p, scale=scale, rng=0)
    display.plot(ax, name=f"{scale} axes")
plt.show()

# %%
# Scores that tie
# ---------------
#
# A forest of 100 trees gives scores in hundredths. Equal scores stay together, in the curve as in the bins, so that the
# order of rows never matters. This model is under-confident: it is right more often than it says.

data = truecal.datasets.load("digits")
truecal.display.ReliabilityDisplay.from_predictions(
    data.y_true, data.predictions["forest"], labels=data.labels, rng=0
).plot(name="random forest, top digit")
plt.show()
