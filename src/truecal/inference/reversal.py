"""Whether higher scores clearly go with fewer events, as those of another class do."""

from __future__ import annotations

import math

import numpy as np

from truecal.data.sample import Sample
from truecal.inference.c_statistic import placements

#: Standard errors by which the C statistic must be below 1/2, so that chance does not suffice.
_CLEAR = 4.0


def reversed_scores(sample: Sample) -> str | None:
    """Return a sentence that names scores which fall as events become more frequent; None unless that is clear.

    Rows contribute their placements, as in `c_statistic`. Their variance is that of C if it were 1/2: the sum of
    squared distances from 1/2, of clusters if there are any. Few events or clusters are therefore never clear, however
    their rows are ordered.

    Parameters
    ----------
    sample : Sample
        The predictions.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.linspace(0.01, 0.99, 100)
    >>> reversed_scores(Sample.from_predictions(p < 0.4, p))
    'Higher scores go with fewer events (C statistic 0.00): are they probabilities of another class?'
    >>> reversed_scores(Sample.from_predictions(p > 0.4, p))
    """
    found = placements(sample)
    if found is None or found.value >= 0.5:
        return None
    c, (hit, miss) = found.value, found.influence(0.5)
    table = sample.clusters
    if table is not None:
        each = table.positives * hit[table.group] + (table.weight - table.positives) * miss[table.group]
        # The shares of both outcomes sum to 2 (C - 1/2); half of that is the deviation itself.
        sums = np.bincount(table.cluster, each, table.n_clusters) - (c - 0.5) / table.n_clusters
        variance = float(sums @ sums)
    else:
        variance = float(sample.sum_covariance(miss[np.newaxis], hit[np.newaxis])[0, 0])
    if 0.5 - c < _CLEAR * math.sqrt(variance):
        return None
    value = f"(C statistic {c:.2f})"
    if sample.target.startswith("top"):
        return f"Higher scores go with fewer correct predictions {value}: are columns and labels in the same order?"
    return f"Higher scores go with fewer events {value}: are they probabilities of another class?"
