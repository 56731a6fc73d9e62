# ruff: noqa: D205, D400
"""
How the number of bins changes the estimate
===========================================

The usual estimate depends on the number of bins. The sweep chooses it from the data; other estimators subtract the
noise of the bins or combine several resolutions.
"""

import matplotlib.pyplot as plt

import truecal

# %%
# The number of bins
# ------------------
#
# A sample of 1,000 rows from a population whose true error is known. Too few bins hide error, too many add noise that
# counts as error. The sweep uses as many bins as keep the observed frequencies nondecreasing.

population = truecal.paper.population("resnet110_c100")
y, p = population.sample(1000, rng=0)
truecal.display.BinCountDisplay.from_predictions(
    y, p, true_error=population.true_error(), name="ResNet-110 on CIFAR-100"
)
plt.show()

# %%
# A single sample proves little. Over many samples, the mean of the sweep is close to the truth, and the mean of a fixed
# number of bins depends on that number.

bins = [{"estimator": "em_bin", "n_bins": b} for b in (2, 4, 8, 16, 32, 64)]
study = truecal.bias_study(
    {"ResNet-110 on CIFAR-100": population},
    estimators=[*bins, "em_sweep"],
    sizes=[1000],
    repeats=100,
    rng=0,
)
truecal.display.BinCountDisplay.from_study(study)
plt.show()

# %%
# Where the sweep fails
# ---------------------
#
# Naive Bayes on flights: observed frequencies rise up to a score of 0.45 and are flat from there to 0.9. The sweep
# stops at seven bins, the last of which contains all high scores, and reports a smaller error than the others.

data = truecal.datasets.load("flights")
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
truecal.display.ComparisonDisplay.from_predictions(
    data.y_true,
    {"naive Bayes": data.predictions["naive_bayes"], "boosting": data.predictions["boosting"]},
    estimators=["multiscale", "em_sweep", "em_debias", "ew_bin"],
    rng=0,
    ax=left,
)
truecal.display.ReliabilityDisplay.from_predictions(
    data.y_true, data.predictions["naive_bayes"], kind="sweep", rng=0, ax=right, name="naive Bayes"
)
plt.show()
