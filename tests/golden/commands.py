"""Command lines: what they print, and their exit codes."""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from golden.cases import FIT, Case, resampled
from golden.data import WORDS, binary, classes, uniform

#: Command lines, to be run in the folder that `write_files` makes. `>` names a file whose text is recorded, too,
#: `<` what comes from standard input, and of several commands with `&&` the last one is recorded.
COMMANDS = """
--version
--help
mesure p.csv
measure --help
report --help
test --help
compare --help
audit --help
monitor --help
recalibrate --help
plan --help
sql --help
study --help
reproduce --help
estimators --help
estimators
estimators --format json
measure p.csv
measure p.csv --format json
measure p.csv --format json --no-bins
measure p.csv -q
measure p.csv -v
measure p.csv --estimator em_sweep --estimator ece --norm 1
measure p.csv --estimator ew_bin --n-bins 5 --format json
measure p.csv --estimator multiscale --estimator ks --estimator skce
measure p.csv --confidence-level 0
measure p.csv --confidence-level 0.8 --resolution 4
measure p.csv --norm 1 --format json --no-bins
measure p.csv --group region
measure p.csv --group region --group half --format json --no-bins
measure p.csv --weight weight
measure p.csv --weight weight --format json --no-bins
measure p.csv --weight count --counts
measure p.csv --cluster patient
measure p.csv --cluster patient --equal-clusters --format json --no-bins
measure p.csv --score other
measure p.csv -o out.json --format json --no-bins > out.json
measure p.tsv
measure p.parquet
measure p.jsonl
measure p.arrow
measure p.npz
measure p.csv.gz
measure p.npy --label column_1 --score column_0
measure 'part-*.parquet'
measure parts
measure - --input-format csv < p.csv
measure - < p.jsonl
measure words.csv
measure words.csv --pos-label yes
measure words.csv --pos-label no --format json --no-bins
measure percent.csv --percent
measure percent.csv
measure percent.csv --scale 100
measure logits.csv --logits
measure logits.csv
measure holes.csv
measure holes.csv --drop-missing
measure minus.csv --missing -999 --drop-missing
measure outside.csv
measure rounding.csv
measure rounding.csv --clip
measure three.csv
measure three.csv --format json --no-bins
measure three.csv --multiclass classwise
measure three.csv --multiclass classwise --format json --no-bins
measure three.csv --multiclass top_by_class
measure three.csv --multiclass top_2
measure three.csv --multiclass canonical
measure three.csv --score 'p*' --label label --estimator ece
measure three.csv --classes 0,1
measure animals.csv
measure animals.csv --label animal
measure animals.csv --label animal --multiclass classwise --format json --no-bins
measure predicted.csv --predicted guess
measure unnormalised.csv
measure unnormalised.csv --normalize
measure onehot.csv --label y0 --label y1 --label y2 --score 'p*'
measure cells.csv --cells
measure cells.csv --cells --format json --no-bins
measure grouped_cells.csv --cells --group region
measure p.csv --cells
measure flights --format json --no-bins
measure digits --multiclass top_by_class
measure semicolon.csv
measure latin1.csv
measure latin1.csv --encoding latin-1 --pos-label né
measure missing.csv
measure empty.csv
measure header.csv
measure p.csv --score nothing
measure p.csv --label nothing
measure p.csv --estimator nothing
measure p.csv --norm 0.5
measure p.csv --confidence-level 2
measure p.csv --n-bins 0 --estimator ece
measure p.csv --resolution 0
measure p.csv --counts
measure p.csv --equal-clusters
measure p.csv --group nothing
measure p.csv --logits --percent
measure p.csv --nothing
measure p.csv --multiclass classwise
measure p.unknown
measure one.csv
measure few.csv
measure -
test p.csv
test p.csv --format json
test p.csv --seed 3 --resamples 199
test p.csv --method ew_bin --resamples 199 --format json
test p.csv --method ks --resamples 199
test p.csv --group region
test p.csv --group region --format json --resamples 199
test p.csv --cluster patient --resamples 199
test p.csv --weight weight --resamples 199
test calibrated.csv --resamples 199
test p.csv --at-most 0.05
test p.csv --at-most 0.3 --format json
test calibrated.csv --at-most 0.1
test calibrated.csv --at-most 0.1 --group region
test calibrated.csv --at-most 10
test calibrated.csv --at-most 0.1 --resolution 2
test p.csv --alpha 2
test p.csv --method nothing
test p.csv --cluster few --resamples 199
test three.csv --multiclass classwise --resamples 199
test cells.csv --cells --resamples 199
test few.csv --resamples 99
compare p.csv --score score --score other
compare p.csv --score score --score other --format json
compare p.csv --score score --score other --score third
compare p.csv --score score --score other --score third --format json --norm 1
compare p.csv --score score --score other --cluster patient
compare p.csv --score score --score other --weight weight --confidence-level 0.8
compare p.csv --score score
compare p.csv --score score --score score
audit p.csv --feature region --feature age --resamples 199
audit p.csv --feature region --feature age --resamples 199 --format json
audit p.csv --feature region --cluster patient --resamples 199 --max-depth 1
audit calibrated.csv --feature region --resamples 199 --min-rows 20
audit p.csv --feature nothing
audit p.csv --feature region --alpha 0
monitor p.csv --every 100
monitor p.csv --every 100 --once
monitor p.csv --every 100 --format json
monitor p.csv --every 7d --time date
monitor p.csv --every 100 --at-most 0.1
monitor p.csv --every 100 --group region
monitor p.csv --every 200 --group region --control discovery
monitor p.csv --every 100 --reference calibrated.csv
monitor p.csv --every 100 --average-run-length 1000
monitor p.csv --every 200 --cluster patient
monitor p.csv --every 200 --state state.json
monitor p.csv --every 200 --state again.json && monitor p.csv --every 200 --state again.json
monitor p.csv --every 200 --state other.json && monitor p.csv --every 200 --state other.json --at-most 0.1
monitor p.csv --every 0
monitor p.csv --every 1x --time date
monitor lines.jsonl --every 50
monitor - --every 100 < lines.jsonl
plan --error 0.2 --repeats 50
plan --error 0.2 --repeats 50 --format json
plan --rows 300 --repeats 50
plan --at-most 0.2 --repeats 50 --format json
plan --error 0.2 --method ew_bin --norm 1 --repeats 50
plan --error 0.2 --cluster-size 5 --icc 0.1 --repeats 50
plan --error 0.2 --beta 2 1 --repeats 50
plan
plan --error 0.1 --rows 100
plan --error 2
recalibrate p.csv
recalibrate p.csv --format json
recalibrate p.csv --write better.csv > better.csv
recalibrate p.csv --criterion brier --test calibrated.csv
recalibrate p.csv --apply calibrated.csv --write applied.csv > applied.csv
recalibrate three.csv --format json
recalibrate calibrated.csv
recalibrate p.csv --criterion nothing
recalibrate p.csv --write better.xyz
sql --dialect postgres --table predictions --label y --score p
sql --dialect duckdb --table s.t --label y --score p --weight w --group g --cluster c
sql --dialect sqlite --table t --label y --score p --pos-label yes --neg-label no
sql --dialect bigquery --table t --label y --score p --format json
sql --dialect oracle --table t --label y --score p
sql --dialect spark --table t --label y
study study.toml
study study.toml --format json
study study.toml --repeats 5 --seed 2 -o study.csv > study.csv
study bad.toml
study
reproduce --list
reproduce --only nothing
report p.csv --quick -o r.html > r.html
report p.csv --quick --group region --clinical --threshold 0.2 -o clinical.html > clinical.html
report three.csv --quick --multiclass classwise -o three.html > three.html
report p.csv --quick --time date --cluster patient --title Mine -o time.html > time.html
report p.csv --quick --threshold 0.2
report missing.csv
"""


STUDY = """sizes = [50, 100]
estimators = ["em_sweep", { estimator = "em_bin", n_bins = 5 }]
repeats = 10
seed = 1
paper = ["resnet110_c10"]
[populations.mine]
scores = { kind = "beta", a = 2.8, b = 0.05 }
curve = { kind = "power", d = 2 }
"""


def cases() -> Iterator[Case]:
    """Yield the command lines."""
    for line in COMMANDS.strip().splitlines():
        command, _, file = line.partition(" > ")
        count = 199 if "--resamples 199" in line else 999
        base = resampled(count, 6, FIT) if command.startswith(("test", "audit", "measure", "report")) else FIT
        yield Case("commands", command, base, lambda command=command, file=file: run(command, file))


@cache
def folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder with files of predictions; it is removed when the process ends."""
    made = tempfile.TemporaryDirectory(prefix="golden-")
    write_files(Path(made.name))
    return made


def run(command: str, file: str) -> Any:
    """Run a command line in the folder, and return its exit code and what it printed and wrote."""
    from click.testing import CliRunner

    from truecal.cli import main

    here, place = Path.cwd(), Path(folder().name)
    os.chdir(place)
    try:
        environment = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
        for one in command.split(" && "):  # the last one is recorded
            arguments, _, source = one.partition(" < ")
            given = Path(source).read_bytes() if source else b""
            result = CliRunner(env=environment).invoke(
                main, shlex.split(arguments), prog_name="truecal", input=given
            )
    finally:
        os.chdir(here)
    found = {
        "exit_code": result.exit_code,
        "stdout": printed(result.stdout, place),
        "stderr": clean(result.stderr, place),
    }
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        found["exception"] = repr(result.exception)
    if file and (place / file).exists():
        text = (place / file).read_text(encoding="utf-8")
        found[file] = page_text(text) if file.endswith(".html") else printed(text, place)
    return found


def printed(text: str, place: Path) -> Any:
    """Return what was printed: JSON as objects, JSON lines as a list, and else text."""
    if text[:1] in "{[" and text:
        try:
            return json.loads(clean(text, place))
        except ValueError:
            pass
        try:
            return [json.loads(line) for line in clean(text, place).splitlines()]
        except ValueError:
            pass
    return clean(text, place)


def clean(text: str, place: Path) -> str:
    """Replace what differs from run to run: the folder, and times."""
    text = text.replace(str(place.resolve()), "FOLDER").replace(str(place), "FOLDER")
    return re.sub(r"\b\d+(\.\d+)? (s|ms|seconds?)\b", "# s", text)


def page_text(html: str) -> list[str]:
    """Return what a reader of a page sees as text, line by line."""
    html = re.sub(r"(?s)<(script|style|head)\b.*?</\1>", " ", html)
    html = re.sub(
        r"(?s)<svg\b.*?</svg>",
        lambda found: " [picture] " + " ".join(re.findall(r">([^<>]+)<", found[0])),
        html,
    )
    lines = re.sub(
        r"\s+",
        " ",
        re.sub(r"</?(p|div|h\d|li|tr|table|section|ul|figcaption)\b[^>]*>", "\n", html).replace("\n", "\0"),
    )
    text = re.sub(r"<[^>]+>", " ", lines).replace("\0", "\n")
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( UTC)?", "TIME", text)
    text = re.sub(rf"(?<= on ){date.today()}(?=\.)", "TODAY", text)
    return [one for one in (re.sub(r"\s+", " ", line).strip() for line in text.splitlines()) if one]


def table(columns: dict[str, Any], separator: str = ",") -> str:
    """Return columns as text."""
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    return "\n".join([separator.join(columns), *(separator.join(map(str, row)) for row in rows)]) + "\n"


def write_files(place: Path) -> None:
    """Write files of predictions, good and bad."""
    import gzip
    import sqlite3

    import polars as pl

    import truecal

    n = 400
    rows = np.arange(n)
    y, p = binary("overconfident", n, dependent=True)
    p = np.round(p, 4)
    columns: dict[str, Any] = {
        "label": y,
        "score": p,
        "other": np.round(p**1.3, 4),
        "third": np.round(0.1 + 0.8 * p, 4),
        "weight": np.round(0.5 + uniform(n, 0.38), 3),
        "count": rows % 3 + 1,
        "region": np.array(["north", "south", "east"])[rows % 3],
        "half": rows // (n // 2),
        "patient": rows // 5,
        "few": rows % 3,
        "age": np.round(20 + 60 * uniform(n, 0.5698), 1),
        "date": np.datetime_as_string(np.datetime64("2026-01-01") + rows // 10),
    }
    frame = pl.DataFrame({name: np.asarray(column) for name, column in columns.items()})
    plain = frame.select("label", "score")
    yc, pc = binary("calibrated", n)
    calibrated = {**columns, "label": yc, "score": np.round(pc, 4)}
    yk, pk = classes(3, 300)
    pk = np.round(pk, 5)
    pk[:, 2] = np.round(1 - pk[:, 0] - pk[:, 1], 5)
    several = {"label": yk, **{f"p{k}": pk[:, k] for k in range(3)}}
    texts = {
        "p.csv": table(columns),
        "p.tsv": table(columns, "\t"),
        "semicolon.csv": table({"label": y, "score": [str(one).replace(".", ",") for one in p]}, ";"),
        "calibrated.csv": table(calibrated),
        "words.csv": table({"label": np.array(["no", "yes"])[y], "score": p}),
        "percent.csv": table({"label": y, "score": np.round(100 * p, 2)}),
        "logits.csv": table(
            {
                "label": y,
                "score": np.round(np.log(np.clip(p, 1e-4, 0.9999) / (1 - np.clip(p, 1e-4, 0.9999))), 4),
            }
        ),
        "holes.csv": table({"label": y, "score": ["" if k % 9 == 0 else one for k, one in enumerate(p)]}),
        "minus.csv": table({"label": y, "score": [-999 if k % 9 == 0 else one for k, one in enumerate(p)]}),
        "outside.csv": table({"label": y, "score": [1.7 if k == 17 else one for k, one in enumerate(p)]}),
        "rounding.csv": table(
            {"label": y, "score": [1.0000003 if k == 17 else one for k, one in enumerate(p)]}
        ),
        "three.csv": table(several),
        "animals.csv": table({"animal": WORDS[yk], **{str(WORDS[k]): pk[:, k] for k in range(3)}}),
        "predicted.csv": table(
            {"truth": WORDS[yk], "guess": WORDS[pk.argmax(axis=1)], "score": pk.max(axis=1)}
        ),
        "unnormalised.csv": table({"label": yk, **{f"p{k}": np.round(0.8 * pk[:, k], 5) for k in range(3)}}),
        "onehot.csv": table(
            {**{f"y{k}": (yk == k).astype(int) for k in range(3)}, **{f"p{k}": pk[:, k] for k in range(3)}}
        ),
        "empty.csv": "",
        "header.csv": "label,score\n",
        "one.csv": "label,score\n1,0.7\n",
        "few.csv": table({"label": y[:8], "score": p[:8]}),
        "p.unknown": "nothing\n",
        "p.jsonl": "\n".join(json.dumps(row) for row in plain.to_dicts()) + "\n",
        "lines.jsonl": "\n".join(json.dumps(row) for row in plain.to_dicts()) + "\n",
        "study.toml": STUDY,
        "bad.toml": 'sizes = [50]\nestimators = ["nothing"]\npaper = ["resnet110_c10"]\n',
    }
    for name, text in texts.items():
        (place / name).write_text(text, encoding="utf-8")
    (place / "latin1.csv").write_bytes(
        table({"label": np.array(["nè", "né"])[y], "score": p}).encode("latin-1")
    )
    (place / "p.csv.gz").write_bytes(gzip.compress(texts["p.csv"].encode(), mtime=0))
    frame.write_parquet(place / "p.parquet")
    frame.write_ipc(place / "p.arrow")
    np.save(place / "p.npy", np.column_stack([p, y]))
    (place / "parts").mkdir()
    for k, part in enumerate((plain[: n // 2], plain[n // 2 :])):
        part.write_parquet(place / f"part-{k}.parquet")
        part.write_parquet(place / "parts" / f"{k}.parquet")
    np.savez(place / "p.npz", label=y, score=p)
    with sqlite3.connect(":memory:") as database:
        database.execute("create table t (label, score, region)")
        database.executemany(
            "insert into t values (?, ?, ?)", frame.select("label", "score", "region").rows()
        )
        for name, by in (("cells.csv", None), ("grouped_cells.csv", "region")):
            cursor = database.execute(
                truecal.cells_query("t", label="label", score="score", by=by, dialect="sqlite")
            )
            rows_of = [",".join("" if one is None else str(one) for one in row) for row in cursor.fetchall()]
            (place / name).write_text(
                "\n".join([",".join(one[0] for one in cursor.description), *rows_of]) + "\n"
            )
