"""Everything that a person asks of one set of predictions, in one call."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from truecal._lib.checks import as_generator, check_fraction, check_norm
from truecal._lib.text import p_equals
from truecal._lib.types import RNGLike
from truecal.assessment.verdict import data_warnings, verdict
from truecal.data.cells import Cells
from truecal.data.sample import Sample
from truecal.data.samples import one_sample
from truecal.estimators._registry import TRUE_ERROR, get_estimator
from truecal.inference.calibration_test import TestResult, calibration_test
from truecal.inference.decompose import SCORES, Decomposition, decompose
from truecal.inference.interval import confidence_interval
from truecal.plotdata.reliability import Reliability, reliability_curve
from truecal.results import SCHEMA_VERSION, Estimate, Interval, plain
from truecal.simulation.advice import ESTIMATORS, Advice, advise

_SCORE_NAMES = {"brier": "Brier score", "log_loss": "log loss"}
#: Samples of more different scores are seen through cells where thousands of samples like them are made.
_MOST_GROUPS = 20_000
#: Fewer rows are not simulated: any population would fit them.
_LEAST_ROWS = 20


@dataclass(frozen=True, eq=False)
class Assessment:
    """What can be said of the calibration of one set of predictions.

    Attributes
    ----------
    verdict : str
        Two plain sentences.
    miscalibrated : bool
        Whether perfect calibration is rejected at the level ``1 - confidence_level``; where weights have
        fractions and there is no test, whether the interval leaves out 0.
    estimates : tuple of Estimate
        Calibration errors by several estimators; the first is the one that the verdict quotes.
    interval : Interval
        Confidence interval for the true calibration error.
    test : TestResult or None
        Test of perfect calibration; None where weights have fractions.
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
    test: TestResult | None
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
        """Return everything as plain Python objects, ready for JSON; what is infinite or undefined is None."""
        content = {
            "schema_version": SCHEMA_VERSION,
            "verdict": self.verdict,
            "miscalibrated": self.miscalibrated,
            "target": self.sample.target,
            "n": self.sample.n,
            "interval": self.interval.to_dict(),
            "estimates": [estimate.to_dict() for estimate in self.estimates],
            "test": None if self.test is None else self.test.to_dict(),
            "reliability": self.reliability.to_dict(),
            "scores": self.scores,
            "decompositions": [part.to_dict() for part in self.decompositions],
            "advice": None if self.advice is None else self.advice.to_dict(),
            "warnings": list(self.warnings),
        }
        return dict(plain(content))

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the reliability diagram.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **options
            As of `truecal.display.ReliabilityDisplay.plot`.

        Returns
        -------
        ReliabilityDisplay
        """
        from truecal.display import ReliabilityDisplay

        return ReliabilityDisplay.from_assessment(self).plot(ax=ax, **options)

    def to_html(self, path: str | Path | None = None, **options: Any) -> str:
        """Return the report as one HTML page, and write it to `path` if that is given.

        Parameters
        ----------
        path : str or Path, optional
            File to write, whole or not at all.
        **options
            As of `truecal.report.render`, such as `title` and `source`.
        """
        from truecal.report import render

        return render(self, path, **options)

    def _repr_html_(self) -> str | None:
        try:
            from truecal.report import render_notebook

            return render_notebook(self)
        except ImportError:  # without jinja2 a notebook shows the text
            return None

    def __str__(self) -> str:
        width = max(len("estimator"), *(len(estimate.estimator) for estimate in self.estimates))
        lines = [*textwrap.wrap(self.verdict, 88), "", f"{self.sample.target}, n = {self.sample.n:,.10g}", ""]
        biases = {row["estimator"]: row for row in self.advice.rows} if self.advice else {}
        lines.append(f"{'estimator':<{width}}   error" + ("   bias on data like these" if biases else ""))
        for estimate in self.estimates:
            row = biases.get(estimate.estimator)
            bias = f"{row['bias']:+.4f} ± {2 * row['bias_se']:.4f}" if row else ""
            lines.append(f"{estimate.estimator:<{width}}  {estimate.value:.4f}   {bias}".rstrip())
        lines += ["", f"interval of the true error: {self.interval}"]
        if self.test is not None:
            beside = f"{p_equals(self.test.spiegelhalter.pvalue)} by Spiegelhalter's Z"
            lines.append(
                f"test of calibration: {p_equals(self.test.pvalue)} by {self.test.estimator}, {beside}"
            )
        lines += ["", f"{'':<12}   score = miscalibration - discrimination + uncertainty"]
        lines += [
            f"{_SCORE_NAMES[part.name]:<12} {part.score:7.4f} {part.miscalibration:16.4f} "
            f"{part.discrimination:16.4f} {part.uncertainty:13.4f}"
            for part in self.decompositions
        ]
        for warning in self.warnings:
            lines += ["", *textwrap.wrap(f"Note: {warning}", 88)]
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
    y_true, y_proba
        The predictions, as in `truecal.estimate`.
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
    sample_weight, pos_label, labels, multiclass
        As in `truecal.estimate`. Classwise is not taken: assess one class at a time.
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
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # what they say is in the notes and doubts of the results
        return _assess(
            sample, estimators, norm, confidence_level, n_resamples, simulate, generator, n_jobs, progress
        )


def _assess(
    sample: Sample,
    estimators: Sequence[str],
    norm: float,
    level: float,
    n_resamples: int,
    simulate: bool,
    rng: np.random.Generator,
    n_jobs: int,
    progress: bool | None,
) -> Assessment:
    interval = confidence_interval(sample, norm=norm, confidence_level=level)
    found = [get_estimator(name)(sample, norm=norm) for name in estimators]
    found[0] = replace(found[0], interval=interval)
    # A p-value and a fit cost the same for any n when they look at cells.
    coarse = Cells.from_sample(sample) if len(sample) > _MOST_GROUPS else sample
    test = _test(coarse, norm, n_resamples, rng) if sample.whole else None
    advice: Advice | None = None
    doubt: tuple[str, ...] = ()
    if simulate:
        advice, doubt = _advice(coarse, estimators, norm, rng, n_jobs, progress)
    miscalibrated = interval.low > 0 if test is None else test.pvalue <= 1 - level
    return Assessment(
        verdict=verdict(sample, found[0], interval, test, miscalibrated),
        miscalibrated=miscalibrated,
        estimates=tuple(found),
        interval=interval,
        test=test,
        reliability=reliability_curve(sample, band_level=0.9 if sample.whole else None, rng=rng),
        scores=_score_summary(sample),
        decompositions=tuple(decompose(sample, name) for name in SCORES),
        advice=advice,
        warnings=(*data_warnings(sample), *_notes(found), *doubt),
        sample=sample,
    )


def _test(sample: Sample, norm: float, n_resamples: int, rng: np.random.Generator) -> TestResult:
    """Test by the sweep or, where labels fall as scores rise and the sweep is blind, by fixed bins."""
    blind = bool(get_estimator("em_sweep")(sample, norm=norm).notes)
    statistic = "em_debias" if blind else "em_sweep"
    return calibration_test(sample, estimator=statistic, norm=norm, n_resamples=n_resamples, rng=rng)


def _notes(found: Sequence[Estimate]) -> tuple[str, ...]:
    """Return what a reader of the estimates must know, each with the names of those that it is on."""
    names: dict[str, list[str]] = {}
    for one in found:
        for note in one.notes:
            names.setdefault(note, []).append(one.estimator)
    return tuple(f"{', '.join(who)}: {note}" for note, who in names.items())


def _advice(
    sample: Sample,
    estimators: Sequence[str],
    norm: float,
    rng: np.random.Generator,
    n_jobs: int,
    progress: bool | None,
) -> tuple[Advice | None, tuple[str, ...]]:
    """Return the advice, or why there is none: scores that are all 0 or 1 have no population to fit."""
    if sample.n < _LEAST_ROWS:
        return None, (f"The bias of the estimators was not simulated: {sample.n:.10g} rows are too few.",)
    names = [name for name in estimators if get_estimator(name).estimand == TRUE_ERROR]
    try:
        return advise(sample, estimators=names, norm=norm, rng=rng, n_jobs=n_jobs, progress=progress), ()
    except ValueError as error:
        return None, (f"The bias of the estimators could not be simulated: {str(error).partition('. ')[0]}.",)


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
