"""Files of predictions as people have them, each with the options to read it and the arrays it holds.

Scores have three decimals, so a summary of the file in cells is exact: a file must give the same number whether
it is read into memory or summarised.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

N = 300
#: Pieces of text that files contain and that are easily misread.
PIECES = [
    b"", b",", b";", b"\n", b"\r", b"\n\n", b'"', b"NA", b"nan", b"inf", b"-1", b"1e400", b"%", b"0,5", b"#", b"\0",
    b"\xff", b"\xc3\xa9", b"=1+1", b"\x1b[2J", b"99999999999999999999", b"true", b"yes", b"{", b"}", b"[", b"]",
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A file: its name, its bytes, the options, and the labels and scores that it holds."""

    name: str
    content: bytes
    options: tuple[str, ...]
    y_true: Any
    y_proba: Any

    def __repr__(self) -> str:
        return self.name


_rng = np.random.default_rng(20260116)
P = np.round(_rng.random(N), 3)
Y = (_rng.random(N) < P**2).astype(int)
_cuts = np.sort(_rng.integers(0, 1001, (N, 2)), axis=1)
#: Probabilities of three classes, whole thousandths that sum to 1.
P3 = np.diff(np.column_stack([np.zeros(N, int), _cuts, np.full(N, 1000)]), axis=1) / 1000
Y3 = (P3.cumsum(axis=1) < _rng.random((N, 1))).sum(axis=1).clip(max=2)
ANIMALS = np.array(["cat", "dog", "ant"])
GROUP = np.array(["a", "b", "c"])[np.arange(N) % 3]


def _csv(header: str, *columns: Any, separator: str = ",", end: str = "\n") -> str:
    rows = [separator.join(map(str, row)) for row in zip(*columns, strict=True)]
    return end.join([header, *rows]) + end


def _written(write: Callable[[Any], Any]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _scores(*names: str) -> tuple[str, ...]:
    return tuple(part for name in names for part in ("--score", name))


def _json_lines(rows: list[dict[str, Any]]) -> str:
    return "\n".join(map(json.dumps, rows))


def cases() -> list[Case]:
    """Return the corpus."""
    found: list[Case] = []

    def add(name: str, content: str | bytes, *options: str, y: Any = Y, p: Any = P) -> None:
        data = content.encode() if isinstance(content, str) else content
        found.append(Case(name, data, options, y, p))

    plain = _csv("label,score", Y, P)
    frame = pl.DataFrame({"label": Y, "score": P})
    words = np.array(["no", "yes"])[Y]
    comma = [str(p).replace(".", ",") for p in P]
    odds = np.log(P3.clip(1e-3, 1)) + 1.5

    # Text tables
    add("plain.csv", plain)
    add("byte_order_mark.csv", b"\xef\xbb\xbf" + plain.encode())
    add("carriage_returns.csv", _csv("label,score", Y, P, end="\r\n"))
    add("old_mac.csv", _csv("label,score", Y, P, end="\r"))
    add("semicolons.csv", _csv("label;score", Y, P, separator=";"))
    add("decimal_comma.csv", _csv("label;score", Y, comma, separator=";"))
    add("quoted_decimal_comma.csv", _csv("label,score", Y, [f'"{text}"' for text in comma]))
    add("late_decimal_comma.csv", _csv("label;score", [1, *Y], ["1", *comma], separator=";"),
        y=[1, *Y], p=[1, *P])  # fmt: skip
    add("tabs.tsv", _csv("label\tscore", Y, P, separator="\t"))
    add("bars.txt", _csv("label|score", Y, P, separator="|"))
    add("excel_sep.csv", "sep=;\n" + _csv("label;score", Y, P, separator=";"))
    add("comments.csv", "# made by hand\n# twice\n" + plain)
    add("savetxt.csv", "# label,score\n" + plain.partition("\n")[2])
    add("blank_lines.csv", plain.replace("\n", "\n\n", 5) + "\n\n")
    add("blanks.csv", _csv("label , score", Y, [f" {p} " for p in P]))
    add("quotes.csv", _csv('"label","score"', [f'"{y}"' for y in Y], [f'"{p}"' for p in P]))
    add("utf16.csv", plain.encode("utf-16"))
    add("packed.csv.gz", gzip.compress(plain.encode()))
    add("members.csv.gz", gzip.compress(plain[:500].encode()) + gzip.compress(plain[500:].encode()))
    add("latin1_unused.csv", _csv("label,score,name", Y, P, ["Müller"] * N).encode("latin-1"))
    add("latin1.csv", _csv("label,score", np.array(["nè", "né"])[Y], P).encode("latin-1"),
        "--encoding", "latin-1", "--pos-label", "né")  # fmt: skip
    add("long_integers.csv", _csv("label,score", [1] * 12_000 + list(Y), [1] * 12_000 + list(P)),
        y=[1] * 12_000 + list(Y), p=[1] * 12_000 + list(P))  # fmt: skip
    add("pattern_name.csv", _csv("label,^s.*$,s", Y, P, 1 - P), "--score", "^s.*$")
    add("quoted_name.csv", _csv('label,"the ""score"""', Y, P), "--score", 'the "score"')
    add("two_columns.csv", _csv("won,prob", Y, P))

    # Labels
    add("floats.csv", _csv("label,score", [f"{y}.0" for y in Y], P))
    add("booleans.csv", _csv("label,score", np.array(["False", "True"])[Y], P))
    add("lower_booleans.csv", _csv("label,score", np.array(["false", "true"])[Y], P))
    for negative, positive in (("no", "yes"), ("No", "Yes"), ("negative", "positive"), ("N", "Y")):
        add(f"{negative}_{positive}.csv", _csv("label,score", np.array([negative, positive])[Y], P))
    add("padded_words.csv", _csv("label,score", [f"{w} " if k % 2 else w for k, w in enumerate(words)], P),
        "--pos-label", "yes")  # fmt: skip
    add("one_two.csv", _csv("label,score", Y + 1, P), "--pos-label", "2")
    add("big_ids.parquet", _written(pl.DataFrame(
        {"label": pl.Series(Y.astype(np.uint64) + np.uint64(2**63), dtype=pl.UInt64), "score": P}).write_parquet),
        "--pos-label", str(2**63 + 1))  # fmt: skip
    add(
        "decimal_labels.parquet",
        _written(frame.with_columns(pl.col("label").cast(pl.Decimal(10, 2))).write_parquet),
    )
    add("categories.parquet", _written(pl.DataFrame({"label": words, "score": P}).cast(
        {"label": pl.Categorical}).write_parquet))  # fmt: skip
    add("text_scores.parquet", _written(frame.with_columns(pl.col("score").cast(pl.String)).write_parquet))
    add("dates.parquet", _written(pl.DataFrame({"label": np.array(["2020-01-01", "2020-01-02"], "M8[D]")[Y],
        "score": P}).write_parquet), "--pos-label", "2020-01-02")  # fmt: skip
    add("ids.csv", _csv("label,guess,score", [10**19 + int(y) for y in Y], [10**19 + 1] * N, P),
        "--predicted", "guess")  # fmt: skip
    add("predicted.csv", _csv("truth,guess,score", ANIMALS[Y3], [f"{name} " for name in ANIMALS[P3.argmax(axis=1)]],
        P3.max(axis=1)), "--predicted", "guess", y=P3.argmax(axis=1) == Y3, p=P3.max(axis=1))  # fmt: skip
    add("predicted_numbers.csv", _csv("truth,guess,score", Y3, [f"{k}.0" for k in P3.argmax(axis=1)],
        P3.max(axis=1)), "--predicted", "guess", y=P3.argmax(axis=1) == Y3, p=P3.max(axis=1))  # fmt: skip

    # Scores
    add("percent.csv", _csv("label,score", Y, [f"{100 * p:.1f}" for p in P]), "--percent")
    add("percent_sign.csv", _csv("label,score", Y, [f"{100 * p:.1f}%" for p in P]), "--percent")
    add("percent_blank.csv", _csv("label,score", Y, [f"{100 * p:.1f} %" for p in P]), "--percent")
    add("rounding.csv", _csv("label,score", Y, [p if p < 0.9 else 1.0000003 for p in P]), "--clip",
        p=np.where(P < 0.9, P, 1))  # fmt: skip
    holes = np.arange(N) % 7 == 0
    add("holes.csv", _csv("label,score", Y, ["" if h else p for h, p in zip(holes, P, strict=True)]),
        "--drop-missing", y=Y[~holes], p=P[~holes])  # fmt: skip
    add("null_words.csv", _csv("label,score", ["NULL" if h else y for h, y in zip(holes, Y, strict=True)], P),
        "--drop-missing", y=Y[~holes], p=P[~holes])  # fmt: skip
    add("float32.parquet", _written(frame.with_columns(pl.col("score").cast(pl.Float32)).write_parquet),
        p=P.astype(np.float32))  # fmt: skip

    weight = np.arange(N) % 3
    add("counts.csv", _csv("label,score,weight", Y, P, weight), "--weight", "weight", "--counts",
        y=Y.repeat(weight), p=P.repeat(weight))  # fmt: skip

    # Several classes
    add("numbered.csv", _csv("label,p2,p0,p1", Y3, *P3.T[[2, 0, 1]]), y=Y3, p=P3)
    add("reversed.csv", _csv("label,p0,p1,p2", Y3, *P3.T), *_scores("p2", "p1", "p0"), y=Y3, p=P3)
    add("counted_from_1.csv", _csv("label,p1,p2,p3", Y3 + 1, *P3.T), y=Y3, p=P3)
    add("pattern.csv", _csv("label,logit_0,logit_1,logit_2", Y3, *odds.T), "--score", "logit_*", "--logits",
        y=Y3, p=np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True))  # fmt: skip
    add("named.csv", _csv("label,cat,dog,ant", ANIMALS[Y3], *P3.T), y=Y3, p=P3)
    add("prefixed.csv", _csv("label,prob_ant,prob_cat,prob_dog", ANIMALS[Y3], *P3.T[[2, 0, 1]]), "--score", "prob_*",
        y=Y3, p=P3)  # fmt: skip
    add(
        "one_class.csv",
        _csv("label,cat,dog,ant", ANIMALS[Y3], *P3.T),
        "--pos-label",
        "dog",
        y=Y3 == 1,
        p=P3[:, 1],
    )
    add("sklearn.csv", _csv("label,prob_0,prob_1", Y, 1 - P, P))
    add("sklearn_one.csv", _csv("label,y_pred_proba_1", Y, P))
    add("true_false.csv", _csv("label,True,False", np.array(["False", "True"])[Y], P, np.round(1 - P, 3)),
        *_scores("True", "False"))  # fmt: skip
    add("one_hot.csv", _csv("pa,pb,pc,ya,yb,yc", *P3.T, *np.eye(3, dtype=int)[Y3].T), *_scores("pa", "pb", "pc"),
        "--label", "ya", "--label", "yb", "--label", "yc", y=Y3, p=P3)  # fmt: skip
    add("one_hot_shuffled.csv", _csv("pa,pb,pc,yc,ya,yb", *P3.T, *np.eye(3, dtype=int)[Y3].T[[2, 0, 1]]),
        *_scores("p?"), "--label", "y?", y=Y3, p=P3)  # fmt: skip
    add("rounded.csv", _csv("label,p0,p1,p2", Y3, *np.round(P3, 1).T), "--normalize", y=Y3,
        p=np.round(P3, 1) / np.round(P3, 1).sum(axis=1, keepdims=True))  # fmt: skip
    add(
        "lists.parquet", _written(pl.DataFrame({"label": Y3, "probs": P3.tolist()}).write_parquet), y=Y3, p=P3
    )
    add("text_lists.parquet", _written(pl.DataFrame({"label": ANIMALS[Y3], "probs": P3.tolist()}).write_parquet),
        "--classes", "cat,dog,ant", y=Y3, p=P3)  # fmt: skip
    add("fields.jsonl", _json_lines([{"label": ANIMALS[y], "probs": dict(zip(ANIMALS, p, strict=True))}
        for y, p in zip(Y3, P3.tolist(), strict=True)]), y=Y3, p=P3)  # fmt: skip

    # Other formats
    add("rows.jsonl", frame.write_ndjson())
    add("rows.jsonl.gz", gzip.compress(frame.write_ndjson().encode()))
    add("list.json", frame.write_json())
    add("columns.json", json.dumps({"label": Y.tolist(), "score": P.tolist()}))
    pairs = list(zip(Y.tolist(), P.tolist(), strict=True))
    add("path.jsonl", _json_lines([{"truth": {"y": y}, "pred": {"p": p}} for y, p in pairs]),
        "--label", "truth.y", "--score", "pred.p")  # fmt: skip
    add("late_text.jsonl", _json_lines([{"label": y, "score": str(p) if k > 250 else p}
        for k, (y, p) in enumerate(pairs)]))  # fmt: skip
    add("table.parquet", _written(frame.write_parquet))
    add("table.feather", _written(frame.write_ipc))
    add("stream.arrow", _written(frame.write_ipc_stream))
    add("arrays.npz", _written(lambda file: np.savez(file, label=Y, score=P, other=np.arange(5))))
    add("matrix.npz", _written(lambda file: np.savez(file, label=np.eye(3)[Y3], probs=P3)), y=Y3, p=P3)
    add("records.npy", _written(lambda file: np.save(file, np.array(list(zip(Y, P, strict=True)),
        dtype=[("label", "i8"), ("score", ">f8")]))))  # fmt: skip
    return found
