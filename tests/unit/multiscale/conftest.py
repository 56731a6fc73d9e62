import numpy as np
import pytest

from truecal.data.sample import Sample


@pytest.fixture
def draw():
    """Return a function that draws a sample: uniform scores, labels by a curve."""

    def make(n, curve=lambda p: p, *, seed=0, decimals=None, **options):
        rng = np.random.default_rng(seed)
        score = rng.random(n) if decimals is None else np.round(rng.random(n), decimals)
        label = (rng.random(n) < curve(score)).astype(int)
        return Sample.from_rows(label, score, **options)

    return make
