"""From whatever holds predictions to `Sample`: the one place where input is checked.

`as_sample` and `as_samples` take arrays, Series, columns and tensors, or a `Sample`; `load_logits` reads the
pickled logit files that go with the paper.
"""

from truecal.data.logit_files import LogitSplits, load_logits
from truecal.data.predictions import Rows, as_sample, as_samples, probabilities_from_logits, read_rows

__all__ = [
    "LogitSplits",
    "Rows",
    "as_sample",
    "as_samples",
    "load_logits",
    "probabilities_from_logits",
    "read_rows",
]
