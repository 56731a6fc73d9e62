# ruff: noqa: D205, D400
"""
Which estimator should I believe?
=================================

The usual estimate depends on a number of bins that nobody knows. The sweep chooses it from the data; other estimators
take the noise out of the bins, or average over curves. Where they disagree, simulate.
"""

import matplotlib.pyplot as plt

import truecal

# %%
# The number of bins
# ------------------
#
# A sample of 1,000 rows from a population whose true error is known. Few bins hide error, many invent it. The sweep
# takes as many as keep the frequencies rising.

population = truecal.paper.population("resnet110_c100")
y, p = population.sample(1000, rng=0)
truecal.display.BinCountDisplay.from_predictions(y, p, true_error=population.true_error()).plot(
    name="ResNet-110 on CIFAR-100"
)
plt.show()

# %%
# One sample is luck. Over many, the mean of the sweep is near the truth, and that of fixed bins depends on their
# number.

bins = [{"estimator": "em_bin", "n_bins": b} for b in (2, 4, 8, 16, 32, 64)]
study = truecal.bias_study(
    {"ResNet-110 on CIFAR-100": population},
    estimators=[*bins, "em_sweep"],
    sizes=[1000],
    repeats=100,
    rng=0,
)
truecal.display.BinCountDisplay.from_study(study).plot()
plt.show()

# %%
# Where the sweep is at a loss
# ----------------------------
#
# Naive Bayes on flights: up to a score of 0.45 frequencies rise, and from there to 0.9 they do not. The sweep stops at
# seven bins, the last of which holds all high scores, and sees a smaller error than the others.

data = truecal.datasets.load("flights")
display = truecal.display.ComparisonDisplay.from_predictions(
    data.y_true,
    {"naive Bayes": data.predictions["naive_bayes"], "boosting": data.predictions["boosting"]},
    estimators=["averaged", "em_sweep", "em_debias", "ew_bin"],
    rng=0,
)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
display.plot(left)
truecal.display.ReliabilityDisplay.from_predictions(
    data.y_true, data.predictions["naive_bayes"], kind="sweep", rng=0
).plot(right, name="naive Bayes")
plt.show()
