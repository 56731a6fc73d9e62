"""Odd files of predictions by the hundred: combinations of layouts, values, labels, names and formats.

Each is either read, and then it must hold the labels and scores given here, or refused in one line.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from support.prediction_files import ANIMALS, P3, Y3, N, P, Y, _csv, _scores, _written


@dataclass(frozen=True)
class OddFile:
    """A file: its name, its bytes, the options, and the labels and scores that it holds; None if it is refused."""

    name: str
    content: bytes
    options: tuple[str, ...] = ()
    y_true: Any = None
    y_proba: Any = None

    def __repr__(self) -> str:
        return self.name


def odd_files() -> list[OddFile]:
    """Return all of them."""
    return [
        *_layouts(),
        *_encodings(),
        *_headers(),
        *_numbers(),
        *_labels(),
        *_classes(),
        *_binary(),
        *_json(),
    ]


def _read(name: str, content: str | bytes, *options: str, y: Any = Y, p: Any = P) -> OddFile:
    return OddFile(name, content.encode() if isinstance(content, str) else content, options, y, p)


def _refused(name: str, content: str | bytes, *options: str) -> OddFile:
    return OddFile(name, content.encode() if isinstance(content, str) else content, options)


def _layouts() -> list[OddFile]:
    found = []
    separators = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
    ends = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
    for (by, separator), (end, mark), quote, last, bom in itertools.product(
        separators.items(), ends.items(), ("", '"'), (True, False), (True, False)
    ):
        head = separator.join(f"{quote}{name}{quote}" for name in ("label", "score"))
        columns = [[f"{quote}{value}{quote}" for value in column] for column in (Y, P)]
        text = _csv(head, *columns, separator=separator, end=mark)
        text = text if last else text[: -len(mark)]
        name = f"{by}_{end}_{'quoted' if quote else 'bare'}_{last}_{bom}.csv"
        found.append(_read(name, ("\ufeff" if bom else "") + text))
    plain = _csv("label,score", Y, P)
    rows = plain.partition("\n")[2]
    packed = gzip.compress(plain.encode())
    found += [
        _read("blank_first.csv", "\n  \n" + plain),
        _read("trailing_separator.csv", _csv("label,score,", Y, P, [""] * N)),
        _read("short_rows.csv", "label,score,unused\n" + rows),
        _read("inches.csv", _csv("label,score,size", Y, P, ['5"2'] * N)),
        _read("line_breaks.csv", _csv("label,score,text", Y, P, ['"a\nb,1,2\n"'] * N)),
        _read("doubled_quotes.csv", _csv("label,score,text", Y, P, ['"say ""no"", now"'] * N)),
        _read("packed_unnamed.csv", packed),
        _read("unpacked_named.csv.gz", plain),
        _refused("long_rows.csv", "label,score\n" + rows.replace("\n", ",1\n", 1)),
        _refused("missing_field.csv", plain + "1\n"),
        _refused("repeated_header.csv", plain + plain),
        _refused("total.csv", plain + "Total,100\n"),
        _refused("comment_within.csv", plain + "# end\n" + rows),
        _refused("mixed_quotes.csv", _csv("label,score,size", Y, P, ['5"2', *['"5"'] * (N - 1)])),
        _refused("open_quote.csv", _csv("label,score,text", Y, P, [*["a"] * (N - 1), '"a'])),
        _refused("nul.csv", plain.replace("\n", "\0\n", 1)),
        _refused("header_only.csv", "label,score\n"),
        _refused("empty.csv", ""),
        _refused("one_line_feed.csv", "\n"),
        _refused("no_header.csv", rows),
        _refused("html.csv", "<html><body>label,score</body></html>\n"),
        _refused("packed_cut.csv.gz", packed[:-10]),
        _refused("packed_twice.csv.gz", gzip.compress(packed)),
        _refused("packed_and_more.csv.gz", packed + b"more"),
        _refused("parquet.csv", _parquet({"label": Y, "score": P})),
        _refused("csv.parquet", plain),
        _refused("zip.csv", b"PK\x03\x04" + b"0" * 100),
    ]
    return found


def _encodings() -> list[OddFile]:
    found = []
    text = _csv("étiquette,score", Y, P)
    for encoding in ("utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-8-sig", "cp437", "gb18030"):
        data = text.encode(encoding)
        found.append(
            _read(f"{encoding}.csv", data, "--encoding", encoding, "--label", "étiquette", "--score", "score")
        )
    wide = _csv("label,score", Y, P)
    found += [
        _refused(f"{name}_bare.csv", wide.encode(name)) for name in ("utf-16-le", "utf-16-be", "utf-32")
    ]
    found.append(
        _refused("latin-1_bare.csv", text.encode("latin-1"), "--label", "étiquette", "--score", "score")
    )
    found.append(_refused("unknown.csv", wide, "--encoding", "nope"))
    return found


def _headers() -> list[OddFile]:
    def chosen(label: str, score: str) -> tuple[str, ...]:
        return "--label", label, "--score", score

    names = [
        ("c1", "c0"), ("_y", "_p0"), ("_w", "_cell"), ("a.b", "c.d"), ("my label", "my score"), ("y", "p*"),
        ("y", "p[1]"), ("^y$", "^s.*$"), ("Müller", "スコア"), ("literal", "value"), ("group 0", "count"),
    ]  # fmt: skip
    found = [
        _read(f"names_{k}.csv", _csv(f"{label},{score},q,pa", Y, P, 1 - P, 1 - P), *chosen(label, score))
        for k, (label, score) in enumerate(names)
    ]
    found += [
        _read("capitals.csv", _csv("Label,SCORE", Y, P)),
        _read("no_name.csv", _csv(",label,score", range(N), Y, P)),
        _read("same_unused.csv", _csv("label,score,x,x", Y, P, Y, Y)),
        _read(
            "many_columns.csv", _csv(f"label,score,{','.join(f'x{k}' for k in range(500))}", Y, P, *[P] * 500)
        ),
        _refused("same_used.csv", _csv("label,score,score", Y, P, 1 - P), "--score", "score"),
        _refused("two_labels.csv", _csv("label,Label,score", Y, 1 - Y, P)),
        _refused("label_is_score.csv", _csv("x,y", Y, P), *chosen("x", "x")),
        _refused("line_break.csv", _csv('label,"sc\nore"', Y, P), "--score", "sc\nore"),
        _refused("gone.csv", _csv("label,score", Y, P), "--score", "scor"),
    ]
    return found


def _numbers() -> list[OddFile]:
    def column(name: str, write: Callable[[float], str], *, reads: bool) -> OddFile:
        text = _csv("label,score", Y, [write(p) for p in P.tolist()])
        return _read(name, text) if reads else _refused(name, text)

    arabic = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
    found = [
        column("exponent.csv", lambda p: f"{p:.3e}", reads=True),
        column("plus.csv", lambda p: f"+{p}", reads=True),
        column("zeros.csv", lambda p: f"00{p:.9f}", reads=True),
        column("no_zero.csv", lambda p: f"{p:.3f}".replace("0.", "."), reads=True),
        column("blanks.csv", lambda p: f" {p}\t", reads=True),
        column("no_break_space.csv", lambda p: f"\u00a0{p}\u00a0", reads=True),
        column("comma.csv", lambda p: f'"{p}"'.replace(".", ","), reads=True),
        column("apostrophe.csv", lambda p: f"'{p}", reads=False),
        column("dollar.csv", lambda p: f"${p}", reads=False),
        column("fraction.csv", lambda p: f"{p * 1000:.0f}/1000", reads=False),
        column("hexadecimal.csv", float.hex, reads=False),
        column("arabic.csv", lambda p: str(p).translate(arabic), reads=False),
        column("fortran.csv", lambda p: f"{p:.3e}".replace("e", "d"), reads=False),
        column("sign.csv", lambda p: f"{100 * p:.1f}%", reads=False),
        column("tensor.csv", lambda p: f"tensor({p})", reads=False),
        column("negative.csv", lambda p: str(p - 1), reads=False),
    ]
    keep = np.arange(N) != 5
    words = [
        "nan", "NaN", "NA", "NULL", "None", "", " ", "inf", "-inf", "-", "?", ".", "#DIV/0!", "n.a.", "-0.1", "1.0001",
        "1e400", "2",
    ]  # fmt: skip
    for k, word in enumerate(words):
        scores = _csv("label,score", Y, np.where(keep, P.astype(str), word))
        labels = _csv("label,score", np.where(keep, Y.astype(str), word), P)
        found.append(_refused(f"score_{k}.csv", scores))
        if k < 7:
            found.append(_refused(f"label_{k}.csv", labels))
            for name, text in (("score", scores), ("label", labels)):
                found.append(_read(f"{name}_{k}_dropped.csv", text, "--drop-missing", y=Y[keep], p=P[keep]))
    zero = np.where(keep, P, 0.0)
    found += [
        _read(f"zero_{k}.csv", _csv("label,score", Y, np.where(keep, P.astype(str), word)), p=zero)
        for k, word in enumerate(("-0.0", "1e-400", "0", "0e5"))
    ]
    return found


def _labels() -> list[OddFile]:
    alone = [
        ("0", "1"),
        ("00", "01"),
        ("0.0", "1.0"),
        ("-0", "1"),
        ("f", "t"),
        ("N", "Y"),
        ("NO", "YES"),
        ("neg", "pos"),
    ]
    asked = [
        ("-1", "1"), ("1", "2"), ("bad", "good"), ("è", "é"), ("e\u0301", "\u00e9"), ("a b", "a  b"), ("👎", "👍"),
        (str(2**53), str(2**53 + 1)), (str(10**30), str(10**30 + 1)), ("0.1", "0.2"), ("2020-01-01", "2020-01-02"),
        ("=0", "=1"), ("off", "on"),
    ]  # fmt: skip
    found = [
        _read(f"alone_{k}.csv", _csv("label,score", np.array(pair, object)[Y], P))
        for k, pair in enumerate(alone)
    ]
    for k, pair in enumerate(asked):
        text = _csv("label,score", np.array(pair, object)[Y], P)
        found += [_refused(f"not_asked_{k}.csv", text), _read(f"asked_{k}.csv", text, "--pos-label", pair[1])]
    found += [
        _read("always.csv", _csv("label,score", ["yes"] * N, P), y=np.ones(N)),
        _read("never.csv", _csv("label,score", [0] * N, P), y=np.zeros(N)),
        _refused("three.csv", _csv("label,score", Y3, P)),
        _refused("scores.csv", _csv("label,score", P, P)),
        _refused("misspelt.csv", _csv("label,score", np.array(["neg", "pos"])[Y], P), "--pos-label", "Pos"),
        _refused("other_kind.csv", _csv("label,score", Y, P), "--pos-label", "x"),
        _refused("not_there.csv", _csv("label,score", Y, P), "--pos-label", "9"),
    ]
    return found


def _classes() -> list[OddFile]:
    found = []
    families = ["p{}", "prob_{}", "class_{}", "{}", "P{}", "y_pred_proba_{}"]
    for order in itertools.permutations(range(3)):
        tag, columns = "".join(map(str, order)), [P3[:, k] for k in order]
        for f, family in enumerate(families):
            head = ",".join(family.format(k) for k in range(3))
            mixed = ",".join(family.format(k) for k in order)
            chosen = _scores(*(family.format(k) for k in order))
            found.append(_read(f"file_{f}_{tag}.csv", _csv(f"label,{mixed}", Y3, *columns), y=Y3, p=P3))
            found.append(_read(f"asked_{f}_{tag}.csv", _csv(f"label,{head}", Y3, *P3.T), *chosen, y=Y3, p=P3))
        names = ",".join(ANIMALS[k] for k in order)
        found.append(_read(f"animals_{tag}.csv", _csv(f"label,{names}", ANIMALS[Y3], *columns), y=Y3, p=P3))
        prefixed = ",".join(f"prob_{ANIMALS[k]}" for k in order)
        text = _csv(f"label,{prefixed}", ANIMALS[Y3], *columns)
        found.append(_read(f"prefixed_{tag}.csv", text, "--score", "prob_*", y=Y3, p=P3))
        hot = [(k == Y3).astype(int) for k in order]
        text = _csv(f"a,b,c,{','.join('y_' + 'abc'[k] for k in order)}", *P3.T, *hot)
        asked = [part for k in order for part in ("--label", f"y_{'abc'[k]}")]
        found.append(_read(f"one_hot_{tag}.csv", text, *_scores("a", "b", "c"), *asked, y=Y3, p=P3))
    rest = np.round(1 - P, 3)
    found += [
        _read("counted_from_8.csv", _csv("label,p10,p9,p8", Y3 + 8, *P3.T[::-1]), y=Y3, p=P3),
        _read("second_first.csv", _csv("label,prob_1,prob_0", Y, P, rest)),
        _read("no_yes.csv", _csv("label,yes,no", np.array(["no", "yes"])[Y], P, rest)),
        _read("true_false.csv", _csv("label,True,False", Y == 1, P, rest), *_scores("True", "False")),
        _refused("beyond.csv", _csv("label,p0,p1,p2", Y3 + 1, *P3.T)),
        _refused("sums.csv", _csv("label,p0,p1,p2", Y3, *(0.9 * P3).T)),
        _refused("hole.csv", _csv("label,p0,p1,p2", Y3, ["", *P3[1:, 0]], P3[:, 1], P3[:, 2])),
        _refused(
            "capitals_3.csv", _csv("label,CAT,DOG,ANT", ANIMALS[Y3], *P3.T), *_scores("CAT", "DOG", "ANT")
        ),
    ]
    return found


def _parquet(columns: dict[str, Any], **options: Any) -> bytes:
    return _written(lambda file: pl.DataFrame(columns).write_parquet(file, **options))


def _npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _binary() -> list[OddFile]:
    found = []
    kinds = [
        pl.Int8,
        pl.Int32,
        pl.UInt8,
        pl.UInt64,
        pl.Int128,
        pl.Float32,
        pl.Float64,
        pl.Boolean,
        pl.Decimal(5, 1),
    ]
    for kind in kinds:
        label = pl.Series(Y).cast(kind)
        tag = str(kind).partition("(")[0]
        found.append(_read(f"{tag}.parquet", _parquet({"label": label, "score": P})))
        frame = pl.DataFrame({"label": label, "score": P})
        if kind != pl.Int128:
            found.append(_read(f"{tag}.arrow", _written(frame.write_ipc)))
    for compression in ("snappy", "gzip", "zstd", "lz4", "uncompressed", "brotli"):
        content = _parquet({"label": Y, "score": P}, compression=compression, row_group_size=64)
        found.append(_read(f"{compression}.parquet", content))
    good, lists = _parquet({"label": Y, "score": P}), P3.tolist()
    empty = pl.Series([[]] * N, dtype=pl.List(pl.Float64))
    found += [
        _read(
            "half.parquet", _parquet({"label": Y, "score": pl.Series(P).cast(pl.Float16)}), p=P.astype("f2")
        ),
        _read("decimal.parquet", _parquet({"label": Y, "score": pl.Series(P).cast(pl.Decimal(6, 3))})),
        _read(
            "array.parquet",
            _parquet({"label": Y3, "p": pl.Series(P3, dtype=pl.Array(pl.Float64, 3))}),
            y=Y3,
            p=P3,
        ),
        _read("lists_of_one.parquet", _parquet({"label": Y, "probs": P[:, np.newaxis].tolist()})),
        _read("lists_of_two.parquet", _parquet({"label": Y, "probs": np.column_stack([1 - P, P]).tolist()})),
        _refused("no_list.parquet", _parquet({"label": Y3, "probs": [None, *lists[1:]]})),
        _refused("hole_in_list.parquet", _parquet({"label": Y3, "probs": [[None, 0.5, 0.5], *lists[1:]]})),
        _refused("ragged.parquet", _parquet({"label": Y3, "probs": [[0.5, 0.5], *lists[1:]]})),
        _refused("empty_lists.parquet", _parquet({"label": Y3, "probs": empty})),
        _refused("dates.parquet", _parquet({"label": Y, "score": np.full(N, "2020-01-01", "M8[D]")})),
        _refused("nothing.parquet", _parquet({"label": Y, "score": [None] * N})),
        _refused("no_rows.parquet", _parquet({"label": [], "score": []})),
        _refused("cut.parquet", good[:-20]),
        _refused("mark.parquet", b"PAR1"),
    ]
    for kind in ("?", "i1", "u1", "<i4", ">i4", "<f4", ">f8", "U1", "S1"):
        name = f"label_{kind.strip('<>?') or 'bool'}_{'big' if '>' in kind else 'little'}.npz"
        found.append(_read(name, _npz(label=Y.astype(kind), score=P)))
    for kind in ("<f2", "<f4", ">f4", ">f8"):
        content = _npz(label=Y, score=P.astype(kind))
        found.append(_read(f"score_{kind[1:]}_{kind[0] == '>'}.npz", content, p=P.astype(f"={kind[1:]}")))
    found += [
        _read("columns.npz", _npz(label=Y[:, np.newaxis], score=P[:, np.newaxis])),
        _read("fortran.npz", _npz(label=Y3, probs=np.asfortranarray(P3)), y=Y3, p=P3),
        _read("long_double.npz", _npz(label=Y, score=P.astype(np.longdouble))),
        _refused("objects.npz", _npz(label=Y.astype(object), score=P)),
        _refused("complex.npz", _npz(label=Y, score=P + 0j)),
        _refused("transposed.npz", _npz(label=Y3, probs=P3.T)),
        _refused("shorter.npz", _npz(label=Y, score=P[:-1])),
        _refused("pickle.npy", b"\x80\x04N."),
    ]
    return found


def _json() -> list[OddFile]:
    rows: list[dict[str, Any]] = [
        {"label": y, "score": p} for y, p in zip(Y.tolist(), P.tolist(), strict=True)
    ]

    def lines(changed: dict[int, Any] | None = None, end: str = "\n") -> str:
        return end.join(json.dumps((changed or {}).get(k, row)) for k, row in enumerate(rows))

    first = np.append(1.0, P[1:])
    return [
        _read("crlf.jsonl", lines(end="\r\n")),
        _read("blank.jsonl", lines(end="\n\n") + "\n\n"),
        _read("mark.jsonl", "\ufeff" + lines()),
        _read("pretty.json", json.dumps(rows, indent=2)),
        _read("columns.json", json.dumps({"label": Y.tolist(), "score": P.tolist()}, indent=1)),
        _read("order.jsonl", lines({7: dict(reversed(rows[7].items()))})),
        _read("late_key.jsonl", lines({200: {**rows[200], "new": 1}})),
        _read("whole_first.jsonl", lines({0: {"label": int(Y[0]), "score": 1}}), p=first),
        _read("one_row.jsonl", '{"label": 1, "score": 0.5}', y=[1], p=[0.5]),
        _read("one_list.jsonl", '{"label": 1, "probs": [0.5, 0.25, 0.25]}', y=[1], p=[[0.5, 0.25, 0.25]]),
        _refused("missing_key.jsonl", lines({200: {"label": 1}})),
        _refused("null.jsonl", lines({3: {"label": 1, "score": None}})),
        _refused("nan.jsonl", lines({3: {"label": 1, "score": float("nan")}})),
        _refused("twice.jsonl", lines().replace('"score"', '"label"', 1)),
        _refused("cut.jsonl", lines()[:-8]),
        _refused("word.jsonl", lines() + "\noops\n"),
        _refused("lists.json", json.dumps([list(row.values()) for row in rows])),
        _refused("lengths.json", json.dumps({"label": Y.tolist(), "score": P.tolist()[:-1]})),
        _refused("split.json", json.dumps({"columns": ["label", "score"], "data": [[1, 0.5], [0]]})),
        _refused("number.json", "5"),
        _refused("nothing.json", "[]"),
        _refused("no_keys.json", "{}"),
    ]
