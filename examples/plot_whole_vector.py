# ruff: noqa: D205, D400
"""
The whole probability vector
============================

A model of several classes can be right about its top label and still be wrong about the rest. Three further questions:
the top label given the predicted class, the k most probable classes, and the whole vector.
"""

import matplotlib.pyplot as plt
import numpy as np

import truecal
from truecal.recalibration import DirichletCalibration, TemperatureScaling, VectorScaling

# %%
# A model whose classes have opposite faults
# ------------------------------------------
#
# The model is overconfident if it predicts class 0 and underconfident if it predicts class 1. Over all rows the two
# partly cancel: the error of the top label is much smaller if the predicted class is ignored.

rng = np.random.default_rng(0)
truth = rng.dirichlet([1.0, 1.0, 1.0], 6000)
label = (truth.cumsum(axis=1) < rng.random((6000, 1))).sum(axis=1)
logits = np.log(truth) + np.array([0.7, -0.7, 0.0])
proba = truecal.data.probabilities_from_logits(logits)

for question in ("top", "top_by_class", "top_2", "classwise"):
    print(truecal.estimate(label, proba, multiclass=question, confidence_level=0.95))

# %%
# The top label, class by class
# -----------------------------
#
# ``multiclass="top_by_class"`` compares confidence and accuracy among rows with the same predicted class (Gupta and
# Ramdas 2022).

top = proba.argmax(axis=1)
ax = None
for k in range(3):
    rows = top == k
    shown = truecal.display.ReliabilityDisplay.from_predictions(
        label[rows] == k, proba[rows, k], kind="bins", n_bins=8, name=f"predicted class {k}", rng=0, ax=ax
    )
    ax = shown.ax_
plt.show()

# %%
# The whole vector
# ----------------
#
# ``multiclass="canonical"`` tests all probabilities at once. The test is exact: labels are drawn from the vectors.

half = slice(0, 3000)
test = truecal.calibration_test(label[half], proba[half], multiclass="canonical", n_resamples=199, rng=0)
print(test)

# %%
# Recalibrating the vector
# ------------------------
#
# One temperature cannot move classes against each other. Vector scaling has a slope and an intercept for each class,
# Dirichlet calibration a whole matrix. They are fitted to one half and judged on the other.

rest = slice(3000, None)
maps = {
    "none": None,
    "temperature": TemperatureScaling(input="probabilities"),
    "vector": VectorScaling(),
    "Dirichlet": DirichletCalibration(),
}
for name, recalibrator in maps.items():
    q = (
        proba[rest]
        if recalibrator is None
        else recalibrator.fit(proba[half], label[half]).transform(proba[rest])
    )
    loss = -np.log(q[np.arange(len(q)), label[rest]]).mean()
    error = truecal.estimate(label[rest], q, multiclass="canonical").value
    print(f"{name:12} log loss {loss:.4f}, squared kernel error {error:+.5f}")
