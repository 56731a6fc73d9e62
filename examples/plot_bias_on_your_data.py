# ruff: noqa: D205, D400
"""
How biased is the estimate on data like mine?
=============================================

Every estimate of a calibration error has a bias that depends on the scores, the true curve and the number of rows. You
can measure it for *your* data: fit a population, draw samples from it, and compare estimates with the truth, which is
then known. This is the paper's "bias by construction".
"""

import matplotlib.pyplot as plt

import truecal

data = truecal.datasets.load("digits")
prediction = {"y_true": data.y_true, "y_proba": data.y_proba, "labels": data.labels}

# %%
# Fit a population
# ----------------
#
# A Beta distribution for the scores, and the best of twelve curves for the observed frequency.

fit = truecal.fit_population(**prediction)
print(fit)

# %%
# Two thirds of the scores equal 1 to six decimals. The fit reproduces this, because it takes rounding into account.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
truecal.display.ScoreDisplay.from_predictions(
    **prediction, fit=fit, scale="complement", ax=left, name="scores"
)
truecal.display.CurveDisplay.from_predictions(
    **prediction, ax=right, name="calibration curve", scale="complement"
)
plt.show()

# %%
# Simulate
# --------
#
# Draw samples of the given size, and of other sizes, from the fitted population.

study = truecal.bias_study(
    {"logistic regression on digits": fit.population},
    estimators=["ew_bin", "em_bin", "em_debias", "em_sweep", "multiscale"],
    sizes=[225, 450, 900, 1797],
    repeats=100,
    rng=0,
)
truecal.display.BiasDisplay.from_study(study)
plt.show()

# %%
# With 1,797 rows, this is the bias of each estimator, and its variation from sample to sample:

for row in study.rows:
    if row["n"] == 1797:
        bias, sd, rmse = (100 * row[key] for key in ("bias", "sd", "rmse"))
        print(f"{row['estimator']:10} bias {bias:+5.2f}, sd {sd:4.2f}, rmse {rmse:4.2f} percentage points")
