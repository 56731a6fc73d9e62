# ruff: noqa: D205, D400
"""
How the test works
==================

If a model is calibrated, labels are draws from its scores. So the null distribution of any statistic can be simulated:
draw labels from the scores and compute the statistic again.
"""

import matplotlib.pyplot as plt

import truecal

# %%
# Forecasts of late flights, 10,000 rows. The statistic is the binned error, and the p-value is the share of resamples
# whose statistic is at least as large.

data = truecal.datasets.load("flights")
test = truecal.calibration_test(data.y_true, data.y_proba, method="em_bin", rng=0)

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.hist(100 * test.null, bins=40, color="#0072B2", label="if the model were calibrated")
ax.axvline(100 * test.statistic, color="#C8402C", linewidth=2.5, label="the data")
ax.set(xlabel="statistic: binned calibration error (%)", ylabel="resamples")
ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.66, 1))
plt.show()

# %%
# None of the 999 resamples is as far off as the data, so the p-value is 1/1000:

print(f"{test.pvalue:.3f}")
