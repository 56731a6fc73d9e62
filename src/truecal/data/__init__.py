"""From predictions in any container to `Sample`: the one place where input is validated.

`ask` takes arrays, Series, columns and tensors, or a `Sample`; `as_sample` returns the one sample of them.
"""

from truecal.data.arrays import probabilities_from_logits
from truecal.data.question import Question, Rows, as_sample, as_samples, ask, read_rows

__all__ = [
    "Question",
    "Rows",
    "as_sample",
    "as_samples",
    "ask",
    "probabilities_from_logits",
    "read_rows",
]
