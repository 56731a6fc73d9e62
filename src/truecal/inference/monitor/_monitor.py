"""The monitor: batches in, an alarm with a guarantee out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import check_choice, check_fraction, check_real
from truecal._lib.text import counted, percent
from truecal._lib.types import FloatArray
from truecal.data import as_sample
from truecal.data.arrays import to_array, to_python
from truecal.data.sample import Sample
from truecal.exceptions import InputError, warn_user
from truecal.inference.interval import confidence_interval
from truecal.inference.monitor import _evidence, _state
from truecal.inference.monitor._batch import Batch, span
from truecal.inference.monitor._state import ChangePoint, Diagnosis, Look

_KIND = "calibration monitor"
#: Attributes that JSON can hold as they are, with their types.
_PLAIN: dict[str, Any] = {
    "failures": int,
    "windows": int,
    "change_alarm": bool,
    "rows_left_out": int | float,
}


class CalibrationMonitor:
    r"""Calibration over time, with an alarm that you can check after every batch.

    The e-value measures the evidence against the null hypothesis. Its expectation is at most 1 at any time at which
    one may choose to stop, so the probability that it *ever* reaches 1 / alpha is at most alpha (Ville's inequality),
    however often one looks and whatever the sizes of the batches. No row is kept. The state has a fixed size; with
    clusters it also has 8 bytes for each cluster, of at most 2^20.

    Parameters
    ----------
    alpha : float
        Probability of a false alarm, over the whole life of the monitor.
    at_most : float, optional
        Error that is tolerated. The null hypothesis is then that the root mean square of the true errors
        :math:`P(y_i = 1 \mid \text{past}, p_i) - p_i` that is to be expected of the rows of a batch is at most this,
        in every batch. By default it is perfect calibration.
    reference : Sample, or pair of arrays (y_true, y_proba), optional
        Earlier predictions. The null hypothesis is then that the error is no larger than theirs: `at_most` is the
        upper confidence bound of their error. Half of alpha is spent on that bound.
    average_run_length : float, optional
        Mean number of rows to a false alarm of the change detector. It finds recent changes sooner than the e-value,
        but on a stream without end it raises a false alarm from time to time. By default it raises none.
    pos_label, labels, multiclass
        How to read each batch, as in `truecal.estimate`; ``multiclass`` may be ``"top"``.

    Notes
    -----
    *What is assumed.* The prediction was fixed before the label was known, and under the null hypothesis the label of
    each row is Bernoulli(score) given all earlier rows. Labels may therefore arrive late and in any order, if the order
    and the size of a batch do not depend on labels that are not in yet. Rows that depend on each other beyond that
    belong in one cluster, and a cluster in one batch: its factor is the mean of the likelihood ratios of its rows,
    which is valid under any dependence within it. If a cluster comes back in a later batch, its rows there are left
    out, and `rows_left_out` counts them. Of more than 2^20 clusters, a random half (then a quarter, and so on) counts
    from then on. Forecasts of one series with overlapping horizons are dependent.

    *Scores of exactly 0 and 1.* A label that contradicts such a score is impossible under perfect calibration: the
    e-value is infinite from then on, and `diagnosis` says so. With `at_most` or `reference` it is not, and counts like
    a score very near 0 or 1. Scores that were merely rounded should be clipped.

    See Also
    --------
    CalibrationStream : any estimate of a stream, without error control.

    References
    ----------
    Henzi, Ziegel (2022), Valid sequential inference on probability forecast performance, Biometrika 109, 647-663.
    Shin, Ramdas, Rinaldo (2024), E-detectors: a nonparametric framework for sequential change detection, New England
    Journal of Statistics in Data Science 2, 229-260.
    Waudby-Smith, Ramdas (2024), Estimating means of bounded random variables by betting, JRSS B 86, 1-27.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> monitor = CalibrationMonitor(alpha=0.05)
    >>> for day in range(1, 31):
    ...     score = rng.random(500)
    ...     drift = 0.06 if day > 20 else 0.0
    ...     look = monitor.update(rng.random(500) < score + drift, score, time=day)
    >>> monitor.alarm
    True
    >>> print(monitor.change)
    22 (95%: 19 to 24)
    >>> monitor.diagnosis.change
    'level'
    """

    def __init__(
        self,
        alpha: float = 0.05,
        at_most: float | None = None,
        reference: Any = None,
        *,
        average_run_length: float | None = None,
        pos_label: Any = None,
        labels: Sequence[Any] | None = None,
        multiclass: str | None = None,
    ) -> None:
        self.alpha = check_fraction("alpha", alpha)
        if multiclass is not None:
            check_choice("multiclass", multiclass, ("top",))
        self._reading = {"pos_label": pos_label, "labels": labels, "multiclass": multiclass}
        self._spent = 0.0
        if reference is not None:
            if at_most is not None:
                raise InputError("cannot be combined with at_most", argument="reference")
            at_most, self._spent = self._reference_bound(reference), self.alpha / 2
        self.at_most = None if at_most is None else check_real("at_most", at_most, above=0, at_most=1)
        self.average_run_length = (
            None
            if average_run_length is None
            else check_real("average_run_length", average_run_length, above=1)
        )
        self._target: str | None = None
        self._clear()

    def _clear(self) -> None:
        self._processes = _evidence.Processes(at_most=self.at_most or 0.0)
        self._checkpoints = _state.Checkpoints()
        self._history = _state.History()
        self._sums = np.zeros((3, _evidence.N_REGIONS))
        self._peak = 0.0
        self._failures = 0
        self._windows = 0
        self._time: Any = None
        self._change_alarm = False
        self._seen = _state.SeenClusters()
        self._rows_left_out = 0.0

    # -- Batches --------------------------------------------------------------------------------------

    def update(
        self,
        y_true: ArrayLike | Sample,
        y_proba: ArrayLike | None = None,
        *,
        time: Any = None,
        clusters: Any = None,
    ) -> Look | None:
        """Add a batch, and return what is known now; None if no row of it counts.

        Parameters
        ----------
        y_true, y_proba
            Labels and probabilities, as in `truecal.estimate`; or a `Sample`, such as the `Cells` of a window that
            an engine made. Cells give an e-value that is at most that of their rows, up to rounding, and remain valid.
        time : number, date, string or array of shape (n,), optional
            When the rows belong. Times are reported and do not change the evidence.
        clusters : array-like of shape (n,) or (n, k), or data frame, optional
            Rows that depend on each other have the same value. A cluster counts in its first batch only: rows of a
            cluster that was in an earlier batch are left out, with a warning.

        Returns
        -------
        Look or None
        """
        if (
            not isinstance(y_true, Sample)
            and y_proba is not None
            and not len(to_array(y_proba, "y_proba")[0])
        ):
            return None
        start, end = span(time)
        batch = Batch.read(y_true, y_proba, clusters, self._reading, self._seen)
        self._check_target(batch.target)
        self._leave_out(batch.rows_left_out)
        if batch.evidence is None:
            return None
        self._begin(start)
        self._seen.add(batch.clusters)
        self._processes.add(batch.evidence)
        return self._finish(batch.evidence.rows, batch.gap, batch.sums, batch.failures, end)

    def _leave_out(self, rows: float) -> None:
        """Count rows that are left out, with a warning for the first of them."""
        if rows and not self._rows_left_out:
            warn_user(
                f"{counted(rows, 'row')} of this batch belong to clusters that were in an earlier batch, and are left "
                "out: a cluster counts once. monitor.rows_left_out counts such rows."
            )
        self._rows_left_out += rows

    def _check_target(self, target: str | None) -> None:
        if self._target not in (None, target):
            raise InputError(f"The monitor holds {self._target}; this batch holds {target}")
        self._target = target

    def _begin(self, start: Any) -> None:
        """Add a checkpoint before a batch."""
        before = self._processes
        self._checkpoints.add(self._windows, before.rows, start, _state.kept_evidence(before), self._sums)

    def _finish(self, rows: float, gap: float, sums: FloatArray, failures: int, end: Any) -> Look:
        """Count a batch after its evidence was added, and return the updated look."""
        self._sums = self._sums + sums
        self._failures += failures
        self._windows += 1
        self._time = end
        look = self._look(rows, gap)
        self._history.add(look, self._windows - 1)
        return look

    def _reference_bound(self, reference: Any) -> float:
        """Return the upper confidence bound of the error of earlier predictions, at a level of 1 - alpha / 2."""
        sample = reference if isinstance(reference, Sample) else as_sample(*_pair(reference), **self._reading)
        interval = confidence_interval(sample, norm=2, confidence_level=1 - self.alpha)
        return max(interval.high, 1e-9)

    def _look(self, batch_rows: float, batch_gap: float) -> Look:
        processes = self._processes
        log_evalue, log_detector = self.log_evalue, self.log_detector
        self._peak = max(self._peak, log_evalue)
        if self.average_run_length is not None and log_detector >= math.log(self.average_run_length):
            self._change_alarm = True
        units, labels, scores = self._sums.sum(axis=1, keepdims=True)
        mean, (low, high) = float((scores / units)[0]), _evidence.frequency_bounds(units, labels, self.alpha)
        smallest = _evidence.smallest_error(
            processes.total, processes.squares, processes.units, self.alpha / 2
        )
        return Look(
            rows=processes.rows,
            time=self._time,
            log_evalue=log_evalue,
            log_detector=log_detector,
            pvalue=self.pvalue,
            alarm=self.alarm,
            change_alarm=self._change_alarm,
            gap=float((labels / units)[0]) - mean,
            gap_low=float(low[0]) - mean,
            gap_high=float(high[0]) - mean,
            error_low=smallest,
            error_high=max(_evidence.largest_error(self._sums, self.alpha / 2), smallest),
            batch_rows=batch_rows,
            batch_gap=batch_gap,
        )

    def merge(self, *others: CalibrationMonitor) -> Self:
        """Add the evidence of other monitors with the same settings, and return this one.

        Log-likelihood ratios add up, so the result is that of one monitor which saw the rows of the others after its
        own. That is valid if the label of each row is Bernoulli(score) given the rows of all shards, as for shards
        that are independent, and if whether and when a shard is merged does not depend on its evidence. The highest
        e-value of another monitor is not carried over: what each shard alone would have raised an alarm for is a
        hypothesis of its own.

        Parameters
        ----------
        *others : CalibrationMonitor
            The other monitors, which stay as they are.

        Returns
        -------
        Self
        """
        for other in others:
            if other._settings() != self._settings():
                raise InputError("Monitors must have the same settings to be merged")
            if not other._windows:
                continue
            if shared := self._seen.n_shared(other._seen):
                raise InputError(
                    f"Monitors that are merged must not have clusters in common. These share {shared:,}",
                    remedy="Send all rows of a cluster to one monitor.",
                )
            self._check_target(other._target)
            self._begin(other._checkpoints.time[0])
            self._seen.merge(other._seen)
            self._rows_left_out += other._rows_left_out
            self._processes.merge(other._processes)
            rows, (_, labels, scores) = other.n, other._sums.sum(axis=1).tolist()
            gap = (labels - scores) / other._processes.units
            self._finish(rows, gap, other._sums, other._failures, other._time)
        return self

    def reset(self) -> None:
        """Forget all rows, for example after you deploy a new model. A new monitor has a new guarantee."""
        self._target = None
        self._clear()

    # -- What is known --------------------------------------------------------------------------------

    @property
    def n(self) -> float:
        """Number of rows so far."""
        return self._processes.rows

    @property
    def rows_left_out(self) -> float:
        """Number of rows that did not count: their clusters were in an earlier batch, or are too many to remember."""
        return self._rows_left_out

    @property
    def log_evalue(self) -> float:
        """Natural logarithm of the e-value."""
        if self._contradictions:
            return math.inf
        return self._processes.log_evalue if self._windows else 0.0

    @property
    def evalue(self) -> float:
        """Evidence against the null hypothesis now: its expectation under it is at most 1 at any stopping time."""
        return _state.exp_or_infinity(self.log_evalue)

    @property
    def threshold(self) -> float:
        """The e-value at which there is an alarm: 1 / alpha, or 2 / alpha with a reference."""
        return 1 / (self.alpha - self._spent)

    @property
    def pvalue(self) -> float:
        """Anytime-valid p-value: 1 divided by the largest e-value so far, plus what the reference cost."""
        return min(math.exp(-self._peak) + self._spent, 1.0)

    @property
    def alarm(self) -> bool:
        """Whether the e-value has ever reached the threshold."""
        return self._peak >= math.log(self.threshold)

    @property
    def log_detector(self) -> float:
        """Natural logarithm of the e-detector, which is compared with `average_run_length`."""
        if self._contradictions:
            return math.inf
        return self._processes.log_detector if self._windows else -math.inf

    @property
    def change_alarm(self) -> bool:
        """Whether the e-detector has ever reached `average_run_length`."""
        return self._change_alarm

    @property
    def history(self) -> tuple[Look, ...]:
        """The looks so far; long histories are thinned to every second, fourth, ... look, and the last."""
        return self._history.looks

    @property
    def change(self) -> ChangePoint | None:
        """When the change began, if there has been an alarm of either kind; None with one batch, which cannot tell."""
        return self._locate()[0] if self._any_alarm and self._windows > 1 else None

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What changed, if there has been an alarm of either kind."""
        if not self._any_alarm:
            return None
        _, since = self._locate()
        return _state.diagnose(self._processes.detector, since, self._contradictions)

    @property
    def _any_alarm(self) -> bool:
        return self.alarm or self._change_alarm

    @property
    def _contradictions(self) -> int:
        """Number of labels that are impossible under perfect calibration, if that is the null hypothesis."""
        return self._failures if self.at_most is None else 0

    def _locate(self) -> tuple[ChangePoint, FloatArray]:
        """Return the change point, and the sums of regions since then."""
        now = _state.kept_evidence(self._processes)
        change, start = self._checkpoints.locate(now, self.n, self._time, self.alpha)
        return change, self._sums - self._checkpoints.sums[start]

    def __str__(self) -> str:
        null = (
            "perfect calibration" if self.at_most is None else f"an error of at most {percent(self.at_most)}"
        )
        if not self._windows:
            return f"No rows yet; watching for evidence against {null}."
        evidence = f"{counted(self.n, 'row')}, e-value {self.evalue:.3g} against {null}"
        left_out = ""
        if self._rows_left_out:
            left_out = (
                f" {counted(self._rows_left_out, 'row')} left out: a cluster counts in its first batch only."
            )
        if self._seen.halvings:
            share = 2**self._seen.halvings
            left_out += f" There are too many clusters to remember, and one in {share} counts by now."
        if not self._any_alarm:
            return f"No alarm: {evidence} (alarm at {self.threshold:.4g}).{left_out}"
        return f"ALARM: {evidence}. {finding(self)}{left_out}"

    def __repr__(self) -> str:
        return f"CalibrationMonitor(n={self.n:.10g}, evalue={self.evalue:.3g}, alarm={self.alarm})"

    # -- Files and pictures ---------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the state to a JSON file with a checksum, whole or not at all.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        _state.write_state(path, _KIND, {"settings": self._settings(), "state": self.to_state()})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the monitor that `save` wrote; a file that was changed since is refused.

        The numbers go on exactly as if there had been no interruption.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        content = _state.read_state(path, _KIND)
        with _state.restoring(path):
            return cls.from_state(content["settings"], content["state"])

    def _settings(self) -> dict[str, Any]:
        reading = {name: _plain_label(value) for name, value in self._reading.items()}
        return {
            "alpha": self.alpha,
            "at_most": self.at_most,
            "spent": self._spent,
            "average_run_length": self.average_run_length,
            **reading,
        }

    def to_state(self) -> dict[str, Any]:
        """Return the whole state of the monitor as JSON-compatible objects."""
        return {
            "target": self._target,
            "processes": self._processes.to_state(),
            "checkpoints": self._checkpoints.to_state(),
            "history": self._history.to_state(),
            "clusters": self._seen.to_state(),
            "sums": _evidence.encode(self._sums),
            "log_peak": _evidence.encode(np.array([self._peak])),
            "time": self._time,
            **{name: getattr(self, f"_{name}") for name in _PLAIN},
        }

    @classmethod
    def from_state(cls, settings: dict[str, Any], state: dict[str, Any]) -> Self:
        """Return the monitor of a state that `to_state` gave.

        Parameters
        ----------
        settings, state : dict
            The content of a state file.
        """
        options = dict(settings)
        spent = options.pop("spent")
        monitor = cls(**options)
        if spent not in (0, monitor.alpha / 2):
            raise ValueError(f"spent cannot be {spent!r}")
        monitor._spent = spent
        monitor._target = _evidence.check_kinds(state, {"target": str | None})["target"]
        monitor._processes = _evidence.Processes.from_state(monitor.at_most or 0.0, state["processes"])
        monitor._checkpoints = _state.Checkpoints.from_state(state["checkpoints"])
        monitor._history = _state.History.from_state(state["history"])
        monitor._seen = _state.SeenClusters.from_state(state["clusters"])
        monitor._sums = _evidence.decode(state["sums"], 3, _evidence.N_REGIONS)
        monitor._peak = float(_evidence.decode(state["log_peak"], 1)[0])
        monitor._time = state["time"]
        for name, value in _evidence.check_kinds(state, _PLAIN).items():
            setattr(monitor, f"_{name}", value)
        return monitor

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the history: e-value, calibration error and change point.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **options
            As for `truecal.display.MonitorDisplay.plot`.

        Returns
        -------
        MonitorDisplay
        """
        from truecal.display import MonitorDisplay

        return MonitorDisplay.from_monitor(self, ax=ax, **options)


def finding(monitor: CalibrationMonitor) -> str:
    """Return what changed and, unless a label contradicted a score of exactly 0 or 1, when the change began."""
    change, what = None if monitor._contradictions else monitor.change, str(monitor.diagnosis)
    began = "" if change is None else f"{change.sentence} "
    return f"{began}{what[0].upper()}{what[1:]}."


def _pair(reference: Any) -> tuple[Any, Any]:
    if not isinstance(reference, tuple | list) or len(reference) != 2:
        raise InputError("must be a Sample, or a pair (y_true, y_proba)", argument="reference")
    return reference[0], reference[1]


def _plain_label(value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return [to_python(item) for item in value]
    return to_python(value)
