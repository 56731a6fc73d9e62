# ruff: noqa: D205, D400
"""
How far off are these probabilities?
====================================

Three models forecast whether a flight from New York City will arrive late. They learnt from the first eight months
of 2013, and are judged on 10,000 flights of the last four.
"""

import matplotlib.pyplot as plt

import truecal

data = truecal.datasets.load("flights")
print(data.description)

# %%
# One number
# ----------
#
# The calibration error is the distance between a probability and how often it comes true: root mean square over
# all forecasts, a fraction. Here the forecasts of the first model are off by about three percentage points.

error = truecal.estimate(data.y_true, data.y_proba)
print(error)

# %%
# How sure is that?
# -----------------
#
# An interval holds the true error, also where that is zero. If it began at zero, these flights would not be enough
# to tell the model from a calibrated one.

sample = truecal.data.one_sample(data.y_true, data.y_proba)
print(truecal.confidence_interval(sample))

# %%
# Where is it off?
# ----------------
#
# The curve shows how often each score came true. A calibrated model would stay in the band nine times in ten, at each
# place. Of flights to which this one gave 60 %, only half were late: it is over-confident, on other months than those
# that it learnt from.

truecal.display.ReliabilityDisplay.from_predictions(
    data.y_true, data.y_proba, estimator="averaged", rng=0
).plot(name="P(late)")
plt.show()

# %%
# Several models
# --------------
#
# The second model is the first with balanced class weights, a common setting that pushes all probabilities of the rare
# class up. The third is naive Bayes, whose high scores are too high because it takes its inputs for independent.

display = truecal.display.ComparisonDisplay.from_predictions(data.y_true, data.predictions, rng=0)
display.plot()
plt.show()

# %%

display.plot(kind="curves")
plt.show()
