"""Fits to the available data sets, for Figure 3 and Tables 2 to 4; each is computed once."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np

from truecal import paper
from truecal.data import as_sample
from truecal.data.sample import Sample
from truecal.reproduce.contract import Settings
from truecal.reproduce.real_sets import top_label_sets
from truecal.simulation import PopulationFit, fit_population
from truecal.simulation._likelihood import fit_beta_as_paper

#: Scores within this of 1 are 1 in a softmax exp(x - log sum exp x) of float32 logits between 8 and 32.
COARSE = 2.0**-20


def paper_sets(settings: Settings) -> dict[str, Sample]:
    """Return the available real data sets that are among the paper's ten, in its order."""
    available = top_label_sets(settings)
    return {name: available[name] for name in paper.NAMES if name in available}


def drawn_sets(settings: Settings) -> dict[str, Sample]:
    """Return one sample of 10,000 from each of the paper's populations, whose truth is known."""
    n = settings.of(10_000, 10_000, 500)
    names = settings.of(paper.NAMES, paper.NAMES, paper.NAMES[::4])
    return {
        name: as_sample(
            *paper.population(name).sample(n, rng=np.random.SeedSequence((settings.seed, number)))
        )
        for number, name in enumerate(names)
    }


def fit(sample: Sample) -> PopulationFit:
    """Fit the paper's model by maximum likelihood; its warnings are in its messages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_population(sample)


@cache
def _cached_fits(settings: Settings) -> dict[str, PopulationFit]:
    return {name: fit(sample) for name, sample in paper_sets(settings).items()}


def real_fits(settings: Settings) -> dict[str, PopulationFit]:
    """Return the fits to the available real data sets."""
    return _cached_fits(settings)


def beta_by_recipe(sample: Sample, *, coarse: bool) -> tuple[float, float]:
    """Return the Beta parameters by the paper's recipe, on the original scores or on scores rounded near 1."""
    score = np.where(1 - sample.score <= COARSE, 1.0, sample.score) if coarse else sample.score
    beta = fit_beta_as_paper(score, sample.count)
    return beta.a, beta.b
