"""Models, groups or segments side by side, with intervals."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from truecal._lib.checks import as_generator, check_choice, check_count, check_norm
from truecal._lib.text import level, short_count
from truecal._lib.types import NormLike, RNGLike
from truecal.data import as_sample, read_rows
from truecal.data.arrays import warn_of_other_order
from truecal.data.groups import split_rows, split_sample
from truecal.data.sample import Sample
from truecal.display import _style as draw
from truecal.display._base import Display, check_rows, column, describe_plot
from truecal.display._reliability import ReliabilityDisplay
from truecal.estimators._registry import DEFAULT_ESTIMATOR, get_estimator
from truecal.exceptions import InputError
from truecal.inference.audit import Audit
from truecal.inference.compare import Ranking
from truecal.inference.interval import confidence_interval
from truecal.inference.reliability import Reliability, reliability_curve

#: Letters of a name in one line.
_LETTERS = 28


class ComparisonDisplay(Display):
    """Calibration errors of several models with their intervals, or their reliability curves.

    Parameters
    ----------
    rows : iterable of dict
        With the keys ``name``, ``estimator`` and ``value``, and if known ``low`` and ``high``, the ends of a
        confidence interval, ``n`` and ``confidence_level``.
    curves : mapping of str to Reliability, optional
        The reliability curves by name.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from truecal import datasets
    >>> from truecal.display import ComparisonDisplay
    >>> data = datasets.load("flights")
    >>> ax = Figure().subplots()
    >>> display = ComparisonDisplay.from_predictions(data.y_true, data.predictions, rng=0, ax=ax)
    >>> for row in display.rows:
    ...     print(f"{row['name']:12} {row['value']:.3f}, {row['low']:.3f} to {row['high']:.3f}")
    boosting     0.029, 0.019 to 0.036
    balanced     0.191, 0.182 to 0.199
    naive_bayes  0.108, 0.096 to 0.125
    >>> ax.get_xlabel()
    'calibration error, l2 (%)'
    """

    def __init__(self, rows: Iterable[Any], curves: Mapping[str, Reliability] | None = None) -> None:
        self.rows = check_rows(rows, ("name", "estimator", "value"), "ComparisonDisplay")
        self.curves = dict(curves or {})

    @classmethod
    @describe_plot
    def from_predictions(
        cls,
        y_true: Any,
        predictions: Mapping[str, Any],
        *,
        estimators: Sequence[str] = (DEFAULT_ESTIMATOR,),
        norm: NormLike = 2,
        confidence_level: float | None = 0.95,
        n_resamples: int = 300,
        rng: RNGLike = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw one set of labels and the probabilities of several models.

        Parameters
        ----------
        y_true : array-like or None
            Labels, the same for all models; None if all predictions are Samples.
        predictions : mapping of str to array-like or Sample
            Probabilities, or a `Sample`, by the name of the model.
        estimators : sequence of str
            Estimators to show.
        norm : {1, 2, "l1", "l2"}
            Order of the norm.
        confidence_level : float or None
            Level of the intervals for the true error; None for none.
        n_resamples, rng
            Resamples and seed of the bands of the curves.
        {read_and_draw}

        {display}
        """
        drawing, reading = cls._split(options)
        samples = {
            name: proba if isinstance(proba, Sample) else as_sample(y_true, proba, **reading)
            for name, proba in predictions.items()
        }
        display = cls._from_samples(samples, estimators, norm, confidence_level, n_resamples, rng)
        return display.plot(ax, **drawing)

    @classmethod
    @describe_plot
    def from_ranking(cls, ranking: Ranking, *, ax: Any = None, **options: Any) -> Self:
        """Draw the ranking of several models, with its simultaneous intervals.

        Parameters
        ----------
        ranking : Ranking
            What `truecal.compare` returns for three models or more.
        {draw}

        {display}
        """
        rows = [
            {
                "name": model.name,
                "estimator": DEFAULT_ESTIMATOR,
                "value": model.error,
                "norm": ranking.pairs[0].norm,
                "low": model.interval.low,
                "high": model.interval.high,
                "confidence_level": ranking.confidence_level,
            }
            for model in ranking.models
        ]
        return cls(rows).plot(ax, **options)

    @classmethod
    @describe_plot
    def from_groups(
        cls,
        y_true: Any,
        y_proba: Any,
        by: Any,
        *,
        estimators: Sequence[str] = (DEFAULT_ESTIMATOR,),
        norm: NormLike = 2,
        confidence_level: float | None = 0.95,
        n_resamples: int = 300,
        rng: RNGLike = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the predictions of one model, and the group that each row belongs to.

        Parameters
        ----------
        y_true, y_proba : array-like
            Labels and probabilities.
        by : array-like, mapping, data frame or tuple of array-like
            The groups: one column, or several that are crossed, as in `truecal.assess`.
        estimators, norm, confidence_level, n_resamples, rng
            As in `from_predictions`.
        {read_and_draw}

        {display}
        """
        drawing, reading = cls._split(options)
        warn_of_other_order(y_true=y_true, by=by)
        (rows,) = read_rows(y_true, y_proba, **reading)
        split = split_rows(by, len(rows.label))
        samples = {split.names[k]: sample for k, sample in split_sample(rows, split).items()}
        display = cls._from_samples(samples, estimators, norm, confidence_level, n_resamples, rng)
        return display.plot(ax, **drawing)

    @classmethod
    def _from_samples(
        cls,
        samples: Mapping[str, Sample],
        estimators: Sequence[str],
        norm: NormLike,
        confidence_level: float | None,
        n_resamples: int,
        rng: RNGLike,
    ) -> Self:
        generator, order, rows = as_generator(rng), check_norm(norm), []
        for name, sample in samples.items():
            shared = {"n": sample.n, "norm": order}
            if confidence_level is not None:
                interval = confidence_interval(sample, norm=norm, confidence_level=confidence_level)
                shared |= {"low": interval.low, "high": interval.high, "confidence_level": confidence_level}
            for estimator in estimators:
                value = get_estimator(estimator)(sample, norm=norm).value
                rows.append({"name": name, "estimator": estimator, "value": value, **shared})
        curves = {
            name: reliability_curve(one, n_resamples=n_resamples, rng=generator)
            for name, one in samples.items()
        }
        return cls(rows, curves)

    @describe_plot
    def plot(self, ax: Any = None, *, kind: str = "errors", legend: bool = True, **options: Any) -> Self:
        """Draw errors with intervals, or reliability curves, one diagram for each model or all in one.

        Parameters
        ----------
        ax : matplotlib Axes, or several, optional
            Where to draw; by default a new figure. Axes are divided for several curves.
        kind : {"errors", "curves", "overlay"}
            Errors with intervals, one diagram for each curve, or all curves in one diagram.
        {legend}
        **options
            Passed to matplotlib for the dots, or for the curves.

        {panels}
        """
        check_choice("kind", kind, ("errors", "curves", "overlay"))
        if kind != "errors":
            return self._plot_curves(ax, kind, legend, options)
        names, estimators = column(self.rows, "name"), column(self.rows, "estimator")
        labels = ["\n".join(textwrap.wrap(self._label(name), _LETTERS)) for name in names]
        height = 1.3 + sum(0.15 + 0.17 * (1 + label.count("\n")) for label in labels)
        ax = draw.axes_or_new(ax, figsize=(4.2, height))
        spread = np.linspace(-0.16, 0.16, len(estimators)) if len(estimators) > 1 else [0.0]
        for place, name in enumerate(names):
            rows = [row for row in self.rows if row["name"] == name]
            if rows[0].get("low") is not None:
                ends = [rows[0]["low"], rows[0]["high"]]
                ax.plot(ends, [place, place], color=draw.INK, linewidth=2.5, alpha=0.55)
            for row in rows:
                index = estimators.index(row["estimator"])
                style = draw.estimator_style(row["estimator"], index)
                style |= {"linestyle": "none", "clip_on": False, "markersize": 6, **options}
                label = None if place else row["estimator"]
                ax.plot([row["value"]], [place + spread[index]], label=label, **style)
        draw.tidy(ax, xlabel=f"calibration error, l{self.rows[0].get('norm', 2):g} (%)")
        ax.set_yticks(range(len(names)), labels)
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.grid(False, axis="y")
        ax.set_xlim(left=0)
        draw.percent_axis(ax.xaxis)
        if legend:
            confidence = self.rows[0].get("confidence_level")
            title = f"bars: {100 * confidence:g}% intervals" if confidence else ""
            draw.legend_below([ax], columns=min(4, len(estimators)), handlelength=1, title=title)
        return self._drawn(ax)

    def _label(self, name: str) -> str:
        """Return a name with the number of rows where these differ."""
        sizes: dict[str, Any] = {row["name"]: row.get("n") for row in self.rows}
        known = None not in sizes.values() and len(set(sizes.values())) > 1
        return f"{name} ({short_count(sizes[name])})" if known else str(name)

    def _plot_curves(self, ax: Any, kind: str, legend: bool, options: dict[str, Any]) -> Self:
        """Draw one diagram for each curve, or all curves in one."""
        if not self.curves:
            raise InputError(
                "This display has no reliability curves. Make it with from_predictions, or pass curves."
            )
        displays = {self._label(name): ReliabilityDisplay(curve) for name, curve in self.curves.items()}
        if kind == "overlay":
            axes = [draw.axes_or_new(ax, figsize=(4.2, 4.4))]
            for name, display in displays.items():
                display.plot(axes[0], name=name, legend=False, **options)
        else:
            axes = draw.panels(ax, len(displays))
            for panel, (name, display) in zip(axes, displays.items(), strict=True):
                display.plot(panel, legend=False, **options)
                draw.tidy(panel, title=name)
            draw.label_outer(axes, "score", "observed frequency")
        if legend:
            draw.legend_below(axes, columns=3 if kind == "overlay" else 2)
        return self._drawn(*axes)


#: Longer names of segments are cut.
_LONGEST_NAME = 48


class AuditDisplay(Display):
    """Observed rate less mean prediction in each segment, with simultaneous intervals.

    A segment can be found although its interval contains 0: the test also looks at the slope, for scores that are too
    high at one end and too low at the other.

    Parameters
    ----------
    audit : Audit
        Result of `truecal.audit`.

    Examples
    --------
    >>> import truecal
    >>> from matplotlib.figure import Figure
    >>> data = truecal.datasets.load("flights")
    >>> audit = truecal.audit(data.y_true, data.y_proba, {"origin": data.groups["origin"]}, rng=0)
    >>> display = truecal.display.AuditDisplay.from_audit(audit, ax=Figure().subplots())
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ["origin: 'JFK' (3,251)", "origin: 'EWR' (3,532)", "origin: 'LGA' (3,217)"]
    """

    def __init__(self, audit: Audit) -> None:
        self.audit = audit

    @classmethod
    @describe_plot
    def from_audit(cls, audit: Audit, *, ax: Any = None, **options: Any) -> Self:
        """Draw the result of `truecal.audit`.

        Parameters
        ----------
        audit : Audit
            What was found.
        {draw}

        {display}
        """
        return cls(audit).plot(ax, **options)

    @describe_plot
    def plot(self, ax: Any = None, *, most: int = 20, legend: bool = True, **options: Any) -> Self:
        """Draw the segments, smallest adjusted p-value first.

        Parameters
        ----------
        {ax}
        most : int
            Number of segments.
        {legend}
        **options
            Passed to matplotlib for the dots.

        {drawn}
        """
        audit, shown = self.audit, self.audit.segments[: check_count("most", most)]
        ax = draw.axes_or_new(ax, figsize=(5.6, 1.6 + 0.24 * len(shown)))
        ax.axvline(0, color=draw.INK, linewidth=0.8, linestyle="--")
        named = set()
        for place, segment in enumerate(shown):
            found = segment in audit.found
            color, text = (draw.RED, "found (level or slope)") if found else (draw.INK, "not found")
            ends = [segment.low, segment.high]
            ax.plot(ends, [place, place], color=color, linewidth=2.5, alpha=0.45, solid_capstyle="butt")
            style = {"color": color, "marker": "o", "linestyle": "none", "markersize": 5, **options}
            ax.plot([segment.difference], [place], label=None if text in named else text, **style)
            named.add(text)
        ax.set_yticks(range(len(shown)), [_label(segment.name, segment.n) for segment in shown])
        ax.set_ylim(len(shown) - 0.5, -0.5)
        draw.tidy(ax, xlabel="observed less predicted (%)")
        ax.grid(False, axis="y")
        draw.percent_axis(ax.xaxis, sign=True)
        if legend:
            title = f"{len(shown)} of {audit.n_searched:,} segments\n{level(1 - audit.alpha)} simultaneous intervals"
            draw.legend_below([ax], columns=1, title=title)
        return self._drawn(ax)


def _label(name: str, n: int) -> str:
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return f"{short} ({short_count(n)})"
