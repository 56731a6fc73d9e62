"""The columns of a file, in memory or not; and text tables, whose layout follows from their first bytes."""

from __future__ import annotations

import csv
import io
import json
import mmap
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecal._lib.checks import did_you_mean
from truecal._lib.text import counted, listing
from truecal.exceptions import InputError

#: Files with more rows, or bytes of text, are summarised in passes instead of loaded into memory.
MANY_ROWS, MANY_BYTES = 20_000_000, 1_000_000_000


#: Where the bytes of a table are: a file, or memory.
Content = Path | bytes


def opened(content: Content) -> IO[bytes]:
    """Open bytes for reading."""
    return io.BytesIO(content) if isinstance(content, bytes) else content.open("rb")


def _mapped(content: Content) -> bytes | mmap.mmap:
    """Return bytes; those of a file are read when they are looked at."""
    if isinstance(content, bytes):
        return content
    with content.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def first_line(error: BaseException) -> str:
    """Return the first line of the text of an error, without its full stop."""
    return (str(error).splitlines() or [type(error).__name__])[0].strip().rstrip(".")


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of a file.

    Attributes
    ----------
    source : str
        The file, as messages name it.
    columns : tuple of str
        Names of the columns.
    frame : polars.LazyFrame, or mapping of str to ndarray
        The columns in this order, by position; NumPy files hold arrays, which may differ in length.
    n_rows : float
        About how many rows a text table has; 0 for formats that know it.
    separator : str
        What separates the fields of a text table.
    label, cluster, scores : str, str and tuple of str
        Columns of labels, clusters and scores of bundled data and logs, where they are known.
    notes : tuple of str
        What a reader must know of the file.
    doubt : str
        Why its labels may not be the truth, if there is a reason.
    explain : callable
        What an error while reading it means, in one line.
    """

    source: str
    columns: tuple[str, ...]
    frame: pl.LazyFrame | Mapping[str, NDArray[Any]]
    n_rows: float = 0
    separator: str = ""
    label: str = ""
    cluster: str = ""
    scores: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    doubt: str = ""
    explain: Callable[[BaseException], str] = field(default=first_line, repr=False)

    @cached_property
    def is_large(self) -> bool:
        """Whether the table has too many rows for memory."""
        if isinstance(self.frame, Mapping):
            return False
        n_rows = self.n_rows or int(self.collect(self.frame.select(pl.len())).item())
        return n_rows > MANY_ROWS

    def describe(self) -> str:
        """Describe the number of columns and how the rows are read."""
        separator = f" separated by {self.separator!r}" if self.separator else ""
        rows = "summarised in batches" if self.is_large else "read into memory"
        return f"{counted(len(self.columns), 'column')}{separator}, and its rows are {rows}"

    def scan(self, names: Sequence[str]) -> pl.LazyFrame:
        """Return the named columns, or fields of columns such as ``pred.p``, as ``c0``, ``c1`` and so on."""
        paths = [self._find(name) for name in names]
        if isinstance(self.frame, Mapping):
            arrays = [self.frame[self.columns[column]] for column, _ in paths]
            if len({len(array) for array in arrays}) > 1:
                lengths = ", ".join(
                    f"{name!r} {len(array)}" for name, array in zip(names, arrays, strict=True)
                )
                raise InputError(f"{self.source}: columns differ in length: {lengths}")
            return pl.LazyFrame({f"c{k}": _as_column(array) for k, array in enumerate(arrays)})
        # By position, for Polars reads a name such as "^s.*$" as a pattern.
        columns = []
        for k, (column, fields) in enumerate(paths):
            values = pl.nth(column)
            for part in fields:
                values = values.struct.field(part)
            columns.append(values.alias(f"c{k}"))
        return self.frame.select(columns)

    def _find(self, name: str) -> tuple[int, list[str]]:
        """Return the number of a column and the path within it, or refuse a name that is not there."""
        if self.columns.count(name) > 1:
            raise InputError(f"{self.source} has several columns named {name!r}. Rename all but one")
        if name in self.columns:
            return self.columns.index(name), []
        head, *fields = name.split(".")
        if fields and head in self.columns and self._has_field(head, fields):
            return self.columns.index(head), fields
        raise InputError(
            f"{self.source} has no column {name!r}. It has: {listing(self.columns, 20)}",
            remedy=did_you_mean(name, self.columns),
        )

    def _has_field(self, column: str, fields: list[str]) -> bool:
        dtype = self.scan([column]).collect_schema()["c0"]
        for part in fields:
            if not isinstance(dtype, pl.Struct) or part not in (known.name for known in dtype.fields):
                return False
            dtype = cast("pl.DataType", dtype.to_schema()[part])
        return True

    def collect(self, frame: pl.LazyFrame) -> pl.DataFrame:
        """Run a query on the table, in batches of rows."""
        with self.reading():
            return frame.collect(engine="streaming")

    @contextmanager
    def reading(self, *errors: type[Exception]) -> Iterator[None]:
        """Name the file in errors of Polars, and in others that reading it may raise."""
        expected: tuple[type[BaseException], ...]
        expected = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, *errors)
        try:
            yield
        except expected as error:
            raise InputError(f"{self.source} cannot be read: {self.explain(error)}") from error


def _as_column(array: NDArray[Any]) -> pl.Series:
    """Return an array as a column: (n, K) as a column of K numbers each."""
    if array.ndim > 1 and array.shape[-1] == array.size // max(len(array), 1) == 1:
        array = array.reshape(-1)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:  # long double, which Polars does not have
        array = array.astype(np.float64)
    if array.dtype.kind in "fiu" and not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return pl.Series(values=np.ascontiguousarray(array), strict=False)


def free_name(name: str, taken: Container[str], mark: str) -> str:
    """Return an unused name, with as many marks appended as necessary."""
    while name in taken:
        name += mark
    return name


def repeated(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once."""
    return [name for name, times in Counter(names).items() if times > 1]


# --- Text: lines of fields, or JSON ---------------------------------------------------------------

UTF8_MARK = b"\xef\xbb\xbf"
_SEPARATORS = ",\t;|"
_NUMBER = re.compile(r"\s*[+-]?[\d.]+(e[+-]?\d+)?\s*", re.IGNORECASE)
_QUOTE, _CHUNK = ord('"'), 1 << 26


@dataclass(frozen=True)
class Dialect:
    """How a text table is laid out.

    Attributes
    ----------
    names : tuple of str
        Names of the columns.
    separator : str
        What separates the fields.
    end_of_line : str
        What ends a line: a line feed (a carriage return before it does not matter), or a carriage return.
    skip_lines : int
        Lines before the header.
    has_header : bool
        Whether the first line after these is the header.
    """

    names: tuple[str, ...]
    separator: str = ","
    end_of_line: str = "\n"
    skip_lines: int = 0
    has_header: bool = True


def read_dialect(head: bytes, format: str) -> Dialect:
    r"""Return the layout of a text table from its first bytes, or refuse what is not a text table.

    Examples
    --------
    >>> read_dialect(b"label;score\n1;0,25\n", "csv")
    Dialect(names=('label', 'score'), separator=';', end_of_line='\n', skip_lines=0, has_header=True)
    >>> read_dialect(b"sep=;\nlabel;score\n1;0,25\n", "csv").skip_lines
    1
    """
    if b"\0" in head:
        raise InputError("contains NUL bytes; not a text file")
    end = "\r" if b"\r" in head and b"\n" not in head else "\n"
    lines = _whole_lines(head, end)
    skipped, declared = _before_header(lines)
    header = lines[skipped]
    if header.count('"') % 2:
        raise InputError(
            "the header has a line break within quotation marks, or an unbalanced quotation mark"
        )
    if "\N{REPLACEMENT CHARACTER}" in header:
        raise InputError("the column names are not UTF-8. Pass --encoding, such as --encoding latin-1")
    separator = declared or ("\t" if format == "tsv" else _separator(header))
    names = _fields(header, separator)
    if not all(_NUMBER.fullmatch(name) for name in names):
        return Dialect(names, separator, end, skipped)
    comment = _fields(lines[skipped - 1].lstrip("# "), separator) if skipped else ()
    if len(comment) != len(names):
        raise InputError("the first line contains only numbers. Add a header line with column names")
    return Dialect(comment, separator, end, skipped, has_header=False)


def _before_header(lines: list[str]) -> tuple[int, str | None]:
    """Return the number of lines before the header: comments, blank ones, and one that declares a separator."""
    match = re.fullmatch(r"sep=(.)", lines[0].strip('"').strip())
    skipped = 1 if match else 0
    while skipped < len(lines) - 1 and (lines[skipped].startswith("#") or not lines[skipped].strip()):
        skipped += 1
    return skipped, match[1] if match else None


def _whole_lines(head: bytes, end: str) -> list[str]:
    """Return the lines of the first bytes without the last one, which may be cut off."""
    plain = head.removeprefix(UTF8_MARK)
    try:
        text = plain.rpartition(end.encode())[0].decode() or head.decode()
    except UnicodeDecodeError:
        text = plain.decode("utf-8", "replace")
    return [line.strip("\r") for line in text.split(end)]


def _separator(header: str) -> str:
    bare = re.sub(r'"[^"]*"', "", header)
    return max(_SEPARATORS, key=bare.count)


def _fields(line: str, separator: str) -> tuple[str, ...]:
    try:
        return tuple(name.strip() for name in next(csv.reader([line], delimiter=separator), []))
    except csv.Error as error:
        raise InputError(f"the header cannot be read: {error}") from error


def scan_text(content: Content, dialect: Dialect, *, is_packed: bool) -> pl.LazyFrame:
    """Return a text table, every column as text: a type that fits the first rows may not fit the others."""
    frame = pl.scan_csv(
        content,
        separator=dialect.separator,
        has_header=dialect.has_header,
        skip_lines=dialect.skip_lines,
        eol_char=dialect.end_of_line,
        quote_char='"' if is_packed or has_quoted_fields(content, dialect.separator) else None,
        infer_schema=False,
        encoding="utf8-lossy",  # invalid bytes in columns that are not used do not matter
        glob=False,
    )
    data = _mapped(content)
    if any(data.find(mark) >= 0 for mark in (b"\n\n", b"\n\r\n", b"\r\r")):  # blank lines
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    return frame


def explain_text(content: Content, dialect: Dialect, error: BaseException) -> str:
    """Return which line has too many fields, the usual reason, or else Polars' message."""
    n_columns = len(dialect.names)
    with _as_text(content) as text, suppress(csv.Error):
        lines = csv.reader(text, delimiter=dialect.separator)
        long = next((lines.line_num for row in lines if len(row) > n_columns), None)
        if long is not None:
            return f"line {long} has more fields than the header, which has {n_columns}"
    return first_line(error)


def _as_text(content: Content) -> io.TextIOWrapper:
    return io.TextIOWrapper(opened(content), "utf-8", "replace", newline="")


def explain_json(content: Content, error: BaseException) -> str:
    """Return which line is not valid JSON, the usual reason, or else Polars' message."""
    with _as_text(content) as text:
        for number, line in enumerate(text, start=1):
            try:
                json.loads(line.strip() or "null")
            except (ValueError, RecursionError) as problem:
                if number > 1:
                    return f"line {number} is not valid JSON ({problem.args[0]})"
                try:  # one value over several lines
                    json.loads(line + text.read())
                except (ValueError, RecursionError) as problem:
                    return f"not valid JSON ({problem.args[0]})"
    return first_line(error)


def scan_json(content: Content, head: bytes, *, is_large: bool) -> pl.LazyFrame:
    """Return a table of JSON: one object for each line, or one value."""
    first = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    _refuse_repeated_keys(first)
    lines = first.split(b"\n", 2)
    if first[:1] == b"[" or len(lines) == 1 or not lines[0].rstrip().endswith(b"}"):
        if first[:1] == b"{":
            return _one_object(content).lazy()
        return pl.read_json(content, infer_schema_length=None).lazy()
    if not is_large:
        return pl.scan_ndjson(content, infer_schema_length=None)
    # A type that fits the first rows may not fit the others.
    schema = pl.scan_ndjson(content, infer_schema_length=10_000).collect_schema()
    text = {name: pl.String for name, dtype in schema.items() if not dtype.is_nested()}
    return pl.scan_ndjson(content, infer_schema_length=10_000, schema_overrides=text)


def _one_object(content: Content) -> pl.DataFrame:
    """Return the table that one object of JSON holds: columns, one row, or what pandas writes.

    Polars would make a column of each row that pandas writes.
    """
    try:
        with opened(content) as file:
            table = json.load(file)
    except (ValueError, RecursionError) as error:
        raise InputError(explain_json(content, error)) from error
    rows = _rows_of_pandas(table) or table
    if isinstance(rows, list):
        return pl.from_dicts(rows, infer_schema_length=None, strict=False)
    columns = {name: values for name, values in rows.items() if isinstance(values, list)}
    if not columns or len(columns) == 1 < len(rows):
        return pl.from_dicts([rows])
    if len(set(map(len, columns.values()))) > 1:
        each = ", ".join(f"{name!r} {len(values)}" for name, values in columns.items())
        raise InputError(f"its columns differ in length: {each}")
    return pl.DataFrame(columns, strict=False)


def _rows_of_pandas(table: dict[str, Any]) -> Any:
    """Return what pandas wrote by default, or with the orientation "index", "split" or "table": rows, or columns."""
    rows: Any = table.get("data")
    names, values = table.get("columns"), list(table.values())
    kinds = set(map(type, rows)) if isinstance(rows, list) else set()
    if kinds == {list} and isinstance(names, list) and set(map(len, rows)) == {len(names)}:
        return [dict(zip(names, row, strict=True)) for row in rows]
    if kinds == {dict}:
        return rows
    if not all(isinstance(value, dict) and value and value.keys() == values[0].keys() for value in values):
        return None
    if all(name.isdecimal() for name in table):
        return values
    return {name: list(value.values()) for name, value in table.items()}


def _refuse_repeated_keys(head: bytes) -> None:
    """Reject rows with duplicate keys, which programs resolve differently.

    A program that writes such rows writes all of them so; the first ones are enough to see it.
    """
    reader = json.JSONDecoder(object_pairs_hook=unique_keys)
    text = head.decode("utf-8", "replace").lstrip("[")
    while text:
        try:
            _, end = reader.raw_decode(text)
        except (ValueError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            return  # damaged, or cut off: Polars reports the former
        text = text[end:].lstrip(" \t\r\n,")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of JSON with these keys and values, or refuse a key that is given twice."""
    names = repeated([name for name, _ in pairs])
    if names:
        raise InputError(f"the key {names[0]!r} is given more than once in a row")
    return dict(pairs)


def has_quoted_fields(content: Content, separator: str) -> bool:
    r"""Return whether quotation marks enclose fields; they do not if all of them are plain characters.

    A mark inside a field, as in ``5"2``, turns the next line breaks into text for some readers, and rows vanish. A
    table that has such marks beside quoted fields is refused.

    Examples
    --------
    >>> has_quoted_fields(b'label,score,text\n1,0.5,"yes, please"\n', ",")
    True
    >>> has_quoted_fields(b'label,score,size\n1,0.5,5"2\n', ",")
    False
    """
    data = np.frombuffer(_mapped(content), np.uint8)
    quoted, stray = _examine(data, separator)
    if quoted and stray is not None:
        line = int(np.count_nonzero(data[:stray] == ord("\n"))) + 1
        raise InputError(
            f"line {line} has a quotation mark that neither begins nor ends a field. Double it, and put the "
            f"field in quotation marks"
        )
    return quoted


def _examine(data: NDArray[np.uint8], separator: str) -> tuple[bool, int | None]:
    """Return whether any quotation mark begins a field, and where the first is that neither begins nor ends one."""
    around, begin = np.zeros((2, 256), bool)  # whether a byte may stand beside a mark, and before a field
    around[[*separator.encode(), *b"\r\n \t", _QUOTE]] = True
    begin[[*separator.encode(), *b"\r\n", 0xBF]] = True  # the last is that of a byte order mark
    opened, stray, n_before, last = False, None, 0, 0
    for start in range(0, len(data), _CHUNK):
        at = np.flatnonzero(data[start : start + _CHUNK] == _QUOTE) + start
        if not len(at):
            continue
        newline = np.uint8(ord("\n"))
        before = np.where(at > 0, data[at - 1], newline)
        after = np.where(at + 1 < len(data), data[np.minimum(at + 1, len(data) - 1)], newline)
        opening = (n_before + np.arange(len(at))) % 2 == 0
        is_begin = begin[before]
        opened |= bool(is_begin.any())
        wrong = np.where(opening, ~(is_begin | around[before]), ~around[after])
        if stray is None and wrong.any():
            stray = int(at[wrong.argmax()])
        n_before, last = n_before + len(at), int(at[-1])
    if stray is None and n_before % 2:
        stray = last
    return opened, stray
