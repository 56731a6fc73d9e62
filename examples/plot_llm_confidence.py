# ruff: noqa: D205, D400
"""
Stated confidences of a language model
======================================

Stated confidences take few values: 50, 70, 80, 90, 95, 100. Each value gets its own bin, so every point compares one
stated confidence with its accuracy.
"""

import matplotlib.pyplot as plt
import numpy as np

import truecal

# %%
# 800 simulated answers of an overconfident model.

stated = np.array([0.5, 0.7, 0.8, 0.9, 0.95, 1.0])
accuracy = np.array([0.45, 0.5, 0.6, 0.7, 0.75, 0.9])
rng = np.random.default_rng(0)
k = rng.choice(6, size=800, p=[0.05, 0.1, 0.2, 0.3, 0.25, 0.1])
confidence, correct = stated[k], (rng.random(800) < accuracy[k]).astype(int)

bins = truecal.estimate(correct, confidence, estimator="em_bin", n_bins=100).bins
figure, ax = plt.subplots(figsize=(5.4, 5), layout="constrained")
ax.plot([0.4, 1], [0.4, 1], color="#747474", linestyle="--", label="calibrated")
ax.scatter(
    bins.mean_score,
    bins.mean_label,
    s=2 * bins.count,
    color="#0072B2",
    alpha=0.8,
    label="answers (area: number)",
)
ax.set(xlabel="stated confidence", ylabel="accuracy", xlim=(0.4, 1.05), ylim=(0.3, 1.05), aspect="equal")
ax.legend(frameon=False, loc="upper left", markerscale=0.4)
plt.show()

# %%
# The error, with its interval:

print(truecal.estimate(correct, confidence, confidence_level=0.95))

# %%
# If only the most confident answers are given, fewer of them are wrong. On the right, the accuracy of the answers with
# at least some confidence stays below what the confidences promise (dashed).

truecal.display.RiskCoverageDisplay.from_predictions(correct, confidence, name="model")
plt.show()

# %%
# How much noise is left? The same stated scores with these accuracies, and with those of a calibrated model, for 200
# answers. For the overconfident model all estimators agree; for the calibrated one the binned error is still 6%.

scores = truecal.simulation.AtomScores(stated, [0.05, 0.1, 0.2, 0.3, 0.25, 0.1])
curve = truecal.simulation.FunctionCurve(lambda c: np.interp(c, stated, accuracy))
overconfident = truecal.Population(scores, curve)
study = truecal.bias_study(
    {"overconfident": overconfident, "calibrated": overconfident.calibrated()},
    estimators=["multiscale", "em_debias", "em_sweep", "ew_bin"],
    sizes=[200],
    repeats=300,
    rng=0,
)
print(study)
