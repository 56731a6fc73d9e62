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
from truecal.data import as_sample, read_rows
from truecal.data.arrays import to_array, to_python
from truecal.data.sample import Sample
from truecal.exceptions import InputError
from truecal.inference.interval import confidence_interval
from truecal.inference.monitor.alternatives import leaves, weigh, weigh_clusters
from truecal.inference.monitor.bounds import error_bound, frequency_bounds
from truecal.inference.monitor.change import KEPT, N_SUMS, ChangePoint, Checkpoints, region_sums
from truecal.inference.monitor.diagnosis import Diagnosis, diagnose
from truecal.inference.monitor.look import LOOK_NUMBERS, Look, exp_or_infinity, look_of, numbers_of
from truecal.inference.monitor.processes import Processes
from truecal.inference.monitor.state_file import decode, encode, read_state, write_state
from truecal.inference.monitor.times import span

#: Looks that the history keeps; beyond that, every second one is dropped.
_MOST_LOOKS = 256
_KIND = "calibration monitor"


class CalibrationMonitor:
    r"""Calibration over time, with an alarm that may be looked at after every batch.

    The e-value measures the evidence against the null hypothesis. Its expectation is at most 1 at any time at which
    one may choose to stop, so the probability that it *ever* reaches 1 / alpha is at most alpha (Ville's inequality),
    however often one looks and whatever the sizes of the batches. No row is kept; the state has a fixed size.

    Parameters
    ----------
    alpha : float
        Probability of a false alarm, over the whole life of the monitor.
    at_most : float, optional
        Error that is tolerated. The null hypothesis is then that the root mean square of the true errors
        :math:`P(y_i = 1 \mid \text{past}, p_i) - p_i` of the rows so far is at most this, at every time. By default
        it is perfect calibration.
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
    does not depend on labels that are not in yet. Rows that depend on each other beyond that belong in one cluster, and
    a cluster in one batch: its factor is the mean of the likelihood ratios of its rows, which is valid under any
    dependence within it.

    *Scores of exactly 0 and 1.* A label that contradicts such a score is impossible under perfect calibration: the
    e-value is infinite from then on, and `diagnosis` says so. With `at_most` or `reference` it is not, and counts like
    a score very near 0 or 1. Scores that were merely rounded should be clipped.

    See Also
    --------
    WindowedStream : the error in a moving window, without error control.

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
        self._processes = Processes(at_most=self.at_most or 0.0)
        self._checkpoints = Checkpoints()
        self._sums = np.zeros(N_SUMS)
        self._labels = self._scores = 0.0  # of units: rows, or means over clusters
        self._peak = 0.0
        self._failures = 0
        self._windows = 0
        self._time: Any = None
        self._change_alarm = False
        self._looks: list[Look] = []
        self._every = 1

    # -- Batches --------------------------------------------------------------------------------------

    def update(
        self,
        y_true: ArrayLike | Sample,
        y_proba: ArrayLike | None = None,
        *,
        time: Any = None,
        clusters: Any = None,
    ) -> Look | None:
        """Take in a batch, and return what is known now; None for an empty batch.

        Parameters
        ----------
        y_true, y_proba
            Labels and probabilities, as in `truecal.estimate`; or a `Sample`, such as the `Cells` of a window that
            an engine made. Cells give an e-value that is at most that of their rows, up to rounding, and remain valid.
        time : number, date, string or array of shape (n,), optional
            When the rows belong. Times are reported and do not change the evidence.
        clusters : array-like of shape (n,) or (n, k), or data frame, optional
            Rows that depend on each other have the same value. All rows of a cluster must be in one batch.

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
        score, count, positives, cluster, target = self._read(y_true, y_proba, clusters)
        if self._target not in (None, target):
            raise InputError(f"The monitor holds {self._target}; this batch holds {target}")
        leaf = leaves(score)
        evidence = (
            weigh(score, count, positives)
            if cluster is None
            else weigh_clusters(score, count, positives, cluster)
        )
        self._target = target
        rows = self._processes.rows
        self._checkpoints.add(
            self._windows, rows, None if start is None else start, self._processes.total[KEPT], self._sums
        )
        self._processes.add(evidence)
        self._processes.independent &= cluster is None
        self._sums = self._sums + region_sums(leaf, count, positives, score)
        self._failures += int(positives[score == 0].sum() + (count - positives)[score == 1].sum())
        labels, scores = _unit_sums(score, count, positives, cluster)
        self._labels += labels
        self._scores += scores
        self._windows += 1
        self._time = end
        return self._look(float(count.sum()), float((positives - score * count).sum() / count.sum()))

    def _read(self, y_true: Any, y_proba: Any, clusters: Any) -> tuple[Any, ...]:
        """Return scores, counts, positive labels and clusters as float64, and the target."""
        if not isinstance(y_true, Sample):
            (rows,) = read_rows(y_true, y_proba, clusters=clusters, **self._reading)
            score = rows.score.astype(np.float64)
            return score, np.ones(len(score)), rows.label.astype(np.float64), rows.cluster, rows.target
        sample = as_sample(y_true, y_proba, clusters=clusters)
        if sample.squares is not None:
            raise InputError("The monitor takes no sampling weights", remedy="Pass rows, or counts.")
        if sample.clusters is None:
            return sample.score, sample.count, sample.positives, None, sample.target
        entries = sample.clusters
        return (
            sample.score[entries.group],
            entries.weight,
            entries.positives,
            entries.cluster,
            sample.target,
        )

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
        low, high = frequency_bounds(processes.units, self._labels, self.alpha)
        mean = self._scores / processes.units
        look = Look(
            rows=processes.rows,
            time=self._time,
            log_evalue=log_evalue,
            log_detector=log_detector,
            pvalue=self.pvalue,
            alarm=self.alarm,
            change_alarm=self._change_alarm,
            gap=self._labels / processes.units - mean,
            gap_low=low - mean,
            gap_high=high - mean,
            error_low=error_bound(processes.total, processes.squares, processes.units, self.alpha),
            batch_rows=batch_rows,
            batch_gap=batch_gap,
        )
        if (self._windows - 1) % self._every == 0:
            self._looks.append(look)
        if len(self._looks) > _MOST_LOOKS:
            self._looks, self._every = self._looks[::2], 2 * self._every
        self._last = look
        return look

    def merge(self, *others: CalibrationMonitor) -> Self:
        """Take in what other monitors with the same settings have seen, and return this one.

        Log-likelihood ratios add up, so the result is that of one monitor which saw the rows of the others after its
        own. That is valid if the label of each row is Bernoulli(score) given the rows of all shards, as for shards
        that are independent. The highest e-value of another monitor is not carried over: what each shard alone would
        have raised an alarm for is a hypothesis of its own.

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
            if self._target not in (None, other._target):
                raise InputError(f"The monitor holds {self._target}; the other holds {other._target}")
            self._target = other._target
            start = other._checkpoints.time[0]
            self._checkpoints.add(
                self._windows, self._processes.rows, start, self._processes.total[KEPT], self._sums
            )
            self._processes.merge(other._processes)
            self._sums = self._sums + other._sums
            self._labels += other._labels
            self._scores += other._scores
            self._failures += other._failures
            self._windows += 1
            self._time = other._time
            rows, labels, scores = other._sums.reshape(3, -1).sum(axis=1)
            self._look(float(rows), float((labels - scores) / rows))
        return self

    def reset(self) -> None:
        """Forget all rows, for example after a new model was put in place. A new monitor has a new guarantee."""
        self._target = None
        self._clear()

    # -- What is known --------------------------------------------------------------------------------

    @property
    def n(self) -> float:
        """Number of rows so far."""
        return self._processes.rows

    @property
    def log_evalue(self) -> float:
        """Natural logarithm of the e-value."""
        if self._failures and self.at_most is None:
            return math.inf
        return self._processes.log_evalue if self._windows else 0.0

    @property
    def evalue(self) -> float:
        """Evidence against the null hypothesis now: its expectation under it is at most 1 at any stopping time."""
        return exp_or_infinity(self.log_evalue)

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
        if self._failures and self.at_most is None:
            return math.inf
        return self._processes.log_detector if self._windows else -math.inf

    @property
    def change_alarm(self) -> bool:
        """Whether the e-detector has ever reached `average_run_length`."""
        return self._change_alarm

    @property
    def history(self) -> tuple[Look, ...]:
        """The looks so far; of long histories every second, fourth and so on, and always the last."""
        last = () if not self._windows or self._looks[-1] is self._last else (self._last,)
        return (*self._looks, *last)

    @property
    def change(self) -> ChangePoint | None:
        """When the change began, if there has been an alarm of either kind."""
        return self._locate()[0] if self.alarm or self._change_alarm else None

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What changed, if there has been an alarm of either kind."""
        if not (self.alarm or self._change_alarm):
            return None
        _, since = self._locate()
        failures = self._failures if self.at_most is None else 0
        return diagnose(self._processes.detector, since, failures)

    def _locate(self) -> tuple[ChangePoint, FloatArray]:
        checkpoints = self._checkpoints
        change, start = checkpoints.locate(
            self._processes.total[KEPT], self._processes.rows, self._time, self.alpha
        )
        return change, self._sums - checkpoints.sums[start]

    def __str__(self) -> str:
        null = (
            "perfect calibration" if self.at_most is None else f"an error of at most {percent(self.at_most)}"
        )
        if not self._windows:
            return f"No rows yet; watching for evidence against {null}."
        said = f"{counted(self.n, 'row')}, e-value {self.evalue:.3g} against {null}"
        if not (self.alarm or self._change_alarm):
            return f"No alarm: {said} (alarm at {self.threshold:.4g})."
        change = "" if self._failures and self.at_most is None else f" Change: {self.change}."
        diagnosis = str(self.diagnosis)
        return f"ALARM: {said}.{change} {diagnosis[0].upper()}{diagnosis[1:]}."

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
        write_state(path, _KIND, {"settings": self._settings(), "state": self.to_state()})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the monitor that `save` wrote; a file that was changed since is refused.

        The numbers go on exactly as if there had been no interruption.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        content = read_state(path, _KIND)
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
        """Return everything that the monitor knows, as JSON can hold it."""
        processes, points = self._processes, self._checkpoints
        looks = [*self._looks, *([self._last] if self._windows else [])]
        return {
            "target": self._target,
            "rows": processes.rows,
            "units": processes.units,
            "independent": processes.independent,
            "processes": [
                encode(part)
                for part in (processes.total, processes.squares, processes.mixed, processes.detector)
            ],
            "unit_sums": [self._labels, self._scores],
            "sums": encode(self._sums),
            "log_peak": encode(np.array([self._peak])),
            "failures": self._failures,
            "windows": self._windows,
            "time": self._time,
            "change_alarm": self._change_alarm,
            "every": self._every,
            "looks": encode(np.array([numbers_of(look) for look in looks])),
            "look_times": [look.time for look in looks],
            "checkpoints": [points.window, points.rows, points.time],
            "checkpoint_evidence": encode(np.array(points.evidence)),
            "checkpoint_sums": encode(np.array(points.sums)),
        }

    @classmethod
    def from_state(cls, settings: dict[str, Any], state: dict[str, Any]) -> Self:
        """Return the monitor of a state that `to_state` gave.

        Parameters
        ----------
        settings, state : dict
            The content of a state file.
        """
        given = dict(settings)
        spent = given.pop("spent")
        monitor = cls(**given)
        monitor._spent = spent
        total, squares, mixed, detector = map(decode, state["processes"])
        monitor._processes = Processes(
            monitor.at_most or 0.0,
            state["rows"],
            state["units"],
            total,
            squares,
            mixed,
            detector,
            state["independent"],
        )
        window, rows, time = state["checkpoints"]
        monitor._checkpoints = Checkpoints(
            window,
            rows,
            time,
            list(decode(state["checkpoint_evidence"]).reshape(-1, len(KEPT))),
            list(decode(state["checkpoint_sums"]).reshape(-1, N_SUMS)),
        )
        monitor._target = state["target"]
        monitor._sums = decode(state["sums"])
        monitor._labels, monitor._scores = state["unit_sums"]
        monitor._peak = float(decode(state["log_peak"])[0])
        for name in ("failures", "windows", "time", "change_alarm", "every"):
            setattr(monitor, f"_{name}", state[name])
        numbers = decode(state["looks"]).reshape(-1, len(LOOK_NUMBERS))
        looks = [look_of(row, moment) for row, moment in zip(numbers, state["look_times"], strict=True)]
        if looks:
            monitor._looks, monitor._last = looks[:-1], looks[-1]
            if monitor._looks and monitor._looks[-1] == monitor._last:
                monitor._looks[-1] = monitor._last
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

        return MonitorDisplay.from_monitor(self).plot(ax, **options)


def _pair(reference: Any) -> tuple[Any, Any]:
    if not isinstance(reference, tuple | list) or len(reference) != 2:
        raise InputError("must be a Sample, or a pair (y_true, y_proba)", argument="reference")
    return reference[0], reference[1]


def _plain_label(value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return [to_python(item) for item in value]
    return to_python(value)


def _unit_sums(
    score: FloatArray, count: FloatArray, positives: FloatArray, cluster: Any
) -> tuple[float, float]:
    """Return the sums over units of their labels and scores; those of a cluster are means."""
    if cluster is None:
        return float(positives.sum()), float((score * count).sum())
    size = np.bincount(cluster, count)
    labels = np.bincount(cluster, positives) / size
    return float(labels.sum()), float((np.bincount(cluster, score * count) / size).sum())
