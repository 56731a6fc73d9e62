"""The reliability diagram."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from truecal._lib.checks import as_generator, check_choice
from truecal._lib.text import level
from truecal._lib.types import RNGLike
from truecal.assessment._plotdata import ScoreHistogram, axis_top, score_histogram
from truecal.data.arrays import class_alone
from truecal.data.question import ask
from truecal.display import _style as draw
from truecal.display._base import Display, describe_plot
from truecal.estimators._registry import get_estimator
from truecal.exceptions import InputError
from truecal.inference.reliability import KINDS as CONFIDENCE_KINDS
from truecal.inference.reliability import (
    ConfidenceBand,
    Reliability,
    bin_confidence_band,
    confidence_band,
    reliability_curve,
)
from truecal.results import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from truecal.assessment._assess import Assessment

KINDS = ("isotonic", "bins", "sweep")

#: Largest number of points for which a curve shows them.
_FEW = 25
#: Most classes that have a panel each.
_MOST_PANELS = 30
#: How curves and their bands are recognised in axes.
_CURVE, _BAND = "truecal-reliability", "truecal-band"


class ReliabilityDisplay(Display):
    """The observed frequency of each score, with the band of a calibrated model.

    Parameters
    ----------
    curve : Reliability
        The curves to draw.
    histogram : ScoreHistogram, optional
        The distribution of the scores, drawn beneath.
    estimate : Estimate, optional
        A calibration error to write into the diagram.
    kind : {"isotonic", "bins", "sweep"}
        Which curve to draw; ``"sweep"`` are bins whose number the sweep chose.
    confidence : ConfidenceBand, optional
        Where the true curve may lie.
    name : str, optional
        Name of the model in title and legend.
    classes : sequence of ReliabilityDisplay, optional
        Diagrams of several classes or labels, drawn as panels; `curve` is then that of the first.

    Attributes
    ----------
    ax_, figure_
        Axes and figure, after `plot`.
    histogram_ax_ : matplotlib Axes or None
        The axes of the histogram.

    Examples
    --------
    >>> import truecal
    >>> from matplotlib.figure import Figure
    >>> from truecal.display import ReliabilityDisplay
    >>> y, p = truecal.paper.population("resnet110_c100").sample(2000, rng=0)
    >>> display = ReliabilityDisplay.from_predictions(y, p, rng=0, ax=Figure().subplots())
    >>> display.ax_.get_ylabel()  # without ax, a new figure of pyplot
    'observed frequency'
    """

    histogram_ax_: Axes | None

    def __init__(
        self,
        curve: Reliability,
        histogram: ScoreHistogram | None = None,
        *,
        estimate: Estimate | None = None,
        kind: str = "isotonic",
        confidence: ConfidenceBand | None = None,
        name: str | None = None,
        classes: Sequence[ReliabilityDisplay] = (),
    ) -> None:
        self.curve = curve
        self.histogram = histogram
        self.estimate = estimate
        self.confidence = confidence
        self.name = name
        self.classes = tuple(classes)
        self.kind = check_choice("kind", kind, KINDS)

    @classmethod
    @describe_plot
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        kind: str = "isotonic",
        n_bins: int = 15,
        binning: str = "em",
        scale: str = "linear",
        estimator: str | None = None,
        band: bool = True,
        confidence: str | None = None,
        confidence_level: float = 0.95,
        n_resamples: int = 400,
        rng: RNGLike = None,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the diagram of labels and probabilities, or of a `Sample`.

        Axes that already have a diagram get one more curve, so that several models can be compared. With
        ``multiclass="classwise"``, ``"multilabel"`` or ``"top_by_class"`` each class or label has a panel.

        Parameters
        ----------
        y_true, y_proba
            As in `truecal.estimate`.
        kind : {"isotonic", "bins", "sweep"}
            ``"isotonic"`` is the CORP curve, the best rising one; ``"bins"`` are `n_bins` bins; ``"sweep"`` as
            many of them as keep the labels rising.
        n_bins, binning
            As in `truecal.reliability_curve`.
        scale : {"linear", "logit", "complement"}
            ``"logit"`` stretches the axis of scores towards both ends, ``"complement"`` towards 1: there are most
            scores of a confident model.
        estimator : str, optional
            An estimator whose value is written into the diagram.
        band, confidence_level, n_resamples, rng
            As in `truecal.reliability_curve`: `band` is the consistency band, where the curve would lie if the model
            were calibrated.
        confidence : {"pointwise", "simultaneous"}, optional
            Draw a confidence band as well: where the true curve may lie, at each score or at all scores together.
        name : str, optional
            Name of the model in title and legend.
        {read_and_draw}

        {display}
        """
        check_choice("kind", kind, KINDS)
        if confidence is not None:
            check_choice("confidence", confidence, CONFIDENCE_KINDS)
        drawing, reading = cls._split(options)
        generator = as_generator(rng)

        question = ask(y_true, y_proba, **reading)
        if len(question.samples) > _MOST_PANELS:
            raise InputError(
                f"has {len(question.samples)} classes, and at most {_MOST_PANELS} are drawn",
                argument="y_proba",
                remedy="Choose one with pos_label, or some of the columns.",
            )
        displays = []
        for sample in question.samples:
            curve = reliability_curve(
                sample,
                n_bins="sweep" if kind == "sweep" else n_bins,
                binning=binning,
                band=band,
                confidence_level=confidence_level,
                n_resamples=n_resamples,
                rng=generator,
            )
            estimate = None if estimator is None else get_estimator(estimator)(sample)
            limits = None
            if confidence is not None and kind == "isotonic":
                limits = confidence_band(sample, kind=confidence, confidence_level=confidence_level)
            elif confidence is not None:
                limits = bin_confidence_band(curve, confidence)
            shown = score_histogram(sample, scale=scale)
            displays.append(cls(curve, shown, estimate=estimate, kind=kind, confidence=limits, name=name))
        display = copy(displays[0])
        display.classes = () if question.single else tuple(displays)
        return display.plot(ax, **drawing)

    @classmethod
    @describe_plot
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """Draw the diagram of a fitted scikit-learn classifier.

        Parameters
        ----------
        estimator : classifier
            With `predict_proba` and `classes_`.
        X, y
            Data that it was not fitted to, and labels.
        **options
            Options of `from_predictions`, `ax` and `name` among them, except its `estimator`.

        {display}
        """
        if not hasattr(estimator, "predict_proba"):
            raise InputError(
                f"must be a classifier with predict_proba. Got {type(estimator).__name__} instead",
                argument="estimator",
            )
        options.setdefault("labels", np.asarray(estimator.classes_).tolist())
        return cls.from_predictions(y, estimator.predict_proba(X), **options)

    @classmethod
    @describe_plot
    def from_cv_results(cls, cv_results: Any, X: Any, y: Any, **options: Any) -> Self:
        """Draw the diagram of scikit-learn's `cross_validate`: one curve of all rows that were held out.

        Each row is predicted by the model that was not fitted to it. A fold alone has few rows, so the folds are
        taken together.

        Parameters
        ----------
        cv_results : dict
            From ``cross_validate(..., return_estimator=True, return_indices=True)``.
        X, y
            The data that was passed to `cross_validate`.
        **options
            Options of `from_estimator`.

        {display}
        """
        missing = {"estimator", "indices"} - set(cv_results)
        if missing:
            raise InputError(
                f"lacks {' and '.join(sorted(missing))}",
                argument="cv_results",
                remedy="Pass return_estimator=True and return_indices=True to cross_validate.",
            )
        models, tests = cv_results["estimator"], cv_results["indices"]["test"]
        rows = np.concatenate(list(tests))
        if len(np.unique(rows)) < len(rows):
            raise InputError(
                "holds out rows several times; use folds without repetition", argument="cv_results"
            )
        classes = [np.asarray(model.classes_).tolist() for model in models]
        if any(one != classes[0] for one in classes):
            raise InputError("has models of different classes; use stratified folds", argument="cv_results")
        take = getattr(X, "iloc", X if hasattr(X, "shape") else np.asarray(X))
        proba = [model.predict_proba(take[test]) for model, test in zip(models, tests, strict=True)]
        return cls.from_predictions(
            np.asarray(y)[rows], np.concatenate(proba), **{"labels": classes[0], **options}
        )

    @classmethod
    @describe_plot
    def from_assessment(
        cls,
        assessment: Assessment,
        *,
        kind: str = "isotonic",
        scale: str = "linear",
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the diagram of the result of `truecal.assess`; only the histogram is computed again.

        Parameters
        ----------
        assessment : Assessment
            The assessment.
        kind : {"isotonic", "bins", "sweep"}
            Which curve to draw.
        scale : {"linear", "logit", "complement"}
            As in `from_predictions`.
        {draw}

        {display}
        """
        histogram = score_histogram(assessment.sample, scale=scale)
        display = cls(assessment.reliability, histogram, estimate=assessment.estimate, kind=kind)
        return display.plot(ax, **options)

    @describe_plot
    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        color: Any = None,
        histogram: bool = True,
        legend: bool = True,
        **line: Any,
    ) -> Self:
        """Draw the diagram, with the histogram of the scores beneath it.

        Axes that already have a diagram get one more curve in the next colour, so that several models can be
        compared: call `plot` of each display with the same `ax` and its own `name`.

        Parameters
        ----------
        {ax}
        name : str, optional
            Name of the curve in title and legend; by default that of the display, or what the scores are
            probabilities of.
        color : color, optional
            Colour of curve and histogram; by default the next one that the axes do not have.
        histogram : bool
            Whether to draw the histogram, which takes the lower part of the place of `ax`.
        {legend}
        **line
            Passed to matplotlib for the curve.

        Returns
        -------
        Self
            With its axes in `ax_` and `histogram_ax_`, and its figure in `figure_`.
        """
        name = self.name if name is None else name
        if self.classes:
            return self._plot_classes(ax, name, legend, {"color": color, **line})
        shown = self.histogram if histogram else None
        ax = draw.axes_or_new(ax, figsize=(4.2, 5.0) if shown else (4.2, 4.3))
        before = sum(other.get_gid() == _CURVE for other in ax.lines)
        color = draw.CYCLE[before % len(draw.CYCLE)] if color is None else color
        if not before:
            ax._truecal_histogram = draw.split_below(ax, 0.26) if shown else None
            draw.draw_diagonal(ax)
        self.histogram_ax_ = below = getattr(ax, "_truecal_histogram", None)
        if self.confidence is not None:
            self._draw_confidence(ax, self.confidence, color, name)
        self._draw_curve(ax, color, name, line, band=not before)
        self._label(ax, below, before, name)
        self._set_scales(ax, shown, max(self._largest, ax.get_xlim()[1] if before else 0.0))
        if shown and below:
            draw_counts(below, shown, color, fill=not before)
            draw.tidy(below, xlabel="score", ylabel="rows")
            ax.tick_params(labelbottom=False)
            ax.figure.align_ylabels([ax, below])
        if legend:
            self._draw_legend(ax, below)
        return self._drawn(ax)

    def _plot_classes(self, ax: Any, name: str | None, legend: bool, options: dict[str, Any]) -> Self:
        """Draw one diagram for each class, without histograms."""
        axes = draw.panels(ax, len(self.classes), columns=5 if len(self.classes) > 9 else 3)
        largest = max(each._largest for each in self.classes)
        for one, display in zip(axes, self.classes, strict=True):
            display.plot(one, histogram=False, legend=False, **options)
            title = draw.wrapped(class_alone(display.curve.target), one)
            draw.tidy(one, title=title if name is None else f"{name}, {title}")
            display._set_scales(one, None, largest)
        draw.label_outer(axes, "score", "observed frequency")
        if legend:
            draw.legend_below(axes)
        self.histogram_ax_ = None
        return self._drawn(*axes)

    def _draw_curve(
        self, ax: Axes, color: Any, name: str | None, line: dict[str, Any], *, band: bool
    ) -> None:
        """Draw the curve, and if it is the first one its consistency band."""
        from matplotlib.cbook import normalize_kwargs
        from matplotlib.lines import Line2D

        curve, bins = self.curve, self.curve.bins
        score, value, lower, upper = (
            (curve.score, curve.label, curve.lower, curve.upper)
            if self.kind == "isotonic"
            else (bins.mean_score, bins.mean_label, curve.bins_lower, curve.bins_upper)
        )
        few = len(score) <= _FEW
        if curve.has_band and band:
            style: dict[str, Any] = {"color": draw.INK, "gid": _BAND}
            text = f"{level(curve.confidence_level)} consistency band, if calibrated"
            ax.fill_between(score, lower, upper, alpha=0.25, linewidth=0, label=text, **style)
            if few:  # no score lies between two others, so draw the band at the scores
                ax.vlines(score, lower, upper, alpha=0.35, linewidth=2.5, **style)
        kinds = {"isotonic": "isotonic (CORP)", "sweep": f"{curve.n_bins} bins of the sweep"}
        label = kinds.get(self.kind, f"{curve.n_bins} bins") if name is None else draw.wrapped(name, ax)
        options: dict[str, Any] = {"color": color, "linewidth": 1.6, "label": label, "gid": _CURVE}
        if few:
            options |= {"marker": "o", "markersize": 4}
        ax.plot(score, value, **options | normalize_kwargs(line, Line2D))

    def _label(self, ax: Axes, below: Axes | None, before: int, name: str | None) -> None:
        """Label the axes; the title and the band are those of one model, and are removed if there are several."""
        worth = self.curve.effective_size
        size = f"n = {self.curve.n:,.10g}" if worth is None else f"effective n = {worth:,.0f}"
        title = "" if before else draw.wrapped(f"{name or self.curve.target}, {size}", ax)
        draw.tidy(ax, xlabel="" if below else "score", ylabel="observed frequency", title=title)
        if before:
            ax.set_title("", loc="left")
            for artist in [artist for artist in ax.collections if artist.get_gid() == _BAND]:
                artist.remove()

    @property
    def _largest(self) -> float:
        """The largest score, or observed frequency of a bin."""
        bins = self.curve.bins
        return float(max(self.curve.score.max(), bins.upper.max(), bins.mean_label.max()))

    def _set_scales(self, ax: Axes, histogram: ScoreHistogram | None, largest: float) -> None:
        scale, floor = histogram.scale if histogram else "linear", draw.axis_floor(histogram)
        top = axis_top(largest)
        draw.score_axis(ax, scale, floor, top=top)
        # A frequency nearer to an end than one row in n cannot be told from it.
        nearest = max(10.0 ** -math.ceil(math.log10(max(self.curve.n, 10))), floor)
        draw.score_axis(ax, scale, nearest, "y", top=top)

    def _draw_confidence(self, ax: Axes, band: ConfidenceBand, color: Any, name: str | None) -> None:
        """Draw where the true curve may lie, in the colour of the curve."""
        what = "confidence band" if self.kind == "isotonic" else "confidence intervals"
        label = f"{level(band.confidence_level)} {what}, {band.kind}"
        if name is not None:
            label = draw.wrapped(f"{name}: {label}", ax)
        bounds = (band.score, band.lower, band.upper)
        if self.kind == "isotonic":
            ax.fill_between(*bounds, color=color, alpha=0.3, linewidth=0, label=label)
        else:
            ax.vlines(*bounds, color=color, linewidth=1.2, label=label)

    def _draw_legend(self, ax: Axes, below: Axes | None) -> None:
        """Draw the legend under the diagram, where it covers nothing."""
        if (old := ax.get_legend()) is not None:
            old.remove()
        handles = ax.get_legend_handles_labels()[0]
        if self.estimate is not None:
            handles.append(draw.text_handle(f"{self.estimate.estimator} {self.estimate.value:.4f}"))
        draw.legend_below([below or ax], handles=handles)


def draw_counts(ax: Axes, histogram: ScoreHistogram, color: Any, *, fill: bool = True) -> None:
    """Draw rows in each bin of scores; those of exactly 0 and 1 with the outermost bins, or beyond them."""
    rows, edges = histogram.rows, histogram.edges
    if histogram.scale != "linear":
        rows = np.concatenate([[histogram.at_zero], histogram.share, [histogram.at_one]]) * histogram.n
        edges = np.concatenate([[0.0], np.minimum(edges, 1 - 2.0**-53), [1.0]])
    if not fill:  # of several models all are outlines; one that is filled would seem to be larger
        for filled in (patch for patch in ax.patches if patch.get_fill()):
            filled.set(fill=False, edgecolor=filled.get_facecolor(), alpha=0.9, linewidth=1)
    ax.stairs(rows, edges, fill=fill, color=color, alpha=0.55 if fill else 0.9)
    drawn = 0.0 if fill else ax.get_ylim()[1] / (2 if ax.get_yscale() == "log" else 1.08)
    top = max(float(rows.max()), drawn)
    if ax.get_yscale() == "log" or top > 50 * float(np.median(rows[rows > 0])):
        # One bar would hide where the others are, which is where the curve is known least. A model that shares the
        # axes may need it, too.
        ax.set_yscale("log")
        ax.set_ylim(0.7, 2 * top)
    else:
        ax.set_ylim(0, 1.08 * top)
    draw.count_axis(ax.yaxis)
