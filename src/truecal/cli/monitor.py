"""``truecal monitor``: watch the calibration of a file or a stream of predictions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from truecal._lib.text import counted, format_pvalue, text_width
from truecal.cli._options import OUTPUT, Command, Fraction, column_option, option, shared
from truecal.cli._output import as_json, check_target, json_head, say, show, show_notes, stage
from truecal.exceptions import InputError

if TYPE_CHECKING:
    from truecal.cli._input.windows import Batch
    from truecal.inference.monitor import CalibrationMonitor, Look

_KIND = "truecal monitor"
#: Head of the last column, and the width of a line of numbers with a state beside it.
_GAP = "observed less predicted, all rows so far"
_NUMBERS = 67


@click.command("monitor", cls=Command)
@shared("scores", "table", "group")
@column_option("--time", "moment", help="Column of times: dates, or numbers.")
@click.option("--every", help="Length of a window: 1h, 1d, 1w; without --time a number of rows.")
@option("--alpha", 0.05, float, "Probability of any false alarm.")
@click.option("--at-most", type=Fraction(), help="Calibration error that is tolerated, such as 0.02.")
@click.option(
    "--reference", type=click.Path(), help="File of earlier predictions: alarm if the error is larger."
)
@click.option("--average-run-length", type=float, help="Rows to a false alarm of the change detector.")
@click.option(
    "--control",
    type=click.Choice(["family", "discovery"]),
    default="family",
    show_default=True,
    help="With --group: family-wise error, or false discovery rate.",
)
@click.option("--state", type=OUTPUT, help="File that keeps the state, to go on from there.")
@click.option("--once", is_flag=True, help="Exit with code 1 if there has been an alarm.")
@shared("format")
def command(
    file: str,
    moment: str | None,
    every: str | None,
    alpha: float,
    at_most: float | None,
    reference: str | None,
    average_run_length: float | None,
    control: str,
    state: Path | None,
    once: bool,
    style: str,
    quiet: bool,
    **reading: Any,
) -> None:
    """Watch the calibration of the predictions in FILE; - reads JSON lines, one prediction each, without end.

    One line is printed for each window, and a sentence at the end. The alarm may be looked at as often as one
    likes: the probability that a calibrated model ever raises one is at most --alpha.

    With --state the next run goes on where this one ended. Rows of the same FILE that were counted before are left
    out, so new rows may be appended to it; if it no longer begins with those rows, it is refused. Other files, and
    standard input, are taken as new rows. The state keeps the options and the names of the columns; they must be the
    same in every run.

    With --cluster, all rows of a cluster count in one window: that of its last row in FILE. Rows of a cluster that was
    counted in an earlier run, or earlier on standard input, are left out.
    """
    from truecal._lib.files import exclusive
    from truecal.cli._input.windows import read_lines

    check_target(state, file)
    if reading["weight"]:
        raise InputError("monitor takes no weights", remedy="Leave out --weight.")
    if reading["equal_clusters"]:
        raise InputError("monitor counts every cluster once already", remedy="Leave out --equal-clusters.")
    settings = {"alpha": alpha, "at_most": at_most, "average_run_length": average_run_length}
    with exclusive(state) if state else nullcontext():
        watch = _Watch(settings, control=control, state=state, style=style, quiet=quiet)
        watch.agree({**settings, "control": control, "group": list(reading["group"])})
        references = {} if reference is None else _references(reference, reading)
        watch.compare_with(references)
        if file == "-":
            names = {name: list(reading[name]) or [name] for name in ("label", "score")}
            watch.agree({**names, "cluster": reading["cluster"], "target": "P(y = 1)"})
            watch.follow()
            batches = read_lines(sys.stdin, moment=moment, every=every, **reading)
        else:
            batches = _batches(watch, file, moment, every, quiet, reading)
        for batch in batches:
            watch.take(batch)
        watch.finish()
    raise SystemExit(1 if once and watch.found else 0)


def _batches(
    watch: _Watch,
    file: str,
    moment: str | None,
    every: str | None,
    quiet: bool,
    reading: dict[str, Any],
) -> Iterator[Batch]:
    """Yield the windows of the rows of a file that were not counted yet."""
    from truecal.cli._input.predictions import load
    from truecal.cli._input.windows import digest_rows, split_windows
    from truecal.data.groups import split_rows
    from truecal.inference.monitor._batch import read_moments

    with stage("reading"):
        predictions = load(file, feature=(moment,) if moment else (), **reading)
        predictions.require_rows("monitor")
        rows = predictions._rows
    used = predictions.columns
    names = {"label": list(used.label), "score": list(used.score), "cluster": used.cluster}
    watch.agree({**names, "target": rows.target})
    show_notes(predictions, quiet=quiet)
    for note in () if quiet else predictions.reversals():
        say(note)
    # As text, so that a name is the same in a file where all are numbers and in one where some are not.
    cluster = None if used.cluster is None else np.asarray(predictions.options["clusters"]).astype(str)
    columns: dict[str, Any] = {"label": rows.label, "score": rows.score, "cluster": cluster}
    times = next(iter(predictions.features.values())) if moment else None
    columns["time"] = None if times is None else read_moments(times, argument="--time")
    if predictions.group:
        split = split_rows(predictions.group, len(rows.label))
        columns["group"], columns["names"] = split.group, split.names
    n = len(rows.label)
    first = watch.count(str(Path(file).resolve()), n, partial(digest_rows, columns))
    if first:
        say(f"{counted(first, 'row')} of {file} counted before")
    if first < n:
        yield from split_windows(columns, first, n, every)


def _references(file: str, reading: dict[str, Any]) -> dict[str, Any]:
    from truecal.cli._input.predictions import load

    predictions = load(file, **reading)
    return predictions.groups or {"": predictions.sample}


class _Watch:
    """The monitors of all groups, what they print, and their state file."""

    def __init__(
        self, settings: dict[str, Any], *, control: str, state: Path | None, style: str, quiet: bool
    ) -> None:
        self.settings, self.control, self.style, self.quiet = settings, control, style, quiet
        self.path = state
        self.options: dict[str, Any] = {}
        self.monitors: dict[str, CalibrationMonitor] = {}
        self.references: dict[str, Any] = {}
        # The file of the last run, how many of its rows are counted, and the digest of these.
        self.source: dict[str, Any] = {"file": None, "end": 0, "digest": ""}
        self._stream = False
        self._shares = 0  # groups of the first window
        self._n_moved, self._has_head = 0, False
        if state is not None and state.exists():
            self._load(state)

    def _load(self, path: Path) -> None:
        from truecal.inference.monitor import CalibrationMonitor
        from truecal.inference.monitor._evidence import check_kinds
        from truecal.inference.monitor._state import read_state, restoring

        content = read_state(path, _KIND)
        with restoring(path):
            self.options = dict(content["options"])
            self.source = check_kinds(content["source"], {"file": str | None, "end": int, "digest": str})
            self._shares = check_kinds(content, {"shares": int})["shares"]
            self.monitors = {
                name: CalibrationMonitor.from_state(one["settings"], one["state"])
                for name, one in content["monitors"].items()
            }

    @property
    def grouped(self) -> bool:
        """Whether each group has a monitor of its own."""
        return bool(self.options["group"])

    def agree(self, options: dict[str, Any]) -> None:
        """Store options, or reject those that differ from the stored ones."""
        for name, value in options.items():
            if self.options.setdefault(name, value) != value:
                known, now = (_shown(one) for one in (self.options[name], value))
                raise InputError(
                    f"{self.path} was made with {name} = {known}, and now it is {now}",
                    remedy="Use the same options, or another state file.",
                )

    def compare_with(self, references: dict[str, Any]) -> None:
        """Take earlier predictions as the reference, which must be the same in every run."""
        from truecal.cli._input.windows import digest_samples

        self.references = references
        digest = digest_samples(references) if references else None
        known = self.options.setdefault("reference", digest)
        if known != digest:
            problem = "without" if known is None else "with" if digest is None else "with other rows as"
            raise InputError(
                f"{self.path} was made {problem} --reference",
                remedy="Use the same reference, or another state file.",
            )

    def count(self, file: str, n: int, digest: Callable[[int], str]) -> int:
        """Return how many rows of a file are counted already; after this run, all `n` are.

        `digest` returns that of the first rows.
        """
        end = self.source["end"] if self.source["file"] == file else 0
        if n < end or (end and digest(end) != self.source["digest"]):
            problem = f"has only {n:,} rows, but" if n < end else "does not begin with the same rows as when"
            raise InputError(
                f"{file} {problem} {end:,} were counted before",
                remedy="Give every batch a file name of its own, or append new rows to this file; "
                "keep the same columns and options.",
            )
        self.source = {"file": file, "end": n, "digest": digest(n)}
        return end

    def follow(self) -> None:
        """Prepare for a stream, which cannot be read again: results are saved before they are printed."""
        self._stream = True
        counted_before = sum(monitor.n for monitor in self.monitors.values())
        if counted_before:
            say(f"{counted(counted_before, 'row')} counted before")

    def take(self, batch: Batch) -> None:
        """Update the monitors with a window."""
        self._n_moved += batch.n_moved
        if self.grouped and not self._shares:
            self._shares = len(batch.parts)
        looks = {}
        for name, rows in batch.parts.items():
            if name not in self.monitors:
                self.monitors[name] = self._new(name)
            looks[name] = self.monitors[name].update(
                rows["label"], rows["score"], time=batch.time, clusters=rows.get("cluster")
            )
        if self._stream:
            self._save()
        for name, look in looks.items():
            if look is not None:
                self._show(name, look)

    def _new(self, name: str) -> CalibrationMonitor:
        from truecal.inference.monitor import CalibrationMonitor

        settings = dict(self.settings)
        if self.grouped and self.control == "family":
            # Groups of the first window get equal shares of alpha; one more share is for later groups.
            settings["alpha"] /= self._shares + 1
            later = len(self.monitors) - self._shares + 1
            if later > 0:
                settings["alpha"] /= later * (later + 1)
        if self.references:
            if name not in self.references:
                raise InputError(f"group {name!r} is not in the reference file")
            settings["reference"] = self.references[name]
        return CalibrationMonitor(**settings)

    @property
    def found(self) -> list[str]:
        """The groups with an alarm."""
        from truecal.inference._test_result import e_benjamini_hochberg

        if self.grouped and self.control == "discovery" and self.monitors:
            logs = np.array([one.log_evalue for one in self.monitors.values()])
            flagged = e_benjamini_hochberg(logs, self.settings["alpha"])
        else:
            flagged = np.array([one.alarm for one in self.monitors.values()], dtype=bool)
        changed = [one.change_alarm for one in self.monitors.values()]
        return [name for name, *one in zip(self.monitors, flagged, changed, strict=True) if any(one)]

    def _show(self, name: str, look: Look) -> None:
        if self.style == "json":
            content = {"group": name} if self.grouped else {}
            click.echo(as_json({**content, **look.to_dict()}, indent=None))
            return
        if not self._has_head:
            self._has_head = True
            self._line("window" if look.time is not None else "", "group", "rows", "e-value", "p", _GAP, "")
        state = "ALARM" if look.alarm else "CHANGE" if look.change_alarm else ""
        gap = f"{100 * look.gap:+6.2f}% ({100 * look.gap_low:+.2f}% to {100 * look.gap_high:+.2f}%)"
        when = "" if look.time is None else str(look.time)
        evidence = f"{look.evalue:.3g}", format_pvalue(look.pvalue)
        self._line(when, name[:16], f"{look.rows:,.10g}", *evidence, gap, state)

    def _line(self, when: str, name: str, rows: str, evalue: str, pvalue: str, gap: str, state: str) -> None:
        """Print a line of the table, or two in a narrow terminal: the window above what is known then."""
        first = (f"{when:<19}  " if when else "") + (f"{name:<16}  " if self.grouped else "")
        second = f"{rows:>11}  {evalue:<9}  {pvalue:<7}  {gap}"
        lines = [f"{first}{second}  {state}"]
        if len(first) + _NUMBERS > text_width(200):
            lines = [f"{first}{state}", second if len(second) <= text_width() else second.partition(", ")[0]]
        for line in filter(None, map(str.rstrip, lines)):
            show(line, fit=False)

    def finish(self) -> None:
        """Save the state and print the last sentence."""
        self._save()
        if self._n_moved and not self.quiet:
            rows = counted(self._n_moved, "row")
            say(f"{rows} counted in a later window, with the last row of their cluster")
        if self.style == "json":
            groups = {
                name: {"alarm": name in self.found, **_summary(one)} for name, one in self.monitors.items()
            }
            content = {"groups": groups} if self.grouped else groups.get("", {})
            final = {**json_head("monitor"), "alarm": bool(self.found), **content}
            click.echo(as_json(final, indent=None))
        elif not self.grouped:
            show(str(self.monitors[""]) if self.monitors else "No rows.")
        else:
            what = "family-wise error" if self.control == "family" else "false discovery rate"
            found = self.found
            where = f"in {len(found)} of {counted(len(self.monitors), 'group')}"
            most = f"({what} at most {self.settings['alpha']:g})"
            show(f"{'ALARM' if found else 'No alarm'} {where} {most}.")
            for name in found:
                show(f"{name}: {self.monitors[name]}")

    def _save(self) -> None:
        if self.path is None:
            return
        from truecal.inference.monitor._state import write_state

        content = {
            "options": self.options,
            "source": self.source,
            "shares": self._shares,
            "monitors": {
                name: {"settings": one._settings(), "state": one.to_state()}
                for name, one in self.monitors.items()
            },
        }
        write_state(self.path, _KIND, content)


def _shown(value: Any) -> str:
    return ", ".join(value) or "none" if isinstance(value, list) else "none" if value is None else str(value)


def _summary(monitor: CalibrationMonitor) -> dict[str, Any]:
    names = (
        "rows_left_out",
        "log_evalue",
        "evalue",
        "threshold",
        "pvalue",
        "change_alarm",
        "change",
        "diagnosis",
    )
    return {"rows": monitor.n, **{name: getattr(monitor, name) for name in names}, "text": str(monitor)}
