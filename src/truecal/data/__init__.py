"""From whatever holds predictions to `Sample`: the one place where input is checked.

`read` takes arrays, Series, columns and tensors; `from_logits` the outputs before the softmax;
`load_logits` the pickled logit files that go with the paper.
"""

from truecal.data.logit_files import LogitSplits, load_logits
from truecal.data.predictions import Rows, from_logits, probabilities_from_logits, read, read_rows
from truecal.data.samples import as_samples, one_sample

__all__ = [
    "LogitSplits",
    "Rows",
    "as_samples",
    "from_logits",
    "load_logits",
    "one_sample",
    "probabilities_from_logits",
    "read",
    "read_rows",
]
