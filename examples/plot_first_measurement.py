# ruff: noqa: D205, D400
"""
First steps: measure, test, plot
================================

Three models forecast whether a flight from New York City will arrive late. They were trained on the first eight months
of 2013 and are evaluated on 10,000 flights of the last four.
"""

import matplotlib.pyplot as plt

import truecal

data = truecal.datasets.load("flights")
print(data.description)

# %%
# One number
# ----------
#
# The calibration error is the root mean square distance between predicted probability and observed frequency. It is a
# fraction: the forecasts of the first model are off by about three percentage points.

error = truecal.estimate(data.y_true, data.y_proba)
print(error)

# %%
# How certain is it?
# ------------------
#
# The confidence interval is valid even if the true error is 0. If it began at 0, these flights would not suffice to
# distinguish the model from a calibrated one.

print(truecal.confidence_interval(data.y_true, data.y_proba))

# %%
# Where is it off?
# ----------------
#
# The curve shows the observed frequency at each score. At any score, the curve of a calibrated model lies within the
# band with probability 90%. Of the flights with a score near 0.6 only half were late: the model is overconfident on
# months that it was not trained on.

truecal.display.ReliabilityDisplay.from_predictions(
    data.y_true, data.y_proba, estimator="multiscale", rng=0, name="P(late)"
)
plt.show()

# %%
# Several models
# --------------
#
# The second model is the first one with balanced class weights, a common setting that raises all probabilities of the
# rare class. The third is naive Bayes, whose high scores are too high because it assumes independent inputs.

display = truecal.display.ComparisonDisplay.from_predictions(data.y_true, data.predictions, rng=0)
plt.show()

# %%

display.plot(kind="curves")
plt.show()
