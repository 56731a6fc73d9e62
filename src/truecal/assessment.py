"""Everything that a person asks of one set of predictions, in one call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from truecal._checks import RNGLike, as_generator, check_fraction, check_norm
from truecal._registry import TRUE_ERROR, get_estimator
from truecal.advice import Advice, advise
from truecal.cells import N_CELLS, Cells
from truecal.decomposition import SCORES, Decomposition, decompose
from truecal.hypotheses import TestResult, calibration_test
from truecal.intervals import confidence_interval
from truecal.readers.samples import one_sample
from truecal.reliability import Reliability, reliability_curve
from truecal.results import SCHEMA_VERSION, Estimate, Interval
from truecal.sample import Sample

#: The first is the one that the verdict quotes.
ESTIMATORS = ("averaged", "em_sweep", "em_debias", "em_bin", "ew_bin")


@dataclass(frozen=True, eq=False)
class Assessment:
    """What can be said of the calibration of one set of predictions.

    Attributes
    ----------
    verdict : str
        Two plain sentences.
    miscalibrated : bool
        Whether perfect calibration is rejected at the level ``1 - confidence_level``.
    estimates : tuple of Estimate
        Calibration errors by several estimators; the first is the one that the verdict quotes.
    interval : Interval
        Confidence interval for the true calibration error.
    test : TestResult
        Test of perfect calibration.
    reliability : Reliability
        Isotonic and binned calibration curves with consistency bands.
    scores : dict
        The distribution of the scores: quantiles, share of scores of exactly 0 and 1, ties, histogram.
    decompositions : tuple of Decomposition
        Brier score and log loss, split into miscalibration, discrimination and uncertainty.
    advice : Advice or None
        Bias of the estimators on data like these; None if it was not asked for or not possible.
    warnings : tuple of str
        What to know of the data.
    sample : Sample
        The predictions.
    """

    verdict: str
    miscalibrated: bool
    estimates: tuple[Estimate, ...]
    interval: Interval
    test: TestResult
    reliability: Reliability
    scores: dict[str, Any]
    decompositions: tuple[Decomposition, ...]
    advice: Advice | None
    warnings: tuple[str, ...]
    sample: Sample

    @property
    def estimate(self) -> Estimate:
        """The estimate that the verdict quotes."""
        return self.estimates[0]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects, ready for JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "verdict": self.verdict,
            "miscalibrated": self.miscalibrated,
            "target": self.sample.target,
            "n": self.sample.n,
            "interval": self.interval.to_dict(),
            "estimates": [estimate.to_dict() for estimate in self.estimates],
            "test": self.test.to_dict(),
            "reliability": self.reliability.to_dict(),
            "scores": self.scores,
            "decompositions": [part.to_dict() for part in self.decompositions],
            "advice": None if self.advice is None else self.advice.to_dict(),
            "warnings": list(self.warnings),
        }

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the reliability diagram."""
        from truecal.display import ReliabilityDisplay

        return ReliabilityDisplay.from_assessment(self).plot(ax=ax, **options)

    def to_html(self, path: str | Path | None = None, **options: Any) -> str:
        """Return the report as one HTML page, and write it to `path` if that is given."""
        from truecal.report import render

        return render(self, path, **options)

    def _repr_html_(self) -> str:
        from truecal.report import render_notebook

        return render_notebook(self)

    def __str__(self) -> str:
        width = max(len(estimate.estimator) for estimate in self.estimates)
        lines = [self.verdict, "", f"{self.sample.target}, n = {self.sample.n:.10g}", ""]
        biases = {row["estimator"]: row for row in self.advice.rows} if self.advice else {}
        lines += [f"{'estimator':<{width}}   error   bias on data like these"]
        for estimate in self.estimates:
            row = biases.get(estimate.estimator)
            bias = f"{row['bias']:+.4f} ± {2 * row['bias_se']:.4f}" if row else ""
            lines.append(f"{estimate.estimator:<{width}}  {estimate.value:.4f}   {bias}".rstrip())
        tests = (
            f"{_p(self.test.pvalue)} by {self.test.estimator}, "
            f"{_p(self.test.spiegelhalter.pvalue)} by Spiegelhalter's Z"
        )
        lines += ["", f"interval of the true error: {self.interval}", f"test of calibration: {tests}"]
        lines += [str(part) for part in self.decompositions]
        lines += [f"Note: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Assessment: {self.verdict}>"


def assess(
    y_true: Any,
    y_proba: Any = None,
    *,
    estimators: Sequence[str] = ESTIMATORS,
    norm: float = 2,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    simulate: bool = True,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
    rng: RNGLike = None,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> Assessment:
    """Tell whether predictions are calibrated, how far they are off, and how sure that is.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label, labels, multiclass
        The predictions, as in `truecal.estimate`. Classwise is not taken: assess one class at a time.
    estimators : sequence of str
        Estimators to report; the first is quoted in the verdict.
    norm : float
        The p of the norm; intervals exist for 1 and 2.
    confidence_level : float
        Level of the interval; ``1 - confidence_level`` is the level of the test.
    n_resamples : int
        Resamples of the test.
    simulate : bool
        Whether to simulate the bias of the estimators on data like these.
    rng : int, Generator or None
        Seed of everything random.
    n_jobs, progress
        Workers and progress of the simulation.

    Returns
    -------
    Assessment

    Examples
    --------
    >>> import truecal
    >>> y, p = truecal.paper.population("resnet110_c100").sample(3000, rng=0)
    >>> assessment = truecal.assess(y, p, simulate=False, rng=0)
    >>> assessment.miscalibrated
    True
    """
    norm = check_norm(norm)
    check_fraction("confidence_level", confidence_level)
    sample = one_sample(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
        multiclass=multiclass,
    )
    generator = as_generator(rng)
    interval = confidence_interval(sample, norm=norm, confidence_level=confidence_level)
    found = [get_estimator(name)(sample, norm=norm) for name in estimators]
    found[0] = replace(found[0], interval=interval)
    # Resampling looks at cells where there are very many scores: a p-value costs the same for any n.
    coarse = Cells.from_sample(sample) if len(sample) > N_CELLS else sample
    test = calibration_test(coarse, norm=norm, n_resamples=n_resamples, rng=generator)
    curve = reliability_curve(sample, rng=generator)
    advice, doubt = _advice(sample, estimators, norm, generator, n_jobs, progress) if simulate else (None, ())
    miscalibrated = test.pvalue <= 1 - confidence_level
    return Assessment(
        verdict=_verdict(sample, found[0], interval, test, miscalibrated),
        miscalibrated=miscalibrated,
        estimates=tuple(found),
        interval=interval,
        test=test,
        reliability=curve,
        scores=_score_summary(sample),
        decompositions=tuple(decompose(sample, name) for name in SCORES),
        advice=advice,
        warnings=(*_data_warnings(sample), *(note for one in found for note in one.notes), *doubt),
        sample=sample,
    )


def _advice(
    sample: Sample,
    estimators: Sequence[str],
    norm: float,
    rng: np.random.Generator,
    n_jobs: int,
    progress: bool | None,
) -> tuple[Advice | None, tuple[str, ...]]:
    """Return the advice, or why there is none: scores that are all 0 or 1 have no population to fit."""
    names = [name for name in estimators if get_estimator(name).estimand == TRUE_ERROR]
    try:
        return advise(sample, estimators=names, norm=norm, rng=rng, n_jobs=n_jobs, progress=progress), ()
    except ValueError as error:
        return None, (f"The bias of the estimators could not be simulated: {error}",)


def _verdict(
    sample: Sample, estimate: Estimate, interval: Interval, test: TestResult, miscalibrated: bool
) -> str:
    low, high = _percent(interval.low), _percent(interval.high)
    level = f"{100 * interval.confidence_level:g} %"
    if not miscalibrated:
        return (
            f"No miscalibration was found in {sample.n:.10g} predictions ({_p(test.pvalue)}). "
            f"A calibration error of up to {high} could still be hidden ({level} interval {low} to {high})."
        )
    first = (
        f"These probabilities are miscalibrated, by about {_percent(estimate.value)} "
        f"({level} interval {low} to {high}; {_p(test.pvalue)})."
    )
    said = float(np.average(sample.score, weights=sample.count))
    came = float(sample.positives.sum()) / sample.n
    numbers = f"{_percent(said)} promised on average, {_percent(came)} came true"
    # The mean label varies by this much from sample to sample if the scores are right on the whole.
    noise = math.sqrt(float(np.sum(sample.count * sample.score * (1 - sample.score)))) / sample.n
    if abs(said - came) <= 2 * noise:
        return f"{first} Their mean is right ({numbers}): some are too high and others too low."
    return f"{first} On the whole they are too {'high' if said > came else 'low'}: {numbers}."


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _p(pvalue: float) -> str:
    return f"p = {pvalue:.2g}" if pvalue >= 0.001 else "p < 0.001"


def _score_summary(sample: Sample) -> dict[str, Any]:
    counts, edges = np.histogram(sample.score, bins=50, range=(0, 1), weights=sample.count)
    order = np.searchsorted(
        sample.cumulative_count[1:], np.array([0, 0.05, 0.25, 0.5, 0.75, 0.95, 1]) * sample.n
    )
    quantiles = sample.score[np.minimum(order, len(sample) - 1)]
    return {
        "mean": float(np.average(sample.score, weights=sample.count)),
        "base_rate": float(sample.positives.sum() / sample.n),
        "quantiles": dict(
            zip(("min", "5%", "25%", "50%", "75%", "95%", "max"), quantiles.tolist(), strict=True)
        ),
        "distinct": len(sample),
        "share_at_zero": _share(sample, 0.0),
        "share_at_one": _share(sample, 1.0),
        "largest_tie": float(sample.count.max() / sample.n),
        "histogram": {"edges": edges.tolist(), "count": counts.tolist()},
    }


def _share(sample: Sample, score: float) -> float:
    return float(sample.count[sample.score == score].sum() / sample.n)


def _data_warnings(sample: Sample) -> tuple[str, ...]:
    warnings = []
    wrong = float((sample.positives[sample.score == 0]).sum())
    wrong += float((sample.count - sample.positives)[sample.score == 1].sum())
    if wrong:
        warnings.append(
            f"{wrong:.10g} predictions of exactly 0 or 1 were wrong: their log loss is infinite, and no amount of "
            f"evidence could have changed them."
        )
    if len(sample) <= 20 < sample.n:
        warnings.append(
            f"There are only {len(sample)} distinct scores, so that bins are what these scores make them."
        )
    elif (sample.count.max() / sample.n) > 0.2:
        warnings.append(f"{_percent(sample.count.max() / sample.n)} of the rows share one score.")
    rare = min(float(sample.positives.sum()), sample.n - float(sample.positives.sum()))
    if rare < 30:
        warnings.append(f"The rarer outcome occurs {rare:.10g} times only; little can be said with so few.")
    return tuple(warnings)
