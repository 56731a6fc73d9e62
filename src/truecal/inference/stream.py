"""Predictions that keep coming: cells that grow batch by batch, and a window of cells that moves with time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal._lib.checks import check_choice
from truecal.data import as_sample
from truecal.data.arrays import check_length, to_array
from truecal.data.cells import N_CELLS, Cells, check_same_target, merge_all
from truecal.data.cluster_sums import cluster_keys
from truecal.estimators._registry import DEFAULT_ESTIMATOR
from truecal.exceptions import InputError
from truecal.inference.estimate import estimate
from truecal.inference.monitor.times import number_steps
from truecal.results import Estimate

#: A moment, and a length of time: numbers in any unit, or dates with differences of dates.
Moment = float | datetime | np.datetime64
Duration = float | timedelta | np.timedelta64

#: The number of the last step.
_LATEST_STEP = 2.0**53
_NOTHING = "Nothing has come in yet. Call update first."


class CalibrationStream:
    """The calibration error of a stream of predictions, in memory of fixed size.

    Batches come in through `update` and are not kept: only the cells that they fall into, at most 2^16 (see
    `truecal.data.cells`). Streams of several processes or days can be merged. With clusters, memory grows with the
    number of pairs of a cluster and a cell, of which there may be 2^24 (about 1 GB).

    Parameters
    ----------
    pos_label, labels, multiclass
        How to read each batch, as in `truecal.estimate`; ``multiclass`` may be ``"top"``. Where labels are
        text, name the classes: a batch need not hold all of them.

    Examples
    --------
    >>> import numpy as np
    >>> stream = CalibrationStream()
    >>> rng = np.random.default_rng(0)
    >>> for batch in range(100):
    ...     scores = rng.random(1000)
    ...     stream.update(rng.random(1000) < scores**1.2, scores)
    >>> stream
    CalibrationStream(n=100000)
    >>> print(stream.compute(estimator="em_debias"))
    em_debias (l2) of P(y = 1): 0.0470, n = 100000, 15 bins, cells ± 1e-05
    """

    def __init__(
        self, *, pos_label: Any = None, labels: Sequence[Any] | None = None, multiclass: str | None = None
    ) -> None:
        if multiclass is not None:
            check_choice("multiclass", multiclass, ("top",))
        self._reading = {"pos_label": pos_label, "labels": labels, "multiclass": multiclass}
        self._parts: list[Cells] = []
        self._waiting = 0

    def update(
        self,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        clusters: Any = None,
    ) -> None:
        """Take in a batch, which may be empty.

        Parameters
        ----------
        y_true, y_proba, sample_weight
            As in `truecal.estimate`.
        clusters : array-like of shape (n,) or (n, k), or data frame, optional
            Rows that depend on each other have the same value, in this batch or in others. Given with every batch
            or with none.
        """
        proba = to_array(y_proba, "y_proba")[0]
        if not len(proba):
            return
        reading = {**self._reading, "sample_weight": sample_weight}
        if clusters is None:
            cells = Cells.from_sample(as_sample(y_true, y_proba, **reading))
        else:
            # Keys that are sorted are numbered in their order, whatever rows of weight 0 leave out.
            key = cluster_keys(clusters, len(proba)).view(np.int64)
            sample = as_sample(y_true, y_proba, **reading, clusters=key)
            if sample_weight is not None:
                key = key[to_array(sample_weight, "sample_weight")[0] > 0]
            cells = Cells.from_sample(sample, keys=np.unique(key).view(np.uint64))
        self._take([cells])

    def merge(self, *others: CalibrationStream) -> Self:
        """Take in what other streams have seen, and return this one.

        Parameters
        ----------
        *others : CalibrationStream
            The other streams, which stay as they are.
        """
        for other in others:
            self._take(other._parts)
        return self

    @property
    def n(self) -> float:
        """Number of rows so far, or their total weight."""
        return sum(part.n for part in self._parts)

    @property
    def cells(self) -> Cells:
        """What has come in so far, a `Sample` for everything that takes one."""
        if not self._parts:
            raise InputError(_NOTHING)
        self._merge()
        return self._parts[0]

    def compute(self, estimator: str = DEFAULT_ESTIMATOR, **options: Any) -> Estimate:
        """Return the calibration error so far.

        Parameters
        ----------
        estimator : str
            One of `truecal.list_estimators`.
        **options
            The other parameters of `truecal.estimate` that a `Sample` can go with, such as `norm`.
        """
        return estimate(self.cells, estimator=estimator, **options)

    def reset(self) -> None:
        """Forget everything."""
        self._parts, self._waiting = [], 0

    def _take(self, parts: list[Cells]) -> None:
        both = [*self._parts[:1], *parts]
        check_same_target(both)
        if len({part.clusters is None for part in both}) > 1:
            raise InputError("must come with every batch or with none", argument="clusters")
        self._parts += parts
        # Merging costs as much for a few rows as for many, so small parts wait until they are some.
        self._waiting += sum(map(_size, parts))
        if self._waiting > max(N_CELLS, _size(self._parts[0])):
            self._merge()

    def _merge(self) -> None:
        self._parts, self._waiting = [merge_all(self._parts)], 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n:.10g})"


class WindowedStream:
    """The calibration error over the last hour, day or week, for monitoring.

    Time is cut into steps, and each step has cells of its own. The window ends with the step of the latest row
    so far. Steps that have left it are dropped, and rows that are older than its beginning are not taken in.

    Parameters
    ----------
    window, step : number or timedelta
        Length of the window, and of the steps that it moves by; the window is a whole number of them.
    **reading
        Keywords of `CalibrationStream`.

    Attributes
    ----------
    n_late : int
        Number of rows that came too late.

    Examples
    --------
    >>> from datetime import datetime, timedelta
    >>> week = WindowedStream(window=timedelta(days=7), step=timedelta(days=1))
    >>> for day in range(1, 11):
    ...     week.update([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4], time=datetime(2026, 3, day, 12))
    >>> week
    WindowedStream(n=28, steps=7)
    >>> print(week.compute(estimator="ew_bin", n_bins=2))
    ew_bin (l2) of P(y = 1): 0.2550, n = 28, 2 bins
    >>> print(min(week.steps))
    2026-03-04T00:00:00.000000
    """

    def __init__(self, *, window: Duration, step: Duration, **reading: Any) -> None:
        self._dated = not isinstance(step, int | float)
        if self._dated == isinstance(window, int | float):
            raise InputError("must both be numbers, or both be timedeltas.", argument="window and step")
        self._step = _duration(step)
        ratio = _duration(window) / self._step if self._step > 0 else 0.0
        if not ratio >= 1 or not math.isclose(ratio, round(ratio), rel_tol=1e-9):
            raise InputError(
                f"must be a whole number of steps. Got {window!r} and {step!r} instead.", argument="window"
            )
        self._n_steps = round(ratio)
        self._new = partial(CalibrationStream, **reading)
        self._new()  # refuses what it cannot read by
        self._streams: dict[int, CalibrationStream] = {}
        self.n_late = 0

    def update(
        self,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        time: Moment | ArrayLike,
        sample_weight: ArrayLike | None = None,
        clusters: Any = None,
    ) -> None:
        """Take in a batch, whole or not at all.

        Parameters
        ----------
        y_true, y_proba
            As in `truecal.estimate`.
        time : number, datetime or array of shape (n,)
            When the rows belong: one moment for all, or one for each. Dates with a time zone count in UTC,
            those without as they stand. The latest of all moves the window, so that a wrong clock can empty it.
        sample_weight
            As in `truecal.estimate`.
        clusters : array-like of shape (n,) or (n, k), or data frame, optional
            As for `CalibrationStream.update`.
        """
        truth, proba = to_array(y_true, "y_true")[0], to_array(y_proba, "y_proba")[0]
        weight = None if sample_weight is None else to_array(sample_weight, "sample_weight")[0]
        unit = None if clusters is None else cluster_keys(clusters, len(proba))
        for name, values in (("y_true", truth), ("sample_weight", weight)):
            if values is not None:
                check_length(values, name, len(proba), "y_proba")
        steps = np.broadcast_to(self._steps_of(time), len(proba))
        end = max([*self._streams, *steps.tolist()], default=0)
        live = steps > end - self._n_steps
        fresh = {}
        for step in np.unique(steps[live]).tolist():
            rows = steps == step
            fresh[step] = self._new()
            fresh[step].update(
                truth[rows],
                proba[rows],
                sample_weight=None if weight is None else weight[rows],
                clusters=None if unit is None else unit[rows],
            )
        self._take(fresh)
        self.n_late += int((~live).sum())

    def merge(self, *others: WindowedStream) -> Self:
        """Take in what other streams with the same window and steps have seen, and return this one.

        Parameters
        ----------
        *others : WindowedStream
            The other streams, which stay as they are.
        """
        for other in others:
            if (other._step, other._n_steps, other._dated) != (self._step, self._n_steps, self._dated):
                raise InputError("must have the same window and steps", argument="others")
            self._take(other._streams)
            self.n_late += other.n_late
        return self

    @property
    def cells(self) -> Cells:
        """What is in the window, a `Sample` for everything that takes one."""
        parts = [stream.cells for stream in self._streams.values() if stream.n]
        if not parts:
            raise InputError(_NOTHING)
        return merge_all(parts)

    @property
    def steps(self) -> dict[float | np.datetime64, Cells]:
        """The cells of each step that holds rows, by the time at which it begins."""
        return {self._start(step): self._streams[step].cells for step in sorted(self._streams)}

    def compute(self, estimator: str = DEFAULT_ESTIMATOR, **options: Any) -> Estimate:
        """Return the calibration error in the window.

        Parameters
        ----------
        estimator, **options
            As in `CalibrationStream.compute`.
        """
        return estimate(self.cells, estimator=estimator, **options)

    def reset(self) -> None:
        """Forget everything."""
        self._streams = {}
        self.n_late = 0

    def _take(self, fresh: Mapping[int, CalibrationStream]) -> None:
        for step, stream in fresh.items():
            self._streams.setdefault(step, self._new()).merge(stream)
        end = max(self._streams, default=0)
        self._streams = {
            step: stream for step, stream in self._streams.items() if step > end - self._n_steps and stream.n
        }

    def _steps_of(self, time: Any) -> NDArray[np.int64]:
        """Return the number of the step that each moment is in."""
        moments = np.asarray(_in_utc(time))
        if moments.dtype.kind == "O":  # an array of dates, with a time zone or without
            moments = np.array([_in_utc(moment) for moment in moments.ravel()]).reshape(moments.shape)
        if (moments.dtype.kind == "M") != self._dated or moments.dtype.kind not in "Miuf":
            kind = "dates" if self._dated else "numbers"
            raise InputError(
                f"must be {kind}, as window and step are. Got {time!r} instead.", argument="time"
            )
        missing = int((moments != moments).sum())
        if missing:
            raise InputError(f"has {missing} missing value{'s' if missing > 1 else ''}.", argument="time")
        if self._dated:
            moments = _microseconds(moments)
            steps = np.floor_divide(moments, self._step)
        else:
            steps = number_steps(moments, self._step)
        if (np.abs(steps) > _LATEST_STEP).any():
            raise InputError(
                f"is too far from 0 for steps of {self._step:g}. Got {time!r} instead.", argument="time"
            )
        return np.asarray(steps, dtype=np.int64)

    def _start(self, step: int) -> float | np.datetime64:
        return np.datetime64(int(step * self._step), "us") if self._dated else step * self._step

    def __repr__(self) -> str:
        n = sum(stream.n for stream in self._streams.values())
        return f"{type(self).__name__}(n={n:.10g}, steps={len(self._streams)})"


def _size(part: Cells) -> int:
    return len(part) if part.clusters is None else len(part.clusters.weight)


def _duration(length: Any) -> float:
    """Return a number as it is, and a difference of dates in microseconds."""
    if isinstance(length, timedelta | np.timedelta64):
        return float(np.timedelta64(length, "us").astype(np.int64))
    return float(length)


def _microseconds(dates: NDArray[Any]) -> NDArray[np.int64]:
    """Return dates in microseconds since 1970, or refuse those that are beyond their range."""
    exact = dates.astype("datetime64[us]")
    if (exact.astype(dates.dtype) != dates).any() and np.datetime_data(dates.dtype)[0] in "YMWDhms":
        raise InputError("has dates that are too far away to be counted in microseconds.", argument="time")
    return exact.astype(np.int64)


def _in_utc(moment: Any) -> Any:
    """Return a date as NumPy's; anything else as it is."""
    if not isinstance(moment, datetime):
        return moment
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(moment, "us")
