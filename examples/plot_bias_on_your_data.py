# ruff: noqa: D205, D400
"""
How wrong is the estimate, on data like mine?
=============================================

Every estimate of a calibration error has a bias, which depends on the scores, on the true curve and on the number of
rows. It can be measured on *your* data: fit a population to them, draw samples from it, and compare with the truth,
which is then known. This is the paper's "bias by construction".
"""

import matplotlib.pyplot as plt

import truecal

data = truecal.datasets.load("digits")
prediction = {"y_true": data.y_true, "y_proba": data.y_proba, "labels": data.labels}

# %%
# Fit a population
# ----------------
#
# A Beta distribution for the scores, and the best of twelve curves for how often they come true.

fit = truecal.fit_population(**prediction)
print(fit)

# %%
# Two thirds of the scores are exactly 1 to six decimals. The fit expects just that, because it knows of the rounding.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
truecal.display.ScoreDisplay.from_predictions(**prediction, fit=fit, scale="complement").plot(
    left, name="scores"
)
truecal.display.CurveDisplay.from_predictions(**prediction).plot(
    right, name="calibration curve", scale="complement"
)
plt.show()

# %%
# Simulate
# --------
#
# The fitted population *is* a population: draw samples of the size at hand, and of other sizes.

study = truecal.bias_study(
    {"logistic regression on digits": fit.population},
    estimators=["ew_bin", "em_bin", "em_debias", "em_sweep", "averaged"],
    sizes=[225, 450, 900, 1797],
    repeats=100,
    rng=0,
)
truecal.display.BiasDisplay.from_study(study).plot()
plt.show()

# %%
# With 1,797 rows, how far is each estimator off on average, and how far from sample to sample?

for row in study.rows:
    if row["n"] == 1797:
        bias, sd, rmse = (100 * row[key] for key in ("bias", "sd", "rmse"))
        print(f"{row['estimator']:10} bias {bias:+5.2f}, sd {sd:4.2f}, rmse {rmse:4.2f} percentage points")
