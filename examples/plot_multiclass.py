# ruff: noqa: D205, D400
"""
More than two classes
=====================

With several classes there is more than one question. *Is the predicted class correct as often as its score says?* is
what most papers measure. *Does each class occur as often as its own probability says?* is another.
"""

import matplotlib.pyplot as plt

import truecal

data = truecal.datasets.load("digits")
print(data.description)

# %%
# The top label
# -------------
#
# Two models with about the same accuracy and opposite faults: logistic regression without a penalty is overconfident, a
# random forest is underconfident.

for name, proba in data.predictions.items():
    print(f"{name:8}", truecal.estimate(data.y_true, proba, labels=data.labels))

# %%

truecal.display.ComparisonDisplay.from_predictions(
    data.y_true, data.predictions, labels=data.labels, rng=0, kind="curves"
)
plt.show()

# %%
# Each class against the rest
# ---------------------------
#
# ``multiclass="classwise"`` combines the errors of the single classes, which are in ``estimate.classes``. It is much
# smaller: for each class nine images in ten show another digit, and their scores near 0 are about right.

classwise = truecal.estimate(
    data.y_true, data.predictions["forest"], labels=data.labels, multiclass="classwise"
)
print(classwise)
rows = [
    {"name": digit, "estimator": "em_sweep", "value": part.value}
    for digit, part in zip(data.labels, classwise.classes, strict=True)
]
truecal.display.ComparisonDisplay(rows).plot()
plt.show()

# %%
# One class
# ---------
#
# The most difficult digit for the forest, against all others. On a logit axis scores near 0 and 1 become visible.

truecal.display.ReliabilityDisplay.from_predictions(
    data.y_true,
    data.predictions["forest"],
    labels=data.labels,
    pos_label="eight",
    scale="logit",
    rng=0,
    name="P(eight)",
)
plt.show()
