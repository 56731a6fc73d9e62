"""What honesty costs: the upper limit of a calibrated model against the shortest that any honest limit can be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import optimize, stats

import truecal
from experiments._page import Page, markdown
from truecal.reproduce._draw import new_figure, tidy

Row = dict[str, Any]

LEVEL = 0.95
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
#: Medians of the same samples (24 of each from 30,000 rows on) with truecal at commit 7232cd3, which chose the
#: resolution after it had seen the labels.
CHOSEN_FROM_LABELS = dict(zip(SIZES, (0.1208, 0.0689, 0.0389, 0.0219, 0.0123, 0.0070, 0.0039), strict=True))


def main(*, quick: bool = False, draws: int = 60) -> Page:
    """Draw calibrated samples with uniform scores, and compare the medians of their upper limits."""
    rows = [_row(n, 3 if quick else draws) for n in (SIZES[:3] if quick else SIZES)]
    return Page(_text(rows, draws), {"": rows}, {"": _figure(rows)})


def _row(n: int, draws: int) -> Row:
    intervals = [_interval(n, draw) for draw in range(draws)]
    n_intervals = intervals[0].resolution
    high = np.array([interval.high for interval in intervals])
    median = float(np.median(high))
    return {
        "rows": n,
        "intervals": n_intervals,
        "chosen from the labels": CHOSEN_FROM_LABELS[n],
        "honest": median,
        "standard error": 1.25 * float(np.std(high, ddof=1)) / math.sqrt(draws),
        "no honest limit is below": least_median(n, n_intervals),
    }


def _interval(n: int, draw: int) -> Any:
    rng = np.random.default_rng([n, draw])
    score = rng.random(n)
    label = (rng.random(n) < score).astype(int)
    # Half of what is left out is above the upper end: that of a 90% interval is the one-sided limit at 95%.
    return truecal.confidence_interval(label, score, confidence_level=2 * LEVEL - 1)


def least_median(n: int, n_intervals: int, level: float = LEVEL) -> float:
    r"""Return the smallest median that an honest upper limit can have for a calibrated model with uniform scores.

    Gaps of B intervals are taken as normal, each with the variance B/(6n) of a mean of labels. By the proposition on
    the theory page the median is at least the error :math:`\varepsilon` at which the best test, chi-square, has error
    probabilities that add up to :math:`\alpha + 1/2`.

    Examples
    --------
    >>> round(least_median(1_000, 17), 4)
    0.0373
    """

    def errors(noncentrality: float) -> float:
        def of(cut: float) -> float:
            return float(stats.chi2.sf(cut, n_intervals) + stats.ncx2.cdf(cut, n_intervals, noncentrality))

        bounds = (0, 2 * n_intervals + noncentrality + 50)
        return float(optimize.minimize_scalar(of, bounds=bounds, method="bounded").fun)

    wanted = 1 - level + 0.5
    noncentrality = optimize.brentq(lambda value: errors(value) - wanted, 1e-6, 1e4)
    return math.sqrt(noncentrality / (6 * n))


def _text(rows: list[Row], draws: int) -> str:
    shown = [
        {key: value if isinstance(value, int) else f"{value:.4f}" for key, value in row.items()}
        for row in rows
    ]
    return f"""# What honesty costs

Median of the one-sided upper 95% limit of a calibrated model with uniform scores, over {draws} samples of each size.
*Honest*: as printed, with the number of intervals that n and the scores fix. *Chosen from the labels*: truecal at
commit 7232cd3, whose resolution depended on the labels; from 3,000 rows on it is shorter than any limit can be that is
honest over these intervals, and it passed wrong models in up to 67% of samples. *No honest limit is below*: the
smallest median that an honest limit over as many intervals can have, by the proposition on the
[theory page](../theory/interval.md), with normal gaps of equal variance.

{markdown(shown)}

![Medians of upper limits against rows](honest_cost.svg)
"""


def _figure(rows: list[Row]) -> Any:
    figure, axes = new_figure(1, 1, size=(6.0, 3.6))
    ax = axes[0, 0]
    n = [row["rows"] for row in rows]
    lines = {"honest": "-o", "no honest limit is below": "--", "chosen from the labels": ":s"}
    for name, style in lines.items():
        ax.plot(n, [row[name] for row in rows], style, label=name)
    ax.set(xscale="log", yscale="log")
    tidy(ax, x="rows", y="upper 95% limit, calibrated model")
    ax.legend(frameon=False)
    return figure
