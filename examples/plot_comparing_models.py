# ruff: noqa: D205, D400
"""
Is one model better calibrated than another?
============================================

Two error bars that overlap do not answer the question. The difference with its own interval does.
"""

import matplotlib.pyplot as plt

import truecal

# %%
# Three forecasts of the same flights, each pair compared on the same rows.

data = truecal.datasets.load("flights")
names = list(data.predictions)
pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
figure, ax = plt.subplots(figsize=(6.8, 3.4), layout="constrained")
for k, (a, b) in enumerate(pairs):
    result = truecal.compare(data.y_true, data.predictions[a], data.predictions[b], names=(a, b))
    low, high = 100 * result.interval.low, 100 * result.interval.high
    ax.plot([low, high], [k, k], color="#0072B2", linewidth=4)
    print(result)
ax.axvline(0, color="#747474", linestyle="--")
ax.set_yticks(range(len(pairs)), [f"{a} - {b}" for a, b in pairs])
ax.set(xlabel="difference of calibration errors (points), 95% interval", ylim=(-0.6, len(pairs) - 0.4))
plt.show()
