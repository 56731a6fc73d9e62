# ruff: noqa: D205, D400
"""
A million rows in 43,000 cells
==============================

`summarize` reduces a table of any size to at most 65,536 cells, in the engine that holds it. Estimates from cells are
almost those of the rows, and take milliseconds.
"""

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import truecal

# %%
# The difference between estimates from rows and from cells, on samples of three sizes.

population = truecal.paper.population("resnet110_c100")
sizes = (10_000, 100_000, 1_000_000)
estimators = ("em_bin", "em_debias", "multiscale")
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for estimator, color in zip(estimators, ("#0072B2", "#009E73", "#C8402C"), strict=True):
    differences = []
    for n in sizes:
        y, p = population.sample(n, rng=0)
        cells = truecal.summarize(pl.DataFrame({"score": p, "label": y}), score="score", label="label")
        rows = truecal.calibration_error(y, p, estimator=estimator)
        differences.append(abs(truecal.calibration_error(cells, estimator=estimator) - rows))
    ax.loglog(sizes, differences, marker="o", linewidth=2, color=color, label=estimator)
ax.loglog(sizes, 0.3 / np.sqrt(sizes), color="#747474", linestyle="--", label="order of the sampling error")
ax.set(xlabel="rows", ylabel="difference, rows - cells")
ax.legend(frameon=False)
plt.show()
