import itertools
import json
import os
import random
import subprocess
import sys
import time

import numpy as np
import pytest

from support.command_line import refuse, run, write_csv
from truecal import CalibrationMonitor
from truecal.inference.monitor._state import read_state, write_state

_rng = np.random.default_rng(0)
N = 6000
P = _rng.uniform(0.05, 0.85, N).round(4)
DAY = np.repeat(np.arange(1, 31), N // 30)
DATE = np.array([f"2026-03-{day:02d}" for day in DAY])
SITE = np.array(["north", "south"])[_rng.integers(0, 2, N)]
LATE = DAY > 20
Y = (_rng.random(N) < P + 0.12 * LATE).astype(int)
GOOD = (_rng.random(N) < P).astype(int)
COLUMNS = {"y": Y, "good": GOOD, "p": P, "date": DATE, "day": DAY, "site": SITE}
NAMES = ("--label", "y", "--score", "p", "--time", "date")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("monitor") / "m.csv", COLUMNS)


def _json(*arguments, code=0):
    return [
        json.loads(line)
        for line in run("monitor", *arguments, "--format", "json", code=code).stdout.splitlines()
    ]


def test_a_line_for_each_window_and_a_sentence(path):
    head, *lines = run("monitor", path, *NAMES).stdout.splitlines()
    assert head.split()[:4] == ["window", "rows", "e-value", "p"]
    assert len(lines) == 31
    assert lines[0].startswith("2026-03-01")
    assert "ALARM" not in lines[19]
    assert lines[-1].startswith("ALARM: 6,000 rows")
    assert "The level changed" in lines[-1]


def test_the_same_numbers_as_in_python(path):
    *looks, final = _json(path, *NAMES)
    monitor = CalibrationMonitor()
    for day in range(1, 31):
        monitor.update(Y[day == DAY], P[day == DAY], time=f"2026-03-{day:02d}")
    assert looks[-1]["log_evalue"] == monitor.log_evalue
    assert final["evalue"] == pytest.approx(monitor.evalue)
    assert final["change"]["time"] == monitor.change.time
    assert final["diagnosis"]["change"] == "level"


def test_exit_code(path):
    run("monitor", path, *NAMES, "--once", code=1)
    run("monitor", path, "--label", "good", *NAMES[2:], "--once")
    run("monitor", path, *NAMES, "--at-most", "0.2", "--once")
    run(
        "monitor",
        path,
        "--label",
        "good",
        *NAMES[2:],
        "--at-most",
        "0.02",
        "--average-run-length",
        "100000",
        "--once",
    )


@pytest.mark.parametrize(("options", "windows"), [((), 6), (("--every", "2500"), 3)])
def test_windows_of_rows(path, options, windows):
    assert len(run("monitor", path, *NAMES[:4], *options).stdout.splitlines()) == windows + 2


def test_windows_of_weeks_and_of_numbers(path):
    weeks = [look["time"] for look in _json(path, *NAMES, "--every", "1w")[:-1]]
    assert weeks == ["2026-02-23", "2026-03-02", "2026-03-09", "2026-03-16", "2026-03-23", "2026-03-30"]
    numbers = [look["time"] for look in _json(path, *NAMES[:4], "--time", "day", "--every", "10")[:-1]]
    assert numbers == [0, 10, 20, 30]


def test_a_growing_file_goes_on_where_it_ended(path, tmp_path):
    state, growing = tmp_path / "state.json", tmp_path / "growing.csv"
    results = []
    for days in (10, 10, 25, 30):
        kept = days >= DAY
        write_csv(growing, {name: column[kept] for name, column in COLUMNS.items()})
        results += _json(growing, *NAMES, "--state", state)[:-1]
    whole = _json(path, *NAMES)[:-1]
    assert [look["time"] for look in results] == [look["time"] for look in whole]
    assert results == whole


def test_a_file_that_grows_in_every_column(tmp_path):
    """Later rows change the types of columns, and the numbers of groups and clusters, but not the digest."""
    columns = {"y": Y, "p": P, "t": DAY, "g": SITE, "c": np.arange(N) // 2}
    later = {"y": [0, 1], "p": [0, 1], "t": [31.5, 32], "g": ["an earlier name", "z"], "c": ["-1", "x"]}
    state, growing = tmp_path / "state.json", write_csv(tmp_path / "growing.csv", columns)
    options = (
        "--label",
        "y",
        "--score",
        "p",
        "--time",
        "t",
        "--group",
        "g",
        "--cluster",
        "c",
        "--state",
        state,
    )
    run("monitor", growing, *options)
    write_csv(growing, {name: [*column.tolist(), *later[name]] for name, column in columns.items()})
    again = run("monitor", growing, *options)
    assert "6,000 rows" in again.stderr
    head, *lines = again.stdout.splitlines()
    assert head.startswith("window")
    assert len([line for line in lines if line.startswith("3")]) == 2


@pytest.mark.parametrize(
    ("changed", "value"),
    [("y", 1 - Y[50]), ("p", 0.5), ("date", "2026-03-02"), ("site", "east"), ("day", 99)],
)
@pytest.mark.parametrize("rows", [100, 120])
def test_a_file_that_was_overwritten_is_refused(tmp_path, changed, value, rows):
    """A weekly export under one name has new rows, which must not be taken for those that were counted."""
    state, path = tmp_path / "state.json", tmp_path / "week.csv"
    names = (*NAMES, "--group", "site", "--cluster", "day", "--state", state, "--quiet")
    week = {name: column[:100] for name, column in COLUMNS.items()}
    run("monitor", write_csv(path, week), *names)
    before = state.read_text()
    other = {name: column[:rows].copy() for name, column in COLUMNS.items()}
    other[changed][50] = value
    message = refuse("monitor", write_csv(path, other), *names)
    assert "does not begin with the same rows as when 100 were counted before" in message
    assert "Give every batch a file name of its own" in message
    assert state.read_text() == before


def test_state_of_an_earlier_version_is_refused(path, tmp_path, monkeypatch):
    state = tmp_path / "state.json"
    monkeypatch.setattr("truecal.inference.monitor._state._VERSION", 2)
    run("monitor", path, *NAMES, "--state", state)
    monkeypatch.undo()
    assert "version 2; expected 'truecal monitor', version 3" in refuse(
        "monitor", path, *NAMES, "--state", state
    )


def test_a_killed_run_is_resumed_with_the_same_numbers(path, tmp_path, monkeypatch):
    """The process dies in the twelfth window of the new rows; the state is written when all are counted."""
    import truecal.cli.monitor as module

    state = tmp_path / "state.json"
    early = write_csv(tmp_path / "m.csv", {name: column[:2000] for name, column in COLUMNS.items()})
    run("monitor", early, *NAMES, "--state", state)
    before = state.read_bytes()
    whole = write_csv(early, COLUMNS)
    show, shown = module._Watch._show, []

    def die(self, name, look):
        shown.append(look)
        if len(shown) == 12:
            raise KeyboardInterrupt
        show(self, name, look)

    with monkeypatch.context() as patch:
        patch.setattr(module._Watch, "_show", die)
        run("monitor", whole, *NAMES, "--state", state, code=130)
    assert state.read_bytes() == before
    rest = _json(whole, *NAMES, "--state", state)
    assert [len(rest), rest[-1]["rows"]] == [21, N]
    assert rest[-1]["log_evalue"] == _json(path, *NAMES)[-1]["log_evalue"]


def test_the_same_file_again_with_other_windows_counts_nothing_twice(path, tmp_path):
    state = ("--state", tmp_path / "state.json")
    first = _json(path, *NAMES, "--every", "1w", *state)[-1]
    again = _json(path, *NAMES, *state)
    assert [len(again), again[-1]["rows"]] == [1, N]
    assert again[-1]["log_evalue"] == first["log_evalue"]


@pytest.mark.slow
def test_killed_at_any_time_and_resumed_until_the_end(tmp_path):
    """The process is killed with SIGKILL three times, at random, and then comes to its end."""

    def counted():
        return json.loads(state.read_text())["monitors"][""]["state"]["processes"]["rows"]

    path, state = write_csv(tmp_path / "m.csv", COLUMNS), tmp_path / "state.json"
    arguments = [str(path), "--label", "y", "--score", "p", "--every", "100"]
    command = [
        sys.executable,
        "-m",
        "truecal",
        "monitor",
        *arguments,
        "--format",
        "json",
        "--state",
        str(state),
    ]
    rng = random.Random(0)
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(rng.randint(1, 12)):
            process.stdout.readline()
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        process.communicate()
        assert not state.exists() or counted() == N
    output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    final = json.loads(output.splitlines()[-1])
    assert final == _json(*arguments)[-1]


def test_a_stream_is_saved_before_it_is_printed(tmp_path, monkeypatch):
    """What the last printed line counts is in the state file, so that one knows where to go on."""
    import truecal.cli.monitor as module

    state, seen = tmp_path / "state.json", []
    show = module._Watch._show

    def look_at_state(self, name, look):
        saved = json.loads(state.read_text())["monitors"][""]["state"]["processes"]["rows"]
        seen.append((look.rows, saved))
        show(self, name, look)

    monkeypatch.setattr(module._Watch, "_show", look_at_state)
    options = ("monitor", "-", "--label", "y", "--score", "p", "--every", "100", "--state", state)
    run(*options, stdin=_lines(range(500)))
    assert seen == [(n, n) for n in range(100, 501, 100)]
    again = run(*options, stdin=_lines(range(500, 700)))
    assert "500 rows counted before" in again.stderr
    assert seen[-1] == (700, 700)


def test_times_with_zones_and_out_of_order(tmp_path):
    """Rows are put in the order of time, in UTC; those of one window stay in the order of the file."""
    zone = np.array(["+00:00", "+05:00", "-07:00"])[np.arange(N) % 3]
    hour = {"+00:00": 12, "+05:00": 17, "-07:00": 5}
    text = np.array([f"2026-03-{day:02d}T{hour[z]:02d}:00:00{z}" for day, z in zip(DAY, zone, strict=True)])
    order = np.random.default_rng(1).permutation(N)
    mixed = {name: column[order] for name, column in {**COLUMNS, "date": text}.items()}
    found = _json(write_csv(tmp_path / "z.csv", mixed), *NAMES)
    whole = _json(write_csv(tmp_path / "w.csv", COLUMNS), *NAMES)
    assert [look["time"] for look in found[:-1]] == [look["time"] for look in whole[:-1]]
    assert [look["log_evalue"] for look in found[:-1]] == pytest.approx(
        [look["log_evalue"] for look in whole[:-1]], abs=1e-9
    )


def test_state_that_was_changed_or_does_not_fit_is_refused(path, tmp_path):
    state = tmp_path / "state.json"
    run("monitor", path, *NAMES, "--state", state)
    assert "alpha = 0.05, and now it is 0.01" in refuse(
        "monitor", path, *NAMES, "--state", state, "--alpha", "0.01"
    )
    short = write_csv(tmp_path / "m.csv", {name: column[:100] for name, column in COLUMNS.items()})
    fresh = tmp_path / "fresh.json"
    run("monitor", short, *NAMES, "--state", fresh)
    write_csv(short, {name: column[:50] for name, column in COLUMNS.items()})
    assert "has only 50 rows, but 100 were counted before" in refuse(
        "monitor", short, *NAMES, "--state", fresh
    )
    state.write_text(state.read_text().replace('"alpha": 0.05', '"alpha": 0.5'))
    assert "checksum does not match" in refuse("monitor", path, *NAMES, "--state", state)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("source", {"digest": 3}),
        ("source", {"end": -1}),
        ("shares", None),
        ("monitors", [1]),
        ("options", 3),
    ],
)
def test_a_forged_state_is_refused_in_one_line(path, tmp_path, part, value):
    state = tmp_path / "state.json"
    run("monitor", path, *NAMES, "--state", state)
    content = read_state(state, "truecal monitor")
    value = {**content[part], **value} if part == "source" else value
    content = {name: content[name] for name in ("options", "source", "shares", "monitors")}
    write_state(state, "truecal monitor", {**content, part: value})
    assert "contradicts itself" in refuse("monitor", path, *NAMES, "--state", state)


def _lines(rows):
    names = {"y": Y, "p": P, "t": DATE, "g": SITE}
    return "".join(
        json.dumps({name: column[row].item() for name, column in names.items()}) + "\n" for row in rows
    ).encode()


def test_json_lines_from_standard_input(path):
    options = ("--label", "y", "--score", "p", "--time", "t", "--format", "json")
    found = run("monitor", "-", *options, stdin=_lines(range(N))).stdout.splitlines()
    whole = _json(path, *NAMES)
    assert [json.loads(line)["log_evalue"] for line in found[:-1]] == [
        look["log_evalue"] for look in whole[:-1]
    ]
    by_rows = run("monitor", "-", "--label", "y", "--score", "p", "--every", "100", stdin=_lines(range(250)))
    assert len(by_rows.stdout.splitlines()) == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000 + "\n", "line 1 of standard input is not a JSON object"),
        ("no\n", "line 1 of standard input is not a JSON object"),
        ('{"label": 1, "score": 0.2}\n{"label": 1}\n', "line 2 of standard input has no 'score'"),
        ('{"label": 2, "score": 0.2}\n', "label of 0 or 1"),
        ('{"label": 1, "score": NaN}\n', "score in [0, 1]"),
        ('{"label": 1, "score": true}\n', "score in [0, 1]"),
    ],
)
def test_bad_lines(text, message):
    assert message in refuse("monitor", "-", stdin=text.encode())


def test_groups(tmp_path):
    y = np.where((SITE == "south") & LATE, Y, GOOD)
    path = write_csv(tmp_path / "g.csv", {**COLUMNS, "y": y})
    *looks, final = _json(path, *NAMES, "--group", "site", "--once", code=1)
    assert {look["group"] for look in looks} == {"north", "south"}
    assert [final["groups"][name]["alarm"] for name in ("north", "south")] == [False, True]
    assert final["groups"]["north"]["threshold"] == pytest.approx(60)
    text = run("monitor", path, *NAMES, "--group", "site", "--control", "discovery", "--once", code=1).stdout
    assert "ALARM in 1 of 2 groups (false discovery rate at most 0.05)" in text
    state = tmp_path / "state.json"
    run("monitor", path, *NAMES, "--group", "site", "--state", state)
    later = write_csv(tmp_path / "later.csv", {**COLUMNS, "y": GOOD, "site": np.full(N, "east")})
    again = _json(later, *NAMES, "--group", "site", "--state", state)[-1]
    assert again["groups"]["east"]["threshold"] == pytest.approx(120)


def test_reference(path, tmp_path):
    reference = write_csv(tmp_path / "r.csv", {name: column[LATE] for name, column in COLUMNS.items()})
    final = _json(path, *NAMES, "--reference", reference)[-1]
    assert final["threshold"] == pytest.approx(40)
    assert not final["alarm"]


def _returning(names, n=200):
    """Return rows of calibrated clusters of one label each, all of which come back for each of the names."""
    score = _rng.random(n).round(4)
    label = (_rng.random(n) < score).astype(int)
    return {
        "y": np.tile(label, 12),
        "p": np.tile(score, 12),
        "who": np.concatenate(
            [[name(k) for k in range(n)] for name in names for _ in range(12 // len(names))]
        ),
        "t": np.repeat(np.arange(12), n),
    }


RETURNING = ("--label", "y", "--score", "p", "--cluster", "who")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--score", "day"), "score = p, and now it is day"),
        (("--label", "good"), "label = y, and now it is good"),
        (("--pos-label", "0"), "target = P(y = 1), and now it is P(y = 0)"),
        (("--multiclass", "top"), "target"),
        (("--cluster", "row"), "cluster = none, and now it is row"),
        (("--group", "site"), "group = none, and now it is site"),
        (("--control", "discovery"), "control"),
        (("--reference", "{path}"), "was made without --reference"),
        (("--at-most", "0.1"), "at_most"),
    ],
)
def test_a_state_keeps_its_options_and_columns(path, tmp_path, options, named):
    state, names = tmp_path / "state.json", ("--label", "y", "--score", "p")
    run("monitor", path, *names, "--state", state)
    before = state.read_text()
    other = write_csv(tmp_path / "n.csv", {**COLUMNS, "day": P, "row": np.arange(N)})
    options = tuple(option.format(path=path) for option in options)
    given = {"--label": "y", "--score": "p"} | dict([options])
    assert named in refuse("monitor", other, *itertools.chain(*given.items()), "--state", state)
    assert state.read_text() == before


def test_the_reference_must_be_the_same_in_every_run(path, tmp_path):
    state = tmp_path / "state.json"
    early = write_csv(tmp_path / "r.csv", {name: column[LATE] for name, column in COLUMNS.items()})
    same = write_csv(tmp_path / "s.csv", {name: column[LATE][::-1] for name, column in COLUMNS.items()})
    other = write_csv(tmp_path / "o.csv", {name: column[~LATE] for name, column in COLUMNS.items()})
    first = _json(path, *NAMES, "--reference", early, "--state", state)[-1]
    again = _json(path, *NAMES, "--reference", same, "--state", state)[-1]
    assert again["log_evalue"] == first["log_evalue"]
    assert "with other rows as --reference" in refuse(
        "monitor", path, *NAMES, "--reference", other, "--state", state
    )
    assert "made with --reference" in refuse("monitor", path, *NAMES, "--state", state)


def test_clusters_that_come_back_in_a_later_window_raise_no_false_alarm(tmp_path):
    alarms = 0
    for _ in range(5):
        path = write_csv(tmp_path / "c.csv", _returning([lambda k: f"who {k}"]))
        for options in (("--every", "200"), ("--time", "t", "--every", "2")):
            done = run("monitor", path, *RETURNING, *options, "--format", "json")
            final = json.loads(done.stdout.splitlines()[-1])
            assert final["rows"] == 2400
            assert "rows counted in a later window, with the last row of their cluster" in done.stderr
            alarms += final["alarm"]
    assert alarms <= 2


@pytest.mark.parametrize("stream", [False, True])
def test_clusters_that_come_back_in_a_later_run_are_left_out(tmp_path, stream):
    """Also where the names are numbers in one file, and some in another are not."""
    columns = _returning([lambda k: k, lambda k: k if k else "first"])
    state = tmp_path / "state.json"
    for part in range(3):
        rows = {name: column[800 * part : 800 * (part + 1)] for name, column in columns.items()}
        if part == 0:
            rows["who"] = rows["who"].astype(int)
        if stream:
            lines = zip(*(rows[name].tolist() for name in rows), strict=True)
            text = "".join(json.dumps(dict(zip(rows, line, strict=True))) + "\n" for line in lines)
            arguments = {"stdin": text.encode()}
            done = run("monitor", "-", *RETURNING, "--state", state, "--format", "json", **arguments)
        else:
            path = write_csv(tmp_path / f"{part}.csv", rows)
            done = run("monitor", path, *RETURNING, "--state", state, "--format", "json")
        final = json.loads(done.stdout.splitlines()[-1])
    assert final["rows"] + final["rows_left_out"] == 2400
    # All rows of 200 clusters in the first run, and the two of "first", a new name, in the second.
    assert final["rows"] == 802
    assert not final["alarm"]
    assert "1,598 rows left out: a cluster counts in its first batch only" in final["text"]


def test_clusters_need_fewer_alarms(path, tmp_path):
    many = {name: np.repeat(column, 3) for name, column in COLUMNS.items()}
    many |= {"good": np.repeat(GOOD, 3), "who": np.repeat(np.arange(N), 3)}
    copied = write_csv(tmp_path / "c.csv", many)
    names = ("--label", "good", *NAMES[2:])
    clustered = _json(copied, *names, "--cluster", "who")[-1]
    single = _json(path, *names)[-1]
    assert clustered["rows"] == 3 * N
    assert clustered["log_evalue"] < single["log_evalue"] + 1


def test_what_it_refuses(path, tmp_path):
    assert "--every" in refuse("monitor", path, *NAMES, "--every", "often")
    assert "--every" in refuse("monitor", path, *NAMES[:4], "--every", "1d")
    assert "takes no weights" in refuse("monitor", path, *NAMES, "--weight", "day")
    assert "not a regular file" in refuse("monitor", path, *NAMES, "--state", os.devnull)
    assert "--alpha" in refuse("monitor", path, *NAMES, "--alpha", "2")
    assert "ISO dates" in refuse("monitor", path, *NAMES[:4], "--time", "site")
    assert "one label and one score" in refuse("monitor", "-", "--percent", stdin=b"")
    assert "both the label and a group" in refuse("monitor", "-", "--group", "label", stdin=b"")
